/*===- CudaKernels.h - the ready kernels for GPUs --------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * libBNGradCudaKernels.so: the kernels of Kernels.mlir.in, compiled ahead of
 * time for each type and form of data. libBNGradCudaEmulatorKernels.so has the
 * same kernels for the emulator. Nothing is checked.
 */

#ifndef BNGRAD_LIB_RUNTIME_CUDAKERNELS_CUDAKERNELS_H
#define BNGRAD_LIB_RUNTIME_CUDAKERNELS_CUDAKERNELS_H

#include "../Kernels/Kernels.h"
#include "Vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

/* KERNEL(kind, name, scalars, ...parameters) for each kernel: the roles of its
 * parameters, in order, and what scalars of f64 follow them, Epsilon, Update
 * (epsilon and the factors of running statistics) or NoScalars. */
#define BNGRAD_READY_CUDA_KERNELS(KERNEL)                                      \
  KERNEL(BATCH, batch, NoScalars, GradOutput, Input, Scale, Mean, Statistic,   \
         GradInput, GradScale, GradOffset)                                     \
  KERNEL(GLOBAL_INPUT, global_input, NoScalars, GradOutput, Input, Scale,      \
         Mean, Statistic, GradInput)                                           \
  KERNEL(SCALE_OFFSET, scale_offset, NoScalars, GradOutput, Input, Mean,       \
         Statistic, GradScale, GradOffset)                                     \
  KERNEL(ELEMT, elemt, NoScalars, GradOutput, Input, Scale, Mean, Statistic,   \
         Sums, Count, GradInput)                                               \
  KERNEL(TRAINING, training, Update, Input, Scale, Offset, Output, Mean,       \
         Variance, InvStd, RunningMean, RunningVariance)                       \
  KERNEL(STATISTICS, statistics, Epsilon, Input, Mean, Variance, InvStd)       \
  KERNEL(INFERENCE, inference, NoScalars, Input, Scale, Offset, Mean,          \
         Statistic, Output)

typedef enum {
#define KERNEL(kind, ...) BNGRAD_CUDA_KERNEL_##kind,
  BNGRAD_READY_CUDA_KERNELS(KERNEL)
#undef KERNEL
      BNGRAD_NUM_CUDA_KERNELS
} bngradCudaKernelKind_t;

/* The types of data: f16, bf16 and f32. Parameters and arithmetic are f32. */
#define BNGRAD_NUM_CUDA_TYPES 3

/* The lowest compute capability that the kernels run on, such as 80 for 8.0,
 * which CMakeLists.txt reads, too, and the name of its chips. */
#define BNGRAD_LEAST_CUDA_CAPABILITY 80
#define BNGRAD_CUDA_CHIP_TEXT(capability) "sm_" #capability
#define BNGRAD_CUDA_CHIP(capability) BNGRAD_CUDA_CHIP_TEXT(capability)
#define BNGRAD_LEAST_CUDA_CHIP BNGRAD_CUDA_CHIP(BNGRAD_LEAST_CUDA_CAPABILITY)

typedef struct {
  /* By type of data, kind, and whether data are (outer, channels) or (outer,
   * channels, inner). */
  bngradKernel_t kernels[BNGRAD_NUM_CUDA_TYPES][BNGRAD_NUM_CUDA_KERNELS][2];
  /* Launches the first `count` ops, at least one, in `stream`. */
  void (*launch_vectors)(const bngradVectorOps_t *ops, int count, void *stream);
} bngradCudaKernels_t;

/* Loads the modules, lazily like generated code. One thread may call it at a
 * time. */
const bngradCudaKernels_t *bngradGetCudaKernels(void);
typedef const bngradCudaKernels_t *(*bngradGetCudaKernelsFunction_t)(void);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* BNGRAD_LIB_RUNTIME_CUDAKERNELS_CUDAKERNELS_H */
