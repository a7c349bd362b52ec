/* Calls packed entries with pools of several sizes. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  size_t struct_size;
  void *context;
  int (*count)(void *context);
  void (*run)(void *context, int n, void (*body)(void *data, int thread, int n), void *data);
} threads_t;

int32_t gradient_packed(void *const *parameters, void *workspace, const threads_t *threads);
size_t gradient_packed_workspace(void *const *parameters);
int32_t scale_packed(void *const *parameters, void *workspace, const threads_t *threads);

typedef struct {
  void *allocated, *aligned;
  int64_t offset, words[6];
} memref_t;

enum { N = 4, C = 3, L = 5000 };

static float dy[N * C * L], x[N * C * L], dx[N * C * L], first[N * C * L];

static int count(void *context) { return *(int *)context; }

static void run(void *context, int n, void (*body)(void *, int, int), void *data) {
  (void)context;
  for (int i = n; i-- > 0;)
    body(data, i, n);
}

static memref_t vector(float *data, int64_t size, int64_t stride) {
  memref_t m = {data, data, 0, {size, stride}};
  return m;
}

static memref_t tensor(float *data) {
  memref_t m = {data, data, 0, {N, C, L, C * L, L, 1}};
  return m;
}

static int check(const float *mean, const float *variance, const float *scale_gradient, const float *offset_gradient) {
  for (int c = 0; c < C; ++c) {
    double sum = 0, product = 0, r = 1 / sqrt(variance[c] + 1e-3), m = N * L;
    for (int i = 0; i < N * L; ++i) {
      int at = i / L * C * L + c * L + i % L;
      sum += dy[at];
      product += (double)dy[at] * (x[at] - mean[c]);
    }
    if (fabs(scale_gradient[c] - product * r) > 1e-5 * m || fabs(offset_gradient[c] - sum) > 1e-5 * m)
      return 0;
    for (int i = 0; i < N * L; ++i) {
      int at = i / L * C * L + c * L + i % L;
      double exact = r * (dy[at] - sum / m - (x[at] - mean[c]) * r * r * product / m);
      if (fabs(dx[at] - exact) > 1e-5)
        return 0;
    }
  }
  return 1;
}

int main(void) {
  float mean[C] = {0.5f, 1, 1.5f}, variance[C] = {1, 0.5f, 2}, scale_gradient[C], offset_gradient[C];
  for (int i = 0; i < N * C * L; ++i) {
    dy[i] = (float)(i % 11) / 8 - 0.5f + (float)(i / L % C);
    x[i] = (float)(i % 7) / 4 + (float)(i / L % C);
  }
  memref_t m[] = {tensor(dy),  tensor(x),  vector(mean, C, 1), vector(variance, C, 1),
                  tensor(dx), vector(scale_gradient, C, 1), vector(offset_gradient, C, 1)};
  void *parameters[] = {&m[0], &m[1], &m[2], &m[3], &m[4], &m[5], &m[6]};
  size_t size = gradient_packed_workspace(parameters);
  void *workspace = size ? aligned_alloc(64, (size + 63) / 64 * 64) : NULL;
  int counts[] = {1, 2, 3, 200}, right = 1;
  for (int i = 0; i < 5; ++i) {
    threads_t threads = {sizeof threads, &counts[i % 4], count, run};
    memset(dx, 0, sizeof dx);
    right &= gradient_packed(parameters, workspace, i == 4 ? NULL : &threads) == 0;
    right &= check(mean, variance, scale_gradient, offset_gradient);
    if (i == 0)
      memcpy(first, dx, sizeof dx);
    right &= memcmp(first, dx, sizeof dx) == 0;
  }
  free(workspace);
  printf("gradient: 5 pools, %s\n", right ? "right" : "wrong");

  float data[] = {1, 2, 3, 4}, factor = 3;
  memref_t every_other = vector(data, 2, 2);
  void *scaled[] = {&every_other, &factor};
  right = scale_packed(scaled, NULL, NULL) == 0 && data[0] == 3 && data[1] == 2 && data[2] == 9 && data[3] == 4;
  printf("scale: %s\n", right ? "right" : "wrong");
  return 0;
}
