//===- Problem.cpp - a described op ---------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include "Error.h"

#include <algorithm>
#include <utility>

using namespace bngrad;

bool Problem::isFeatureDim(int dim) const {
  return std::find(featureDims, featureDims + numFeatureDims, dim) !=
         featureDims + numFeatureDims;
}

int64_t Problem::countPerChannel() const {
  int64_t count = 1;
  for (int dim = 0; dim < tensors[Input].rank; ++dim)
    if (!isFeatureDim(dim))
      count *= tensors[Input].shape[dim];
  return count;
}

Problem::UpdateFactors Problem::getUpdateFactors() const {
  auto count = static_cast<double>(countPerChannel());
  // Without elements, the old values are kept.
  double added = count == 0 ? 0 : momentum;
  UpdateFactors factors = {1 - added, added, added};
  if (isUnbiased && count > 0)
    factors.variance *= count / (count - 1);
  return factors;
}

/// Checks feature dims, for an input of `rank`.
static bngradStatus_t verifyFeatureDims(const Problem &problem, int rank) {
  if (rank == 0)
    return fail(BNGRAD_BAD_SHAPE, "input: expected rank of at least 1, got 0");
  int last = -1;
  for (int i = 0; i < problem.numFeatureDims; ++i) {
    int dim = problem.featureDims[i];
    if (dim < 0 || dim >= rank)
      return fail(BNGRAD_BAD_PARAM,
                  "options: expected feature dims to be dims of input, 0 to "
                  "%d, got %d",
                  rank - 1, dim);
    if (dim <= last)
      return fail(BNGRAD_BAD_PARAM,
                  "options: expected feature dims to be ascending, got %d "
                  "after %d",
                  dim, last);
    last = dim;
  }
  return BNGRAD_SUCCESS;
}

/// The operand that determines the type of an operand; the operand itself if
/// there is none.
static Operand findTypeOf(const Problem &problem, Operand operand) {
  int other = getTypeOf(operand);
  if (other != Mean || isInput(problem.op, Mean))
    return static_cast<Operand>(other);
  // Without a given mean, the parameters have one type.
  for (other = 0; other < operand; ++other)
    if (problem.has[other] && isInput(problem.op, other) &&
        getInfo(other).type == RoleType::AsMean)
      break;
  return static_cast<Operand>(other);
}

/// Checks the type of an operand that is present.
static bngradStatus_t verifyDtype(const Problem &problem, Operand operand) {
  bngradDtype_t dtype = problem.tensors[operand].dtype;
  RoleType type = getInfo(operand).type;
  if (type == RoleType::Arithmetic) {
    if (dtype != problem.accumulator)
      return fail(
          BNGRAD_BAD_DTYPE, "%s: expected the accumulator type, %s, got %s",
          getName(operand), getName(problem.accumulator), getName(dtype));
    return BNGRAD_SUCCESS;
  }
  if (type == RoleType::Bool) {
    if (dtype != BNGRAD_DTYPE_BOOL)
      return fail(BNGRAD_BAD_DTYPE, "%s: expected dtype bool, got %s",
                  getName(operand), getName(dtype));
    return BNGRAD_SUCCESS;
  }
  if (dtype == BNGRAD_DTYPE_BOOL)
    return fail(BNGRAD_BAD_DTYPE,
                "%s: expected dtype f16, bf16, f32 or f64, got bool",
                getName(operand));
  if (problem.isOutput(operand) && !(hasRelu(problem.op) && isData(operand)))
    return BNGRAD_SUCCESS;
  Operand other = findTypeOf(problem, operand);
  bngradDtype_t expected = problem.tensors[other].dtype;
  if (dtype != expected)
    return fail(BNGRAD_BAD_DTYPE,
                "%s: expected the dtype of %s, %s, "
                "got %s",
                getName(operand), getName(other), getName(expected),
                getName(dtype));
  return BNGRAD_SUCCESS;
}

