/* One process of a program that sums over a grid: processes MODE [ARGUMENTS].
 * Prints `rank R: ok`, or its error to standard error. */

#include "BNGrad/Runtime/Collectives.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t rank, size;

static int fail(const char *text) {
  fprintf(stderr, "rank %d: %s\n", (int)rank, text);
  return 1;
}

static int failCollective(void) { return fail(bngradGetCollectiveError()); }

static bngradCollective_t makeCollective(const char *op, int64_t dtype,
                                         int64_t gridRank, const int64_t *grid,
                                         int64_t numAxes, const int64_t *axes) {
  bngradCollective_t collective;
  collective.struct_size = sizeof(collective);
  collective.op = op;
  collective.location = "f.mlir:1:2";
  collective.dtype = dtype;
  collective.grid_rank = gridRank;
  collective.grid_shape = grid;
  collective.num_axes = numAxes;
  collective.axes = axes;
  return collective;
}

static bngradCollectiveCounts_t getCounts(void) {
  bngradCollectiveCounts_t counts;
  counts.struct_size = sizeof(counts);
  if (bngradGetCollectiveCounts(bngradGetDefaultCollectiveGroup(), &counts))
    exit(failCollective());
  return counts;
}

/* Resident memory in KiB. */
static long getMemory(void) {
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2)
    exit(fail("expected /proc/self/statm"));
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The sums of one op and its count, in flight at once. */
static int step(const bngradCollective_t *sums, const bngradCollective_t *count,
                int64_t channels) {
  float data[64];
  int64_t elements = rank + 1, requests[2];
  for (int64_t i = 0; i < 2 * channels; ++i)
    data[i] = (float)(i + rank);
  requests[0] = bngradAllReduceStart(sums, data, 2 * channels);
  requests[1] = bngradAllReduceStart(count, &elements, 1);
  for (int i = 0; i < 2; ++i)
    if (bngradAllReduceWait(requests[i]))
      return failCollective();
  int64_t total = size * (size - 1) / 2;
  for (int64_t i = 0; i < 2 * channels; ++i)
    if (data[i] != (float)(i * size + total))
      return fail("wrong sum");
  return elements == total + size ? 0 : fail("wrong count");
}

/* steps N: many steps with two kinds of sums and two axes; nothing grows. */
static int runSteps(int64_t numSteps) {
  int64_t grid[2] = {1, size}, axes[2] = {0, 1};
  bngradCollective_t sums =
      makeCollective("sums of op", BNGRAD_COLLECTIVE_F32, 2, grid, 2, axes);
  bngradCollective_t count = makeCollective(
      "count of op", BNGRAD_COLLECTIVE_I64, 2, grid, 1, axes + 1);
  long before = 0;
  for (int64_t i = 0; i < numSteps; ++i) {
    if (i == numSteps / 10)
      before = getMemory();
    if (step(&sums, &count, 16))
      return 1;
  }
  bngradCollectiveCounts_t counts = getCounts();
  if (counts.all_reduces != 2 * numSteps || counts.headers != 2 ||
      counts.bytes != numSteps * (32 * 4 + 8) || counts.in_flight != 2 ||
      counts.communicators != 1)
    return fail("wrong counts");
  if (getMemory() - before > 512)
    return fail("memory grows");
  return 0;
}

/* grid D0 D1 ...: sums of 2^rank over every set of axes. */
static int runGrid(int count, char **sizes) {
  int64_t grid[8], coordinates[8];
  for (int i = 0; i < count; ++i)
    grid[i] = atoi(sizes[i]);
  for (unsigned subset = 0; subset < 1u << count; ++subset) {
    int64_t axes[8], numAxes = 0, expected = 0, sum = (int64_t)1 << rank;
    for (int i = 0; i < count; ++i)
      if (subset >> i & 1)
        axes[numAxes++] = i;
    for (int64_t other = 0; other < size; ++other) {
      int64_t left = rank, right = other;
      int isSame = 1;
      for (int i = count; i-- > 0; left /= grid[i], right /= grid[i]) {
        coordinates[i] = left % grid[i];
        isSame &= (subset >> i & 1) || coordinates[i] == right % grid[i];
      }
      expected += isSame ? (int64_t)1 << other : 0;
    }
    bngradCollective_t collective =
        makeCollective("op", BNGRAD_COLLECTIVE_I64, count, grid, numAxes, axes);
    if (bngradAllReduceWait(bngradAllReduceStart(&collective, &sum, 1)))
      return failCollective();
    if (sum != expected)
      return fail("wrong sum");
  }
  return getCounts().communicators <= (1 << count) ? 0 : fail("communicators");
}

