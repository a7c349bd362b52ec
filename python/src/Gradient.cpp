//===- Gradient.cpp - gradients of arrays ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"

#include "Errors.h"
#include "Runtime/OpDescriptor.h"
#include "Threads.h"
#include "Unlocked.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace bngrad;
using namespace bngrad::python;

using Arrays = std::array<Array, kNumOperands>;

/// From this many elements on, a call takes longer than handing over the GIL.
static constexpr int64_t kFewElements = 1 << 14;

/// The bytes of a workspace on the stack.
static constexpr size_t kSmallWorkspace = 4096;

Call::Call(OpKind op) : op(op) {
  options = {};
  options.struct_size = sizeof(options);
  std::fill_n(has, kNumOperands, false);
}

static bngradStatus_t createDescriptors(const Call &call, const Array *arrays,
                                        TensorDescriptors &tensors) {
  for (int i = 0; i < kNumOperands; ++i) {
    if (!call.has[i])
      continue;
    const Array &array = arrays[i];
    int64_t strides[BNGRAD_MAX_RANK], width = getBytes(array.dtype);
    for (int dim = 0; dim < array.rank; ++dim)
      strides[dim] = array.strides[dim] / width;
    if (bngradStatus_t status = bngradCreateTensorDescriptor(
            &tensors.of[i], static_cast<bngradDtype_t>(array.dtype), array.rank,
            array.shape, strides))
      return status;
  }
  return BNGRAD_SUCCESS;
}

static bngradStatus_t create(const Call &call, const Array *arrays,
                             bngradHandle_t handle, OpDescriptor &descriptor) {
  TensorDescriptors tensors;
  if (bngradStatus_t status = createDescriptors(call, arrays, tensors))
    return status;
  OpOptions options;
  static_cast<bngradBatchNormBackwardOptions_t &>(options) = call.options;
  return descriptor.create(call.op, handle, options, tensors);
}

static bngradStatus_t run(const OpDescriptor &descriptor, const Call &call,
                          const Array *arrays) {
  size_t size;
  if (bngradStatus_t status = descriptor.getWorkspaceSize(size))
    return status;
  char small[kSmallWorkspace];
  std::unique_ptr<char[]> large;
  if (size > sizeof(small))
    large.reset(new char[size]);
  char *workspace = large ? large.get() : small;
  void *data[kNumOperands] = {};
  for (int i = 0; i < kNumOperands; ++i)
    if (call.has[i])
      data[i] = arrays[i].data;
  // The call only reads it.
  data[Count] = const_cast<int64_t *>(&call.count);
  return descriptor.compute(workspace, size, data);
}

/// The C library's description; throws its errors.
static std::string describe(const OpDescriptor &descriptor) {
  char text[BNGRAD_DESCRIPTION_SIZE];
  check(descriptor.describe(text, sizeof(text)));
  return text;
}

/// The order of input's dims for rows of channels: reduced dims in the order of
/// memory, then feature dims.
static void findRows(const Call &call, const int *order, int *rows) {
  const int *dims = call.options.feature_dims;
  int rank = call.arrays[Input].rank;
  int count = 0, numDims = call.options.num_feature_dims;
  for (int i = 0; i < rank; ++i)
    if (std::find(dims, dims + numDims, order[i]) == dims + numDims)
      rows[count++] = order[i];
  for (int dim = 0; dim < rank; ++dim)
    if (std::find(dims, dims + numDims, dim) != dims + numDims)
      rows[count++] = dim;
}

/// The type of data in which a ready kernel computes all operands.
static Dtype findDataType(const Call &call) {
  auto is = [&](int operand, Dtype dtype) {
    return call.has[operand] && call.arrays[operand].dtype == dtype;
  };
  for (int i = 0; i < kNumOperands; ++i)
    if (is(i, Dtype::F64) && (isData(i) || !call.isOutput(i)))
      return Dtype::F64;
  Dtype dtype = call.arrays[Input].dtype;
  for (int i = 0; i < kNumOperands; ++i)
    if (call.has[i] && isData(i) && call.isOutput(i) && !is(i, dtype))
      return Dtype::F32;
  return dtype;
}

/// `array` in row-major order without gaps.
static Array makeRowMajor(const Array &array) {
  Array result = array;
  int order[BNGRAD_MAX_RANK];
  for (int dim = 0; dim < array.rank; ++dim)
    order[dim] = dim;
  setDenseStrides(result, order);
  return result;
}

/// Dense operands whose data have their dims in `order` and, unless it is null,
/// type `dtype`.
static Arrays makeDense(const Call &call, const int *order,
                        const Dtype *dtype) {
  Arrays arrays;
  for (int i = 0; i < kNumOperands; ++i) {
    if (!call.has[i])
      continue;
    Array &array = arrays[i];
    array = call.arrays[i];
    array.isSwapped = false;
    if (dtype && isData(i) && i != Mask)
      array.dtype = *dtype;
    if (dtype && i == Sums)
      array.dtype = getSumType(*dtype, *dtype);
    if (isData(i) && array.rank == call.arrays[Input].rank)
      setDenseStrides(array, order);
    else
      array = makeRowMajor(array);
  }
  return arrays;
}

