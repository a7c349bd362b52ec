//===- Override.h - batch norms of aten -------------------------*- C++ -*-===//
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

/// The kernels of an op that are replaced.
enum Kernels { ForCpu = 1, ForCuda = 2, ForBoth = ForCpu | ForCuda };

/// Instead of the place of an argument.
enum { kNone = -1, kAlways = -2, kNever = -3 };

/// A gradient of aten: where it has its arguments.
struct BackwardOp {
  const char *name;
  Kernels kernels;
  int gradOutput;
  int input;
  int scale; ///< the running and the saved statistics are the next four
  bool isScaleOptional;
  int training; ///< or kAlways
  int epsilon;
  int mask;    ///< of the wanted results, or kAlways
  int reserve; ///< cuDNN's space, or kNone

  constexpr bool isCudnn() const { return kernels == ForCuda; }
  constexpr int getRunning() const { return scale + 1; }
  constexpr int getSaved() const { return scale + 3; }
};

inline constexpr BackwardOp kBackwardOps[] = {
    {"native_batch_norm_backward", ForBoth, 0, 1, 2, true, 7, 8, 9, kNone},
    {"batch_norm_backward", ForBoth, 0, 1, 2, false, 7, 8, 9, 10},
    {"cudnn_batch_norm_backward", ForCuda, 1, 0, 2, false, kAlways, 7, kAlways,
     8},
};

/// A forward pass of aten: where it has its arguments. The first one is input.
struct ForwardOp {
  const char *name;
  Kernels kernels;
  int scale; ///< and the offset after it
  bool isScaleOptional;
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
  constexpr bool isCudnn() const { return kernels == ForCuda; }
};

inline constexpr ForwardOp kForwardOps[] = {
    {"native_batch_norm", ForBoth, 1, true, 3, true, 5, 6, 7, kNone, 3},
    {"native_batch_norm.out", ForBoth, 1, true, 3, true, 5, 6, 7, 8, 3},
    {"_native_batch_norm_legit", ForBoth, 1, true, 3, false, 5, 6, 7, kNone, 3},
    {"_native_batch_norm_legit.out", ForBoth, 1, true, 3, false, 5, 6, 7, 8, 3},
    {"_native_batch_norm_legit.no_stats", ForBoth, 1, true, kNone, false, 3, 4,
     5, kNone, 3},
    {"_native_batch_norm_legit.no_stats_out", ForBoth, 1, true, kNone, false, 3,
     4, 5, 6, 3},
    {"_batch_norm_with_update", ForBoth, 1, true, 3, false, kAlways, 5, 6,
     kNone, 4},
    {"_batch_norm_with_update.out", ForBoth, 1, true, 3, false, kAlways, 5, 6,
     7, 4},
    {"_batch_norm_no_update", ForBoth, 1, true, 3, true, kNever, 5, 6, kNone,
     4},
    {"batch_norm_update_stats", ForBoth, kNone, true, 1, true, kAlways, 3,
     kNone, kNone, 2},
    {"cudnn_batch_norm", ForCuda, 1, false, 3, true, 5, 6, 7, kNone, 4},
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

/// The strides of output and grad_input. On a GPU, ATen's own forward passes
/// take those of empty_like, and so do gradients here, so that nothing is
/// copied; ATen's own are row-major or channels-last. On CPUs and by cuDNN they
/// are channels-last if input is dense in this order and not row-major as well,
/// or has strides like it; in the forward pass with parameters that are not
/// dense, ATen asks for the latter.
bool getResultStrides(const Tensor &input, bool isCudnn,
                      bool hasDenseParameters, Strides &strides);

} // namespace bngrad::torch

#endif // BNGRAD_PYTHON_SRC_TORCH_OVERRIDE_H
