/* Calls a gradient with arrays in memory of the device and compares with
 * docs/mathematics.md in float64. */

#include "gradient.h"

#include "BNGrad/Runtime/Cuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { kRows = 4, kChannels = 3, kLength = 5, kSize = 60, kNumArrays = 8 };
static const int kSizes[kNumArrays] = {kSize, kSize, 3, 3, 3, kSize, 3, 3};
static float host[kNumArrays][kSize];
static float *device[kNumArrays];

static int differs(float value, double exact) {
  return !(fabs(value - exact) <= 1e-5 * (1 + fabs(exact)));
}

static int call(void) {
  return gradient(device[0], device[1], device[2], device[3], device[4],
                  device[5], device[6], device[7]);
}

/* Poisons the results, calls, and counts errors. */
static int check(void) {
  for (int i = 5; i < kNumArrays; ++i)
    mgpuMemset32(device[i], 0x7fc00000, (uint64_t)kSizes[i], 0);
  if (call() != 0)
    return 1000;
  for (int i = 5; i < kNumArrays; ++i)
    mgpuMemcpy(host[i], device[i], 4 * (uint64_t)kSizes[i], 0);
  mgpuStreamSynchronize(0);
  int failed = 0;
  for (int c = 0; c < kChannels; ++c) {
    double invStd = 1 / sqrt(host[4][c] + 1e-3), sum = 0, product = 0;
    for (int pass = 0; pass < 2; ++pass)
      for (int n = 0; n < kRows; ++n)
        for (int s = 0; s < kLength; ++s) {
          int i = (n * kChannels + c) * kLength + s;
          double dy = host[0][i], centered = (double)host[1][i] - host[3][c];
          if (pass == 0) {
            sum += dy;
            product += dy * centered;
            continue;
          }
          int count = kRows * kLength;
          failed += differs(host[5][i],
                            host[2][c] * invStd *
                                (dy - sum / count - centered * product / count *
                                                        invStd * invStd));
        }
    failed += differs(host[6][c], product * invStd);
    failed += differs(host[7][c], sum);
  }
  return failed;
}

static void ignore(const char *message, void *user) {
  (void)message;
  (void)user;
}

int main(void) {
  for (int i = 0; i < kNumArrays; ++i) {
    device[i] = mgpuMemAlloc(4 * (uint64_t)kSizes[i], 0, 0);
    for (int j = 0; j < kSizes[i]; ++j)
      host[i][j] = (float)((j * 37 + i * 11) % 53) / 16 + 0.5f;
    mgpuMemcpy(device[i], host[i], 4 * (uint64_t)kSizes[i], 0);
  }
  printf("launches without a stream of the caller: %d failed\n", check());
  bngradCudaSetStream(0);
  printf("launches in a stream of the caller: %d failed\n", check());
  bngradCudaResetStream();

  bngradCudaSetErrorHandler(ignore, 0);
  float *kept = device[1];
  device[1] = host[1];
  printf("a pointer of the host: status %d\n", call());
  device[1] = kept;
  printf("afterwards: %d failed\n", check());
  return 0;
}