/// Whether a kernel for `dense` can read and write `array` itself.
static bool hasLayout(const Array &array, const Array &dense) {
  if (array.dtype != dense.dtype || !isPlain(array))
    return false;
  if (getNumElements(array) == 0)
    return true;
  for (int dim = 0; dim < array.rank; ++dim)
    if (array.shape[dim] > 1 && array.strides[dim] != dense.strides[dim])
      return false;
  return true;
}

/// Checks outputs whose memory the C library does not see.
static void verifyOutputs(const Call &call) {
  for (int i = 0; i < kNumOperands; ++i) {
    if (!call.has[i] || !call.isOutput(i))
      continue;
    if (!isInjective(call.arrays[i]))
      throwOverlap(getInfo(i).name);
    for (int j = 0; j < i; ++j)
      if (call.has[j] && call.isOutput(j) &&
          overlap(call.arrays[j], call.arrays[i]))
        throwError(BNGRAD_BAD_PARAM,
                   std::string(getInfo(j).name) +
                       ": expected memory apart from that of " +
                       getInfo(i).name + ", got an overlap");
  }
}

/// Releases the GIL while it exists.
using Release = std::optional<Unlocked>;

/// Creates the descriptor for copies of the operands, in the first layout for
/// which there is a ready kernel or a compiler.
static void planCopies(const Call &call, bngradHandle_t handle,
                       OpDescriptor &descriptor, Arrays &arrays) {
  int order[BNGRAD_MAX_RANK], rows[BNGRAD_MAX_RANK];
  findOrder(call.arrays[Input], order);
  findRows(call, order, rows);
  Dtype dtype = findDataType(call);
  arrays = makeDense(call, order, nullptr);
  bngradStatus_t status = create(call, arrays.data(), handle, descriptor);
  if (status == BNGRAD_COMPILER_NOT_FOUND) {
    arrays = makeDense(call, rows, nullptr);
    status = create(call, arrays.data(), handle, descriptor);
  }
  if (status == BNGRAD_COMPILER_NOT_FOUND) {
    arrays = makeDense(call, rows, &dtype);
    status = create(call, arrays.data(), handle, descriptor);
  }
  check(status, call.statistic);
}

/// Computes the outputs, copying the operands that differ from those of
/// planCopies.
static void executeWithCopies(const Call &call, bngradHandle_t handle,
                              bool isLarge) {
  OpDescriptor descriptor;
  Arrays arrays;
  planCopies(call, handle, descriptor, arrays);
  verifyOutputs(call);

  std::vector<std::unique_ptr<char[]>> memory;
  bool isCopied[kNumOperands] = {};
  bngradStatus_t status = BNGRAD_SUCCESS;
  {
    Release release;
    if (isLarge)
      release.emplace();
    for (int i = 0; i < kNumOperands; ++i) {
      if (!call.has[i] || hasLayout(call.arrays[i], arrays[i]))
        continue;
      isCopied[i] = true;
      size_t size = getNumElements(arrays[i]) * getBytes(arrays[i].dtype);
      arrays[i].data = memory.emplace_back(new char[size]).get();
      if (!call.isOutput(i))
        copy(call.arrays[i], arrays[i]);
    }
    status = run(descriptor, call, arrays.data());
    for (int i = 0; i < kNumOperands && status == BNGRAD_SUCCESS; ++i)
      if (isCopied[i] && call.isOutput(i))
        copy(arrays[i], call.arrays[i]);
  }
  check(status, call.statistic);
}

static bool isRowMajor(const Array &array) {
  return hasLayout(array, makeRowMajor(array));
}

/// Creates the descriptor for the operands as they are.
static bngradStatus_t planWithoutCopies(const Call &call, bngradHandle_t handle,
                                        OpDescriptor &descriptor) {
  bool isPlainCall = true;
  for (int i = 0; i < kNumOperands; ++i)
    isPlainCall &= !call.has[i] || isPlain(call.arrays[i]);
  // The C library takes only row-major sums.
  isPlainCall &= !call.has[Sums] || isRowMajor(call.arrays[Sums]);
  return isPlainCall ? create(call, call.arrays, handle, descriptor)
                     : BNGRAD_COMPILER_NOT_FOUND;
}

void python::execute(const Call &call) {
  bngradHandle_t handle = getHandle();
  bool isLarge = getNumElements(call.arrays[Input]) > kFewElements;
  OpDescriptor descriptor;
  bngradStatus_t status = planWithoutCopies(call, handle, descriptor);
  if (status == BNGRAD_COMPILER_NOT_FOUND)
    return executeWithCopies(call, handle, isLarge);
  if (status == BNGRAD_SUCCESS) {
    Release release;
    if (isLarge)
      release.emplace();
    status = run(descriptor, call, call.arrays);
  }
  check(status, call.statistic);
}

Explanation python::explain(const Call &call) {
  bngradHandle_t handle = getHandle();
  Explanation explanation = {};
  OpDescriptor descriptor;
  bngradStatus_t status = planWithoutCopies(call, handle, descriptor);
  if (status == BNGRAD_COMPILER_NOT_FOUND) {
    explanation.reason = bngradGetLastError();
    Arrays arrays;
    planCopies(call, handle, descriptor, arrays);
    for (int i = 0; i < kNumOperands; ++i)
      explanation.isCopied[i] =
          call.has[i] && !hasLayout(call.arrays[i], arrays[i]);
  } else {
    check(status, call.statistic);
  }
  explanation.description = describe(descriptor);
  return explanation;
}
