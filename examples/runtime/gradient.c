/* The gradients of a batch normalization of 2 images of 3 channels, NCHW. */

#include "BNGrad/Runtime/Runtime.h"

#include <stdio.h>
#include <stdlib.h>

static void check(bngradStatus_t status) {
  if (status == BNGRAD_SUCCESS)
    return;
  fprintf(stderr, "%s: %s\n", bngradGetStatusName(status),
          bngradGetLastError());
  exit(1);
}

int main(void) {
  const int64_t shape[] = {2, 3, 4}, channels[] = {3};
  const float scale[] = {1, 2, 3}, mean[] = {0, 1, 2}, variance[] = {4, 1, 0.25};
  float grad_output[24], input[24], grad_input[24], grad_scale[3];
  float grad_offset[3];
  bngradHandle_t handle;
  bngradTensorDescriptor_t data, vector;
  bngradBatchNormBackwardDescriptor_t gradient;
  bngradBatchNormBackwardOptions_t options = {0};
  void *workspace;
  size_t size;
  int i;

  for (i = 0; i < 24; ++i) {
    grad_output[i] = (float)(i % 5);
    input[i] = (float)(i % 7);
  }
  check(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0));
  check(bngradCreateTensorDescriptor(&data, BNGRAD_DTYPE_F32, 3, shape, NULL));
  check(bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 1, channels,
                                     NULL));
  options.struct_size = sizeof options;
  options.epsilon = 1e-5;
  check(bngradCreateBatchNormBackwardDescriptor(
      handle, &gradient, &options, data, vector, vector, data, data, vector,
      vector, vector, NULL));
  check(bngradGetBatchNormBackwardWorkspaceSize(gradient, &size));
  workspace = malloc(size);
  check(bngradBatchNormBackward(gradient, workspace, size, grad_input,
                                grad_scale, grad_offset, grad_output, input,
                                scale, mean, variance, NULL, NULL));
  for (i = 0; i < 3; ++i)
    printf("channel %d: grad_scale %.3f, grad_offset %.1f\n", i, grad_scale[i],
           grad_offset[i]);

  free(workspace);
  check(bngradDestroyBatchNormBackwardDescriptor(gradient));
  check(bngradDestroyTensorDescriptor(data));
  check(bngradDestroyTensorDescriptor(vector));
  check(bngradDestroyHandle(handle));
  return 0;
}
