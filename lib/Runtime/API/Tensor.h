//===- Tensor.h - tensor descriptors -------------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_TENSOR_H
#define BNGRAD_LIB_RUNTIME_API_TENSOR_H

#include "BNGrad/Runtime/ElementType.h"
#include "BNGrad/Runtime/Runtime.h"

/// A tensor that bngradCreateTensorDescriptor has checked.
struct bngradTensorDescriptor {
  bngradDtype_t dtype;
  int rank;
  int64_t shape[BNGRAD_MAX_RANK];
  /// In elements; 0 for a dim of at most one element.
  int64_t strides[BNGRAD_MAX_RANK];
  int64_t numElements;
  /// From the first to the last element.
  int64_t bytes;
};

namespace bngrad {

using Tensor = bngradTensorDescriptor;

/// The size of an element in bytes.
int64_t getBytes(bngradDtype_t dtype);

ElementType toElementType(bngradDtype_t dtype);

/// Returns a name such as "bf16".
const char *getName(bngradDtype_t dtype);

/// Whether the strides of two tensors of one shape are the same.
bool haveSameStrides(const Tensor &lhs, const Tensor &rhs);

/// Whether no two elements share an address. False if only a search could show
/// this.
bool isInjective(const Tensor &tensor);

/// The stride of the tensor as a vector over its `count` dims of more than one
/// element, which `dims` lists outermost first; -1 if it is not a vector.
int64_t getVectorStride(const Tensor &tensor, const int *dims, int count);

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_TENSOR_H