/* differ KIND [STEP]: the last process differs, after STEP equal sums. */
static int runDiffer(const char *kind, int64_t numBefore) {
  int64_t grid[2] = {size, 1}, axes[1] = {0}, count = 4;
  double data[8] = {0};
  bngradCollective_t collective =
      makeCollective("bngrad.batch_norm_backward epsilon=1e-05",
                     BNGRAD_COLLECTIVE_F64, 1, grid, 1, axes);
  for (int64_t i = 0; i < numBefore; ++i)
    if (bngradAllReduceWait(bngradAllReduceStart(&collective, data, count)))
      return failCollective();
  if (rank == size - 1) {
    if (!strcmp(kind, "op"))
      collective.op = "bngrad.batch_norm_backward epsilon=0.5";
    else if (!strcmp(kind, "count"))
      count = 6;
    else if (!strcmp(kind, "dtype"))
      collective.dtype = BNGRAD_COLLECTIVE_F32;
    else if (!strcmp(kind, "grid"))
      collective.grid_rank = 2;
    else
      return fail("expected op, count, dtype or grid");
  }
  return bngradAllReduceWait(bngradAllReduceStart(&collective, data, count))
             ? failCollective()
             : fail("no error");
}

/* Seconds in which processes that wait for one second must have ended. */
enum { kLongest = 4 };

static void sleepFor(double seconds) {
  struct timespec time = {(time_t)seconds,
                          (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

/* lost RANK STEP HOW: process RANK ends by HOW, a signal or 0: it stays and
 * does nothing, after STEP sums. */
static int runLost(int64_t lost, int64_t numBefore, int how) {
  int64_t axes[1] = {0};
  double data[4] = {0};
  bngradCollective_t collective = makeCollective(
      "bngrad.batch_norm_backward", BNGRAD_COLLECTIVE_F64, 1, &size, 1, axes);
  struct timespec start, end;
  for (int64_t i = 0; i < numBefore; ++i)
    if (bngradAllReduceWait(bngradAllReduceStart(&collective, data, 4)))
      return failCollective();
  /* Only now: MPI itself may take longer to begin. */
  if (bngradSetCollectiveTimeout(1))
    return failCollective();
  if (rank == lost) {
    if (how)
      raise(how);
    /* Longer than the others wait. */
    sleepFor(kLongest + 1);
    return 0;
  }
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (!bngradAllReduceWait(bngradAllReduceStart(&collective, data, 4)))
    return fail("no error");
  clock_gettime(CLOCK_MONOTONIC, &end);
  failCollective();
  double seconds = (double)(end.tv_sec - start.tv_sec) +
                   1e-9 * (double)(end.tv_nsec - start.tv_nsec);
  fprintf(stderr, "rank %d: %s\n", (int)rank,
          seconds < kLongest ? "in time" : "too late");
  return 3;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  bngradCollectiveGroup_t group = bngradGetDefaultCollectiveGroup();
  int status = 1;
  if (!group)
    return failCollective();
  rank = bngradGetCollectiveGroupRank(group);
  size = bngradGetCollectiveGroupSize(group);
  if (!strcmp(mode, "steps") && argc == 3)
    status = runSteps(atoi(argv[2]));
  else if (!strcmp(mode, "grid"))
    status = runGrid(argc - 2, argv + 2);
  else if (!strcmp(mode, "differ") && argc == 4)
    status = runDiffer(argv[2], atoi(argv[3]));
  else if (!strcmp(mode, "lost") && argc == 5)
    status = runLost(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
  else
    fail("expected steps, grid, differ or lost");
  if (status == 0)
    printf("rank %d: ok\n", (int)rank);
  return status;
}
