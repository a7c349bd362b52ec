//===- GpuSums.h - sums of a thread, a warp, a block ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUSUMS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUSUMS_H

#include "GpuPieces.h"

namespace mlir::bngrad {

/// How the data that are added up arrive. In a step, each thread takes a piece.
struct Arrivals {
  int64_t steps = 0; // of a stage of the data; 0 if all data are there
  /// Waits for the data of a step.
  function_ref<void(OpBuilder &, Value)> awaitStep = nullptr;
};

/// The sums of the current stage over `threadPieces`, or the sums of
/// emitMoments. They are per lane, unless all lanes of a piece belong to one
/// channel.
Accumulators emitSums(OpBuilder &b, const Pieces &pieces, const Walk &walk,
                      Indices indices, const ThreadPieces &threadPieces,
                      const Arrivals &arrivals = {});

/// The sum of `values`, added as a tree.
Value addTree(OpBuilder &b, Location loc, SmallVector<Value> values);

/// In each of `lanes` lanes of a warp, the sum of `value` over all of them;
/// `lanes` is a power of 2.
Value addAcrossWarp(OpBuilder &b, Location loc, Value value, int64_t lanes);

/// The sums of all threads of a block, in its first warp. The warps exchange
/// them in `scratch`.
SmallVector<Value> addAcrossBlock(OpBuilder &b, const Kernel &kernel,
                                  ArrayRef<Accumulator> sums,
                                  ValueRange scratch);

/// The threads of a block as rows of columns. Adjacent threads are in adjacent
/// columns; left-over threads have rows past the last.
struct ThreadGrid {
  int64_t rows, columns;
  Value row, column; // of a thread
};

/// Adds `sums` of `lanes` elements along the rows of `grid`; threads without
/// terms have zeros. Calls `body` with the totals of each element of a row, in
/// one thread of the `countRowSharers` that share an element.
using TotalsBody =
    function_ref<void(OpBuilder &, Value element, ValueRange totals)>;
void addAcrossRows(OpBuilder &b, const Kernel &kernel, const ThreadGrid &grid,
                   ArrayRef<Accumulator> sums, int64_t lanes,
                   ValueRange scratch, TotalsBody body);
int64_t countRowSharers(const Kernel &kernel, const ThreadGrid &grid,
                        int64_t lanes);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUSUMS_H
