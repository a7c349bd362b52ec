/* Calls a gradient that was compiled ahead of time. */

#include "gradient.h"

#include <stdio.h>
#include <stdlib.h>

enum { kPixels = 32 * 14 * 14, kChannels = 256, kSize = kPixels * kChannels };

/* Small values are exact in bf16, whose bits are the upper half of a float's. */
static uint16_t toBF16(float value) {
  union {
    float value;
    uint32_t bits;
  } pun = {value};
  return (uint16_t)(pun.bits >> 16);
}

int main(void) {
  uint16_t *dy = malloc(2 * kSize), *x = malloc(2 * kSize);
  uint16_t *skip = calloc(kSize, 2), *result = malloc(2 * kSize);
  uint8_t *mask = malloc(kSize);
  float scale[kChannels], mean[kChannels], variance[kChannels];
  float grad_scale[kChannels], grad_offset[kChannels];
  if (!dy || !x || !skip || !result || !mask)
    return 1;
  for (int i = 0; i < kSize; ++i) {
    float value = (float)(i / kChannels % 5) - 2; /* -2 to 2, by pixel */
    x[i] = toBF16(value);
    dy[i] = toBF16(1);
    mask[i] = value > 0;
  }
  for (int c = 0; c < kChannels; ++c) {
    scale[c] = 1;
    mean[c] = 0;
    variance[c] = 2;
  }
  int32_t status = block_gradient(dy, x, scale, mean, variance, mask, skip,
                                  result, grad_scale, grad_offset);
  if (status != 0)
    return 1;
  /* Of 5 consecutive pixels, 2 have a positive input, with sum 3. */
  printf("grad_offset %.1f, expected %d\n", grad_offset[0], kPixels * 2 / 5);
  printf("grad_scale %.1f, expected %.1f\n", grad_scale[0],
         kPixels / 5 * 3 * 0.70710678);
  return 0;
}
