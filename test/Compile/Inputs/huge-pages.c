/* Prints the advice about the workspace that a compiled function maps. Linked with --wrap for madvise. */

#include "mixed.h"

#include <stdio.h>

int __real_madvise(void *memory, size_t size, int advice);
int __wrap_madvise(void *memory, size_t size, int advice);

int __wrap_madvise(void *memory, size_t size, int advice) {
  printf("advice %d for %s\n", advice, size >= 4 << 20 ? "at least 4 MiB" : "less");
  return __real_madvise(memory, size, advice);
}

enum { kShort = 16 * 32 * 256, kLong = 16 * 32 * 4096, kChannels = 32 };
static float dy[kLong], x[kLong], scale[kChannels], mean[kChannels], variance[kChannels], dx[kLong];

int main(void) {
  for (int i = 0; i < kChannels; ++i)
    variance[i] = 1;
  printf("short: %d\n", mixed_short(dy, x, scale, mean, variance, dx));
  printf("long: %d\n", mixed_long(dy, x, scale, mean, variance, dx));
  printf("again: %d\n", mixed_long(dy, x, scale, mean, variance, dx));
  return 0;
}
