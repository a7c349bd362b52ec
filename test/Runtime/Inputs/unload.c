/* Loads the C library, calls it, and unloads it. */

#include "BNGrad/Runtime/Runtime.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTimes = 50, kImages = 8, kChannels = 4, kRow = 1000, kElements = kImages * kChannels * kRow };

static void *library;

#define CALL(name) (*(__typeof__(&name))(uintptr_t)dlsym(library, #name))

static float grad_output[kElements], input[kElements], grad_input[kElements];

static int run(void) {
  const int64_t shape[] = {kImages, kChannels, kRow}, channels[] = {kChannels};
  const float scale[] = {1, 2, 3, 4}, mean[] = {0, 1, 2, 3}, variance[] = {1, 2, 3, 4};
  float grad_scale[kChannels], grad_offset[kChannels];
  bngradHandle_t handle;
  bngradTensorDescriptor_t data, vector;
  bngradBatchNormBackwardDescriptor_t gradient;
  size_t size;
  int failed = CALL(bngradCreateHandle)(&handle, BNGRAD_DEVICE_CPU, 0) ||
               CALL(bngradCreateTensorDescriptor)(&data, BNGRAD_DTYPE_F32, 3, shape, NULL) ||
               CALL(bngradCreateTensorDescriptor)(&vector, BNGRAD_DTYPE_F32, 1, channels, NULL) ||
               CALL(bngradCreateBatchNormBackwardDescriptor)(handle, &gradient, NULL, data, vector, vector, data, data,
                                                             vector, vector, vector, NULL) ||
               CALL(bngradGetBatchNormBackwardWorkspaceSize)(gradient, &size);
  if (failed)
    return 0;
  void *workspace = malloc(size);
  failed = CALL(bngradBatchNormBackward)(gradient, workspace, size, grad_input, grad_scale, grad_offset, grad_output,
                                         input, scale, mean, variance, NULL, NULL);
  free(workspace);
  CALL(bngradDestroyBatchNormBackwardDescriptor)(gradient);
  CALL(bngradDestroyTensorDescriptor)(data);
  CALL(bngradDestroyTensorDescriptor)(vector);
  CALL(bngradDestroyHandle)(handle);
  for (int channel = 0; channel < kChannels; ++channel)
    if (fabs(grad_offset[channel] - kImages * kRow * 0.5) > 1e-3)
      return 0;
  return !failed;
}

int main(int argc, char **argv) {
  int right = argc == 2;
  for (int i = 0; i < kElements; ++i) {
    grad_output[i] = 0.5f;
    input[i] = (float)(i % 7);
  }
  for (int i = 0; i < kTimes && right; ++i) {
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      printf("%s\n", dlerror());
      return 1;
    }
    right = run();
    dlclose(library);
  }
  printf("%d times, %s\n", kTimes, right ? "right" : "wrong");
  return !right;
}
