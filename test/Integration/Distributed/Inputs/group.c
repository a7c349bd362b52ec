/* The C library's gradient over a group of processes. Process r has r samples
 * of the batch, so the first has none. With an argument, the epsilon of process
 * 1 differs. Compiled with MPI's wrapper. */

#include "BNGrad/Runtime/Runtime.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { C = 3, L = 5, PROCESSES = 3, N = PROCESSES * (PROCESSES - 1) / 2 };

static float dy[N][C][L], x[N][C][L], dx[N][C][L];
static float scale[C] = {1, 2, 3}, mean[C] = {0, 0.5f, 1},
             variance[C] = {1, 2, 3}, dscale[C], doffset[C];
static int rank;

/* Ends the process after an error. */
static void expect(bngradStatus_t status) {
  if (status == BNGRAD_SUCCESS)
    return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, bngradGetStatusName(status),
          bngradGetLastError());
  MPI_Finalize();
  exit(1);
}

/* The same numbers in all processes. */
static void fill(void) {
  unsigned state = 1;
  for (int i = 0; i < N * C * L; ++i) {
    state = state * 1664525u + 1013904223u;
    (&dy[0][0][0])[i] = (float)(state >> 8) / (1 << 24);
    state = state * 1664525u + 1013904223u;
    (&x[0][0][0])[i] = (float)(state >> 8) / (1 << 24) - 0.5f;
  }
}

/* Sums of N * L numbers below 3 in float, in any order. */
static int isClose(double value, double expected) {
  return fabs(value - expected) <= 3.0 * N * L * N * L * ldexp(1, -24);
}

/* Compares with the formulas in double, with sums over all samples. */
static int check(int first, int last) {
  for (int c = 0; c < C; ++c) {
    double invStd = 1 / sqrt((double)variance[c] + 1e-5);
    double sum = 0, dot = 0, count = N * L;
    for (int n = 0; n < N; ++n)
      for (int l = 0; l < L; ++l) {
        sum += dy[n][c][l];
        dot += dy[n][c][l] * ((double)x[n][c][l] - mean[c]) * invStd;
      }
    if (!isClose(doffset[c], sum) || !isClose(dscale[c], dot))
      return 0;
    for (int n = first; n < last; ++n)
      for (int l = 0; l < L; ++l) {
        double normalized = ((double)x[n][c][l] - mean[c]) * invStd;
        double expected =
            scale[c] * invStd *
            (dy[n][c][l] - sum / count - normalized * dot / count);
        if (!isClose(dx[n][c][l], expected))
          return 0;
      }
  }
  return 1;
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm communicator = MPI_COMM_WORLD;
  MPI_Comm_rank(communicator, &rank);
  fill();

  bngradHandle_t handle;
  expect(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0));
  bngradProcessGroup_t group;
  expect(bngradCreateProcessGroup(&group, NULL, &communicator));
  bngradBatchNormBackwardOptions_t options = {sizeof options};
  options.process_group = group;
  options.epsilon = argc > 1 && rank == 1 ? 0.5 : 1e-5;

  int first = rank * (rank - 1) / 2;
  int64_t shape[] = {rank, C, L}, channels[] = {C};
  bngradTensorDescriptor_t data, vector;
  expect(bngradCreateTensorDescriptor(&data, BNGRAD_DTYPE_F32, 3, shape, NULL));
  expect(bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 1, channels,
                                      NULL));
  bngradBatchNormBackwardDescriptor_t gradient;
  expect(bngradCreateBatchNormBackwardDescriptor(
      handle, &gradient, &options, data, vector, vector, data, data, vector,
      vector, vector, NULL));
  size_t size;
  expect(bngradGetBatchNormBackwardWorkspaceSize(gradient, &size));
  void *workspace = malloc(size);
  for (int step = 0; step < 3; ++step)
    expect(bngradBatchNormBackward(gradient, workspace, size, dx[first], dscale,
                                   doffset, dy[first], x[first], scale, mean,
                                   variance, NULL, NULL));
  printf("rank %d: %s\n", rank, check(first, first + rank) ? "ok" : "wrong");

  free(workspace);
  bngradDestroyTensorDescriptor(data);
  bngradDestroyTensorDescriptor(vector);
  expect(bngradDestroyBatchNormBackwardDescriptor(gradient));
  expect(bngradDestroyProcessGroup(group));
  expect(bngradDestroyHandle(handle));
  MPI_Finalize();
  return 0;
}
