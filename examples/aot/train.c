/* Trains a batch norm with a step that was compiled ahead of time. */

#include "step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kImages = 32, kChannels = 16, kPixels = 64, kSteps = 40 };
enum { kCount = kImages * kPixels, kSize = kCount * kChannels };

/* Where pixel `i` of all images is, in channel `c`. */
static int find(int i, int c) {
  return (i / kPixels * kChannels + c) * kPixels + i % kPixels;
}

int main(void) {
  float *x = malloc(4 * kSize), *target = malloc(4 * kSize);
  float *grad = malloc(4 * kSize);
  float scale[kChannels], offset[kChannels];
  double scale_error = 0, offset_error = 0;
  unsigned random = 1;
  if (!x || !target || !grad)
    return 1;
  for (int c = 0; c < kChannels; ++c) {
    scale[c] = 1;
    offset[c] = 0;
    for (int i = 0; i < kCount; ++i) {
      random = random * 1664525 + 1013904223;
      x[find(i, c)] = (float)c + (float)(random >> 16) / 65536;
      target[find(i, c)] = 3 * x[find(i, c)] - 1;
    }
  }
  for (int step_number = 0; step_number < kSteps; ++step_number) {
    float new_scale[kChannels], new_offset[kChannels];
    if (step(x, target, scale, offset, grad, new_scale, new_offset) != 0)
      return 1;
    for (int c = 0; c < kChannels; ++c) {
      scale[c] = new_scale[c];
      offset[c] = new_offset[c];
    }
  }
  /* The best output is the target: 3 (x - mean) + 3 mean - 1. */
  for (int c = 0; c < kChannels; ++c) {
    double mean = 0, variance = 0;
    for (int i = 0; i < kCount; ++i)
      mean += x[find(i, c)] / (double)kCount;
    for (int i = 0; i < kCount; ++i)
      variance += pow(x[find(i, c)] - mean, 2) / kCount;
    scale_error = fmax(scale_error, fabs(scale[c] - 3 * sqrt(variance)));
    offset_error = fmax(offset_error, fabs(offset[c] - (3 * mean - 1)));
  }
  /* Epsilon changes the best scale, 0.87, by 5e-5. */
  printf("scale %s\n", scale_error < 1e-4 ? "ok" : "FAILED");
  printf("offset %s\n", offset_error < 1e-4 ? "ok" : "FAILED");
  free(x);
  free(target);
  free(grad);
  return 0;
}
