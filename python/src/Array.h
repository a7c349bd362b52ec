//===- Array.h - arrays of Python libraries ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_ARRAY_H
#define BNGRAD_PYTHON_SRC_ARRAY_H

#include "BNGrad/Runtime/Runtime.h"

#include <nanobind/nanobind.h>

namespace bngrad::python {

namespace nb = nanobind;

/// Types of elements: those of the C library, with its numbers, and integers,
/// which only programs have. Their signedness does not matter.
enum class Dtype { F16, BF16, F32, F64, Bool, I8, I16, I32, I64 };
static_assert(static_cast<int>(Dtype::F16) == BNGRAD_DTYPE_F16 &&
              static_cast<int>(Dtype::BF16) == BNGRAD_DTYPE_BF16 &&
              static_cast<int>(Dtype::F32) == BNGRAD_DTYPE_F32 &&
              static_cast<int>(Dtype::F64) == BNGRAD_DTYPE_F64 &&
              static_cast<int>(Dtype::Bool) == BNGRAD_DTYPE_BOOL);

/// Its name in MLIR, such as "f32".
const char *getName(Dtype dtype);

/// The memory of an array in a Python object, which must outlive this.
struct Array {
  Dtype dtype;
  int rank;
  bool isSwapped; // if the byte order is not the CPU's
  bool isReadOnly;
  int64_t shape[BNGRAD_MAX_RANK];
  int64_t strides[BNGRAD_MAX_RANK]; // in bytes, of any sign
  char *data;                       // the element at indices 0
};

/// The integer type of `bytes`, a power of 2 up to 8.
Dtype getInteger(int64_t bytes);

/// The size of an element in bytes.
int64_t getBytes(Dtype dtype);

int64_t getNumElements(const Array &array);

/// The type of sums, given the types of the data and of the mean.
Dtype getSumType(Dtype data, Dtype mean);

/// Sets the strides of a dense array whose dims are in `order`, outermost
/// first.
void setDenseStrides(Array &array, const int *order);

/// The dims of `array` in the order of memory, outermost first; dims with equal
/// strides keep their order.
void findOrder(const Array &array, int (&order)[BNGRAD_MAX_RANK]);

/// Whether the C library takes the array without a copy: strides are
/// non-negative multiples of the element size, in this CPU's byte order.
bool isPlain(const Array &array);

/// Whether no two elements share an address, by the C library's rules.
bool isInjective(const Array &array);

/// Whether elements of both may share an address. Elements of a vector may lie
/// between the elements of another with the same stride.
bool overlap(const Array &lhs, const Array &rhs);

/// Copies elements to an array of the same shape and converts them, rounding to
/// nearest, ties to even.
void copy(const Array &from, const Array &to);

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_ARRAY_H
