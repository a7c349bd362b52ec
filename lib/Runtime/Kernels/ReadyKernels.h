/*===- ReadyKernels.h - the kinds of ready kernels -------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * Each kind is declared here: CMake makes its function of Kernel.mlir.in,
 * Kernels.c puts it into the tables, and the C library chooses and calls it.
 */

#ifndef BNGRAD_LIB_RUNTIME_KERNELS_READYKERNELS_H
#define BNGRAD_LIB_RUNTIME_KERNELS_READYKERNELS_H

/* The results of a kernel, in this order. */
enum { BNGRAD_GRAD_INPUT = 1, BNGRAD_GRAD_SCALE = 2, BNGRAD_GRAD_OFFSET = 4 };

/* KERNEL(kind, name, op, statistics, results, ...) for each kind, with the
 * arguments that follow: `op` is that of the dialect, batch_norm_<op>, and
 * `statistics` its attribute. The lines have a form that CMake reads. */
/* clang-format off */
#define BNGRAD_READY_KERNELS(KERNEL, ...) \
  KERNEL(BATCH, batch, backward, batch, BNGRAD_GRAD_INPUT | BNGRAD_GRAD_SCALE | BNGRAD_GRAD_OFFSET, __VA_ARGS__) \
  KERNEL(GLOBAL, global, backward, global, BNGRAD_GRAD_INPUT | BNGRAD_GRAD_SCALE | BNGRAD_GRAD_OFFSET, __VA_ARGS__) \
  KERNEL(GLOBAL_INPUT_OFFSET, global_input_offset, backward, global, BNGRAD_GRAD_INPUT | BNGRAD_GRAD_OFFSET, __VA_ARGS__) \
  KERNEL(GLOBAL_INPUT, global_input, backward, global, BNGRAD_GRAD_INPUT, __VA_ARGS__) \
  KERNEL(SCALE_OFFSET, scale_offset, backward, batch, BNGRAD_GRAD_SCALE | BNGRAD_GRAD_OFFSET, __VA_ARGS__) \
  KERNEL(OFFSET, offset, backward, batch, BNGRAD_GRAD_OFFSET, __VA_ARGS__) \
  KERNEL(ELEMT, elemt, backward_elemt, batch, BNGRAD_GRAD_INPUT, __VA_ARGS__)
/* clang-format on */

#endif /* BNGRAD_LIB_RUNTIME_KERNELS_READYKERNELS_H */
