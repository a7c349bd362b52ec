//===- GpuChannels.h - per-channel values of a stage ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These functions are about the current stage of a group.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUCHANNELS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUCHANNELS_H

#include "GpuGroup.h"

namespace mlir::bngrad {

/// The outputs that hold the sums, and the outputs of the per-channel generics.
SmallVector<OpOperand *> getChannelResults(const GpuGroup &gpu);
/// The inputs from which a channel's results are computed, except its sums.
SmallVector<OpOperand *> getChannelInputs(const GpuGroup &gpu);
/// Whether a per-channel result is read from memory later.
bool isRead(const GpuGroup &gpu, OpOperand &result);
/// Whether the group may change `memref` other than by writing a channel's
/// result over that channel's element.
bool mayChange(const GpuGroup &gpu, Value memref);
/// Whether a stage before the current one computes `memref`.
bool isOfEarlierStage(const GpuGroup &gpu, Value memref);
/// Stores a result of a channel.
void storeChannel(OpBuilder &b, const GpuGroup &gpu, OpOperand &result,
                  Value value, const Indices &indices);
/// Loads the inputs of a channel that the group does not change earlier, and
/// that no earlier stage computes.
///
/// A thread without a channel may pass another thread's `indices`. If
/// `storesAtOnce`, that other thread may store its results before this load.
DenseMap<OpOperand *, Value> loadChannelInputs(OpBuilder &b,
                                               const GpuGroup &gpu,
                                               const Indices &indices,
                                               bool storesAtOnce);
/// Computes the results of a channel from its sums, `totals`, and from its
/// inputs, some of which may be `loaded`. Earlier stages may have `computed`
/// values, by viewed memref. Calls `body` with each result.
using ResultBody = function_ref<void(OpBuilder &, OpOperand &, Value)>;
void computeChannel(OpBuilder &b, const GpuGroup &gpu, const Indices &indices,
                    ValueRange totals,
                    const DenseMap<OpOperand *, Value> &loaded,
                    DenseMap<Value, Value> computed, ResultBody body);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUCHANNELS_H
