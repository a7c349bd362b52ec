/*===- Cuda.h - functions for generated CUDA host code ---------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * Two libraries export these symbols: libBNGradCudaRuntime.so, over the CUDA
 * driver, and libBNGradCudaEmulator.so, which interprets PTX on the CPU. The
 * mgpu functions are those that MLIR's lowering of the gpu dialect calls; sizes
 * are in bytes, and a null stream is the default stream.
 *
 * Errors: no function returns an error. The first error of a thread is passed
 * to the error handler as one line of text, and becomes the thread's status.
 * Until the thread takes the status, its calls only release resources (and
 * return null).
 */

#ifndef BNGRAD_RUNTIME_CUDA_H
#define BNGRAD_RUNTIME_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

/* Modules. Loading is lazy: the device is not used before the first launch, so
 * that constructors may load modules in a program that runs without a
 * device. */

/* A cubin or a fatbinary; `data` must live as long as the module. */
void *mgpuModuleLoad(void *data, uint64_t size);
/* PTX, zero-terminated; assembled at `opt_level` (0 to 4). */
void *mgpuModuleLoadJIT(void *data, int32_t opt_level);
void mgpuModuleUnload(void *module);
/* The kernel `name`, looked up at its first launch in a context: a missing
 * kernel is an error of the launch. */
void *mgpuModuleGetFunction(void *module, const char *name);

typedef enum {
  BNGRAD_CUDA_IMAGE_PTX = 0,    /* zero-terminated text */
  BNGRAD_CUDA_IMAGE_BINARY = 1, /* cubin, or fatbinary with one */
  BNGRAD_CUDA_IMAGE_FATBIN = 2  /* fatbinary with a cubin and with PTX */
} bngradCudaImageFormat_t;

/* An image of a module. */
typedef struct {
  const char *chip;  /* such as "sm_90" or "sm_90a" */
  int32_t format;    /* a bngradCudaImageFormat_t */
  int32_t opt_level; /* for PTX alone */
  uint64_t size;     /* without the zero that ends PTX */
  const void *data;
} bngradCudaImage_t;

/* A module with an image for each of several chips. The device decides at the
 * first launch: a binary of its own chip or of an older one of its major
 * version, then the PTX of the newest chip that is not newer than it. Images
 * for names that end in 'a' fit only that chip; images for names that end in
 * 'f' also fit newer chips of its major version. Of equally good images, the
 * one for fewer chips is taken. */
void *bngradCudaModuleLoad(const bngradCudaImage_t *images, int64_t num_images);

/* A symbol of modules whose kernels wait for the kernel ahead of them before
 * they access global memory (PTX: griddepcontrol.wait). They may be launched
 * while that kernel still runs, except in captured streams. */
#define BNGRAD_CUDA_KERNELS_WAIT_SYMBOL "bngrad_kernels_wait"

/* Launches on `stream`. `params` points to the address of each parameter. A
 * grid of no blocks launches nothing. */
void mgpuLaunchKernel(void *function, intptr_t grid_x, intptr_t grid_y,
                      intptr_t grid_z, intptr_t block_x, intptr_t block_y,
                      intptr_t block_z, int32_t dynamic_shared_bytes,
                      void *stream, void **params, void **extra,
                      uint64_t num_params);
void mgpuLaunchClusterKernel(void *function, intptr_t cluster_x,
                             intptr_t cluster_y, intptr_t cluster_z,
                             intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                             intptr_t block_x, intptr_t block_y,
                             intptr_t block_z, int32_t dynamic_shared_bytes,
                             void *stream, void **params, void **extra);

/* Streams and events. */
void *mgpuStreamCreate(void);
void mgpuStreamDestroy(void *stream);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamWaitEvent(void *stream, void *event);
/* Makes the calling thread work in `stream`, which the caller created in the
 * current context and keeps, until another is set or bngradCudaResetStream is
 * called: mgpuStreamCreate returns it, and mgpuStreamDestroy and
 * mgpuStreamSynchronize do nothing with it, except that mgpuStreamSynchronize
 * waits if something was copied from or to host memory. Generated functions on
 * device buffers then return when their work is in the stream, before it is
 * done, so that callers can order it, time it and capture it into graphs. Null
 * is the default stream. A function must have run once, outside of a capture,
 * before it is captured: its first call loads modules. */
void bngradCudaSetStream(void *stream);
/* Makes the calling thread's generated functions create their own streams
 * again, and return when their work is done. */
void bngradCudaResetStream(void);
void *mgpuEventCreate(void);
void mgpuEventDestroy(void *event);
void mgpuEventSynchronize(void *event);
void mgpuEventRecord(void *event, void *stream);

/* Memory. */
void *mgpuMemAlloc(uint64_t bytes, void *stream, uint8_t is_host_shared);
void mgpuMemFree(void *pointer, void *stream);
void mgpuMemcpy(void *to, void *from, uint64_t bytes, void *stream);
void mgpuMemset16(void *to, uint16_t value, uint64_t count, void *stream);
void mgpuMemset32(void *to, uint32_t value, uint64_t count, void *stream);
/* `descriptor` is an unranked memref. */
void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t element_bytes);
void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                 int64_t element_bytes);
/* Sets the device of the calling thread for when no context is current. */
void mgpuSetDefaultDevice(int32_t device);
/* Makes the calling thread work on `device`, a number of at least 0, until
 * another is set or bngradCudaResetDevice is called. If the current context is
 * one of another device, the primary context of `device` is current during each
 * call. */
void bngradCudaSetDevice(int32_t device);
/* Makes the calling thread work in the current context again, whatever its
 * device is. */
void bngradCudaResetDevice(void);
/* Compute capability of the device, such as 90 for 9.0; 0 after an error. */
int32_t bngradCudaGetCapability(void);
/* How many clusters of `cluster_blocks` blocks (1 to 16) run at once on the
 * device, if `resident_blocks` blocks (1 to 32) fill a multiprocessor. Returns
 * 0 if no such cluster runs, as on devices without clusters and on parts of a
 * device with too few multiprocessors in a processing cluster, if the driver
 * cannot tell, and after an error. It asks the driver once per device, even if
 * that fails, about a small kernel that it loads for this. */
int32_t bngradCudaGetClusterSlots(int32_t cluster_blocks,
                                  int32_t resident_blocks);

/* Errors. */

/* Takes the calling thread's status: 0, or the code of its first error since
 * the status was last taken (a CUresult; -1 if the error is not one; -2 if host
 * memory ran out). */
int32_t bngradCudaTakeStatus(void);
/* Called with one line for each error, in the thread of the error; without a
 * handler the line goes to standard error. Null removes the handler. A handler
 * runs in one thread at a time and may call only the two functions here. */
typedef void (*bngradCudaErrorHandler_t)(const char *message, void *user);
void bngradCudaSetErrorHandler(bngradCudaErrorHandler_t handler, void *user);
/* The same for errors of the calling thread, which then bypass the other
 * handler. */
void bngradCudaSetThreadErrorHandler(bngradCudaErrorHandler_t handler,
                                     void *user);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* BNGRAD_RUNTIME_CUDA_H */
