//===- Tensor.cpp - tensor descriptors ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensor.h"

#include "Error.h"

#include <algorithm>
#include <new>

using namespace bngrad;

ElementType bngrad::toElementType(bngradDtype_t dtype) {
  switch (dtype) {
  case BNGRAD_DTYPE_F16:
    return ElementType::F16;
  case BNGRAD_DTYPE_BF16:
    return ElementType::BF16;
  case BNGRAD_DTYPE_F32:
    return ElementType::F32;
  case BNGRAD_DTYPE_F64:
    return ElementType::F64;
  case BNGRAD_DTYPE_BOOL:
    break;
  }
  return ElementType::I1;
}

/// More bytes than any memory has, so that sums of a few sizes do not overflow.
static constexpr int64_t kMostBytes = int64_t(1) << 47;

int64_t bngrad::getBytes(bngradDtype_t dtype) {
  switch (dtype) {
  case BNGRAD_DTYPE_F16:
  case BNGRAD_DTYPE_BF16:
    return 2;
  case BNGRAD_DTYPE_F32:
    return 4;
  case BNGRAD_DTYPE_F64:
    return 8;
  case BNGRAD_DTYPE_BOOL:
    return 1;
  }
  return 0;
}

const char *bngrad::getName(bngradDtype_t dtype) {
  switch (dtype) {
  case BNGRAD_DTYPE_F16:
    return "f16";
  case BNGRAD_DTYPE_BF16:
    return "bf16";
  case BNGRAD_DTYPE_F32:
    return "f32";
  case BNGRAD_DTYPE_F64:
    return "f64";
  case BNGRAD_DTYPE_BOOL:
    return "bool";
  }
  return "unknown";
}

bool bngrad::haveSameStrides(const Tensor &lhs, const Tensor &rhs) {
  return std::equal(lhs.strides, lhs.strides + lhs.rank, rhs.strides);
}

bool bngrad::isInjective(const Tensor &tensor) {
  if (tensor.numElements == 0)
    return true;
  int dims[BNGRAD_MAX_RANK], count = 0;
  for (int dim = 0; dim < tensor.rank; ++dim)
    if (tensor.shape[dim] > 1)
      dims[count++] = dim;
  std::sort(dims, dims + count, [&](int lhs, int rhs) {
    return tensor.strides[lhs] < tensor.strides[rhs];
  });
  int64_t last = 0; // the last element of the dims so far
  for (int i = 0; i < count; ++i) {
    int64_t stride = tensor.strides[dims[i]];
    if (stride <= last)
      return false;
    last += (tensor.shape[dims[i]] - 1) * stride;
  }
  return true;
}

int64_t bngrad::getVectorStride(const Tensor &tensor, const int *dims,
                                int count) {
  if (tensor.numElements <= 1)
    return 1;
  int64_t stride = tensor.strides[dims[count - 1]], next = stride;
  for (int i = count; i-- > 0;) {
    if (tensor.strides[dims[i]] != next)
      return -1;
    next *= tensor.shape[dims[i]];
  }
  return stride;
}

/// Checks sizes, and computes numElements.
static bngradStatus_t setShape(Tensor &tensor, const int64_t *shape) {
  tensor.numElements = 1;
  bool isTooLarge = false;
  for (int dim = 0; dim < tensor.rank; ++dim) {
    int64_t size = shape[dim];
    if (size < 0)
      return fail(BNGRAD_BAD_SHAPE,
                  "shape: expected size of dim %d to be at least 0, got %lld",
                  dim, static_cast<long long>(size));
    tensor.shape[dim] = size;
    isTooLarge |=
        __builtin_mul_overflow(tensor.numElements, size, &tensor.numElements);
  }
  bool isEmpty =
      std::find(shape, shape + tensor.rank, 0) != shape + tensor.rank;
  if (isEmpty)
    tensor.numElements = 0;
  else if (isTooLarge || tensor.numElements > kMostBytes)
    return fail(BNGRAD_BAD_SHAPE,
                "shape: expected at most 2^47 bytes of data, got more");
  return BNGRAD_SUCCESS;
}

/// Checks strides (null for row-major) and computes bytes.
static bngradStatus_t setStrides(Tensor &tensor, const int64_t *strides) {
  int64_t product = 1, last = 0;
  bool isTooLarge = false;
  for (int dim = tensor.rank; dim-- > 0;) {
    int64_t size = tensor.shape[dim];
    tensor.strides[dim] = 0;
    if (tensor.numElements == 0 || size == 1)
      continue;
    int64_t stride = strides ? strides[dim] : product, extent;
    if (stride < 0)
      return fail(BNGRAD_BAD_STRIDES,
                  "strides: expected stride of dim %d to be at least 0, got "
                  "%lld",
                  dim, static_cast<long long>(stride));
    tensor.strides[dim] = stride;
    product *= size;
    isTooLarge |= __builtin_mul_overflow(size - 1, stride, &extent) ||
                  __builtin_add_overflow(last, extent, &last);
  }
  int64_t width = getBytes(tensor.dtype);
  if (isTooLarge || last >= kMostBytes / width)
    return fail(strides ? BNGRAD_BAD_STRIDES : BNGRAD_BAD_SHAPE,
                "%s: expected at most 2^47 bytes of data, got more",
                strides ? "strides" : "shape");
  tensor.bytes = tensor.numElements == 0 ? 0 : (last + 1) * width;
  return BNGRAD_SUCCESS;
}

bngradStatus_t
bngradCreateTensorDescriptor(bngradTensorDescriptor_t *descriptor,
                             bngradDtype_t dtype, int rank,
                             const int64_t *shape, const int64_t *strides) {
  if (!descriptor)
    return fail(BNGRAD_NULL_POINTER, "descriptor: expected a place for one, "
                                     "got null");
  if (dtype < BNGRAD_DTYPE_F16 || dtype > BNGRAD_DTYPE_BOOL)
    return fail(BNGRAD_BAD_DTYPE,
                "dtype: expected a bngradDtype_t, 0 to %d, got %d",
                static_cast<int>(BNGRAD_DTYPE_BOOL), static_cast<int>(dtype));
  if (rank < 0 || rank > BNGRAD_MAX_RANK)
    return fail(BNGRAD_BAD_SHAPE, "rank: expected 0 to %d, got %d",
                BNGRAD_MAX_RANK, rank);
  if (rank > 0 && !shape)
    return fail(BNGRAD_NULL_POINTER, "shape: expected %d sizes, got null",
                rank);
  Tensor tensor = {};
  tensor.dtype = dtype;
  tensor.rank = rank;
  if (bngradStatus_t status = setShape(tensor, shape))
    return status;
  if (bngradStatus_t status = setStrides(tensor, strides))
    return status;
  auto *created = new (std::nothrow) Tensor(tensor);
  if (!created)
    return fail(BNGRAD_INTERNAL_ERROR, "out of memory");
  *descriptor = created;
  return succeed();
}

bngradStatus_t
bngradDestroyTensorDescriptor(bngradTensorDescriptor_t descriptor) {
  delete descriptor;
  return BNGRAD_SUCCESS;
}
