// Prints the clusters that run at once, with one and two blocks of a
// multiprocessor, and the first of these numbers again.

#include "BNGrad/Runtime/Cuda.h"

#include <stdio.h>

int main(void) {
  for (int cluster = 2; cluster <= 16; cluster *= 2) {
    int32_t one = bngradCudaGetClusterSlots(cluster, 1);
    int32_t two = bngradCudaGetClusterSlots(cluster, 2);
    printf("clusters of %d: %d, %d\n", cluster, one, two);
  }
  printf("status %d\n", bngradCudaTakeStatus());
  int32_t again = bngradCudaGetClusterSlots(2, 1);
  printf("again: %d, status %d\n", again, bngradCudaTakeStatus());
  return 0;
}
