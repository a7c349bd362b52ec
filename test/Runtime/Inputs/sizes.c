/* Creates descriptors of forward passes on the emulator, whose batches have 1 to NUMBER elements, twice, for three values
 * of the options and three types. */

#include "BNGrad/Runtime/Runtime.h"

#include <stdio.h>
#include <stdlib.h>

static void check(bngradStatus_t status) {
  if (status == BNGRAD_SUCCESS)
    return;
  fprintf(stderr, "%s\n", bngradGetLastError());
  exit(1);
}

int main(int argc, char **argv) {
  int64_t number = argc > 1 ? atoll(argv[1]) : 1;
  bngradHandle_t handle;
  check(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0));
  for (int round = 0; round < 2; ++round)
    for (int type = BNGRAD_DTYPE_F16; type <= BNGRAD_DTYPE_F32; ++type)
      for (int64_t n = 1; n <= number; ++n) {
        int64_t shape[] = {n, 3, 5};
        bngradTensorDescriptor_t data, vector;
        check(bngradCreateTensorDescriptor(&data, (bngradDtype_t)type, 3, shape, NULL));
        check(bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 1, shape + 1, NULL));
        for (int i = 0; i < 3; ++i) {
          bngradBatchNormTrainingOptions_t options = {.struct_size = sizeof(options)};
          options.epsilon = options.momentum = 0.1 * i;
          bngradBatchNormTrainingDescriptor_t training;
          check(bngradCreateBatchNormTrainingDescriptor(handle, &training, &options, data, NULL, NULL, NULL, vector,
                                                        vector, data, NULL, NULL));
          bngradDestroyBatchNormTrainingDescriptor(training);
        }
        bngradDestroyTensorDescriptor(data);
        bngradDestroyTensorDescriptor(vector);
      }
  bngradDestroyHandle(handle);
  return 0;
}
