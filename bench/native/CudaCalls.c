/*===- CudaCalls.c - times of the host for calls on a GPU --------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * CudaCalls backward|training|inference nchw|nhwc f32|bf16|f16 N C H W
 *
 * Prints the times of the C library on BNGRAD_DEVICE_CUDA: milliseconds until
 * the descriptor exists and for the first call, the CPU time of the process
 * until then, and microseconds for later calls, in the default stream. With the
 * driver that does nothing (StubCuda.c), as BNGRAD_CUDA_DRIVER, these are times
 * of the host apart from the driver; then it also prints the calls of the
 * driver in a later call. Kernels do not run, so that addresses may be any.
 */

#define _GNU_SOURCE
#include "BNGrad/Runtime/Runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(bngradStatus_t status) {
  if (status == BNGRAD_SUCCESS)
    return;
  fprintf(stderr, "%s\n", bngradGetLastError());
  exit(1);
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

enum { kRounds = 50, kCalls = 2000 };

static bngradHandle_t handle;
static bngradTensorDescriptor_t data, vector;
static size_t workspaceSize;
/* Addresses in a range that no program uses; nothing reads them. */
static void *at(int place) {
  return (char *)(1ULL << 40) + ((size_t)place << 36);
}
static void *workspace(void) { return at(15); }

static bngradBatchNormBackwardDescriptor_t backward;
static bngradBatchNormTrainingDescriptor_t training;
static bngradBatchNormInferenceDescriptor_t inference;

static void create_backward(void) {
  bngradBatchNormBackwardOptions_t options = {.struct_size = sizeof(options)};
  options.statistic = BNGRAD_STATISTIC_INV_STD;
  check(bngradCreateBatchNormBackwardDescriptor(
      handle, &backward, &options, data, vector, vector, data, data, vector,
      vector, vector, NULL));
  check(bngradGetBatchNormBackwardWorkspaceSize(backward, &workspaceSize));
}

static void call_backward(void) {
  check(bngradBatchNormBackward(backward, workspace(), workspaceSize, at(0),
                                at(1), at(2), at(3), at(4), at(5), at(6), at(7),
                                NULL, NULL));
}

static void create_training(void) {
  bngradBatchNormTrainingOptions_t options = {.struct_size = sizeof(options)};
  options.epsilon = 1e-5;
  options.momentum = 0.1;
  options.unbiased_running_variance = 1;
  check(bngradCreateBatchNormTrainingDescriptor(
      handle, &training, &options, data, vector, NULL, vector, vector, vector,
      data, vector, vector));
  check(bngradGetBatchNormTrainingWorkspaceSize(training, &workspaceSize));
}

static void call_training(void) {
  check(bngradBatchNormTraining(training, workspace(), workspaceSize, at(0),
                                at(1), NULL, at(2), at(3), at(4), at(5), at(6),
                                at(7), NULL));
}

static void create_inference(void) {
  bngradBatchNormInferenceOptions_t options = {.struct_size = sizeof(options)};
  options.epsilon = 1e-5;
  check(bngradCreateBatchNormInferenceDescriptor(handle, &inference, &options,
                                                 data, data, vector, vector,
                                                 vector, vector));
  check(bngradGetBatchNormInferenceWorkspaceSize(inference, &workspaceSize));
}

static void call_inference(void) {
  check(bngradBatchNormInference(inference, workspace(), workspaceSize, at(0),
                                 at(1), at(2), at(3), at(4), at(5), NULL));
}

static const struct Op {
  const char *name;
  void (*create)(void), (*call)(void);
} ops[] = {{"backward", create_backward, call_backward},
           {"training", create_training, call_training},
           {"inference", create_inference, call_inference}};

/* The index of `name` among `count` names; ends the program if there is none.
 */
static int find(const char *name, const char *const *names, int count) {
  for (int i = 0; i < count; ++i)
    if (!strcmp(name, names[i]))
      return i;
  fprintf(stderr, "unknown: %s\n", name);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 8) {
    fprintf(stderr, "expected an op, a layout, a type and 4 sizes\n");
    return 1;
  }
  static const char *const opNames[] = {"backward", "training", "inference"};
  static const char *const layouts[] = {"nchw", "nhwc"};
  static const char *const types[] = {"f16", "bf16", "f32"};
  const struct Op *op = &ops[find(argv[1], opNames, 3)];
  int isNhwc = find(argv[2], layouts, 2);
  bngradDtype_t type = (bngradDtype_t)find(argv[3], types, 3);
  int64_t shape[4];
  for (int i = 0; i < 4; ++i)
    shape[i] = atoll(argv[4 + i]);
  const int64_t plane = shape[2] * shape[3];
  const int64_t strides[2][4] = {
      {shape[1] * plane, plane, shape[3], 1},
      {shape[1] * plane, 1, shape[1] * shape[3], shape[1]}};

  double start = now_us();
  check(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA, 0));
  check(bngradCreateTensorDescriptor(&data, type, 4, shape, strides[isNhwc]));
  check(bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 1, &shape[1],
                                     NULL));
  op->create();
  double created = now_us();
  op->call();
  double first = now_us();
  printf("create_ms %.2f\nfirst_ms %.3f\ncpu_ms %.2f\n",
         1e-3 * (created - start), 1e-3 * (first - created),
         1e3 * (double)clock() / CLOCKS_PER_SEC);

  void (*printCalls)(long) = NULL;
  const char *driver = getenv("BNGRAD_CUDA_DRIVER");
  void *library = driver ? dlopen(driver, RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (library)
    *(void **)&printCalls = dlsym(library, "stubPrintCalls");
  if (printCalls) {
    puts("first call:");
    printCalls(1);
  }
  /* The least of the rounds: other processes disturb some of them. */
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    start = now_us();
    for (int i = 0; i < kCalls; ++i)
      op->call();
    double time = (now_us() - start) / kCalls;
    least = time < least ? time : least;
  }
  printf("call_us %.3f\n", least);
  if (printCalls) {
    puts("later calls:");
    printCalls((long)kRounds * kCalls);
  }
  return 0;
}
