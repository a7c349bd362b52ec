/*===- Collectives.h - sums over processes ---------------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * libBNGradDistributed.so: the functions that generated code calls for its
 * all-reduces. They use MPI through a back end, libBNGradMPI-openmpi.so or
 * libBNGradMPI-mpich.so, which is loaded when it is first needed.
 * docs/distributed.md describes processes, failures and costs.
 *
 * Processes: the processes of a program form a row-major grid, so that process
 * p has linear index p. The group of a process along axes A consists of the
 * processes that agree with it in all coordinates outside of A. Its sum is over
 * that group.
 *
 * Order: every process of the grid starts the same collectives in the same
 * order. Before the first collective of each op, type and count, the processes
 * compare a header; an error in every process names those that differ, or that
 * are missing at the end of the timeout.
 *
 * Errors: functions return 0, or return nonzero and set the text of
 * bngradGetCollectiveError(). After a timeout or an error of MPI the processes
 * are out of step: all later collectives of the group fail at once.
 *
 * Threads: all functions may be called by several threads at once. Threads that
 * start collectives of one group must do so in the order of the other
 * processes; with separate groups (bngradCreateCollectiveGroup) threads work
 * independently. If the program has initialized MPI without
 * MPI_THREAD_MULTIPLE, MPI is called by one thread at a time, and the program
 * must not call MPI in another thread meanwhile; with MPI_THREAD_SINGLE or
 * _FUNNELED, only the main thread may call these functions.
 */

#ifndef BNGRAD_RUNTIME_COLLECTIVES_H
#define BNGRAD_RUNTIME_COLLECTIVES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

/* Element types of the all-reduced buffers. */
enum {
  BNGRAD_COLLECTIVE_F32 = 0,
  BNGRAD_COLLECTIVE_F64 = 1,
  BNGRAD_COLLECTIVE_I64 = 2
};

/* The most axes of a grid. */
#define BNGRAD_MAX_GRID_RANK 8

/* What is the same in every call of one all-reduce of a program: a constant of
 * generated code. */
typedef struct bngradCollective_t {
  int64_t struct_size; /* sizeof(bngradCollective_t) */
  /* The op with its attributes and global types, zero-terminated, for the
   * header that processes compare and for errors. */
  const char *op;
  const char *location;      /* such as "file.mlir:12:8", or "" */
  int64_t dtype;             /* one of the enum */
  int64_t grid_rank;         /* number of axes of the grid, at most 8 */
  const int64_t *grid_shape; /* their sizes; the product is the number of
                                processes of the program */
  int64_t num_axes;          /* axes of the group, ascending */
  const int64_t *axes;
} bngradCollective_t;

/* Starts the sum of `count` contiguous elements at `data` over the group of
 * this process, in place. Returns a request, which is never 0. Even if the
 * start fails, it returns one, and the wait returns the error. Every process
 * must call it, also with an empty shard. It does not block, except that the
 * first call of a process loads and initializes MPI. A grid of one process
 * needs no back end. */
int64_t bngradAllReduceStart(const bngradCollective_t *collective, void *data,
                             int64_t count);
/* Waits for a request, which must happen once. If it returns 0, `data` is the
 * sum; after an error, which is BNGRAD_PROCESS_ERROR of Runtime.h, 10, `data`
 * is unchanged. */
int32_t bngradAllReduceWait(int64_t request);
/* The linear index of this process in the grid; -1 on an error. */
int64_t bngradProcessIndex(const bngradCollective_t *grid);
/* The error of this thread's last failed call, as one line. It lives until the
 * next failure. */
const char *bngradGetCollectiveError(void);

/*
 * Settings. They apply to groups that are first used afterwards; the timeout
 * applies to every wait that begins afterwards.
 */

/* "openmpi", "mpich" or the path of a back end. If null, the environment
 * variable BNGRAD_MPI decides, or else the MPI that the process has loaded. */
int32_t bngradSetCollectiveBackend(const char *backend);
/* How long a wait may take, in seconds. If 0, the environment variable
 * BNGRAD_TIMEOUT decides, or else it is 300. */
int32_t bngradSetCollectiveTimeout(double seconds);

/*
 * Groups of processes for callers other than generated code. A group has its
 * own communicator, a copy of the caller's, so that its messages do not mix
 * with others.
 */
typedef struct bngradCollectiveGroup *bngradCollectiveGroup_t;

/* All processes of `communicator`, the address of an MPI_Comm, must call it;
 * null: MPI_COMM_WORLD. `backend` as above. If MPI is not initialized yet, it
 * is initialized, and then finalized at the end of the process. */
int32_t bngradCreateCollectiveGroup(bngradCollectiveGroup_t *group,
                                    const char *backend,
                                    const void *communicator);
/* Frees the communicators of the group. All its requests must have been waited
 * for. Does nothing for null. */
int32_t bngradDestroyCollectiveGroup(bngradCollectiveGroup_t group);
/* The group of bngradAllReduceStart, all processes of MPI_COMM_WORLD. It is
 * created on first use; null on an error. It must not be destroyed. */
bngradCollectiveGroup_t bngradGetDefaultCollectiveGroup(void);
int64_t bngradGetCollectiveGroupSize(bngradCollectiveGroup_t group);
int64_t bngradGetCollectiveGroupRank(bngradCollectiveGroup_t group);
/* Like bngradAllReduceStart, among the processes of `group`. */
int64_t bngradGroupAllReduceStart(bngradCollectiveGroup_t group,
                                  const bngradCollective_t *collective,
                                  void *data, int64_t count);

/*
 * Counts of a group, for tests and measurements. Headers are not all-reduces.
 */
typedef struct {
  int64_t struct_size; /* sizeof(bngradCollectiveCounts_t) */
  int64_t all_reduces; /* started, with more than one process */
  int64_t bytes;       /* of their elements in this process */
  int64_t in_flight;   /* the most that were in flight at one time */
  int64_t headers;     /* comparisons of headers */
  int64_t communicators;
} bngradCollectiveCounts_t;

int32_t bngradGetCollectiveCounts(bngradCollectiveGroup_t group,
                                  bngradCollectiveCounts_t *counts);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* BNGRAD_RUNTIME_COLLECTIVES_H */
