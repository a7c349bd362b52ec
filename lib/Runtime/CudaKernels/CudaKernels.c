/*===- CudaKernels.c - the table of the ready kernels for GPUs ------------===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "CudaKernels.h"

#include "BNGrad/Runtime/Cuda.h"

/* The PTX of Vectors.c, zero-terminated. */
static const char vectorsPtx[] = {
#include BNGRAD_VECTORS_INC
};

/* The functions of the kernels. */
#define DECLARE(form, type, name)                                              \
  int32_t cuda_##form##_##type##_##name##_packed(void *const *, void *,        \
                                                 const bngrad_threads_t *);    \
  size_t cuda_##form##_##type##_##name##_packed_workspace(void *const *);
#define DECLARE_TYPES(form, name)                                              \
  DECLARE(form, f16, name) DECLARE(form, bf16, name) DECLARE(form, f32, name)
#define KERNEL(kind, name, ...)                                                \
  DECLARE_TYPES(rows, name) DECLARE_TYPES(planes, name)
BNGRAD_READY_CUDA_KERNELS(KERNEL)
#undef KERNEL

#define FUNCTIONS(form, type, name)                                            \
  {cuda_##form##_##type##_##name##_packed,                                     \
   cuda_##form##_##type##_##name##_packed_workspace}
#define FORMS(type, name)                                                      \
  {FUNCTIONS(rows, type, name), FUNCTIONS(planes, type, name)}

static void *vectors;

static void launchVectors(const bngradVectorOps_t *ops, int count,
                          void *stream) {
  void *parameters[] = {(void *)ops}; /* which is only read */
  long long blocks =
      (ops->channels + BNGRAD_VECTORS_THREADS - 1) / BNGRAD_VECTORS_THREADS;
  mgpuLaunchKernel(vectors, blocks, count, 1, BNGRAD_VECTORS_THREADS, 1, 1, 0,
                   stream, parameters, 0, 1);
}

static const bngradCudaKernels_t table = {
    {
#define KERNEL(kind, name, ...) FORMS(f16, name),
        {BNGRAD_READY_CUDA_KERNELS(KERNEL)},
#undef KERNEL
#define KERNEL(kind, name, ...) FORMS(bf16, name),
        {BNGRAD_READY_CUDA_KERNELS(KERNEL)},
#undef KERNEL
#define KERNEL(kind, name, ...) FORMS(f32, name),
        {BNGRAD_READY_CUDA_KERNELS(KERNEL)},
#undef KERNEL
    },
    launchVectors};

const bngradCudaKernels_t *bngradGetCudaKernels(void) {
  if (!vectors) {
    bngradCudaImage_t image = {BNGRAD_LEAST_CUDA_CHIP, BNGRAD_CUDA_IMAGE_PTX,
                               /*opt_level=*/3, sizeof(vectorsPtx) - 1,
                               vectorsPtx};
    vectors = mgpuModuleGetFunction(bngradCudaModuleLoad(&image, 1),
                                    BNGRAD_VECTORS_NAME);
  }
  return &table;
}
