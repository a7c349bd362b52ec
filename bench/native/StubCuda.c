/*===- StubCuda.c - a CUDA driver that does nothing --------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * A driver with one device of 9.0, for times of the host without a GPU. Each
 * function only counts its calls and, where a caller needs one, gives an
 * answer. It has the functions of lib/Runtime/Cuda/Driver.h; those that calls
 * of the C library do not need fail.
 */

#include <stdio.h>
#include <string.h>

enum { kSuccess = 0, kNotFound = 500, kNotSupported = 801 };

#define ANSWERED(X)                                                            \
  X(cuInit)                                                                    \
  X(cuDeviceGet)                                                               \
  X(cuDeviceGetName)                                                           \
  X(cuDeviceGetAttribute)                                                      \
  X(cuDevicePrimaryCtxRetain)                                                  \
  X(cuCtxGetCurrent)                                                           \
  X(cuCtxPushCurrent_v2)                                                       \
  X(cuCtxPopCurrent_v2)                                                        \
  X(cuCtxGetDevice)                                                            \
  X(cuCtxGetId)                                                                \
  X(cuModuleLoadDataEx)                                                        \
  X(cuModuleGetFunction)                                                       \
  X(cuModuleGetGlobal_v2)                                                      \
  X(cuFuncGetAttribute)                                                        \
  X(cuFuncSetAttribute)                                                        \
  X(cuThreadExchangeStreamCaptureMode)                                         \
  X(cuStreamIsCapturing)                                                       \
  X(cuLaunchKernelEx)
#define REFUSED(X)                                                             \
  X(cuGetErrorName)                                                            \
  X(cuGetErrorString)                                                          \
  X(cuModuleUnload)                                                            \
  X(cuStreamCreate)                                                            \
  X(cuStreamGetCaptureInfo_v2)                                                 \
  X(cuStreamSynchronize)                                                       \
  X(cuStreamWaitEvent)                                                         \
  X(cuEventCreate)                                                             \
  X(cuEventRecord)                                                             \
  X(cuEventSynchronize)                                                        \
  X(cuUserObjectCreate)                                                        \
  X(cuUserObjectRelease)                                                       \
  X(cuGraphRetainUserObject)                                                   \
  X(cuMemPoolCreate)                                                           \
  X(cuMemPoolDestroy)                                                          \
  X(cuMemPoolSetAttribute)                                                     \
  X(cuMemAllocFromPoolAsync)                                                   \
  X(cuMemFreeAsync)                                                            \
  X(cuMemAlloc_v2)                                                             \
  X(cuMemAllocManaged)                                                         \
  X(cuMemFree_v2)                                                              \
  X(cuMemcpyAsync)                                                             \
  X(cuPointerGetAttribute)                                                     \
  X(cuMemsetD16Async)                                                          \
  X(cuMemsetD32Async)                                                          \
  X(cuMemHostRegister_v2)                                                      \
  X(cuMemHostUnregister)

#define NUMBER(name) k_##name,
enum { ANSWERED(NUMBER) REFUSED(NUMBER) kNumFunctions };
#define NAME(name) #name,
static const char *const names[] = {ANSWERED(NAME) REFUSED(NAME)};
static long numCalls[kNumFunctions];

/* Prints the calls since the last time, such as "cuCtxGetCurrent 2", over
 * `numRounds`. */
void stubPrintCalls(long numRounds) {
  for (int i = 0; i < kNumFunctions; ++i)
    if (numCalls[i] > 0)
      printf("%s %g\n", names[i], (double)numCalls[i] / (double)numRounds);
  memset(numCalls, 0, sizeof(numCalls));
}

static char object; /* what handles point to */
static _Thread_local void *current;

static int count(int function) {
  ++numCalls[function];
  return kSuccess;
}

#define REFUSE(name)                                                           \
  int name(void) { return count(k_##name), kNotSupported; }
REFUSED(REFUSE)

int cuInit(unsigned flags) { return (void)flags, count(k_cuInit); }

int cuDeviceGet(int *device, int number) {
  *device = number;
  return number == 0 ? count(k_cuDeviceGet) : kNotFound;
}

int cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  snprintf(name, (size_t)size, "stub");
  return count(k_cuDeviceGetName);
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  switch (attribute) {
  case 39: /* MAX_THREADS_PER_MULTIPROCESSOR */
    *value = 2048;
    break;
  case 75: /* COMPUTE_CAPABILITY_MAJOR */
    *value = 9;
    break;
  case 76: /* COMPUTE_CAPABILITY_MINOR */
    *value = 0;
    break;
  case 81: /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
    *value = 228 << 10;
    break;
  case 111: /* RESERVED_SHARED_MEMORY_PER_BLOCK */
    *value = 1 << 10;
    break;
  default: /* MEMORY_POOLS_SUPPORTED */
    *value = 1;
  }
  return count(k_cuDeviceGetAttribute);
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  *context = &object;
  return count(k_cuDevicePrimaryCtxRetain);
}

int cuCtxGetCurrent(void **context) {
  *context = current;
  return count(k_cuCtxGetCurrent);
}

int cuCtxPushCurrent_v2(void *context) {
  current = context;
  return count(k_cuCtxPushCurrent_v2);
}

int cuCtxPopCurrent_v2(void **context) {
  *context = current;
  current = NULL;
  return count(k_cuCtxPopCurrent_v2);
}

int cuCtxGetDevice(int *device) {
  *device = 0;
  return count(k_cuCtxGetDevice);
}

int cuCtxGetId(void *context, unsigned long long *id) {
  (void)context;
  *id = 1;
  return count(k_cuCtxGetId);
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned numOptions,
                       int *options, void **values) {
  (void)image, (void)numOptions, (void)options, (void)values;
  *module = &object;
  return count(k_cuModuleLoadDataEx);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  (void)module, (void)name;
  *function = &object;
  return count(k_cuModuleGetFunction);
}

/* Kernels of 9.0 wait for the kernel ahead of them. */
int cuModuleGetGlobal_v2(unsigned long long *address, size_t *size,
                         void *module, const char *name) {
  (void)module, (void)name;
  *address = 0;
  *size = 1;
  return count(k_cuModuleGetGlobal_v2);
}

int cuFuncGetAttribute(int *value, int attribute, void *function) {
  (void)attribute, (void)function;
  *value = 1024;
  return count(k_cuFuncGetAttribute);
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  (void)function, (void)attribute, (void)value;
  return count(k_cuFuncSetAttribute);
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
  (void)mode;
  return count(k_cuThreadExchangeStreamCaptureMode);
}

int cuStreamIsCapturing(void *stream, int *status) {
  (void)stream;
  *status = 0;
  return count(k_cuStreamIsCapturing);
}

int cuLaunchKernelEx(const void *config, void *function, void **params,
                     void **extra) {
  (void)config, (void)function, (void)params, (void)extra;
  return count(k_cuLaunchKernelEx);
}