/// Checks the shape and the strides of the sums.
static bngradStatus_t verifySums(const Problem &problem) {
  const Tensor &sums = problem.tensors[Sums];
  int rank = problem.numFeatureDims + 1;
  if (sums.rank != rank)
    return fail(BNGRAD_BAD_SHAPE,
                "sums: expected rank %d, the number of feature dims and 1, got "
                "%d",
                rank, sums.rank);
  int64_t stride = 1;
  for (int dim = rank; dim-- > 0;) {
    int from = dim > 0 ? problem.featureDims[dim - 1] : 0;
    int64_t size = dim > 0 ? problem.tensors[Input].shape[from] : 2;
    if (sums.shape[dim] != size && dim == 0)
      return fail(BNGRAD_BAD_SHAPE,
                  "sums: expected size of dim 0 to be 2, got %lld",
                  static_cast<long long>(sums.shape[dim]));
    if (sums.shape[dim] != size)
      return fail(BNGRAD_BAD_SHAPE,
                  "sums: expected dim %d to have the size of dim %d of "
                  "input, %lld, got %lld",
                  dim, from, static_cast<long long>(size),
                  static_cast<long long>(sums.shape[dim]));
    if (sums.numElements > 0 && size > 1 && sums.strides[dim] != stride)
      return fail(BNGRAD_BAD_STRIDES,
                  "sums: expected row-major strides, %lld for dim %d, got %lld",
                  static_cast<long long>(stride), dim,
                  static_cast<long long>(sums.strides[dim]));
    stride *= size;
  }
  return BNGRAD_SUCCESS;
}

/// Checks the shape of an operand that is present.
static bngradStatus_t verifyShape(const Problem &problem, Operand operand) {
  if (getInfo(operand).shape == RoleShape::Sums)
    return verifySums(problem);
  const Tensor &tensor = problem.tensors[operand];
  const Tensor &input = problem.tensors[Input];
  int rank = isData(operand) ? input.rank : problem.numFeatureDims;
  if (tensor.rank != rank)
    return fail(
        BNGRAD_BAD_SHAPE, "%s: expected rank %d, %s, got %d", getName(operand),
        rank, isData(operand) ? "that of input" : "the number of feature dims",
        tensor.rank);
  for (int dim = 0; dim < rank; ++dim) {
    int from = isData(operand) ? dim : problem.featureDims[dim];
    if (tensor.shape[dim] != input.shape[from])
      return fail(BNGRAD_BAD_SHAPE,
                  "%s: expected dim %d to have the size of dim %d of input, "
                  "%lld, got %lld",
                  getName(operand), dim, from,
                  static_cast<long long>(input.shape[from]),
                  static_cast<long long>(tensor.shape[dim]));
  }
  return BNGRAD_SUCCESS;
}

/// Checks that the operands that an op must have are present, and a result.
static bngradStatus_t verifyPresence(const Problem &problem) {
  bool hasResult = false;
  for (int i = 0; i < kNumOperands; ++i) {
    auto operand = static_cast<Operand>(i);
    OperandUse use = getUse(problem.op, operand);
    if (!problem.has[i] &&
        (use == OperandUse::Required || use == OperandUse::Result))
      return fail(BNGRAD_NULL_POINTER,
                  "%s: expected a tensor descriptor, got null",
                  getName(operand));
    hasResult |= problem.has[i] && problem.isOutput(operand) &&
                 use != OperandUse::SideResult;
  }
  if (hasResult)
    return BNGRAD_SUCCESS;
  return fail(BNGRAD_BAD_PARAM, "expected %s to be wanted, got none",
              listWanted(problem.op, "").c_str());
}

/// Checks an operand that is present.
static bngradStatus_t verifyTensor(const Problem &problem, Operand operand) {
  if (bngradStatus_t status = verifyDtype(problem, operand))
    return status;
  if (bngradStatus_t status = verifyShape(problem, operand))
    return status;
  if (problem.isOutput(operand) && !isInjective(problem.tensors[operand]))
    return fail(BNGRAD_BAD_STRIDES,
                "%s: expected strides that give each element an address of "
                "its own, got an overlap",
                getName(operand));
  return BNGRAD_SUCCESS;
}

