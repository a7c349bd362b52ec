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

/* KERNEL(kind, name, op, statistics, results, parameters, ...) for each kind,
 * with the arguments that follow: `op`, the roles of its `results` and of the
 * per-channel `parameters` that it reads are those of Roles.def, and
 * `statistics` is an attribute of the op, or none. The lines have a form that
 * CMake reads. */
/* clang-format off */
#define BNGRAD_READY_KERNELS(KERNEL, ...) \
  KERNEL(BATCH, batch, Backward, batch, GradInput | GradScale | GradOffset, Scale | Mean | Statistic, __VA_ARGS__) \
  KERNEL(GLOBAL, global, Backward, global, GradInput | GradScale | GradOffset, Scale | Mean | Statistic, __VA_ARGS__) \
  KERNEL(GLOBAL_INPUT_OFFSET, global_input_offset, Backward, global, GradInput | GradOffset, Scale | Statistic, __VA_ARGS__) \
  KERNEL(GLOBAL_INPUT, global_input, Backward, global, GradInput, Scale | Statistic, __VA_ARGS__) \
  KERNEL(SCALE_OFFSET, scale_offset, Backward, batch, GradScale | GradOffset, Mean | Statistic, __VA_ARGS__) \
  KERNEL(OFFSET, offset, Backward, batch, GradOffset, None, __VA_ARGS__) \
  KERNEL(ELEMT, elemt, BackwardElemt, batch, GradInput, Scale | Mean | Statistic, __VA_ARGS__) \
  KERNEL(TRAINING, training, Training, none, Output | Mean | Variance | InvStd, Scale | Offset, __VA_ARGS__) \
  KERNEL(STATISTICS, statistics, Training, none, Mean | Variance | InvStd, None, __VA_ARGS__) \
  KERNEL(INFERENCE, inference, Inference, none, Output, Scale | Offset | Mean | Statistic, __VA_ARGS__)
/* clang-format on */

#endif /* BNGRAD_LIB_RUNTIME_KERNELS_READYKERNELS_H */
