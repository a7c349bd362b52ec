/*===- Backend.h - the functions of a back end ------------------ -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * A back end is a shared library that exports bngradGetBackend. It sends
 * messages and reduces, but knows neither grids nor timeouts: every operation
 * that waits for other processes starts a request, which the caller polls.
 * Functions return 0, or nonzero and one line in `error`.
 */

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_BACKEND_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_BACKEND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming) */

/* Incremented when the table below changes. */
#define BNGRAD_BACKEND_VERSION 1

/* A communicator or a request of the back end, whose bytes the integer
 * holds. */
typedef int64_t bngradBackendHandle_t;

/* Receives an error. */
typedef struct {
  char text[512];
} bngradBackendError_t;

/* The memory and the order of an all-reduce; null for host memory. A back end
 * for devices, such as one over NCCL, takes device memory and orders the
 * all-reduce after the work in `stream`. */
typedef struct {
  int64_t struct_size;
  int64_t device; /* number of the device that has the memory */
  void *stream;   /* of that device */
} bngradBackendDevice_t;

/* Stands for any process as the source of a message. */
#define BNGRAD_BACKEND_ANY_SOURCE (-1)

typedef struct {
  int64_t version;  /* BNGRAD_BACKEND_VERSION */
  const char *name; /* for errors, such as "Open MPI" */

  /* Called once; initializes the library unless the program has done so. */
  int (*initialize)(bngradBackendError_t *error);
  /* Finalizes what `initialize` has initialized, once all processes do so. */
  int (*finalize)(bngradBackendError_t *error);
  /* Whether `finalize` has something to finalize. */
  int (*is_owner)(void);
  /* Whether the calling thread may call the functions below: the library is
   * initialized, not finalized, and accepts calls from this thread. */
  int (*check_thread)(bngradBackendError_t *error);
  /* Whether several threads may call them at once. */
  int (*is_concurrent)(void);
  /* Makes the library call `function` before the program finalizes it. */
  int (*set_finalize_hook)(void (*function)(void), bngradBackendError_t *error);

  /* Starts a copy of the communicator at the address `original`, null for all
   * processes. `copy` is valid once the request ends. */
  int (*copy_start)(const void *original, bngradBackendHandle_t *copy,
                    bngradBackendHandle_t *request,
                    bngradBackendError_t *error);
  int (*get_place)(bngradBackendHandle_t communicator, int64_t *rank,
                   int64_t *size, bngradBackendError_t *error);
  /* Creates a communicator of `count` processes of another; all call it. */
  int (*create)(bngradBackendHandle_t communicator, const int64_t *ranks,
                int64_t count, bngradBackendHandle_t *created,
                bngradBackendError_t *error);
  int (*destroy)(bngradBackendHandle_t communicator,
                 bngradBackendError_t *error);

  /* Sets `is_done` if a request has ended; this also frees the request. */
  int (*test)(bngradBackendHandle_t *request, int *is_done,
              bngradBackendError_t *error);
  /* Starts to sum `data` in place; Collectives.h defines `dtype`. */
  int (*all_reduce_start)(bngradBackendHandle_t communicator, void *data,
                          int64_t count, int64_t dtype,
                          const bngradBackendDevice_t *device,
                          bngradBackendHandle_t *request,
                          bngradBackendError_t *error);
  int (*barrier_start)(bngradBackendHandle_t communicator,
                       bngradBackendHandle_t *request,
                       bngradBackendError_t *error);
  /* `data` must live until the request has ended. */
  int (*send_start)(bngradBackendHandle_t communicator, const void *data,
                    int64_t bytes, int64_t to, int64_t tag,
                    bngradBackendHandle_t *request,
                    bngradBackendError_t *error);
  /* Looks for a message from `source`, and sets `source` and `bytes`, the
   * latter to -1 if there is none. */
  int (*probe)(bngradBackendHandle_t communicator, int64_t *source, int64_t tag,
               int64_t *bytes, bngradBackendError_t *error);
  /* Receives a message that `probe` has found. */
  int (*receive)(bngradBackendHandle_t communicator, void *data, int64_t bytes,
                 int64_t source, int64_t tag, bngradBackendError_t *error);
} bngradBackend_t;

/* The function that a back end exports. */
const bngradBackend_t *bngradGetBackend(void);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* BNGRAD_LIB_RUNTIME_DISTRIBUTED_BACKEND_H */
