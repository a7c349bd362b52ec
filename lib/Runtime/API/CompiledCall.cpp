//===- CompiledCall.cpp - calls of kernels compiled at run time -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledCall.h"

#include "CompiledKernel.h"
#include "Error.h"

#include <algorithm>

using namespace bngrad;

static Operand toOperand(int i) { return static_cast<Operand>(i); }

/// Whether an operand has a dim of the data, a feature dim or not.
static bool hasDim(int operand, bool isFeature) {
  return isData(operand) || (isFeature && !isScalar(operand));
}

/// Finds the dims of more than one element, in the order of memory. If none of
/// them is a feature dim, it adds one of size 1; on a GPU, which has kernels
/// only for sums, also if all of them are.
void CompiledCall::findDims(const Problem &problem, CompiledDims &dims) const {
  const Tensor &input = problem.tensors[Input];
  bool isEmpty = input.numElements == 0;
  int order[BNGRAD_MAX_RANK], count = 0;
  for (int dim = 0; dim < input.rank; ++dim)
    if (isEmpty || input.shape[dim] > 1)
      order[count++] = dim;
  std::sort(order, order + count, [&](int lhs, int rhs) {
    int64_t left = input.strides[lhs], right = input.strides[rhs];
    return left > right || (left == right && lhs < rhs);
  });
  auto numFeatures = std::count_if(
      order, order + count, [&](int dim) { return problem.isFeatureDim(dim); });
  auto add = [&](bool isFeature) {
    dims.sizes[dims.count] = 1;
    dims.isFeature[dims.count] = isFeature;
    // As in data without gaps.
    for (int k = 0; k < kNumOperands; ++k)
      dims.strides[k][dims.count] = isData(k) ? input.numElements : 1;
    ++dims.count;
  };
  if (cuda && numFeatures == count)
    add(/*isFeature=*/false);
  if (numFeatures == 0)
    add(/*isFeature=*/true);
  for (int i = 0; i < count; ++i, ++dims.count) {
    dims.sizes[dims.count] = input.shape[order[i]];
    dims.isFeature[dims.count] = problem.isFeatureDim(order[i]);
    auto *feature =
        std::find(problem.featureDims,
                  problem.featureDims + problem.numFeatureDims, order[i]);
    for (int k = 0; k < kNumOperands; ++k) {
      const Tensor tensor = getRow(problem, k);
      int64_t &stride = dims.strides[k][dims.count];
      stride = 1;
      if (!problem.has[k])
        continue;
      if (isData(k))
        stride = tensor.strides[order[i]];
      else if (dims.isFeature[dims.count])
        stride = tensor.strides[feature - problem.featureDims];
    }
  }
  if (!isEmpty)
    return;
  // Data without elements get row-major strides.
  for (int k = 0; k < kNumOperands; ++k) {
    int64_t product = 1;
    for (int i = dims.count; i-- > 0 && isData(k);) {
      dims.strides[k][i] = product;
      product *= std::max<int64_t>(dims.sizes[i], 1);
    }
  }
}

/// Joins adjacent dims that can be joined in all tensors.
void CompiledCall::joinDims(const Problem &problem, CompiledDims &dims) {
  int last = 0;
  for (int i = 1; i < dims.count; ++i) {
    bool areOne = dims.isFeature[last] == dims.isFeature[i];
    for (int k = 0; k < kNumOperands; ++k)
      if (problem.has[k] && hasDim(k, dims.isFeature[i]))
        areOne &= dims.strides[k][last] == dims.strides[k][i] * dims.sizes[i];
    if (areOne) {
      dims.sizes[last] *= dims.sizes[i];
    } else {
      ++last;
      dims.sizes[last] = dims.sizes[i];
      dims.isFeature[last] = dims.isFeature[i];
    }
    for (auto &strides : dims.strides)
      strides[last] = strides[i];
  }
  dims.count = last + 1;
}

/// Sets the descriptor of an operand.
void CompiledCall::describe(Operand operand, const CompiledDims &dims) {
  MemRef &memref = memrefs[operand];
  memref = {};
  int rank = 0, numFeatures = std::count(dims.isFeature,
                                         dims.isFeature + dims.count, true);
  int memrefRank = isData(operand)     ? dims.count
                   : isScalar(operand) ? 0
                                       : numFeatures;
  if (getInfo(operand).shape == RoleShape::Sums) {
    ++memrefRank;
    memref.sizesAndStrides[0] = 2;
    int64_t &rowStride = memref.sizesAndStrides[memrefRank];
    rowStride = 1;
    for (int i = 0; i < dims.count; ++i)
      if (dims.isFeature[i])
        rowStride *= dims.sizes[i];
    rank = 1;
  }
  for (int i = 0; i < dims.count; ++i) {
    if (!hasDim(operand, dims.isFeature[i]))
      continue;
    memref.sizesAndStrides[rank] = dims.sizes[i];
    memref.sizesAndStrides[memrefRank + rank] = dims.strides[operand][i];
    ++rank;
  }
}

