/*===- PtxEmulator.h - kernels and their traffic ---------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * libBNGradCudaEmulator.so exports these functions and those of
 * BNGrad/Runtime/Cuda.h. They may be called from any thread.
 */

#ifndef PTXEMULATOR_PTXEMULATOR_H
#define PTXEMULATOR_PTXEMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

/* Traffic of one launch to one buffer of global memory. A request is one
 * instruction of one warp; each of its bytes is counted once, and its sectors
 * are the units of 32 bytes that it touches. */
typedef struct {
  uint64_t launch;    /* from 0, since the last reset */
  const char *kernel; /* valid until the next reset */
  const char *buffer; /* its name */
  uint64_t bytes;     /* size of the buffer */
  uint64_t load_bytes, load_sectors;
  uint64_t store_bytes, store_sectors;
  uint64_t bulk_load_bytes, bulk_load_sectors; /* cp.async.bulk */
  uint64_t bulk_store_bytes, bulk_store_sectors;
  uint64_t atomics;         /* one for each thread */
  uint64_t requests;        /* loads and stores */
  uint64_t requests_128bit; /* of these, with 16 bytes or more a thread */
} ptxEmulatorTraffic_t;

/* Forgets the launches so far. */
void ptxEmulatorResetTraffic(void);
/* Gives the number of entries since the last reset and writes the first
 * `max_entries` of them, by launch and by address of the buffer. */
size_t ptxEmulatorGetTraffic(ptxEmulatorTraffic_t *entries, size_t max_entries);
/* Names the buffer that begins at `pointer`. */
void ptxEmulatorNameBuffer(const void *pointer, const char *name);

/* Properties of a kernel. */
typedef struct {
  uint64_t static_shared_bytes;
  uint32_t max_threads; /* of a block: .maxntid, or 1024 */
} ptxEmulatorKernel_t;

/* `function` is from mgpuModuleGetFunction; gives zeros after an error. */
void ptxEmulatorGetKernel(void *function, ptxEmulatorKernel_t *kernel);
/* Sets the percentage, from 0 to 100, of the memory of first-level cache and
 * shared memory that a kernel prefers as shared memory. Its later launches are
 * checked: with less than their blocks need, fewer of them would run at
 * once. */
void ptxEmulatorSetCarveout(void *function, uint32_t percent);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PTXEMULATOR_PTXEMULATOR_H */
