/* The contract of the interface: results, and the status of each misuse. */

#include "infiniop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 2, C = 3, L = 5 };

static int failures;

static void expect(const char *what, infiniStatus_t status, infiniStatus_t expected) {
  if (status != expected) {
    printf("%s: expected status %d, got %d\n", what, expected, status);
    ++failures;
  }
}

int main(void) {
  __typeof__(*(infiniopHandle_t)0) cpu = {0}, other = {1};
  __typeof__(*(infiniopTensorDescriptor_t)0) data = {INFINI_DTYPE_F32, 3, {N, C, L}, {C * L, L, 1}};
  __typeof__(data) vector = {INFINI_DTYPE_F32, 1, {C}, {1}}, wrong;
  infiniopBatchNormBackwardDescriptor_t desc = NULL;
#define CREATE(handle, gi, gw, in)                                                                                     \
  infiniopCreateBatchNormBackwardDescriptor(handle, &desc, gi, gw, &vector, in, &data, &vector, &vector, &vector)
  expect("device", CREATE(&other, &data, &vector, &data), INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED);
  expect("handle", CREATE(NULL, &data, &vector, &data), INFINI_STATUS_BAD_PARAM);
  expect("null", CREATE(&cpu, &data, NULL, &data), INFINI_STATUS_BAD_PARAM);
  wrong = data, wrong.shape[0] = N + 1;
  expect("shape", CREATE(&cpu, &wrong, &vector, &data), INFINI_STATUS_BAD_TENSOR_SHAPE);
  wrong = vector, wrong.shape[0] = C + 1;
  expect("channels", CREATE(&cpu, &data, &wrong, &data), INFINI_STATUS_BAD_TENSOR_SHAPE);
  expect("rank", CREATE(&cpu, &data, &data, &data), INFINI_STATUS_BAD_TENSOR_SHAPE);
  wrong = data, wrong.strides[0] = 1, wrong.strides[1] = N;
  expect("strides", CREATE(&cpu, &wrong, &vector, &data), INFINI_STATUS_BAD_TENSOR_STRIDES);
  wrong = vector, wrong.dtype = INFINI_DTYPE_F16;
  expect("dtype", CREATE(&cpu, &data, &wrong, &data), INFINI_STATUS_BAD_TENSOR_DTYPE);
  wrong = data, wrong.dtype = INFINI_DTYPE_F64;
  expect("f64", CREATE(&cpu, &data, &vector, &wrong), INFINI_STATUS_BAD_TENSOR_DTYPE);
  expect("create", CREATE(&cpu, &data, &vector, &data), INFINI_STATUS_SUCCESS);

  float dy[N * C * L], x[N * C * L], dx[N * C * L], dw[C], db[C];
  float w[C] = {1, 2, 3}, mean[C] = {0, 1, 2}, var[C] = {4, 1, 0.25f};
  for (int i = 0; i < N * C * L; ++i)
    dy[i] = (float)(i % 5) - 1, x[i] = (float)(i % 7) / 2;
  size_t size = 0;
  expect("size", infiniopGetBatchNormBackwardWorkspaceSize(desc, &size), INFINI_STATUS_SUCCESS);
  expect("no size", infiniopGetBatchNormBackwardWorkspaceSize(desc, NULL), INFINI_STATUS_BAD_PARAM);
  void *workspace = malloc(size);
#define RUN(desc, bytes, dy) infiniopBatchNormBackward(desc, workspace, bytes, dx, dw, db, x, dy, w, mean, var, NULL)
  expect("workspace", RUN(desc, size - 1, dy), INFINI_STATUS_INSUFFICIENT_WORKSPACE);
  expect("no data", RUN(desc, size, NULL), INFINI_STATUS_BAD_PARAM);
  expect("no desc", RUN(NULL, size, dy), INFINI_STATUS_BAD_PARAM);
  expect("run", RUN(desc, size, dy), INFINI_STATUS_SUCCESS);
  for (int c = 0; c < C; ++c) {
    double sum = 0, product = 0, r = 1 / sqrt(var[c]);
    for (int i = 0; i < N * L; ++i) {
      int at = i / L * C * L + c * L + i % L;
      sum += dy[at], product += dy[at] * (x[at] - mean[c]);
    }
    double error = fmax(fabs(dw[c] - product * r), fabs(db[c] - sum));
    for (int i = 0; i < N * L; ++i) {
      int at = i / L * C * L + c * L + i % L;
      double exact = w[c] * r * (dy[at] - sum / (N * L) - (x[at] - mean[c]) * r * r * product / (N * L));
      error = fmax(error, fabs(dx[at] - exact));
    }
    if (!(error < 1e-4)) {
      printf("channel %d: error %g\n", c, error);
      ++failures;
    }
  }
  expect("destroy", infiniopDestroyBatchNormBackwardDescriptor(desc), INFINI_STATUS_SUCCESS);
  free(workspace);
  printf("infiniop: %d failures\n", failures);
  return failures != 0;
}
