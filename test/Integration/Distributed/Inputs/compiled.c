/* A program that has initialized MPI itself, has a communicator of its own, and
 * calls compiled functions: compiled [lost]. Compiled with MPI's wrapper. */

#include "gradients.h"

#include "BNGrad/Runtime/Collectives.h"
#include "BNGrad/Runtime/Runtime.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { N = 6, C = 4, L = 5, PROCESSES = 3, PART = N / PROCESSES * C * L };

static float dy[N][C][L], x[N][C][L], scale[C], mean[C], variance[C];
static float dx[N / PROCESSES][C][L], dscale[C], doffset[C];
static float y[N / PROCESSES][C][L], batchMean[C], batchVariance[C];
static int rank, size;

static int fail(const char *text) {
  fprintf(stderr, "rank %d: %s\n", rank, text);
  return 1;
}

/* The same numbers in all processes. */
static float next(void) {
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (1 << 24) - 0.25f;
}

static void fill(void) {
  for (int i = 0; i < N * C * L; ++i) {
    (&dy[0][0][0])[i] = next();
    (&x[0][0][0])[i] = next();
  }
  for (int c = 0; c < C; ++c) {
    scale[c] = 1 + next();
    mean[c] = next();
    variance[c] = 1 + next();
  }
}

/* Sums of numbers below 2 in float, in any order. */
static int isClose(double value, double expected) {
  return fabs(value - expected) <= 2.0 * N * L * N * L * ldexp(1, -24);
}

/* Compares the results with the formulas in double, with sums over all samples;
 * grad_scale and grad_offset with those of the samples from `first` to `last`.
 */
static int check(int first, int last) {
  for (int c = 0; c < C; ++c) {
    double sums[2] = {0, 0}, parts[2] = {0, 0};
    double invStd = 1 / sqrt((double)variance[c] + 1e-3);
    for (int n = 0; n < N; ++n)
      for (int l = 0; l < L; ++l) {
        double terms[2] = {
            dy[n][c][l], dy[n][c][l] * ((double)x[n][c][l] - mean[c]) * invStd};
        for (int i = 0; i < 2; ++i) {
          sums[i] += terms[i];
          parts[i] += n >= first && n < last ? terms[i] : 0;
        }
      }
    if (!isClose(doffset[c], parts[0]) || !isClose(dscale[c], parts[1]))
      return fail("wrong gradients of parameters");
    for (int n = 0; n < N / PROCESSES; ++n)
      for (int l = 0; l < L; ++l) {
        int sample = rank * (N / PROCESSES) + n;
        double normal = ((double)x[sample][c][l] - mean[c]) * invStd;
        double expected =
            scale[c] * invStd *
            (dy[sample][c][l] - sums[0] / (N * L) - normal * sums[1] / (N * L));
        if (!isClose(dx[n][c][l], expected))
          return fail("wrong grad_input");
      }
  }
  return 0;
}

static int runStep(int isLocal) {
  const float *part[2] = {&dy[0][0][0] + rank * PART,
                          &x[0][0][0] + rank * PART};
  int status = (isLocal ? local : gradient)(
      part[0], part[1], scale, mean, variance, &dx[0][0][0], dscale, doffset);
  if (status)
    return status;
  return isLocal ? check(rank * (N / PROCESSES), (rank + 1) * (N / PROCESSES))
                 : check(0, N);
}

/* The forward pass, with `mean` as offset. */
static int runTraining(void) {
  int status = training(&x[0][0][0] + rank * PART, scale, mean, &y[0][0][0],
                        batchMean, batchVariance);
  if (status)
    return status;
  for (int c = 0; c < C; ++c) {
    double average = 0, square = 0;
    for (int n = 0; n < N; ++n)
      for (int l = 0; l < L; ++l)
        average += x[n][c][l] / (double)(N * L);
    for (int n = 0; n < N; ++n)
      for (int l = 0; l < L; ++l)
        square += (x[n][c][l] - average) * (x[n][c][l] - average) / (N * L);
    if (!isClose(batchMean[c], average) || !isClose(batchVariance[c], square))
      return fail("wrong statistics");
    for (int n = 0; n < N / PROCESSES; ++n)
      for (int l = 0; l < L; ++l) {
        double centered = x[rank * (N / PROCESSES) + n][c][l] - average;
        if (!isClose(y[n][c][l],
                     scale[c] * centered / sqrt(square + 1e-3) + mean[c]))
          return fail("wrong output");
      }
  }
  return 0;
}

/* The last process does not call again. */
static int runLost(void) {
  if (runStep(0))
    return 1;
  if (bngradSetCollectiveTimeout(1))
    return fail(bngradGetCollectiveError());
  if (rank == PROCESSES - 1) {
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
  }
  dx[0][0][0] = 7;
  int status = runStep(0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (status != BNGRAD_PROCESS_ERROR)
    return fail("expected another status");
  if (!strstr(bngradGetCollectiveError(), "got nothing from rank 2"))
    return fail(bngradGetCollectiveError());
  return dx[0][0][0] == 7 ? 0 : fail("expected no result");
}

int main(int argc, char **argv) {
  MPI_Comm own;
  int status = 0, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != PROCESSES)
    return fail("expected 3 processes");
  fill();
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &own);
  if (argc > 1 && !strcmp(argv[1], "lost"))
    status = runLost();
  else
    for (int i = 0; i < 40 && !status; ++i) {
      status = i % 3 == 2 ? runTraining() : runStep(i % 2);
      /* Messages of the program meet none of the functions'. */
      MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, own);
      if (sum != 3)
        status = fail("wrong sum");
    }
  MPI_Comm_free(&own);
  MPI_Finalize();
  if (status == 0)
    printf("rank %d: ok\n", rank);
  return status;
}
