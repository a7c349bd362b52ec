/* Computes a gradient that has no ready kernel, by as many threads as the first
 * argument says. The second is the size of an extra dim, which changes the kernel.
 * With a third, the call is asynchronous, on the calling thread, and nobody is told when it is done. */

#include "BNGrad/Runtime/Runtime.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kRows = 3, kRow = 5 };

static int extra, is_async;
static bngradStatus_t statuses[64];
static char errors[64][512];

static void *run(void *argument) {
  int number = (int)(size_t)argument, right = 1;
  /* The feature dims are the first and the last. */
  const int64_t shape[] = {2, kRows, kRow, extra}, channels[] = {2, extra};
  float *data[3], scale[64], mean[64], variance[64], grad_offset[64];
  int count = 2 * kRows * kRow * extra;
  bngradHandle_t handle;
  bngradTensorDescriptor_t tensor, vector;
  bngradBatchNormBackwardDescriptor_t gradient;
  bngradBatchNormBackwardOptions_t options = {
      .struct_size = sizeof options, .num_feature_dims = 2, .feature_dims = {0, 3}};
  size_t size;
  for (int i = 0; i < 3; ++i) {
    data[i] = malloc(count * sizeof(float));
    for (int k = 0; k < count; ++k)
      data[i][k] = (float)(k % extra + k / (kRows * kRow * extra));
  }
  for (int i = 0; i < 2 * extra; ++i)
    scale[i] = mean[i] = variance[i] = 1;
  bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0);
  bngradCreateTensorDescriptor(&tensor, BNGRAD_DTYPE_F32, 4, shape, NULL);
  bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 2, channels, NULL);
  bngradStatus_t status = bngradCreateBatchNormBackwardDescriptor(handle, &gradient, &options, tensor, NULL, vector,
                                                                  tensor, tensor, vector, vector, vector, NULL);
  if (!status)
    status = bngradGetBatchNormBackwardWorkspaceSize(gradient, &size);
  if (!status) {
    void *workspace = malloc(size);
    status = is_async ? bngradBatchNormBackwardAsync(gradient, workspace, size, data[0], NULL, grad_offset, data[1],
                                                     data[2], scale, mean, variance, NULL, NULL, NULL, NULL)
                      : bngradBatchNormBackward(gradient, workspace, size, data[0], NULL, grad_offset, data[1], data[2],
                                                scale, mean, variance, NULL, NULL);
    free(workspace);
    for (int c = 0; c < 2 * extra; ++c)
      right &= fabs(grad_offset[c] - kRows * kRow * (c % extra + c / extra)) < 1e-4;
    bngradDestroyBatchNormBackwardDescriptor(gradient);
  }
  snprintf(errors[number], sizeof errors[number], "%s", status ? bngradGetLastError() : right ? "right" : "wrong");
  statuses[number] = status;
  bngradDestroyTensorDescriptor(tensor);
  bngradDestroyTensorDescriptor(vector);
  bngradDestroyHandle(handle);
  for (int i = 0; i < 3; ++i)
    free(data[i]);
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  pthread_t all[64];
  struct timespec start, end;
  extra = argc > 2 ? atoi(argv[2]) : 3;
  is_async = argc > 3;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 0; i < threads; ++i)
    pthread_create(&all[i], NULL, run, (void *)(size_t)i);
  for (int i = 0; i < threads; ++i)
    pthread_join(all[i], NULL);
  clock_gettime(CLOCK_MONOTONIC, &end);
  for (int i = 0; i < threads; ++i)
    printf("%s: %s\n", bngradGetStatusName(statuses[i]), errors[i]);
  fprintf(stderr, "%.1f ms\n", 1e3 * (end.tv_sec - start.tv_sec) + 1e-6 * (end.tv_nsec - start.tv_nsec));
  return 0;
}
