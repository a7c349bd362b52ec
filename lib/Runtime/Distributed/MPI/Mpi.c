/*===- Mpi.c - the back end over MPI ---------------------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * This file is compiled once for each MPI, as their ABIs differ. Our
 * communicators return errors. Only `initialize`, `create` and `finalize`,
 * which all processes call, wait for other processes.
 */

#include "../Backend.h"

#include "BNGrad/Runtime/Collectives.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NOLINTBEGIN(readability-identifier-naming) */

/* The bytes of a communicator or a request. */
typedef union {
  bngradBackendHandle_t handle;
  MPI_Comm communicator;
  MPI_Request request;
} Handle;

_Static_assert(sizeof(Handle) == sizeof(bngradBackendHandle_t),
               "expected handles of at most 8 bytes");

static MPI_Comm toCommunicator(bngradBackendHandle_t handle) {
  Handle value;
  value.handle = handle;
  return value.communicator;
}

static bngradBackendHandle_t fromCommunicator(MPI_Comm communicator) {
  Handle value = {0};
  value.communicator = communicator;
  return value.handle;
}

static bngradBackendHandle_t fromRequest(MPI_Request request) {
  Handle value = {0};
  value.request = request;
  return value.handle;
}

static int fail(bngradBackendError_t *error, const char *text) {
  snprintf(error->text, sizeof(error->text), "%s", text);
  return 1;
}

/* Checks `code`, the result of an MPI call; on an error adds MPI's text. */
static int check(int code, const char *call, bngradBackendError_t *error) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (code == MPI_SUCCESS)
    return 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
    length = 0;
  text[length] = '\0';
  /* Make it one line. */
  for (char *character = text; *character; ++character)
    if (*character == '\n')
      *character = ' ';
  snprintf(error->text, sizeof(error->text), "%s: %s", call,
           length ? text : "unknown error");
  return 1;
}

/* Whether `initialize` has initialized MPI. */
static int isOwner;
/* The thread level, such as MPI_THREAD_MULTIPLE. */
static int threadLevel;
static void (*finalizeHook)(void);

static int initialize(bngradBackendError_t *error) {
  int isInitialized = 0, isFinalized = 0;
  MPI_Initialized(&isInitialized);
  MPI_Finalized(&isFinalized);
  if (isFinalized)
    return fail(error, "expected MPI to be initialized, got MPI_Finalize "
                       "before");
  if (!isInitialized) {
    if (check(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threadLevel),
              "MPI_Init_thread", error))
      return 1;
    isOwner = 1;
    return 0;
  }
  return check(MPI_Query_thread(&threadLevel), "MPI_Query_thread", error);
}

static int finalize(bngradBackendError_t *error) {
  int isFinalized = 0;
  MPI_Finalized(&isFinalized);
  if (!isOwner || isFinalized)
    return 0;
  isOwner = 0;
  return check(MPI_Finalize(), "MPI_Finalize", error);
}

static int getIsOwner(void) { return isOwner; }

static int checkThread(bngradBackendError_t *error) {
  int isFinalized = 0, isMain = 0;
  MPI_Finalized(&isFinalized);
  if (isFinalized)
    return fail(error, "expected MPI to be initialized, got MPI_Finalize "
                       "before");
  if (threadLevel >= MPI_THREAD_SERIALIZED)
    return 0;
  if (check(MPI_Is_thread_main(&isMain), "MPI_Is_thread_main", error))
    return 1;
  return isMain ? 0
                : fail(error, "expected a call of the main thread, or MPI_Init_"
                              "thread with MPI_THREAD_SERIALIZED or more, got "
                              "another thread");
}

static int isConcurrent(void) { return threadLevel == MPI_THREAD_MULTIPLE; }

static int callFinalizeHook(MPI_Comm communicator, int key, void *value,
                            void *extra) {
  (void)communicator, (void)key, (void)value, (void)extra;
  finalizeHook();
  return MPI_SUCCESS;
}

