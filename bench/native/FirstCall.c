/*===- FirstCall.c - the first gradient of a process -------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * Prints the milliseconds from the first call of the C library to the end of
 * the first gradient, of feature dims that no ready kernel covers.
 */

#include "BNGrad/Runtime/Runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(bngradStatus_t status) {
  if (status == BNGRAD_SUCCESS)
    return;
  fprintf(stderr, "%s\n", bngradGetLastError());
  exit(1);
}

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

int main(void) {
  enum { numElements = 3 * 4 * 2 * 5, numChannels = 3 * 2 };
  static float gradInput[numElements], gradOutput[numElements],
      input[numElements];
  static float gradScale[numChannels], gradOffset[numChannels],
      scale[numChannels], mean[numChannels], variance[numChannels];
  for (int i = 0; i < numChannels; ++i)
    scale[i] = variance[i] = 1;
  const int64_t dataShape[] = {3, 4, 2, 5}, vectorShape[] = {3, 2};

  double start = now();
  bngradHandle_t handle;
  check(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0));
  bngradTensorDescriptor_t data, vector;
  check(bngradCreateTensorDescriptor(&data, BNGRAD_DTYPE_F32, 4, dataShape,
                                     NULL));
  check(bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 2, vectorShape,
                                     NULL));
  bngradBatchNormBackwardOptions_t options = {sizeof(options)};
  options.num_feature_dims = 2;
  options.feature_dims[0] = 0;
  options.feature_dims[1] = 2;
  bngradBatchNormBackwardDescriptor_t gradient;
  check(bngradCreateBatchNormBackwardDescriptor(
      handle, &gradient, &options, data, vector, vector, data, data, vector,
      vector, vector, NULL));
  size_t size = 0;
  check(bngradGetBatchNormBackwardWorkspaceSize(gradient, &size));
  void *workspace = malloc(size + 1);
  check(bngradBatchNormBackward(gradient, workspace, size, gradInput, gradScale,
                                gradOffset, gradOutput, input, scale, mean,
                                variance, NULL, NULL));
  printf("%.3f\n", now() - start);
  free(workspace);
  bngradDestroyBatchNormBackwardDescriptor(gradient);
  bngradDestroyTensorDescriptor(vector);
  bngradDestroyTensorDescriptor(data);
  bngradDestroyHandle(handle);
  return 0;
}
