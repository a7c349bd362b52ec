/*===- Vectors.c - ops on vectors of the channels on a GPU ----------------===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/* Compiled to PTX, which all GPUs can assemble, and not for the host. */

#include "Vectors.h"

#include "BNGrad/Runtime/Runtime.h"

static double load(const void *data, long long place, int type) {
  switch (type) {
  case BNGRAD_DTYPE_F16:
    return ((const _Float16 *)data)[place];
  case BNGRAD_DTYPE_BF16:
    return ((const __bf16 *)data)[place];
  case BNGRAD_DTYPE_F32:
    return ((const float *)data)[place];
  default:
    return ((const double *)data)[place];
  }
}

static void store(void *data, long long place, int type, double value) {
  switch (type) {
  case BNGRAD_DTYPE_F16:
    ((_Float16 *)data)[place] = (_Float16)value;
    break;
  case BNGRAD_DTYPE_BF16:
    ((__bf16 *)data)[place] = (__bf16)value;
    break;
  case BNGRAD_DTYPE_F32:
    ((float *)data)[place] = (float)value;
    break;
  default:
    ((double *)data)[place] = value;
    break;
  }
}

__attribute__((nvptx_kernel)) void bngrad_vectors(bngradVectorOps_t all) {
  const bngradVectorOp_t *op = &all.ops[__nvvm_read_ptx_sreg_ctaid_y()];
  long long i =
      (long long)__nvvm_read_ptx_sreg_ctaid_x() * BNGRAD_VECTORS_THREADS +
      __nvvm_read_ptx_sreg_tid_x();
  double result = op->value;
  if (i >= all.channels)
    return;
  if (op->kind != BNGRAD_VECTOR_FILL) {
    double from = load(op->from, i * op->from_stride, op->from_type);
    if (op->kind == BNGRAD_VECTOR_CONVERT)
      result = from;
    else if (op->kind == BNGRAD_VECTOR_INV_STD)
      result = 1 / __builtin_sqrt(from + op->value);
    else
      result = op->value * load(op->to, i * op->to_stride, op->to_type) +
               op->factor * from;
  }
  store(op->to, i * op->to_stride, op->to_type, result);
}
