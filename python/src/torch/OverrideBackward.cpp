//===- OverrideBackward.cpp - gradients of aten on the CPU ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Override.h"

using namespace bngrad;
using namespace bngrad::torch;

/// The arguments of aten::native_batch_norm_backward.
namespace backward {
enum Argument {
  GradOut,
  Input,
  Weight,
  RunningMean,
  RunningVar,
  SaveMean,
  SaveInvStd,
  Train,
  Epsilon,
  OutputMask,
  Reserve
};
} // namespace backward

/// Whether the kernels compute the same as ATen's gradient.
static bool isCovered(const Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  const Tensor &gradOutput = problem.tensors[GradOutput];
  if (!isCoveredData(input) || !isCoveredData(gradOutput) ||
      gradOutput.dtype != input.dtype || !haveSameSizes(gradOutput, input))
    return false;
  const Tensor &mean = problem.tensors[Mean];
  for (Operand operand : {Mean, Statistic, Scale}) {
    const Tensor &parameter = problem.tensors[operand];
    if (!parameter && operand == Scale)
      continue;
    if (!parameter || !isParameter(parameter, input) ||
        parameter.dtype != mean.dtype)
      return false;
  }
  return isParameterType(mean, input);
}

/// Reads the output mask, a list of three.
static bool readMask(StableIValue slot, bool (&wants)[kNumOperands]) {
  auto list = unpack<StableListHandle>(slot);
  size_t size = 0;
  if (torch_list_size(list, &size) || size != kNumOutputs)
    return false;
  for (size_t i = 0; i < size; ++i) {
    StableIValue item = 0;
    if (torch_list_get_item(list, i, &item))
      return false;
    wants[i] = unpack<bool>(item);
  }
  return true;
}

static bool readOperands(const BackwardOp &op, const StableIValue *stack,
                         Problem &problem) {
  bool train = unpack<bool>(stack[backward::Train]);
  double epsilon = unpack<double>(stack[backward::Epsilon]);
  OpOptions &options = problem.options;
  options.num_feature_dims = 1;
  options.feature_dims[0] = 1;
  options.statistics =
      train ? BNGRAD_STATISTICS_BATCH : BNGRAD_STATISTICS_GLOBAL;
  options.statistic =
      train ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;
  options.epsilon = train ? 0 : epsilon;
  auto &of = problem.tensors;
  auto *borrowWeight = op.hasReserve ? borrow : borrowOptional;
  return borrow(stack[backward::GradOut], of[GradOutput]) &&
         borrow(stack[backward::Input], of[Input]) &&
         borrowWeight(stack[backward::Weight], of[Scale]) &&
         borrowOptional(
             stack[train ? backward::SaveMean : backward::RunningMean],
             of[Mean]) &&
         borrowOptional(
             stack[train ? backward::SaveInvStd : backward::RunningVar],
             of[Statistic]);
}

static void freeArguments(const BackwardOp &op, const StableIValue *stack) {
  int numRequired = op.hasReserve ? backward::RunningMean : backward::Weight;
  freeTensors(stack, numRequired);
  freeOptionalTensors(stack + numRequired, backward::Train - numRequired);
  torch_delete_list(unpack<StableListHandle>(stack[backward::OutputMask]));
  if (op.hasReserve)
    freeTensors(stack + backward::Reserve, 1);
}

/// Computes the gradient if the kernels cover it. Does not take the arguments.
static bool computeBackward(const BackwardOp &op, const StableIValue *stack,
                            Problem &problem) {
  auto &wants = problem.wants;
  if (!readMask(stack[backward::OutputMask], wants) ||
      !readOperands(op, stack, problem) || !isCovered(problem))
    return false;
  if (!wants[GradInput] && !wants[GradScale] && !wants[GradOffset])
    return true;
  return compute(problem, getResultStrides(problem.tensors[Input]));
}

bool bngrad::torch::runBackward(const BackwardOp &op, StableIValue *stack) {
  {
    Problem problem(OpKind::Backward);
    if (computeBackward(op, stack, problem)) {
      freeArguments(op, stack);
      for (int i = 0; i < kNumOutputs; ++i)
        stack[i] = problem.tensors[i].release();
      return true;
    }
  }
  // No result of a failed call uses memory while PyTorch computes.
  return callOriginal(op.name, stack);
}
