/*===- Cudart.c - CUDA's runtime library over the emulator -------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * Preloaded, it gives a PyTorch that is built for CUDA one device whose memory
 * and streams are those of libBNGradCudaEmulator.so: PyTorch's allocator,
 * streams, events and threads of autograd run as on a GPU. Kernels of PyTorch
 * itself cannot be launched; emulated_cuda.py replaces them by those for CPUs.
 * Functions that are not here fail, as those of scripts/torch_without_cuda.py.
 */

#include "BNGrad/Runtime/Cuda.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { kSuccess = 0, kOutOfMemory = 2, kInvalidDevice = 101, kNotSupported = 801 };
enum { kVersion = 13000, kMemory = 1 << 30 };

/* How often a program waited for the device. */
static int numWaits;
int countWaits(void) { return numWaits; }

/* Whether a stream captures; the emulator executes its kernels at once. */
static void *capturing;
static int isCapturing;

/* Devices. */

static __thread int device;

int cudaGetDeviceCount(int *count) {
  *count = 1;
  return kSuccess;
}
int cudaGetDevice(int *result) {
  *result = device;
  return kSuccess;
}
int cudaSetDevice(int wanted) {
  if (wanted != 0)
    return kInvalidDevice;
  device = wanted;
  return kSuccess;
}
int cudaDriverGetVersion(int *version) {
  *version = kVersion;
  return kSuccess;
}
int cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

/* The first members of cudaDeviceProp. */
struct Properties {
  char name[256];
  char uuid[16], luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int multiProcessorCount;
};

int cudaGetDeviceProperties(struct Properties *properties, int number) {
  memset(properties, 0, sizeof(*properties));
  strcpy(properties->name, "PTX emulator");
  properties->totalGlobalMem = kMemory;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->major = 9;
  properties->multiProcessorCount = 132;
  return number == 0 ? kSuccess : kInvalidDevice;
}
int cudaDeviceGetAttribute(int *value, int attribute, int number) {
  *value = 0;
  return kSuccess;
}
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return kSuccess;
}
int cudaDeviceCanAccessPeer(int *result, int from, int to) {
  *result = 0;
  return kSuccess;
}

/* Errors. */

static __thread int lastError;

int cudaPeekAtLastError(void) { return lastError; }
int cudaGetLastError(void) {
  int error = lastError;
  lastError = kSuccess;
  return error;
}
/* A kernel of PyTorch. */
int cudaLaunchKernel(void) { return lastError = kNotSupported; }
int cudaLaunchKernelExC(void) { return cudaLaunchKernel(); }
const char *cudaGetErrorName(int error) { return "an error of the emulated CUDA runtime"; }
const char *cudaGetErrorString(int error) { return cudaGetErrorName(error); }

/* Memory. */

int cudaMalloc(void **pointer, size_t size) {
  *pointer = mgpuMemAlloc(size, NULL, 0);
  return *pointer ? kSuccess : kOutOfMemory;
}
int cudaFree(void *pointer) {
  if (pointer)
    mgpuMemFree(pointer, NULL);
  return kSuccess;
}
int cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
  *pointer = malloc(size);
  return kSuccess;
}
int cudaFreeHost(void *pointer) {
  free(pointer);
  return kSuccess;
}
int cudaMemGetInfo(size_t *available, size_t *total) {
  *available = *total = kMemory;
  return kSuccess;
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  mgpuMemcpy(to, (void *)from, size, stream);
  mgpuStreamSynchronize(stream);
  return kSuccess;
}

/* Streams and events. */

int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  *stream = mgpuStreamCreate();
  return kSuccess;
}
int cudaStreamSynchronize(void *stream) {
  ++numWaits;
  mgpuStreamSynchronize(stream);
  return kSuccess;
}
int cudaDeviceSynchronize(void) { return cudaStreamSynchronize(NULL); }
int cudaStreamQuery(void *stream) { return kSuccess; }
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
  mgpuStreamWaitEvent(stream, event);
  return kSuccess;
}
int cudaEventCreateWithFlags(void **event, unsigned flags) {
  *event = mgpuEventCreate();
  return kSuccess;
}
int cudaEventDestroy(void *event) {
  mgpuEventDestroy(event);
  return kSuccess;
}
int cudaEventRecord(void *event, void *stream) {
  mgpuEventRecord(event, stream);
  return kSuccess;
}
int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags) { return cudaEventRecord(event, stream); }
int cudaEventElapsedTime(float *milliseconds, void *begin, void *end) {
  *milliseconds = 1;
  return kSuccess;
}
int cudaEventQuery(void *event) { return kSuccess; }
int cudaEventSynchronize(void *event) {
  ++numWaits;
  mgpuEventSynchronize(event);
  return kSuccess;
}

/* Capture. Nothing is recorded, and a graph launches nothing. */

int cudaThreadExchangeStreamCaptureMode(int *mode) { return kSuccess; }
int cudaStreamIsCapturing(void *stream, int *status) {
  *status = isCapturing && stream == capturing;
  return kSuccess;
}
int cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph) {
  if (id)
    *id = 1;
  return cudaStreamIsCapturing(stream, status);
}
int cudaStreamBeginCapture(void *stream, int mode) {
  capturing = stream;
  isCapturing = 1;
  return kSuccess;
}
int cudaStreamEndCapture(void *stream, void **graph) {
  static char none;
  isCapturing = 0;
  *graph = &none;
  return kSuccess;
}
int cudaGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  *executable = graph;
  return kSuccess;
}
int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(executable, graph, flags);
}
int cudaGraphLaunch(void *executable, void *stream) { return kSuccess; }
int cudaGraphDestroy(void *graph) { return kSuccess; }
int cudaGraphExecDestroy(void *executable) { return kSuccess; }
int cudaGraphGetNodes(void *graph, void **nodes, size_t *count) {
  *count = 1;
  return kSuccess;
}

/* The driver, which PyTorch opens. The library has its name. */

int cuDeviceGet(int *result, int number) {
  *result = number;
  return kSuccess;
}
int cuDeviceGetAttribute(int *value, int attribute, int number) {
  return cudaDeviceGetAttribute(value, attribute, number);
}
int cuDevicePrimaryCtxGetState(int number, unsigned *flags, int *isActive) {
  *flags = 0;
  *isActive = 1;
  return kSuccess;
}
int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                     unsigned long long flags, int *result) {
  *function = dlsym(RTLD_DEFAULT, name);
  *result = *function ? 0 : 1;
  return kSuccess;
}
