//===- OverrideForward.cpp - forward passes of aten -----------------------===//
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
  auto *borrowScale = op.isScaleOptional ? borrowOptional : borrow;
  if (!borrow(stack[0], of[Input]) ||
      (op.scale != kNone && (!borrowScale(stack[op.scale], of[Scale]) ||
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

/// The type of ATen's statistics. `parameter` may be null.
static int32_t getStatisticsType(const ForwardOp &op, const Tensor &input,
                                 const Tensor *parameter) {
  if (!input.device.isCuda() || op.isCudnn())
    return parameter ? parameter->dtype : input.dtype;
  return toTorchType(input.getType() == BNGRAD_DTYPE_F64 ? BNGRAD_DTYPE_F64
                                                         : BNGRAD_DTYPE_F32);
}

/// Whether the kernels compute the same as ATen's forward pass, and the type of
/// its statistics.
static bool isForwardCovered(const ForwardOp &op, Problem &problem) {
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
  problem.channelType = getStatisticsType(op, input, typed);
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
      !(output.device == input.device) || output.dtype != input.dtype ||
      !haveSameSizes(output, input) ||
      !isDense(output.rank, output.sizes, output.strides))
    return false;
  // In evaluation, ATen does not touch the others on CPUs, and resizes them on
  // GPUs.
  if (problem.op != OpKind::Training)
    return !input.device.isCuda();
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
static bool chooseStrides(const ForwardOp &op, const Problem &problem,
                          Strides &strides) {
  const Tensor &input = problem.tensors[Input];
  if (op.hasOutput() && op.out == kNone)
    return getResultStrides(input, op.isCudnn(), areDense(problem), strides);
  strides = getDenseStrides(op.hasOutput() ? problem.tensors[Output] : input);
  return true;
}

static bool makeEmptyResult(const Problem &problem, int32_t dtype,
                            Tensor &result) {
  const int64_t none = 0, one = 1;
  return result.makeEmpty(problem.tensors[Input].device, dtype, 1, &none, &one);
}

/// The statistics of evaluation by ATen's kernels for GPUs: the running mean,
/// and the inv_std of the running variance.
static bool makeRunningResults(const Problem &problem, Tensor &mean,
                               Tensor &invStd) {
  StableIValue stack[3] = {};
  for (int i : {0, 1}) {
    AtenTensorHandle handle = nullptr;
    if (aoti_torch_new_tensor_handle(
            problem.tensors[i == 0 ? Mean : Statistic].get(), &handle))
      return failByTorch("aoti_torch_new_tensor_handle");
    stack[i] = pack(handle);
  }
  stack[2] = pack(problem.options.epsilon);
  if (torch_call_dispatcher("bngrad::_running_statistics", "", stack,
                            TORCH_ABI_VERSION))
    return failByTorch("bngrad::_running_statistics");
  return mean.take(unpack<AtenTensorHandle>(stack[0])) &&
         invStd.take(unpack<AtenTensorHandle>(stack[1]));
}

/// Makes the results that the C library does not compute: the statistics of
/// evaluation, which mostly are empty, and cuDNN's reserve space.
static bool makeOtherResults(const ForwardOp &op, const Problem &problem,
                             Tensor &mean, Tensor &invStd, Tensor &reserve) {
  if (op.out != kNone)
    return true;
  if (op.numResults == 4 &&
      !makeEmptyResult(problem, aoti_torch_dtype_uint8(), reserve))
    return false;
  if (problem.op == OpKind::Training)
    return true;
  if (problem.tensors[Input].device.isCuda() && !op.isCudnn())
    return makeRunningResults(problem, mean, invStd);
  return makeEmptyResult(problem, problem.channelType, mean) &&
         makeEmptyResult(problem, problem.channelType, invStd);
}

static void freeArguments(const ForwardOp &op, const StableIValue *stack) {
  freeTensors(stack, 1);
  if (op.scale != kNone) {
    (op.isScaleOptional ? freeOptionalTensors : freeTensors)(stack + op.scale,
                                                             1);
    freeOptionalTensors(stack + op.scale + 1, 1);
  }
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
  Strides strides;
  if (!readForwardOperands(op, stack, problem) ||
      !isForwardCovered(op, problem) || !readGivenResults(op, stack, problem) ||
      !makeOtherResults(op, problem, mean, invStd, reserve) ||
      !chooseStrides(op, problem, strides) || !compute(problem, strides))
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