/* Uses an attribute of MPI_COMM_SELF, which MPI_Finalize deletes first. */
static int setFinalizeHook(void (*function)(void),
                           bngradBackendError_t *error) {
  int key;
  finalizeHook = function;
  return check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callFinalizeHook,
                                      &key, NULL),
               "MPI_Comm_create_keyval", error) ||
         check(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL), "MPI_Comm_set_attr",
               error);
}

/* An error before the copy returns errors would end the process: until then
 * `original` returns them as well. */
static int copyStart(const void *original, bngradBackendHandle_t *copy,
                     bngradBackendHandle_t *request,
                     bngradBackendError_t *error) {
  MPI_Comm from = original ? *(const MPI_Comm *)original : MPI_COMM_WORLD;
  MPI_Errhandler handler;
  MPI_Request started;
  int isInter = 0, status;
  if (from == MPI_COMM_NULL)
    return fail(error, "expected a communicator, got MPI_COMM_NULL");
  if (check(MPI_Comm_get_errhandler(from, &handler), "MPI_Comm_get_errhandler",
            error) ||
      check(MPI_Comm_set_errhandler(from, MPI_ERRORS_RETURN),
            "MPI_Comm_set_errhandler", error))
    return 1;
  status =
      check(MPI_Comm_test_inter(from, &isInter), "MPI_Comm_test_inter", error);
  if (!status && isInter)
    status = fail(error, "expected a communicator of one group, got an "
                         "inter-communicator");
  *copy = 0;
  if (!status)
    status = check(MPI_Comm_idup(from, (MPI_Comm *)copy, &started),
                   "MPI_Comm_idup", error);
  if (!status)
    *request = fromRequest(started);
  MPI_Comm_set_errhandler(from, handler);
  MPI_Errhandler_free(&handler);
  return status;
}

static int getPlace(bngradBackendHandle_t communicator, int64_t *rank,
                    int64_t *size, bngradBackendError_t *error) {
  MPI_Comm of = toCommunicator(communicator);
  int value = 0;
  if (check(MPI_Comm_set_errhandler(of, MPI_ERRORS_RETURN),
            "MPI_Comm_set_errhandler", error) ||
      check(MPI_Comm_rank(of, &value), "MPI_Comm_rank", error))
    return 1;
  *rank = value;
  if (check(MPI_Comm_size(of, &value), "MPI_Comm_size", error))
    return 1;
  *size = value;
  return 0;
}

/* Creates a communicator of the group of `communicator` with `ranks`. */
static int createOf(MPI_Comm communicator, const int *ranks, int count,
                    MPI_Comm *created, bngradBackendError_t *error) {
  MPI_Group all, members;
  if (check(MPI_Comm_group(communicator, &all), "MPI_Comm_group", error))
    return 1;
  int status = check(MPI_Group_incl(all, count, ranks, &members),
                     "MPI_Group_incl", error);
  MPI_Group_free(&all);
  if (status)
    return status;
  status = check(MPI_Comm_create_group(communicator, members, 0, created),
                 "MPI_Comm_create_group", error);
  MPI_Group_free(&members);
  return status || check(MPI_Comm_set_errhandler(*created, MPI_ERRORS_RETURN),
                         "MPI_Comm_set_errhandler", error);
}

static int create(bngradBackendHandle_t communicator, const int64_t *ranks,
                  int64_t count, bngradBackendHandle_t *created,
                  bngradBackendError_t *error) {
  MPI_Comm result = MPI_COMM_NULL;
  int *narrowed = malloc((size_t)count * sizeof(int));
  if (!narrowed)
    return fail(error, "out of memory");
  for (int64_t i = 0; i < count; ++i)
    narrowed[i] = (int)ranks[i];
  int status = createOf(toCommunicator(communicator), narrowed, (int)count,
                        &result, error);
  free(narrowed);
  *created = fromCommunicator(result);
  return status;
}

