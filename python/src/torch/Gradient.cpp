//===- Gradient.cpp - calls of the C library with tensors -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"

#include <string>

using namespace bngrad;
using namespace bngrad::torch;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static bool isFeatureDim(const bngradBatchNormBackwardOptions_t &options,
                         int64_t dim) {
  for (int i = 0; i < options.num_feature_dims; ++i)
    if (options.feature_dims[i] == dim)
      return true;
  return false;
}

/// Whether the feature dims of more than one element have the same order in
/// memory with `strides` as in the row-major parameters.
static bool areFeaturesInOrder(const Problem &problem, const Strides &strides) {
  const Tensor &input = problem.tensors[Input];
  for (int64_t dim = 0; dim < input.rank; ++dim)
    if (input.sizes[dim] == 0)
      return true;
  int64_t expected = 0;
  for (int i = problem.options.num_feature_dims; i-- > 0;) {
    int64_t dim = problem.options.feature_dims[i];
    if (dim < 0 || dim >= input.rank)
      return true; // The C library reports it.
    if (input.sizes[dim] <= 1)
      continue;
    if (expected && strides.values[dim] != expected)
      return false;
    expected = strides.values[dim] * input.sizes[dim];
  }
  return true;
}

/// Strides of a dense layout that ready kernels take; `wanted` if possible.
static Strides chooseLayout(const Problem &problem, const Strides &wanted) {
  const Tensor &input = problem.tensors[Input];
  if (areFeaturesInOrder(problem, wanted))
    return wanted;
  // Puts feature dims outermost.
  Strides strides;
  int64_t product = 1;
  for (bool isFeature : {false, true})
    for (int64_t dim = input.rank; dim-- > 0;)
      if (isFeatureDim(problem.options, dim) == isFeature) {
        strides.values[dim] = product;
        product *= input.sizes[dim];
      }
  return strides;
}

Strides bngrad::torch::getDenseStrides(const Tensor &tensor) {
  Strides strides;
  if (!tensor.isStrided || tensor.rank > BNGRAD_MAX_RANK)
    return strides;
  if (isDense(tensor.rank, tensor.sizes, tensor.strides))
    std::copy_n(tensor.strides, tensor.rank, strides.values);
  else
    setContiguous(tensor.rank, tensor.sizes, strides.values);
  return strides;
}

bool bngrad::torch::getStridesLike(const Tensor &input, Strides &strides) {
  if (!input.isStrided || input.rank > BNGRAD_MAX_RANK)
    return true; // Reported with the other errors.
  if (isDense(input.rank, input.sizes, input.strides)) {
    std::memcpy(strides.values, input.strides, input.rank * sizeof(int64_t));
    return true;
  }
  AtenTensorHandle handle = nullptr;
  if (aoti_torch_new_tensor_handle(input.get(), &handle))
    return failByTorch("aoti_torch_new_tensor_handle");
  StableIValue stack[6] = {pack(handle)};
  if (torch_call_dispatcher("aten::empty_like", "", stack, TORCH_ABI_VERSION))
    return failByTorch("aten::empty_like");
  Tensor like;
  if (!like.take(unpack<AtenTensorHandle>(stack[0])))
    return false;
  std::memcpy(strides.values, like.strides, like.rank * sizeof(int64_t));
  return true;
}

static bool haveSameShape(const Tensor &lhs, const Tensor &rhs) {
  if (lhs.rank != rhs.rank)
    return false;
  for (int64_t dim = 0; dim < lhs.rank; ++dim)
    if (lhs.sizes[dim] != rhs.sizes[dim])
      return false;
  return true;
}

/// Copies the tensor if it has other strides.
static bool bringTo(const Strides &strides, Tensor &tensor) {
  if (hasStrides(tensor, strides.values))
    return true;
  Tensor copy;
  if (!copyWithStrides(tensor, strides.values, copy))
    return false;
  tensor = static_cast<Tensor &&>(copy);
  return true;
}

/// Brings data to `strides`, and parameters of several dims to row-major. Does
/// not change tensors that the C library will reject.
static bool bringOperandsTo(const Strides &strides, Problem &problem) {
  for (int i = 0; i < kNumOperands; ++i) {
    Tensor &tensor = problem.tensors[i];
    if (!tensor || !tensor.isStrided || isScalar(i))
      continue;
    if (isData(i)) {
      if (haveSameShape(tensor, problem.tensors[Input]) &&
          !bringTo(strides, tensor))
        return false;
      continue;
    }
    if (tensor.rank < 2 || tensor.rank > BNGRAD_MAX_RANK)
      continue;
    Strides rowMajor;
    setContiguous(tensor.rank, tensor.sizes, rowMajor.values);
    if (!bringTo(rowMajor, tensor))
      return false;
  }
  return true;
}

