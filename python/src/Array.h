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

/// The memory of an array in a Python object, which must outlive it.
struct Array {
  bngradDtype_t dtype;
  int rank;
  bool isSwapped; // whether bytes are in the other order than the CPU's
  bool isReadOnly;
  int64_t shape[BNGRAD_MAX_RANK];
  int64_t strides[BNGRAD_MAX_RANK]; // in bytes, of any sign
  char *data;                       // the element of indices 0
};

/// The size of an element in bytes.
int64_t getBytes(bngradDtype_t dtype);

int64_t getNumElements(const Array &array);

/// The type of sums over data of one type, with a mean of another.
bngradDtype_t getSumType(bngradDtype_t data, bngradDtype_t mean);

/// Sets the strides of an array without gaps whose dims are in `order`,
/// outermost first.
void setDenseStrides(Array &array, const int *order);

/// The dims of `array` in the order of memory, outermost first, where strides
/// are equal in that of the dims.
void findOrder(const Array &array, int (&order)[BNGRAD_MAX_RANK]);

/// Whether the C library takes the array without a copy: its elements are where
/// non-negative multiples of their size lead, in the order of this CPU.
bool isPlain(const Array &array);

/// Whether no two elements have one address, as the C library has it.
bool isInjective(const Array &array);

/// Whether elements of both may have one address. Elements of a vector may lie
/// between those of another with the same stride.
bool overlap(const Array &lhs, const Array &rhs);

/// Copies elements to an array of the same shape, and converts them: to the
/// nearest, ties to even.
void copy(const Array &from, const Array &to);

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_ARRAY_H
