/*===- Vectors.h - ops on vectors of the channels on a GPU ------ -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * The parameter of the kernel of Vectors.c, which the host and the device
 * share. The ready kernels take dense vectors of f32 and an inv_std; this
 * kernel converts parameters and results of other types and strides.
 */

#ifndef BNGRAD_LIB_RUNTIME_CUDAKERNELS_VECTORS_H
#define BNGRAD_LIB_RUNTIME_CUDAKERNELS_VECTORS_H

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

typedef enum {
  BNGRAD_VECTOR_FILL,    /* to = value */
  BNGRAD_VECTOR_CONVERT, /* to = from */
  BNGRAD_VECTOR_INV_STD, /* to = 1 / sqrt(from + value) */
  BNGRAD_VECTOR_UPDATE   /* to = value * to + factor * from */
} bngradVectorOpKind_t;

/* Computes in f64, and rounds once. */
typedef struct {
  const void *from;
  void *to;
  /* In elements. */
  long long from_stride, to_stride;
  double value, factor;
  /* Each a bngradDtype_t, of a float. */
  int from_type, to_type;
  /* A bngradVectorOpKind_t. */
  int kind;
  int unused;
} bngradVectorOp_t;

/* An op for each parameter and each result of any kernel. */
#define BNGRAD_MOST_VECTOR_OPS 8

typedef struct {
  long long channels;
  bngradVectorOp_t ops[BNGRAD_MOST_VECTOR_OPS];
} bngradVectorOps_t;

/* The kernel's name and the threads of its blocks. A block of row `i` of the
 * grid computes elements of ops[i]. */
#define BNGRAD_VECTORS_NAME "bngrad_vectors"
#define BNGRAD_VECTORS_THREADS 128

/* NOLINTEND(readability-identifier-naming) */

#endif /* BNGRAD_LIB_RUNTIME_CUDAKERNELS_VECTORS_H */
