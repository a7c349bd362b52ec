/*===- CompilerLibrary.h - libBNGradCompiler.so ----------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * The functions of libBNGradCompiler.so for libBNGradRuntime.so, which has no
 * LLVM and opens the library when a gradient has no ready kernel.
 */

#ifndef BNGRAD_LIB_COMPILER_LIBRARY_COMPILERLIBRARY_H
#define BNGRAD_LIB_COMPILER_LIBRARY_COMPILERLIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

typedef struct {
  /* sizeof(bngradCompileRequest_t), which identifies the version. */
  size_t struct_size;
  /* MLIR with one public function. */
  const char *text;
  size_t text_size;
  /* The GPU to compile for, such as "sm_90", and the path of the library that
   * launches kernels; `chip` is null for this CPU. */
  const char *chip;
  const char *library;
  /* If not 0, gradients are split into halves, and equal halves merged. */
  int in_halves;
  /* The cache folder and the name of the result in it; `folder` may be null. */
  const char *folder;
  const char *key;
  /* Receives a shared object for this CPU with the packed entries. */
  void (*take)(void *context, const char *image, size_t size);
  void *context;
  /* Receives an error, as one line. */
  char *error;
  size_t error_size;
} bngradCompileRequest_t;

/* Returns 0, 1 after an error, or 2 for a request of another version. Failure
 * to write the cache is not an error. */
int32_t bngradCompile(const bngradCompileRequest_t *request);
typedef int32_t (*bngradCompileFunction_t)(
    const bngradCompileRequest_t *request);

/* This library registers no fork handlers while it is opened: up to version
 * 2.35, glibc runs handlers under the lock that pthread_atfork takes, and one
 * of them may wait for the thread that opens the library. A fork() may also
 * have begun before. The library that opens this one therefore calls these
 * functions from its own handlers: the first waits for the compilations of all
 * other threads and blocks new ones; the same thread calls the second in the
 * parent and in the child. */
void bngradHoldCompilations(void);
void bngradReleaseCompilations(int is_child);
typedef void (*bngradHoldCompilationsFunction_t)(void);
typedef void (*bngradReleaseCompilationsFunction_t)(int is_child);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* BNGRAD_LIB_COMPILER_LIBRARY_COMPILERLIBRARY_H */
