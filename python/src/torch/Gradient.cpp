//===- Gradient.cpp - calls of the C library with tensors -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"

#include "Plan.h"

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
static bool areFeaturesInOrder(const Operands &operands,
                               const Strides &strides) {
  const Tensor &input = operands.input;
  for (int64_t dim = 0; dim < input.rank; ++dim)
    if (input.sizes[dim] == 0)
      return true;
  int64_t expected = 0;
  for (int i = operands.options.num_feature_dims; i-- > 0;) {
    int64_t dim = operands.options.feature_dims[i];
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
static Strides chooseLayout(const Operands &operands, const Strides &wanted) {
  if (areFeaturesInOrder(operands, wanted))
    return wanted;
  // Puts feature dims outermost.
  Strides strides;
  int64_t product = 1;
  for (bool isFeature : {false, true})
    for (int64_t dim = operands.input.rank; dim-- > 0;)
      if (isFeatureDim(operands.options, dim) == isFeature) {
        strides.values[dim] = product;
        product *= operands.input.sizes[dim];
      }
  return strides;
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
static bool bringOperandsTo(const Strides &strides, Operands &operands) {
  for (Tensor *data : {&operands.gradOutput, &operands.mask, &operands.input}) {
    if (*data && data->isStridedOnCpu && haveSameShape(*data, operands.input) &&
        !bringTo(strides, *data))
      return false;
  }
  for (Tensor *parameter :
       {&operands.scale, &operands.mean, &operands.statistic, &operands.sums}) {
    if (!*parameter || !parameter->isStridedOnCpu || parameter->rank < 2 ||
        parameter->rank > BNGRAD_MAX_RANK)
      continue;
    Strides rowMajor;
    setContiguous(parameter->rank, parameter->sizes, rowMajor.values);
    if (!bringTo(rowMajor, *parameter))
      return false;
  }
  return true;
}

/// Checks the operands that all functions have.
static bool checkOperands(const Operands &operands) {
  if (!operands.input.isStridedOnCpu)
    return fail("input: expected a strided tensor on the CPU");
  if (operands.input.rank > BNGRAD_MAX_RANK)
    return fail("input: expected rank of at most %d, got %lld", BNGRAD_MAX_RANK,
                static_cast<long long>(operands.input.rank));
  if (!operands.mean.isStridedOnCpu)
    return fail("mean: expected a strided tensor on the CPU");
  const char *statistic = operands.options.statistic == BNGRAD_STATISTIC_INV_STD
                              ? "inv_std"
                              : "variance";
  return operands.gradOutput.verifyStorage("grad_output") &&
         operands.input.verifyStorage("input") &&
         operands.scale.verifyStorage("scale") &&
         operands.mean.verifyStorage("mean") &&
         operands.statistic.verifyStorage(statistic) &&
         operands.mask.verifyStorage("mask") &&
         operands.sums.verifyStorage("sums") &&
         operands.count.verifyStorage("count");
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static Problem makeProblem(Part part, const Operands &operands,
                           const Results &results) {
  return {part,
          operands.options,
          {&results.gradInput, &results.gradScale, &results.gradOffset,
           &operands.gradOutput, &operands.input, &operands.scale,
           &operands.mean, &operands.statistic, &operands.mask,
           &operands.sums}};
}

/// Makes grad_input with the layout of a computation.
static bool makeGradInput(const Tensor &input, const Strides &strides,
                          Tensor &gradInput) {
  return gradInput.makeEmpty(input.dtype, input.rank, input.sizes,
                             strides.values);
}

/// Sets the sizes of the feature dims; the C library reports wrong dims.
static void getFeatureSizes(const Operands &operands, int64_t *sizes) {
  const Tensor &input = operands.input;
  for (int i = 0; i < operands.options.num_feature_dims; ++i) {
    int dim = operands.options.feature_dims[i];
    sizes[i] = dim < input.rank ? input.sizes[dim] : 0;
  }
}

/// Makes grad_scale or grad_offset, row-major.
static bool makeParameterResult(const Operands &operands, Tensor &result) {
  int64_t sizes[BNGRAD_MAX_FEATURE_DIMS], strides[BNGRAD_MAX_FEATURE_DIMS];
  getFeatureSizes(operands, sizes);
  int rank = operands.options.num_feature_dims;
  setContiguous(rank, sizes, strides);
  return result.makeEmpty(operands.mean.dtype, rank, sizes, strides);
}

bool bngrad::torch::computeGradient(Operands &operands, const bool (&wants)[3],
                                    const Strides &strides, Results &results) {
  if (!checkOperands(operands))
    return false;
  Strides layout = chooseLayout(operands, strides);
  Results computed;
  if (!bringOperandsTo(layout, operands) ||
      (wants[0] &&
       !makeGradInput(operands.input, layout, computed.gradInput)) ||
      (wants[1] && !makeParameterResult(operands, computed.gradScale)) ||
      (wants[2] && !makeParameterResult(operands, computed.gradOffset)) ||
      !run(makeProblem(Part::Whole, operands, computed)))
    return false;
  if (wants[0] && !bringTo(strides, computed.gradInput))
    return false;
  results = static_cast<Results &&>(computed);
  return true;
}

//===----------------------------------------------------------------------===//
// The halves
//===----------------------------------------------------------------------===//

bool bngrad::torch::computeSums(Operands &operands, Tensor &sums) {
  if (!checkOperands(operands))
    return false;
  const Tensor &input = operands.input;
  Strides strides;
  if (isDense(input.rank, input.sizes, input.strides))
    std::memcpy(strides.values, input.strides, input.rank * sizeof(int64_t));
  else
    setContiguous(input.rank, input.sizes, strides.values);
  if (!bringOperandsTo(chooseLayout(operands, strides), operands))
    return false;
  int64_t sizes[1 + BNGRAD_MAX_FEATURE_DIMS] = {2};
  getFeatureSizes(operands, sizes + 1);
  int rank = 1 + operands.options.num_feature_dims;
  int64_t rowMajor[1 + BNGRAD_MAX_FEATURE_DIMS];
  setContiguous(rank, sizes, rowMajor);
  bool isF64 = input.hasKnownType() && input.getType() == BNGRAD_DTYPE_F64;
  if (!operands.sums.makeEmpty(
          toTorchType(isF64 ? BNGRAD_DTYPE_F64 : BNGRAD_DTYPE_F32), rank, sizes,
          rowMajor) ||
      !run(makeProblem(Part::Reduce, operands, {})))
    return false;
  sums = static_cast<Tensor &&>(operands.sums);
  return true;
}

bool bngrad::torch::computeFromSums(Operands &operands, const Strides &strides,
                                    Tensor &gradInput) {
  if (!checkOperands(operands))
    return false;
  const Tensor &count = operands.count;
  if (!count.isStridedOnCpu || count.dtype != aoti_torch_dtype_int64())
    return fail("count: expected a tensor of int64 on the CPU");
  for (int64_t dim = 0; dim < count.rank; ++dim)
    if (count.sizes[dim] != 1)
      return fail("count: expected one element, got size %lld of dim %lld",
                  static_cast<long long>(count.sizes[dim]),
                  static_cast<long long>(dim));
  const void *data = nullptr;
  if (!count.getData(data))
    return false;
  Strides layout = chooseLayout(operands, strides);
  Results computed;
  if (!bringOperandsTo(layout, operands) ||
      !makeGradInput(operands.input, layout, computed.gradInput) ||
      !run(makeProblem(Part::Elemt, operands, computed),
           static_cast<const int64_t *>(data)) ||
      !bringTo(strides, computed.gradInput))
    return false;
  gradInput = static_cast<Tensor &&>(computed.gradInput);
  return true;
}
