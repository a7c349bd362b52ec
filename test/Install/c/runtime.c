/* Prints the chip of the device, or the error if there is none. */

#include "BNGrad/Runtime/Cuda.h"

#include <stdio.h>

static void print_error(const char *message, void *data) {
  (void)data;
  printf("%s\n", message);
}

int main(void) {
  int capability;
  bngradCudaSetErrorHandler(print_error, NULL);
  capability = (int)bngradCudaGetCapability();
  if (bngradCudaTakeStatus() == 0)
    printf("sm_%d\n", capability);
  return 0;
}