template <typename Options>
bngradStatus_t
bngrad::makeProblem(OpKind op, const Options *options,
                    const std::array<const Tensor *, kNumOperands> &tensors,
                    Problem &problem) {
  problem = {};
  problem.op = op;
  problem.accumulator = BNGRAD_DTYPE_F32;
  for (int i = 0; i < kNumOperands; ++i) {
    problem.has[i] = tensors[i] || (isScalar(i) && isInput(op, i));
    if (!tensors[i])
      continue;
    problem.tensors[i] = *tensors[i];
    if (isInput(op, i) && getInfo(i).type != RoleType::Arithmetic &&
        tensors[i]->dtype == BNGRAD_DTYPE_F64)
      problem.accumulator = BNGRAD_DTYPE_F64;
  }
  if (bngradStatus_t status = verifyPresence(problem))
    return status;
  if (bngradStatus_t status = setOptions(options, problem))
    return status;
  if (!options || options->num_feature_dims == 0)
    if (problem.tensors[Input].rank == 1)
      return fail(BNGRAD_BAD_SHAPE,
                  "input: expected rank of at least 2 for the feature dim 1, "
                  "got 1");
  if (bngradStatus_t status =
          verifyFeatureDims(problem, problem.tensors[Input].rank))
    return status;
  // Tensors in the accumulator type follow the tensors that determine it.
  for (bool isArithmetic : {false, true})
    for (int i = 0; i < kNumOperands; ++i)
      if (tensors[i] &&
          (getInfo(i).type == RoleType::Arithmetic) == isArithmetic)
        if (bngradStatus_t status =
                verifyTensor(problem, static_cast<Operand>(i)))
          return status;
  return BNGRAD_SUCCESS;
}

#define INSTANTIATE(Options)                                                   \
  template bngradStatus_t bngrad::makeProblem(                                 \
      OpKind, const Options *,                                                 \
      const std::array<const Tensor *, kNumOperands> &, Problem &);
INSTANTIATE(bngradBatchNormBackwardOptions_t)
INSTANTIATE(bngradBatchNormTrainingOptions_t)
INSTANTIATE(bngradBatchNormInferenceOptions_t)
#undef INSTANTIATE

Problem Problem::makePart(OpKind part,
                          std::initializer_list<Operand> results) const {
  Problem problem = *this;
  problem.op = part;
  problem.tensors[Sums] = makeSums(*this);
  for (int i = 0; i < kNumOperands; ++i) {
    bool isThere = has[i] || getUse(op, i) == OperandUse::None ||
                   getUse(op, i) == OperandUse::StepResult;
    bool isUsed =
        bngrad::isInput(part, i) ||
        (bngrad::isOutput(part, i) &&
         std::find(results.begin(), results.end(), i) != results.end());
    problem.has[i] = isThere && isUsed;
  }
  return problem;
}

/// Sorts the dims of `tensor` that have more than one element, outermost first.
/// Returns their number, or -1 if memory has gaps or elements overlap.
static int findDenseOrder(const Tensor &tensor, int (&dims)[BNGRAD_MAX_RANK]) {
  int count = 0;
  for (int dim = 0; dim < tensor.rank; ++dim)
    if (tensor.shape[dim] > 1)
      dims[count++] = dim;
  std::sort(dims, dims + count, [&](int lhs, int rhs) {
    return tensor.strides[lhs] > tensor.strides[rhs];
  });
  int64_t product = 1;
  for (int i = count; i-- > 0;) {
    if (tensor.strides[dims[i]] != product)
      return -1;
    product *= tensor.shape[dims[i]];
  }
  return count;
}

/// The layout of data with `count` dims of more than one element, in the order
/// of memory.
static const char *fold(const Problem &problem, const int *dims, int count,
                        Layout &layout) {
  // Outer reduced dims, feature dims, inner reduced dims.
  int64_t sizes[3] = {1, 1, 1};
  int place = 0;
  for (int i = 0; i < count; ++i) {
    bool isFeature = problem.isFeatureDim(dims[i]);
    if (isFeature && place == 0)
      place = 1;
    else if (!isFeature && place == 1)
      place = 2;
    else if (isFeature && place == 2)
      return "its feature dims are apart in memory";
    sizes[place] *= problem.tensors[Input].shape[dims[i]];
  }
  // A single channel is one long row.
  if (place == 0)
    std::swap(sizes[0], sizes[2]);
  layout.outer = sizes[0];
  layout.channels = sizes[1];
  layout.inner = sizes[2];
  return nullptr;
}

