//===- DistributedPlan.cpp - gradients of a spread batch ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DistributedPlan.h"

#include "Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

using namespace bngrad;

bool DistributedPlan::isLocal(const Problem &problem) {
  bool hasParameters = problem.has[GradScale] || problem.has[GradOffset];
  return !problem.isBatch && (!hasParameters || problem.hasLocalParameters);
}

bool DistributedPlan::needsTotal() const {
  return (problem.isBatch && input) || !problem.hasLocalParameters;
}

/// Writes the text that the processes compare and that errors contain.
void DistributedPlan::writeOp() {
  op = "bngradBatchNormBackward input(" +
       std::string(getName(problem.tensors[Input].dtype)) + ") mean(" +
       getName(problem.tensors[Mean].dtype) + ") feature_dims=[";
  for (int i = 0; i < problem.numFeatureDims; ++i) {
    int dim = problem.featureDims[i];
    op += (i ? "," : "") + std::to_string(dim) + ":" +
          std::to_string(problem.tensors[Input].shape[dim]);
  }
  // The shortest text that reads back as this number.
  char epsilon[32];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(epsilon, sizeof(epsilon), "%.*g", digits, problem.epsilon);
    if (std::strtod(epsilon, nullptr) == problem.epsilon)
      break;
  }
  op += "] epsilon=" + std::string(epsilon) +
        " statistics=" + (problem.isBatch ? "batch" : "global") +
        " statistic=" + (problem.isInvStd ? "inv_std" : "variance");
}

/// On a GPU parameters are copied whole.
bngradStatus_t DistributedPlan::verifyStrides() const {
  for (int i = 0; i < kNumOutputs; ++i) {
    auto operand = static_cast<Operand>(i);
    const Tensor &tensor = problem.tensors[operand];
    if (cuda && problem.has[operand] && !isData(operand) &&
        tensor.bytes != tensor.numElements * getBytes(tensor.dtype))
      return fail(BNGRAD_BAD_STRIDES,
                  "%s: expected elements without gaps on a GPU with a process "
                  "group, got gaps",
                  getName(operand));
  }
  return BNGRAD_SUCCESS;
}

