//===- Array.cpp - arrays of Python libraries -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Array.h"

#include <algorithm>
#include <numeric>

using namespace bngrad;
using python::Array;
using python::Dtype;

const char *python::getName(Dtype dtype) {
  static constexpr const char *kNames[] = {"f16", "bf16", "f32", "f64", "i1",
                                           "i8",  "i16",  "i32", "i64"};
  return kNames[static_cast<int>(dtype)];
}

int64_t python::getBytes(Dtype dtype) {
  static constexpr int64_t kBytes[] = {2, 2, 4, 8, 1, 1, 2, 4, 8};
  return kBytes[static_cast<int>(dtype)];
}

Dtype python::getInteger(int64_t bytes) {
  return bytes == 1   ? Dtype::I8
         : bytes == 2 ? Dtype::I16
         : bytes == 4 ? Dtype::I32
                      : Dtype::I64;
}

int64_t python::getNumElements(const Array &array) {
  int64_t count = 1;
  for (int dim = 0; dim < array.rank; ++dim)
    count *= array.shape[dim];
  return count;
}

Dtype python::getSumType(Dtype data, Dtype mean) {
  return data == Dtype::F64 || mean == Dtype::F64 ? Dtype::F64 : Dtype::F32;
}

void python::setDenseStrides(Array &array, const int *order) {
  int64_t stride = getBytes(array.dtype);
  for (int i = array.rank; i-- > 0;) {
    array.strides[order[i]] = stride;
    stride *= std::max<int64_t>(array.shape[order[i]], 1);
  }
}

void python::findOrder(const Array &array, int (&order)[BNGRAD_MAX_RANK]) {
  std::iota(order, order + array.rank, 0);
  std::sort(order, order + array.rank, [&](int lhs, int rhs) {
    int64_t left = std::abs(array.strides[lhs]);
    int64_t right = std::abs(array.strides[rhs]);
    return left > right || (left == right && lhs < rhs);
  });
}

bool python::isPlain(const Array &array) {
  int64_t width = getBytes(array.dtype);
  if (array.isSwapped || reinterpret_cast<uintptr_t>(array.data) % width != 0)
    return false;
  for (int dim = 0; dim < array.rank; ++dim)
    if (array.shape[dim] > 1 &&
        (array.strides[dim] < 0 || array.strides[dim] % width != 0))
      return false;
  return true;
}

bool python::isInjective(const Array &array) {
  if (getNumElements(array) == 0)
    return true;
  int order[BNGRAD_MAX_RANK];
  findOrder(array, order);
  int64_t next = getBytes(array.dtype); // the end of the inner dims
  for (int i = array.rank; i-- > 0;) {
    int64_t size = array.shape[order[i]];
    if (size <= 1)
      continue;
    int64_t stride = std::abs(array.strides[order[i]]);
    if (stride < next)
      return false;
    next += (size - 1) * stride;
  }
  return true;
}

namespace {
/// The bytes of an array, from the first to the end of the last element, and
/// the step of its elements if it is a vector, else 0.
struct Range {
  explicit Range(const Array &array) {
    begin = end = reinterpret_cast<intptr_t>(array.data);
    if (python::getNumElements(array) == 0)
      return;
    int count = 0;
    for (int dim = 0; dim < array.rank; ++dim) {
      if (array.shape[dim] <= 1)
        continue;
      int64_t extent = (array.shape[dim] - 1) * array.strides[dim];
      (extent < 0 ? begin : end) += extent;
      step = ++count == 1 ? std::abs(array.strides[dim]) : 0;
    }
    end += python::getBytes(array.dtype);
  }

  intptr_t begin, end;
  int64_t step = 0;
};
} // namespace

bool python::overlap(const Array &lhs, const Array &rhs) {
  Range left(lhs), right(rhs);
  if (left.begin >= right.end || right.begin >= left.end ||
      left.begin == left.end || right.begin == right.end)
    return false;
  if (left.step == 0 || left.step != right.step)
    return true;
  int64_t distance = (right.begin - left.begin) % left.step;
  if (distance < 0)
    distance += left.step;
  return distance < getBytes(lhs.dtype) ||
         distance + getBytes(rhs.dtype) > left.step;
}
