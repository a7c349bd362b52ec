//===- OverrideForward.cpp - forward passes of aten on the CPU ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Override.h"

#include <algorithm>
#include <limits>

using namespace bngrad;
using namespace bngrad::torch;

static bool isForTraining(const ForwardOp &op, const StableIValue *stack) {
  return op.training == kAlways ||
         (op.training != kNever && unpack<bool>(stack[op.training]));
}

static bool readForwardOperands(const ForwardOp &op, const StableIValue *stack,
                                Problem &problem) {
  bool isTraining = problem.op == OpKind::Training;
  OpOptions &options = problem.options;
  options.num_feature_dims = 1;
  options.feature_dims[0] = 1;
  if (op.epsilon != kNone)
    options.epsilon = unpack<double>(stack[op.epsilon]);
  options.momentum = isTraining ? unpack<double>(stack[op.momentum]) : 0;
  options.hasUnbiasedRunningVariance = isTraining;
  problem.wants[Output] = problem.wants[InvStd] = op.hasOutput();
  problem.wants[Variance] = !op.hasOutput();
  auto &of = problem.tensors;
  if (!borrow(stack[0], of[Input]) ||
      (op.scale != kNone && (!borrowOptional(stack[op.scale], of[Scale]) ||
                             !borrowOptional(stack[op.scale + 1], of[Offset]))))
    return false;
  if (op.running == kNone)
    return true;
  auto *borrowRunning = op.isRunningOptional ? borrowOptional : borrow;
  return borrowRunning(stack[op.running],
                       of[isTraining ? RunningMean : Mean]) &&
         borrowRunning(stack[op.running + 1],
                       of[isTraining ? RunningVariance : Statistic]);
}

/// Whether the kernels compute the same as ATen's forward pass, and the type of
/// its statistics.
static bool isForwardCovered(Problem &problem) {
  bool isTraining = problem.op == OpKind::Training;
  const Tensor &input = problem.tensors[Input];
  // ATen refuses data without elements.
  if (!isCoveredData(input) || input.isEmpty())
    return false;
  // ATen's inv_std of a constant channel is 0 without an epsilon, and is
  // computed in f64. In f32, an epsilon below this limit may be 0.
  if (problem.wants[InvStd] && isTraining &&
      problem.options.epsilon < std::numeric_limits<float>::min())
    return false;
  const Tensor &mean = problem.tensors[isTraining ? RunningMean : Mean];
  const Tensor &variance =
      problem.tensors[isTraining ? RunningVariance : Statistic];
  if (static_cast<bool>(mean) != static_cast<bool>(variance) ||
      (!isTraining && !mean))
    return false;
  const Tensor *parameters[] = {&mean, &variance, &problem.tensors[Scale],
                                &problem.tensors[Offset]};
  const Tensor *typed = nullptr;
  for (const Tensor *parameter : parameters) {
    if (!*parameter)
      continue;
    if (!typed)
      typed = parameter;
    if (!isParameter(*parameter, input) || parameter->dtype != typed->dtype)
      return false;
  }
  problem.channelType = typed ? typed->dtype : input.dtype;
  return !typed || isParameterType(*typed, input);
}

/// Borrows the results that the call gives, unless ATen would resize them.
static bool readGivenResults(const ForwardOp &op, const StableIValue *stack,
                             Problem &problem) {
  if (op.out == kNone)
    return true;
  const Tensor &input = problem.tensors[Input];
  Tensor &output = problem.tensors[Output];
  if (!borrow(stack[op.out], output) || !isCoveredData(output) ||
      output.dtype != input.dtype || !haveSameSizes(output, input) ||
      !isDense(output.rank, output.sizes, output.strides))
    return false;
  // In evaluation, ATen does not touch the others.
  if (problem.op != OpKind::Training)
    return true;
  int next = op.out;
  for (Operand operand : {Mean, InvStd}) {
    Tensor &result = problem.tensors[operand];
    if (!borrow(stack[++next], result) || !result ||
        !isParameter(result, input) || result.dtype != problem.channelType)
      return false;
  }
  return true;
}

/// Whether the elements of every parameter are contiguous.
static bool areDense(const Problem &problem) {
  for (Operand operand :
       {Scale, Offset, Mean, Statistic, RunningMean, RunningVariance}) {
    const Tensor &parameter = problem.tensors[operand];
    if (parameter && parameter.sizes[0] > 1 && parameter.strides[0] != 1)
      return false;
  }
  return true;
}

/// The strides with which data are computed.
static Strides chooseStrides(const ForwardOp &op, const Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  if (!op.hasOutput())
    return getDenseStrides(input);
  if (op.out != kNone)
    return getDenseStrides(problem.tensors[Output]);
  return getResultStrides(input, areDense(problem));
}

/// Makes the results that the C library does not compute: the empty statistics
/// of evaluation, and cuDNN's reserve space.
static bool makeOtherResults(const ForwardOp &op, const Problem &problem,
                             Tensor &mean, Tensor &invStd, Tensor &reserve) {
  if (op.out != kNone)
    return true;
  const int64_t none = 0, one = 1;
  auto make = [&](Tensor &tensor, int32_t dtype) {
    return tensor.makeEmpty(dtype, 1, &none, &one);
  };
  return (problem.op == OpKind::Training ||
          (make(mean, problem.channelType) &&
           make(invStd, problem.channelType))) &&
         (op.numResults < 4 || make(reserve, aoti_torch_dtype_uint8()));
}

static void freeArguments(const ForwardOp &op, const StableIValue *stack) {
  freeTensors(stack, 1);
  if (op.scale != kNone)
    freeOptionalTensors(stack + op.scale, 2);
  if (op.running != kNone)
    (op.isRunningOptional ? freeOptionalTensors
                          : freeTensors)(stack + op.running, 2);
}

/// Computes an op that the kernels cover, and replaces its arguments by its
/// results.
static bool computeForward(const ForwardOp &op, StableIValue *stack,
                           Problem &problem) {
  auto &of = problem.tensors;
  Tensor mean, invStd, reserve;
  if (!readForwardOperands(op, stack, problem) || !isForwardCovered(problem) ||
      !readGivenResults(op, stack, problem) ||
      !makeOtherResults(op, problem, mean, invStd, reserve) ||
      !compute(problem, chooseStrides(op, problem)))
    return false;
  freeArguments(op, stack);
  if (op.out != kNone) {
    std::copy_n(stack + op.out, op.numResults, stack);
    return true;
  }
  bool isTraining = problem.op == OpKind::Training;
  if (op.hasOutput())
    *stack++ = of[Output].release();
  *stack++ = (isTraining ? of[Mean] : mean).release();
  if (!op.hasOutput())
    *stack++ = of[Variance].release();
  else
    *stack++ = (isTraining ? of[InvStd] : invStd).release();
  if (reserve)
    *stack++ = reserve.release();
  return true;
}

bool bngrad::torch::runForward(const ForwardOp &op, StableIValue *stack) {
  {
    Problem problem(isForTraining(op, stack) ? OpKind::Training
                                             : OpKind::Inference);
    if (computeForward(op, stack, problem))
      return true;
  }
  // No result of a failed call uses memory while PyTorch computes.
  return callOriginal(op.name, stack);
}
