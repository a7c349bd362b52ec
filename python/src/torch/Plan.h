//===- Plan.h - descriptors of the C library, kept ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_TORCH_PLAN_H
#define BNGRAD_PYTHON_SRC_TORCH_PLAN_H

#include "Runtime/OpDescriptor.h"
#include "Shim.h"

namespace bngrad::torch {

/// The handle of all calls on a device, which lives as long as the process.
/// Null and the error of this thread if the C library refuses to create one, as
/// for a bad BNGRAD_ISA.
bngradHandle_t getHandle(const Device &device);

/// Whether the C library finds or compiles a kernel for a device, of training
/// or of training with a ReLU; if not, the error of this thread says why.
bool canCompute(const Device &device, bool hasRelu);

/// A call of the C library.
struct Problem {
  explicit Problem(OpKind op) : op(op) {
    options.struct_size = sizeof(bngradBatchNormBackwardOptions_t);
    std::fill_n(wants, kNumOperands, true);
  }

  /// The argument's name in Python.
  const char *getName(int operand) const;

  OpKind op;
  OpOptions options = {};
  /// Which of the results that may be absent are not.
  bool wants[kNumOperands];
  /// PyTorch's type of per-channel results, if no operand has it.
  int32_t channelType = 0;
  /// Set if no kernel could be found or compiled.
  bool lacksKernel = false;
  /// Empty if absent.
  Tensor tensors[kNumOperands];
};

/// What a call of the C library needs for tensors of certain types, shapes and
/// strides. It stays valid until the thread's next getPlan().
struct Plan {
  OpDescriptor descriptor;
  size_t workspaceSize = 0;
};

/// The plan of a problem, from this thread's recent plans or new. Null and the
/// error of this thread if the C library rejects the problem.
const Plan *getPlan(Problem &problem);

/// Computes `problem` by its plan.
bool run(Problem &problem);

} // namespace bngrad::torch

#endif // BNGRAD_PYTHON_SRC_TORCH_PLAN_H
