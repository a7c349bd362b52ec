//===- GpuMoments.h - a mean and squares about it, together -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUMOMENTS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUMOMENTS_H

#include "GpuChannels.h"
#include "GpuSums.h"

namespace mlir::bngrad {

/// For the stage of the squares: the sums of x - first and of its square over
/// `threadPieces`, in f64, where x are the elements whose mean and squares the
/// stages compute, and `first` is an operand of theirs. The sums are per lane,
/// unless all lanes of a piece belong to one channel.
///
/// A thread reads each element once, and adds up distances and squares about
/// the mean of a few elements at a time (docs/mathematics.md, section 10).
Accumulators emitMoments(OpBuilder &b, const Pieces &pieces, const Walk &walk,
                         Indices indices, const ThreadPieces &threadPieces,
                         const Arrivals &arrivals = {});

/// Computes the results of a channel in the stages of the mean and of the
/// squares from the sums of emitMoments, `totals`, and from inputs, some of
/// which are `loaded`. The values of stage 0 are `known`, by viewed memref.
/// Calls `body` with each result.
void computeMoments(OpBuilder &b, const GpuGroup &gpu, const Indices &indices,
                    ValueRange totals,
                    const DenseMap<OpOperand *, Value> &loaded,
                    DenseMap<Value, Value> known, ResultBody body);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUMOMENTS_H