Tensor bngrad::makeSums(const Problem &problem) {
  Tensor sums = {};
  sums.dtype = problem.accumulator;
  sums.rank = problem.numFeatureDims + 1;
  sums.shape[0] = 2;
  for (int i = 0; i < problem.numFeatureDims; ++i)
    sums.shape[i + 1] = problem.tensors[Input].shape[problem.featureDims[i]];
  sums.numElements = 1;
  for (int dim = sums.rank; dim-- > 0;) {
    sums.strides[dim] = sums.shape[dim] > 1 ? sums.numElements : 0;
    sums.numElements *= sums.shape[dim];
  }
  sums.bytes = sums.numElements * getBytes(sums.dtype);
  return sums;
}

Tensor bngrad::getRow(const Problem &problem, int operand) {
  Tensor row = problem.tensors[operand];
  if (getInfo(operand).shape != RoleShape::Sums || !problem.has[operand])
    return row;
  row.numElements /= row.shape[0];
  --row.rank;
  std::copy_n(row.shape + 1, row.rank, row.shape);
  std::copy_n(row.strides + 1, row.rank, row.strides);
  return row;
}

const char *bngrad::findLayout(const Problem &problem, Layout &layout) {
  const Tensor &input = problem.tensors[Input];
  if (input.numElements == 0) {
    int64_t channels = 1;
    for (int i = 0; i < problem.numFeatureDims; ++i)
      channels *= input.shape[problem.featureDims[i]];
    layout.outer = channels == 0 ? 1 : 0;
    layout.channels = channels;
    layout.inner = 1;
  } else {
    for (int i = 0; i < kNumOperands; ++i)
      if (problem.has[i] && isData(i) &&
          !haveSameStrides(problem.tensors[i], input))
        return "its data have several layouts";
    int dims[BNGRAD_MAX_RANK];
    int count = findDenseOrder(input, dims);
    if (count < 0)
      return "its data have gaps";
    if (const char *reason = fold(problem, dims, count, layout))
      return reason;
  }

  // The feature dims of the parameters, in the order of the data.
  int order[BNGRAD_MAX_FEATURE_DIMS], count = 0;
  for (int i = 0; i < problem.numFeatureDims; ++i)
    if (input.shape[problem.featureDims[i]] > 1)
      order[count++] = i;
  std::sort(order, order + count, [&](int lhs, int rhs) {
    int64_t left = input.strides[problem.featureDims[lhs]];
    int64_t right = input.strides[problem.featureDims[rhs]];
    return left > right || (left == right && lhs < rhs);
  });
  bool isInOrder = true;
  for (int i = 0; i < kNumOperands; ++i) {
    if (!problem.has[i] || isData(i) || isScalar(i))
      continue;
    layout.strides[i] = getVectorStride(getRow(problem, i), order, count);
    isInOrder &= layout.strides[i] >= 0;
  }
  return isInOrder
             ? nullptr
             : "its feature dims are in another order in data and parameters";
}

ReadyMemRef bngrad::makeReadyMemRef(const Layout &layout, int operand,
                                    void *data) {
  int64_t outer = layout.outer, channels = layout.channels;
  int64_t inner = layout.inner, plane = channels * inner;
  switch (getInfo(operand).shape) {
  case RoleShape::Data:
    if (inner != 1)
      return {data, data, 0, {outer, channels, inner, plane, inner, 1}};
    return {data, data, 0, {outer, channels, channels, 1}};
  case RoleShape::Channel:
    return {data, data, 0, {channels, 1}};
  case RoleShape::Sums:
    return {data, data, 0, {2, channels, channels, 1}};
  case RoleShape::Scalar:
    break;
  }
  return {data, data, 0, {}};
}
