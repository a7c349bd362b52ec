//===- OverrideBackward.cpp - gradients of aten ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Override.h"

using namespace bngrad;
using namespace bngrad::torch;

/// Whether the kernels compute the same as ATen's gradient.
static bool isCovered(const Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  const Tensor &gradOutput = problem.tensors[GradOutput];
  if (!isCoveredData(input) || !isCoveredData(gradOutput) ||
      !(gradOutput.device == input.device) || gradOutput.dtype != input.dtype ||
      !haveSameSizes(gradOutput, input))
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
static bool readMask(const BackwardOp &op, const StableIValue *stack,
                     bool (&wants)[kNumOperands]) {
  if (op.mask == kAlways)
    return true;
  auto list = unpack<StableListHandle>(stack[op.mask]);
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
  bool train = op.training == kAlways || unpack<bool>(stack[op.training]);
  auto epsilon = unpack<double>(stack[op.epsilon]);
  OpOptions &options = problem.options;
  options.num_feature_dims = 1;
  options.feature_dims[0] = 1;
  options.statistics =
      train ? BNGRAD_STATISTICS_BATCH : BNGRAD_STATISTICS_GLOBAL;
  options.statistic =
      train ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;
  options.epsilon = train ? 0 : epsilon;
  auto &of = problem.tensors;
  auto *borrowScale = op.isScaleOptional ? borrowOptional : borrow;
  int mean = train ? op.getSaved() : op.getRunning();
  return borrow(stack[op.gradOutput], of[GradOutput]) &&
         borrow(stack[op.input], of[Input]) &&
         borrowScale(stack[op.scale], of[Scale]) &&
         borrowOptional(stack[mean], of[Mean]) &&
         borrowOptional(stack[mean + 1], of[Statistic]);
}

static void freeArguments(const BackwardOp &op, const StableIValue *stack) {
  freeTensors(stack + op.gradOutput, 1);
  freeTensors(stack + op.input, 1);
  (op.isScaleOptional ? freeOptionalTensors : freeTensors)(stack + op.scale, 1);
  freeOptionalTensors(stack + op.getRunning(), 4);
  if (op.mask != kAlways)
    torch_delete_list(unpack<StableListHandle>(stack[op.mask]));
  if (op.reserve != kNone)
    freeTensors(stack + op.reserve, 1);
}

/// Replaces a tensor by its copy of another type.
static bool convert(int32_t dtype, Tensor &tensor) {
  Tensor copy;
  const int64_t stride = 1;
  if (!copy.makeEmpty(tensor.device, dtype, tensor.rank, tensor.sizes, &stride))
    return false;
  if (aoti_torch_copy_(copy.get(), tensor.get(), /*non_blocking=*/0))
    return failByTorch("aoti_torch_copy_");
  tensor = static_cast<Tensor &&>(copy);
  return true;
}

/// Converts the weight of a model of 16 bits to the type of the statistics,
/// which on a GPU is f32.
static bool convertScale(Problem &problem) {
  const Tensor &input = problem.tensors[Input], &mean = problem.tensors[Mean];
  Tensor &scale = problem.tensors[Scale];
  if (!scale || !mean || scale.dtype == mean.dtype || !input.device.isCuda() ||
      scale.dtype != input.dtype || !isParameter(scale, input))
    return true;
  return convert(mean.dtype, scale);
}

/// Computes the gradient if the kernels cover it. Does not take the arguments.
static bool computeBackward(const BackwardOp &op, const StableIValue *stack,
                            Problem &problem) {
  auto &wants = problem.wants;
  if (!readMask(op, stack, wants) || !readOperands(op, stack, problem))
    return false;
  const Tensor &scale = problem.tensors[Scale];
  int32_t parameterType = scale ? scale.dtype : problem.tensors[Mean].dtype;
  if (!convertScale(problem) || !isCovered(problem))
    return false;
  if (!wants[GradInput] && !wants[GradScale] && !wants[GradOffset])
    return true;
  const Tensor &input = problem.tensors[Input];
  Strides strides;
  if (!getResultStrides(input, op.isCudnn(), /*hasDenseParameters=*/true,
                        strides) ||
      !compute(problem, strides))
    return false;
  for (Operand operand : {GradScale, GradOffset})
    if (Tensor &result = problem.tensors[operand];
        result && result.dtype != parameterType &&
        !convert(parameterType, result))
      return false;
  return true;
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
