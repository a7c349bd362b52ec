/* Computes a gradient that has no ready kernel in processes of its own, in each
 * of which one allocation fails, of this library or of libc in it: from the first
 * to the last. Then it computes the same again, which must succeed. */

#include "BNGrad/Runtime/Runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of libfailallocations.so; absent where it is not preloaded. */
__attribute__((weak)) void failAllocation(long which);
__attribute__((weak)) long countAllocations(void);

enum { kRows = 3, kRow = 5, kFeatures = 6, kCount = kRows * kRow * kFeatures };

static float data[3][kCount], ones[kFeatures], grad_offset[kFeatures];
static char workspace[1 << 16];

/* The feature dims are the first and the last. */
static bngradStatus_t compute(void) {
  const int64_t shape[] = {2, kRows, kRow, kFeatures / 2}, channels[] = {2, kFeatures / 2};
  bngradHandle_t handle = NULL;
  bngradTensorDescriptor_t tensor = NULL, vector = NULL;
  bngradBatchNormBackwardDescriptor_t gradient = NULL;
  bngradBatchNormBackwardOptions_t options = {
      .struct_size = sizeof options, .num_feature_dims = 2, .feature_dims = {0, 3}};
  memset(grad_offset, 0, sizeof grad_offset);
  bngradStatus_t status = bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0);
  if (!status)
    status = bngradCreateTensorDescriptor(&tensor, BNGRAD_DTYPE_F32, 4, shape, NULL);
  if (!status)
    status = bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 2, channels, NULL);
  if (!status)
    status = bngradCreateBatchNormBackwardDescriptor(handle, &gradient, &options, tensor, NULL, vector, tensor, tensor,
                                                     vector, vector, vector, NULL);
  if (!status)
    status = bngradBatchNormBackward(gradient, workspace, sizeof workspace, data[0], NULL, grad_offset, data[1],
                                     data[2], ones, ones, ones, NULL, NULL);
  bngradDestroyBatchNormBackwardDescriptor(gradient);
  bngradDestroyTensorDescriptor(tensor);
  bngradDestroyTensorDescriptor(vector);
  bngradDestroyHandle(handle);
  return status;
}

static int isRight(void) {
  for (int i = 0; i < kFeatures; ++i)
    if (fabs(grad_offset[i] - kRows * kRow * (i + 1)) > 1e-4)
      return 0;
  return 1;
}

/* 0: an allocation failed, or was done without; 1: a fault; 2: none was left to fail. */
static int computeTwice(long number) {
  failAllocation(number);
  bngradStatus_t status = compute();
  long count = countAllocations();
  failAllocation(0);
  const char *text = bngradGetLastError();
  /* The loader of glibc may name another reason. */
  int isNamed = strcmp(text, "out of memory") == 0 || strncmp(text, "cannot load ", 12) == 0;
  int isGood = status == BNGRAD_SUCCESS ? isRight() : status == BNGRAD_INTERNAL_ERROR && isNamed;
  /* Also where it loads the compiler. */
  isGood |= status == BNGRAD_COMPILER_NOT_FOUND && *getenv("BNGRAD_COMPILER");
  if (!isGood) {
    printf("allocation %ld: got %s: %s\n", number, bngradGetStatusName(status), text);
    return 1;
  }
  status = compute();
  if (status != BNGRAD_SUCCESS || !isRight()) {
    printf("after allocation %ld: got %s: %s\n", number, bngradGetStatusName(status), bngradGetLastError());
    return 1;
  }
  return count < number ? 2 : 0;
}

int main(void) {
  for (int i = 0; i < kCount; ++i)
    data[1][i] = data[2][i] = (float)(i % (kFeatures / 2) + i / (kCount / 2) * (kFeatures / 2) + 1);
  for (int i = 0; i < kFeatures; ++i)
    ones[i] = 1;
  if (!failAllocation) {
    bngradStatus_t status = compute();
    printf("%s: %s\n", bngradGetStatusName(status), isRight() ? "right" : "wrong");
    return 0;
  }
  for (long number = 1;; ++number) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
      exit(computeTwice(number));
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
      printf("allocation %ld: ended by signal %d\n", number, WTERMSIG(status));
      return 1;
    }
    if (WEXITSTATUS(status) == 1)
      return 1;
    if (WEXITSTATUS(status) == 2) {
      printf("%ld allocations\n", number - 1);
      return 0;
    }
  }
}