/// Checks an operand that is a scalar, a tensor of PyTorch.
static bool checkScalar(const Tensor &tensor, const char *name) {
  if (!tensor.isStrided || tensor.dtype != aoti_torch_dtype_int64())
    return fail("%s: expected a strided tensor of int64", name);
  for (int64_t dim = 0; dim < tensor.rank; ++dim)
    if (tensor.sizes[dim] != 1)
      return fail("%s: expected one element, got size %lld of dim %lld", name,
                  static_cast<long long>(tensor.sizes[dim]),
                  static_cast<long long>(dim));
  return true;
}

static std::string getName(const Device &device) {
  return device.isCuda() ? "cuda:" + std::to_string(device.index) : "cpu";
}

/// Checks that all tensors are on the device of input.
static bool checkDevices(const Problem &problem) {
  const Device &device = problem.tensors[Input].device;
  for (int i = 0; i < kNumOperands; ++i) {
    const Tensor &tensor = problem.tensors[i];
    if (tensor && tensor.isStrided && !(tensor.device == device))
      return fail("%s: expected the device of input, %s, got %s",
                  problem.getName(i), getName(device).c_str(),
                  getName(tensor.device).c_str());
  }
  return true;
}

/// Checks what the C library does not see.
static bool checkOperands(const Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  if (!input.verifyPlace("input") || !checkDevices(problem))
    return false;
  if (input.rank > BNGRAD_MAX_RANK)
    return fail("input: expected rank of at most %d, got %lld", BNGRAD_MAX_RANK,
                static_cast<long long>(input.rank));
  if (isInput(problem.op, Mean) && !problem.tensors[Mean].verifyPlace("mean"))
    return false;
  for (int i = 0; i < kNumOperands; ++i)
    if (!problem.tensors[i].verifyStorage(problem.getName(i)))
      return false;
  for (int i = 0; i < kNumOperands; ++i)
    if (isScalar(i) && isInput(problem.op, i) &&
        !checkScalar(problem.tensors[i], problem.getName(i)))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Makes a result of data with `strides`, or a row-major one.
static bool makeResult(int operand, const Strides &strides, Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  Tensor &result = problem.tensors[operand];
  if (isData(operand))
    return result.makeEmpty(input.device, input.dtype, input.rank, input.sizes,
                            strides.values);
  int64_t sizes[1 + BNGRAD_MAX_FEATURE_DIMS] = {2}, rank = 0;
  int32_t dtype = isInput(problem.op, Mean) ? problem.tensors[Mean].dtype
                                            : problem.channelType;
  if (getInfo(operand).shape == RoleShape::Sums) {
    bool isF64 = input.hasKnownType() && input.getType() == BNGRAD_DTYPE_F64;
    dtype = toTorchType(isF64 ? BNGRAD_DTYPE_F64 : BNGRAD_DTYPE_F32);
    rank = 1;
  }
  // The C library reports wrong dims.
  for (int i = 0; i < problem.options.num_feature_dims; ++i) {
    int dim = problem.options.feature_dims[i];
    sizes[rank++] = dim < input.rank ? input.sizes[dim] : 0;
  }
  int64_t rowMajor[1 + BNGRAD_MAX_FEATURE_DIMS];
  setContiguous(rank, sizes, rowMajor);
  return result.makeEmpty(input.device, dtype, rank, sizes, rowMajor);
}

static bool isWanted(const Problem &problem, int operand) {
  OperandUse use = getUse(problem.op, operand);
  return use == OperandUse::Result ||
         ((use == OperandUse::WantedResult || use == OperandUse::SideResult) &&
          problem.wants[operand]);
}

bool bngrad::torch::compute(Problem &problem, const Strides &strides) {
  if (!checkOperands(problem))
    return false;
  Strides layout = chooseLayout(problem, strides);
  if (!bringOperandsTo(layout, problem))
    return false;
  // Data first: small allocations would split the memory that the results of
  // an earlier call have left.
  for (bool ofData : {true, false})
    for (int i = 0; i < kNumOperands; ++i)
      if (isData(i) == ofData && isWanted(problem, i) && !problem.tensors[i] &&
          !makeResult(i, layout, problem))
        return false;
  if (!run(problem))
    return false;
  for (int i = 0; i < kNumOperands; ++i)
    if (isWanted(problem, i) && isData(i) &&
        !bringTo(strides, problem.tensors[i]))
      return false;
  return true;
}
