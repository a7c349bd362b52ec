/* A program that has initialized MPI itself, and gives its communicators to
 * groups. Compiled with MPI's wrapper. */

#include "BNGrad/Runtime/Collectives.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *text) {
  fprintf(stderr, "caller: %s\n", text);
  return 1;
}

/* Sums 1 over the processes of `group`. */
static int sumOnes(bngradCollectiveGroup_t group, int64_t expected) {
  int64_t size = bngradGetCollectiveGroupSize(group), axis = 0;
  bngradCollective_t collective = {
      sizeof(collective), "op", "", BNGRAD_COLLECTIVE_I64, 1, &size, 1, &axis};
  double one = 1, sum = 1;
  (void)one;
  collective.dtype = BNGRAD_COLLECTIVE_F64;
  if (bngradAllReduceWait(
          bngradGroupAllReduceStart(group, &collective, &sum, 1)))
    return fail(bngradGetCollectiveError());
  return sum == (double)expected ? 0 : fail("wrong sum");
}

struct Thread {
  bngradCollectiveGroup_t group;
  int64_t size;
  int status;
};

static void *runThread(void *argument) {
  struct Thread *thread = argument;
  for (int i = 0; i < 200 && thread->status == 0; ++i)
    thread->status = sumOnes(thread->group, thread->size);
  return NULL;
}

/* Two threads with a group each. */
static int runThreads(MPI_Comm communicator, int64_t size) {
  struct Thread threads[2];
  pthread_t handles[2];
  for (int i = 0; i < 2; ++i) {
    threads[i].size = size;
    threads[i].status = 0;
    if (bngradCreateCollectiveGroup(&threads[i].group, NULL, &communicator))
      return fail(bngradGetCollectiveError());
  }
  for (int i = 0; i < 2; ++i)
    pthread_create(&handles[i], NULL, runThread, &threads[i]);
  for (int i = 0; i < 2; ++i)
    pthread_join(handles[i], NULL);
  for (int i = 0; i < 2; ++i)
    if (bngradDestroyCollectiveGroup(threads[i].group))
      return fail(bngradGetCollectiveError());
  return threads[0].status | threads[1].status;
}

static void *runOther(void *argument) {
  bngradCollectiveGroup_t group = argument;
  int64_t size = bngradGetCollectiveGroupSize(group), axis = 0;
  bngradCollective_t collective = {
      sizeof(collective), "op", "", BNGRAD_COLLECTIVE_I64, 1, &size, 1, &axis};
  int64_t data = 0;
  if (!bngradAllReduceWait(
          bngradGroupAllReduceStart(group, &collective, &data, 1)))
    fail("no error");
  else if (!strstr(bngradGetCollectiveError(),
                   "expected a call of the main thread"))
    fail(bngradGetCollectiveError());
  return NULL;
}

int main(int argc, char **argv) {
  int required = argc > 1 && !strcmp(argv[1], "single") ? MPI_THREAD_SINGLE
                                                        : MPI_THREAD_MULTIPLE;
  int level, rank, size, status;
  MPI_Comm half;
  bngradCollectiveGroup_t world, part;
  MPI_Init_thread(&argc, &argv, required, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* Reversed, so that ranks differ from those of the job. */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  if (bngradCreateCollectiveGroup(&world, NULL, NULL) ||
      bngradCreateCollectiveGroup(&part, NULL, &half))
    return fail(bngradGetCollectiveError());
  status = sumOnes(world, size) | sumOnes(part, (size + 1 - rank % 2) / 2);
  if (required == MPI_THREAD_MULTIPLE && level == MPI_THREAD_MULTIPLE)
    status |= runThreads(MPI_COMM_WORLD, size);
  if (level < MPI_THREAD_SERIALIZED) {
    pthread_t handle;
    pthread_create(&handle, NULL, runOther, world);
    pthread_join(handle, NULL);
  }
  if (bngradDestroyCollectiveGroup(part))
    status = fail(bngradGetCollectiveError());
  MPI_Comm_free(&half);
  /* The group `world` is freed by MPI_Finalize. */
  MPI_Finalize();
  {
    int64_t grid = size, axis = 0, data = 1;
    bngradCollective_t collective = {sizeof(collective),
                                     "op",
                                     "",
                                     BNGRAD_COLLECTIVE_I64,
                                     1,
                                     &grid,
                                     1,
                                     &axis};
    if (!bngradAllReduceWait(
            bngradGroupAllReduceStart(world, &collective, &data, 1)))
      status = fail("no error");
    else if (!strstr(bngradGetCollectiveError(), "got MPI_Finalize before"))
      status = fail(bngradGetCollectiveError());
  }
  if (status == 0)
    printf("rank %d: ok\n", rank);
  return status;
}