bngradStatus_t CompiledCall::create(const Problem &problem,
                                    const bngradHandle &handle,
                                    std::string &error) {
  cuda = handle.cuda;
  device = handle.device;
  CompiledDims dims;
  findDims(problem, dims);
  joinDims(problem, dims);
  bool isRowMajor[2] = {true, true};
  for (int k = 0; k < kNumOperands; ++k) {
    has[k] = problem.has[k];
    if (!has[k])
      continue;
    bool isVector = !isData(k);
    int64_t product = 1;
    for (int i = dims.count; i-- > 0;) {
      if (!hasDim(k, dims.isFeature[i]))
        continue;
      isRowMajor[isVector] &= dims.strides[k][i] == product;
      product *= dims.sizes[i];
    }
    describe(toOperand(k), dims);
  }
  takesEpsilon = isEpsilonParameter(problem);
  epsilon = problem.epsilon;
  takesUpdate = problem.hasUpdate();
  factors = problem.getUpdateFactors();
  ModuleWriter writer(problem, dims, isRowMajor);
  std::string text = writer.write(/*isStatic=*/false);
  // Schedules for a GPU that read data once need their sizes.
  if (cuda && problem.tensors[Input].numElements > 0) {
    std::string ofSizes = writer.write(/*isStatic=*/true);
    if (mayHaveOwnKernel(text, ofSizes))
      text = std::move(ofSizes);
  }
  bngradStatus_t status = BNGRAD_SUCCESS;
  CompiledTarget target = {handle.chip, cuda ? cuda->path : ""};
  // Sums that are returned along with gradients are computed only once.
  target.inHalves = returnsSums(problem);
  kernel = findCompiledKernel(text, target, status, error);
  if (!kernel)
    return status;
  workspaceSize = findWorkspaceSize();
  return BNGRAD_SUCCESS;
}

size_t CompiledCall::findWorkspaceSize() const {
  // On a GPU it depends on which addresses are aligned: each of the data, and
  // all parameters together. On a CPU it does not.
  int bits[kNumOperands] = {}, numBits = 1;
  for (int i = 0; i < kNumOperands; ++i)
    if (has[i] && isData(i))
      bits[i] = numBits++;
  size_t size = 0;
  for (int unaligned = 0; unaligned < (cuda ? 1 << numBits : 1); ++unaligned) {
    CallData call = {};
    for (int i = 0; i < kNumOperands; ++i)
      if (unaligned >> bits[i] & 1)
        call.data[i] = reinterpret_cast<void *>(1);
    Parameters parameters;
    setParameters(call, parameters);
    size = std::max(size, kernel->get_workspace_size(parameters.pointers));
  }
  return size;
}

void CompiledCall::setParameters(const CallData &call,
                                 Parameters &parameters) const {
  void **next = parameters.pointers;
  for (int i = 0; i < kNumOperands; ++i) {
    Operand operand = getParameter(i);
    if (!has[operand])
      continue;
    MemRef &memref = parameters.memrefs[operand];
    memref = memrefs[operand];
    memref.allocated = memref.aligned = call.data[operand];
    *next++ = &memref;
  }
  // The kernel only reads them.
  auto add = [&](const double &value) {
    *next++ = const_cast<double *>(&value);
  };
  if (takesEpsilon)
    add(epsilon);
  if (!takesUpdate)
    return;
  add(factors.kept);
  add(factors.mean);
  add(factors.variance);
}

bngradStatus_t CompiledCall::run(const CallData &call) const {
  Parameters parameters;
  setParameters(call, parameters);
  if (!cuda)
    return getStatus(
        kernel->call(parameters.pointers, call.workspace, call.threads));
  CudaScope scope(*cuda, device, call.stream);
  kernel->call(parameters.pointers, call.workspace, nullptr);
  if (const char *text = scope.takeError(); *text)
    return fail(BNGRAD_INTERNAL_ERROR, "%s", text);
  return BNGRAD_SUCCESS;
}