static int destroy(bngradBackendHandle_t communicator,
                   bngradBackendError_t *error) {
  MPI_Comm freed = toCommunicator(communicator);
  return check(MPI_Comm_free(&freed), "MPI_Comm_free", error);
}

static int test(bngradBackendHandle_t *request, int *isDone,
                bngradBackendError_t *error) {
  Handle value;
  value.handle = *request;
  int status = check(MPI_Test(&value.request, isDone, MPI_STATUS_IGNORE),
                     "MPI_Test", error);
  *request = value.handle;
  return status;
}

static MPI_Datatype getDatatype(int64_t dtype) {
  switch (dtype) {
  case BNGRAD_COLLECTIVE_F32:
    return MPI_FLOAT;
  case BNGRAD_COLLECTIVE_F64:
    return MPI_DOUBLE;
  default:
    return MPI_INT64_T;
  }
}

static int allReduceStart(bngradBackendHandle_t communicator, void *data,
                          int64_t count, int64_t dtype,
                          const bngradBackendDevice_t *device,
                          bngradBackendHandle_t *request,
                          bngradBackendError_t *error) {
  MPI_Request started;
  if (device)
    return fail(error, "expected memory of the host, got that of a device");
  if (check(MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, getDatatype(dtype),
                           MPI_SUM, toCommunicator(communicator), &started),
            "MPI_Iallreduce", error))
    return 1;
  *request = fromRequest(started);
  return 0;
}

static int barrierStart(bngradBackendHandle_t communicator,
                        bngradBackendHandle_t *request,
                        bngradBackendError_t *error) {
  MPI_Request started;
  if (check(MPI_Ibarrier(toCommunicator(communicator), &started),
            "MPI_Ibarrier", error))
    return 1;
  *request = fromRequest(started);
  return 0;
}

static int sendStart(bngradBackendHandle_t communicator, const void *data,
                     int64_t bytes, int64_t to, int64_t tag,
                     bngradBackendHandle_t *request,
                     bngradBackendError_t *error) {
  MPI_Request started;
  if (check(MPI_Isend(data, (int)bytes, MPI_BYTE, (int)to, (int)tag,
                      toCommunicator(communicator), &started),
            "MPI_Isend", error))
    return 1;
  *request = fromRequest(started);
  return 0;
}

static int probe(bngradBackendHandle_t communicator, int64_t *source,
                 int64_t tag, int64_t *bytes, bngradBackendError_t *error) {
  int from =
      *source == BNGRAD_BACKEND_ANY_SOURCE ? MPI_ANY_SOURCE : (int)*source;
  int isFound = 0, count = 0;
  MPI_Status status;
  *bytes = -1;
  if (check(MPI_Iprobe(from, (int)tag, toCommunicator(communicator), &isFound,
                       &status),
            "MPI_Iprobe", error))
    return 1;
  if (!isFound)
    return 0;
  if (check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count", error))
    return 1;
  *source = status.MPI_SOURCE;
  *bytes = count;
  return 0;
}

static int receive(bngradBackendHandle_t communicator, void *data,
                   int64_t bytes, int64_t source, int64_t tag,
                   bngradBackendError_t *error) {
  return check(MPI_Recv(data, (int)bytes, MPI_BYTE, (int)source, (int)tag,
                        toCommunicator(communicator), MPI_STATUS_IGNORE),
               "MPI_Recv", error);
}

const bngradBackend_t *bngradGetBackend(void) {
  static const bngradBackend_t kBackend = {BNGRAD_BACKEND_VERSION,
                                           BNGRAD_MPI_NAME,
                                           initialize,
                                           finalize,
                                           getIsOwner,
                                           checkThread,
                                           isConcurrent,
                                           setFinalizeHook,
                                           copyStart,
                                           getPlace,
                                           create,
                                           destroy,
                                           test,
                                           allReduceStart,
                                           barrierStart,
                                           sendStart,
                                           probe,
                                           receive};
  return &kBackend;
}

/* NOLINTEND(readability-identifier-naming) */
