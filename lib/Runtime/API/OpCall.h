//===- OpCall.h - descriptors and calls of ops ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the functions in C of all ops share. They take their tensors and data in
// the order of Roles.def.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_OPCALL_H
#define BNGRAD_LIB_RUNTIME_API_OPCALL_H

#include "Handle.h"
#include "Plan.h"

#include <initializer_list>
#include <memory>

namespace bngrad {

/// A problem that was checked, and its plan. Calls do not change it.
struct OpDescriptor {
  const bngradHandle *handle;
  Problem problem;
  std::unique_ptr<Plan> plan;
  /// The operands that are present, outputs first.
  Operand operands[kNumOperands];
  int numOutputs, numOperands;
  /// Bytes from one element of a parameter to the next; 0 if unknown.
  int64_t steps[kNumOperands];
};

/// Where a call works, and on what.
struct Workspace {
  void *data;
  size_t size;
};

/// Checks and plans an op.
template <typename Descriptor, typename Options>
bngradStatus_t createOp(OpKind op, bngradHandle_t handle,
                        Descriptor **descriptor, const Options *options,
                        std::initializer_list<const Tensor *> tensors);

bngradStatus_t getWorkspaceSize(const OpDescriptor *descriptor, size_t *size);

bngradStatus_t describeOp(const OpDescriptor *descriptor, char *text,
                          size_t size);

/// Checks the arguments of a call, and computes the op.
bngradStatus_t runOp(OpKind op, const OpDescriptor *descriptor,
                     Workspace workspace,
                     std::initializer_list<const void *> data, void *stream);

/// Checks the arguments of a call, and submits it to `executor` or `stream`.
bngradStatus_t submitOp(OpKind op, const OpDescriptor *descriptor,
                        Workspace workspace,
                        std::initializer_list<const void *> data, void *stream,
                        const bngradExecutor_t *executor,
                        const bngradCompletion_t *done);

} // namespace bngrad

struct bngradBatchNormBackwardDescriptor : bngrad::OpDescriptor {};
struct bngradBatchNormTrainingDescriptor : bngrad::OpDescriptor {};
struct bngradBatchNormInferenceDescriptor : bngrad::OpDescriptor {};

#endif // BNGRAD_LIB_RUNTIME_API_OPCALL_H
