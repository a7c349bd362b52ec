/* Times all-reduces of float between all processes, started and waited for one
 * after the other: all_reduce REPETITIONS BYTES.... The first process prints
 * `PROCESSES BYTES MIN_US MEDIAN_US` of one, from the times of several: a
 * process that comes late to a single one would find it done. */

#include "BNGrad/Runtime/Collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double getMicroseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static int compare(const void *left, const void *right) {
  double difference = *(const double *)left - *(const double *)right;
  return difference < 0 ? -1 : difference > 0;
}

static int fail(const char *text) {
  fprintf(stderr, "all_reduce: %s\n", text);
  return 1;
}

enum { kBlock = 10 };

static int measure(bngradCollectiveGroup_t group, int repetitions,
                   int64_t bytes) {
  int64_t size = bngradGetCollectiveGroupSize(group), axis = 0;
  bngradCollective_t collective = {sizeof(collective),
                                   "all_reduce",
                                   "",
                                   BNGRAD_COLLECTIVE_F32,
                                   1,
                                   &size,
                                   1,
                                   &axis};
  float *data = calloc((size_t)bytes + 1, 1);
  double *times = malloc((size_t)repetitions * sizeof(double));
  if (!data || !times)
    return fail("out of memory");
  /* The first ones compare headers, and map memory. */
  for (int i = -1; i < repetitions; ++i) {
    double start = getMicroseconds();
    for (int j = 0; j < kBlock; ++j)
      if (bngradAllReduceWait(
              bngradGroupAllReduceStart(group, &collective, data, bytes / 4)))
        return fail(bngradGetCollectiveError());
    if (i >= 0)
      times[i] = (getMicroseconds() - start) / kBlock;
  }
  qsort(times, (size_t)repetitions, sizeof(double), compare);
  if (bngradGetCollectiveGroupRank(group) == 0)
    printf("%d %d %.3f %.3f\n", (int)size, (int)bytes, times[0],
           times[repetitions / 2]);
  free(data);
  free(times);
  return 0;
}

int main(int argc, char **argv) {
  int repetitions = argc > 1 ? atoi(argv[1]) : 0;
  bngradCollectiveGroup_t group = bngradGetDefaultCollectiveGroup();
  if (!group)
    return fail(bngradGetCollectiveError());
  if (repetitions < 1)
    return fail("expected REPETITIONS BYTES...");
  for (int i = 2; i < argc; ++i)
    if (measure(group, repetitions, atoi(argv[i])))
      return 1;
  return 0;
}
