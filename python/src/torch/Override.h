//===- Override.h - batch norms of aten on the CPU --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_TORCH_OVERRIDE_H
#define BNGRAD_PYTHON_SRC_TORCH_OVERRIDE_H

#include "Gradient.h"

namespace bngrad::torch {

/// A gradient of aten, with the arguments of native_batch_norm_backward.
struct BackwardOp {
  const char *name;
  /// Whether the weight is not optional, and a last argument is cuDNN's space.
  bool hasReserve;
};

inline constexpr BackwardOp kBackwardOps[] = {
    {"native_batch_norm_backward", false}, {"batch_norm_backward", true}};

/// Instead of the place of an argument.
enum { kNone = -1, kAlways = -2, kNever = -3 };

/// A forward pass of aten: where it has its arguments. The first one is input.
struct ForwardOp {
  const char *name;
  int scale;   ///< and the offset after it
  int running; ///< the mean, and the variance after it
  bool isRunningOptional;
  int training; ///< or kAlways, or kNever
  int momentum;
  int epsilon;
  int out; ///< the given results; kNone: the op makes them
  /// Output, mean, inv_std and cuDNN's space; without a scale, mean and
  /// variance.
  int numResults;

  constexpr bool hasOutput() const { return scale != kNone; }
};

inline constexpr ForwardOp kForwardOps[] = {
    {"native_batch_norm", 1, 3, true, 5, 6, 7, kNone, 3},
    {"native_batch_norm.out", 1, 3, true, 5, 6, 7, 8, 3},
    {"_native_batch_norm_legit", 1, 3, false, 5, 6, 7, kNone, 3},
    {"_native_batch_norm_legit.out", 1, 3, false, 5, 6, 7, 8, 3},
    {"_native_batch_norm_legit.no_stats", 1, kNone, false, 3, 4, 5, kNone, 3},
    {"_native_batch_norm_legit.no_stats_out", 1, kNone, false, 3, 4, 5, 6, 3},
    {"_batch_norm_with_update", 1, 3, false, kAlways, 5, 6, kNone, 4},
    {"_batch_norm_with_update.out", 1, 3, false, kAlways, 5, 6, 7, 4},
    {"_batch_norm_no_update", 1, 3, true, kNever, 5, 6, kNone, 4},
    {"batch_norm_update_stats", kNone, 1, true, kAlways, 3, kNone, kNone, 2},
};

/// Computes an op by the C library, or calls PyTorch's own kernel.
///
/// Errors: false and the error of this thread.
bool runBackward(const BackwardOp &op, StableIValue *stack);
bool runForward(const ForwardOp &op, StableIValue *stack);

/// Calls PyTorch's own kernel, which Python keeps.
bool callOriginal(const char *op, StableIValue *stack);

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Borrows the tensor of a slot.
bool borrow(StableIValue slot, Tensor &tensor);
bool borrowOptional(StableIValue slot, Tensor &tensor);

/// Frees the tensors of `count` slots.
void freeTensors(const StableIValue *stack, int count);
void freeOptionalTensors(const StableIValue *stack, int count);

/// Whether the C library takes a tensor as data.
bool isCoveredData(const Tensor &tensor);

bool haveSameSizes(const Tensor &lhs, const Tensor &rhs);

/// Whether a tensor has an element for each channel of `input`.
bool isParameter(const Tensor &tensor, const Tensor &input);

/// Whether ATen's kernels take parameters of this type: they have the type of
/// the data, or are f32 with data of 16 bits.
bool isParameterType(const Tensor &parameter, const Tensor &input);

/// The strides of ATen's output and grad_input: channels-last if input is dense
/// in this order and not row-major as well, or has strides like it. In the
/// forward pass with parameters that are not dense, ATen asks for the latter.
Strides getResultStrides(const Tensor &input, bool hasDenseParameters = true);

} // namespace bngrad::torch

#endif // BNGRAD_PYTHON_SRC_TORCH_OVERRIDE_H
