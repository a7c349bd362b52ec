/*===- Kernels.h - the ready kernels ---------------------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * libBNGradKernels.so: kernels compiled ahead of time from Kernels.mlir.in and
 * Tables.mlir.in, for each type of data and each instruction set. Nothing is
 * checked. A function takes an array of pointers to its parameters, which are
 * descriptors of MLIR's memrefs, or scalars.
 */

#ifndef BNGRAD_LIB_RUNTIME_KERNELS_KERNELS_H
#define BNGRAD_LIB_RUNTIME_KERNELS_KERNELS_H

#include "BNGrad/Runtime/Runtime.h"
#include "ReadyKernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

/* Returns 0. The workspace starts at a multiple of 64; `threads` is null for
 * OpenMP's. */
typedef int32_t (*bngradPackedFunction_t)(void *const *parameters,
                                          void *workspace,
                                          const bngrad_threads_t *threads);

typedef struct {
  bngradPackedFunction_t call;
  /* The size of the workspace in bytes; reads no data. */
  size_t (*get_workspace_size)(void *const *parameters);
} bngradKernel_t;

/* A kernel takes all operands of its op in the order of Roles.def, inv_std as
 * the statistic and the mask if there is one, epsilon as an f64 in training,
 * and then the results of the kind. It does not read parameters that no result
 * depends on. */
typedef enum {
#define KERNEL(kind, ...) BNGRAD_KERNEL_##kind,
  BNGRAD_READY_KERNELS(KERNEL, unused)
#undef KERNEL
      BNGRAD_NUM_KERNELS
} bngradKernelKind_t;

/* The float types, F16 to F64. */
#define BNGRAD_NUM_FLOATS 4

typedef struct {
  /* Such as "x86-64-v3". */
  const char *isa;
  /* By type of data, kind, whether data are (outer, channels) or (outer,
   * channels, inner), and whether there is a mask, which kernels of the forward
   * pass do not have. Arithmetic and parameters are f32, or f64 for f64 data.
   */
  bngradKernel_t kernels[BNGRAD_NUM_FLOATS][BNGRAD_NUM_KERNELS][2][2];
  /* By whether arithmetic is f64, and the type of the table; null if none. The
   * parameters are source, destination and, for inv_std, epsilon; the table in
   * the caller's type may have a stride. */
  bngradPackedFunction_t widen[2][BNGRAD_NUM_FLOATS];
  bngradPackedFunction_t inv_std[2][BNGRAD_NUM_FLOATS];
  bngradPackedFunction_t narrow[2][BNGRAD_NUM_FLOATS];
  /* The parameters are two factors and their product, all of the type of
   * arithmetic. */
  bngradPackedFunction_t multiply[2];
} bngradKernels_t;

/* The kernels for the instruction set that BNGRAD_ISA names, or for the best
 * that this CPU has. Returns null and an empty `error` if there are none, and
 * null and one line if BNGRAD_ISA names none that this CPU has. */
const bngradKernels_t *bngradGetKernels(char *error, size_t error_size);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* BNGRAD_LIB_RUNTIME_KERNELS_KERNELS_H */