bngradStatus_t DistributedPlan::create(
    const Problem &whole, const bngradHandle &handle,
    bngradStatus_t (*makeLocalPlan)(const Problem &problem,
                                    const bngradHandle &handle,
                                    std::unique_ptr<Plan> &plan)) {
  problem = whole;
  cuda = handle.cuda;
  device = handle.device;
  if (bngradStatus_t status = verifyStrides())
    return status;
  writeOp();
  Tensor sums = makeSums(problem);
  channels = sums.numElements / 2;
  sumsBytes = static_cast<size_t>(sums.bytes);

  if (bngradStatus_t status = makeLocalPlan(
          problem.makePart(OpKind::BackwardReduce, {Sums}), handle, reduce))
    return status;
  size_t partSize = reduce->getWorkspaceSize();
  if (problem.has[GradInput]) {
    // With global statistics, grad_input depends on no sums.
    OpKind op = problem.isBatch ? OpKind::BackwardElemt : problem.op;
    if (bngradStatus_t status =
            makeLocalPlan(problem.makePart(op, {GradInput}), handle, input))
      return status;
    partSize = std::max(partSize, input->getWorkspaceSize());
  }
  // Twice the sums: the process may need its own as well as the total.
  workspaceSize = 2 * alignUp(sumsBytes) + alignUp(sizeof(int64_t)) + partSize;
  return BNGRAD_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

bngradStatus_t DistributedPlan::copy(const CallData &call, void *to,
                                     const void *from, size_t size) const {
  if (size == 0)
    return BNGRAD_SUCCESS;
  CudaScope scope(*cuda, device, call.stream);
  // The copy only reads `from`.
  cuda->copy(to, const_cast<void *>(from), size, call.stream);
  cuda->synchronize(call.stream);
  if (const char *text = scope.takeError(); *text)
    return fail(BNGRAD_INTERNAL_ERROR, "%s", text);
  return BNGRAD_SUCCESS;
}

/// Divides the workspace. For a GPU it also allocates host memory for twice the
/// sums, for the statistic and for one gradient of a parameter.
bngradStatus_t DistributedPlan::allocate(const CallData &call,
                                         Buffers &buffers) const {
  buffers.sums = call.workspace;
  buffers.localSums = buffers.sums + alignUp(sumsBytes);
  buffers.count = buffers.localSums + alignUp(sumsBytes);
  buffers.rest = buffers.count + alignUp(sizeof(int64_t));
  const Tensor &data = problem.tensors[Input];
  buffers.hostCount = channels == 0 ? 0 : data.numElements / channels;
  buffers.hostSums = buffers.sums;
  buffers.statistic = static_cast<char *>(call.data[Statistic]);
  if (!cuda)
    return BNGRAD_SUCCESS;
  auto statisticBytes = static_cast<size_t>(problem.tensors[Statistic].bytes);
  size_t resultBytes = static_cast<size_t>(channels) * sizeof(double);
  buffers.host.reset(
      new (std::nothrow) char[2 * alignUp(sumsBytes) + alignUp(statisticBytes) +
                              resultBytes]);
  if (!buffers.host)
    return fail(BNGRAD_INTERNAL_ERROR, "out of memory");
  buffers.hostSums = buffers.host.get();
  buffers.localSums = buffers.hostSums + alignUp(sumsBytes);
  buffers.statistic = buffers.localSums + alignUp(sumsBytes);
  buffers.result = buffers.statistic + alignUp(statisticBytes);
  return copy(call, buffers.statistic, call.data[Statistic], statisticBytes);
}

/// Computes the sums of this process.
bngradStatus_t DistributedPlan::computeSums(const CallData &call,
                                            Buffers &buffers) const {
  CallData half = call;
  half.data[Sums] = buffers.sums;
  half.workspace = buffers.rest;
  if (bngradStatus_t status = reduce->run(half))
    return status;
  if (cuda)
    if (bngradStatus_t status =
            copy(call, buffers.hostSums, buffers.sums, sumsBytes))
      return status;
  if (sumsBytes > 0 && problem.hasLocalParameters)
    std::memcpy(buffers.localSums, buffers.hostSums, sumsBytes);
  return BNGRAD_SUCCESS;
}

/// Starts an all-reduce over the group, a grid of one axis.
int64_t DistributedPlan::start(const char *what, int64_t dtype, void *data,
                               int64_t numElements) const {
  const bngradProcessGroup &group = *problem.group;
  int64_t size = group.library->getSize(group.group), axis = 0;
  std::string text = what + op;
  bngradCollective_t collective = {
      sizeof(collective), text.c_str(), "", dtype, 1, &size, 1, &axis};
  return group.library->start(group.group, &collective, data, numElements);
}

/// Sums over the processes. Both all-reduces run at once.
bngradStatus_t DistributedPlan::reduceSums(Buffers &buffers) const {
  const DistributedLibrary &library = *problem.group->library;
  bool isF64 = problem.accumulator == BNGRAD_DTYPE_F64;
  bool hasCount = problem.isBatch && input;
  int64_t sums =
      start("sums of ", isF64 ? BNGRAD_COLLECTIVE_F64 : BNGRAD_COLLECTIVE_F32,
            buffers.hostSums, 2 * channels);
  int64_t count = 0;
  if (hasCount)
    count = start("count of ", BNGRAD_COLLECTIVE_I64, &buffers.hostCount, 1);
  bngradStatus_t status = BNGRAD_SUCCESS;
  if (library.wait(sums) != 0)
    status = fail(BNGRAD_PROCESS_ERROR, "%s", library.getError());
  if (hasCount && library.wait(count) != 0 && status == BNGRAD_SUCCESS)
    status = fail(BNGRAD_PROCESS_ERROR, "%s", library.getError());
  return status;
}

bngradStatus_t DistributedPlan::computeInput(const CallData &call,
                                             Buffers &buffers) const {
  CallData half = call;
  half.data[Sums] = buffers.sums;
  half.workspace = buffers.rest;
  half.data[Count] =
      cuda ? static_cast<void *>(buffers.count) : &buffers.hostCount;
  if (cuda && problem.isBatch) {
    if (bngradStatus_t status =
            copy(call, buffers.sums, buffers.hostSums, sumsBytes))
      return status;
    if (bngradStatus_t status =
            copy(call, buffers.count, &buffers.hostCount, sizeof(int64_t)))
      return status;
  }
  return input->run(half);
}

/// Stores the sums, times inv_std for grad_scale, rounded once.
void DistributedPlan::storeParameter(Operand operand, const char *sums,
                                     const char *statistic,
                                     char *result) const {
  const Tensor &to = problem.tensors[operand];
  const Tensor &from = problem.tensors[Statistic];
  ElementType accumulator = toElementType(problem.accumulator);
  ElementType toType = toElementType(to.dtype);
  ElementType fromType = toElementType(from.dtype);
  int64_t index[BNGRAD_MAX_FEATURE_DIMS] = {};
  int64_t row = operand == GradScale ? channels : 0;
  for (int64_t i = 0; i < channels; ++i) {
    int64_t toOffset = 0, fromOffset = 0;
    for (int dim = 0; dim < to.rank; ++dim) {
      toOffset += index[dim] * to.strides[dim];
      fromOffset += index[dim] * from.strides[dim];
    }
    double value = loadAsDouble(accumulator, sums, row + i);
    if (operand == GradScale) {
      double given = loadAsDouble(fromType, statistic, fromOffset);
      value *=
          problem.isInvStd ? given : 1 / std::sqrt(given + problem.epsilon);
    }
    storeRounded(toType, result, toOffset, value);
    for (int dim = to.rank; dim-- > 0;) {
      if (++index[dim] < to.shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

bngradStatus_t DistributedPlan::computeParameter(const CallData &call,
                                                 Buffers &buffers,
                                                 Operand operand) const {
  const char *sums =
      problem.hasLocalParameters ? buffers.localSums : buffers.hostSums;
  auto *data = static_cast<char *>(call.data[operand]);
  storeParameter(operand, sums, buffers.statistic,
                 cuda ? buffers.result : data);
  if (!cuda)
    return BNGRAD_SUCCESS;
  return copy(call, data, buffers.result,
              static_cast<size_t>(problem.tensors[operand].bytes));
}

bngradStatus_t DistributedPlan::runInSteps(const CallData &call,
                                           Done done) const {
  // The last report may destroy this plan.
  bool hasInput = input != nullptr;
  bool has[kNumOperands];
  std::copy_n(problem.has, kNumOperands, has);
  Buffers buffers;
  if (bngradStatus_t status = allocate(call, buffers))
    return status;
  if (bngradStatus_t status = computeSums(call, buffers))
    return status;
  if (needsTotal())
    if (bngradStatus_t status = reduceSums(buffers))
      return status;
  for (Operand operand : {GradOffset, GradScale}) {
    if (!has[operand])
      continue;
    if (bngradStatus_t status = computeParameter(call, buffers, operand))
      return status;
    done(operand);
  }
  if (!hasInput)
    return BNGRAD_SUCCESS;
  if (bngradStatus_t status = computeInput(call, buffers))
    return status;
  done(GradInput);
  return BNGRAD_SUCCESS;
}

bngradStatus_t DistributedPlan::run(const CallData &call) const {
  return runInSteps(call, {[](void *, Operand) {}, nullptr});
}

void DistributedPlan::describe(const bngrad_threads_t * /*threads*/,
                               Description &description) const {
  description.add("kernel", "distributed");
}
