/*===- ProgramLibrary.h - programs of libBNGradCompiler.so ----- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * Functions of libBNGradCompiler.so that compile programs of MLIR in the
 * process, and run passes. The Python package bngrad_compiler calls them.
 *
 * Each returns 0, or 1 after an error. It passes its result to `take`: a text,
 * or after an error the diagnostics as JSON,
 *
 *   [{"severity": "error", "file": "", "line": 0, "column": 0,
 *     "message": "", "notes": [...]}]
 *
 * where file is empty if the location has none. They may be called by several
 * threads at once. LLVM ends the process if memory runs out.
 */

#ifndef BNGRAD_LIB_COMPILER_LIBRARY_PROGRAMLIBRARY_H
#define BNGRAD_LIB_COMPILER_LIBRARY_PROGRAMLIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

/* Makes fork() wait for compilations. A process that opens the library without
 * libBNGradRuntime.so, whose own handlers do this, calls it once the library is
 * open, before other functions. Further calls do nothing. */
void bngradWatchForks(void);

/* Receives `size` bytes that live as long as the call. */
typedef struct {
  void (*function)(void *context, const char *text, size_t size);
  void *context;
} bngradTake_t;

/* A text that was received, in memory from malloc. */
typedef struct {
  char *text;
  size_t size;
} bngradText_t;

/* The function of a bngradTake_t whose context is a bngradText_t. A Python
 * callback would need the GIL; at the end of the process, a thread that waits
 * for it hangs or is killed inside this library. */
void bngradTakeText(void *context, const char *text, size_t size);
void bngradFreeText(bngradText_t *text);

typedef struct {
  /* MLIR, as text or bytecode. */
  const char *text;
  size_t text_size;
  /* Null for the only public function. */
  const char *entry;
  /* Null to choose one. */
  const char *schedule;
  /* GPUs to compile for, comma-separated, and the path of the library that
   * launches kernels; `chips` is null for this CPU. */
  const char *chips;
  const char *cuda_library;
  bngradTake_t take;
} bngradProgramRequest_t;

typedef struct bngradProgram *bngradProgram_t;

/* Entries of a program (docs/ahead-of-time.md). Each takes an array with a
 * pointer to each parameter, and one to the returned value. `infer` is null if
 * no result has a dynamic size. */
typedef struct {
  void (*checked)(void **);
  void (*diagnose)(void **);
  void (*workspace)(void **);
  void (*infer)(void **);
} bngradProgramEntries_t;

/* Compiles a program. The result is JSON:
 *
 *   {"entry": "f", "parameters": [{"name": "x", "type": "f32",
 *     "shape": [2, -1], "is_result": false, "is_written": false}]}
 *
 * with arguments before results, -1 for a dynamic size, and null for the shape
 * of a scalar. `is_written` marks a memref that the program may write to. */
int32_t bngradCreateProgram(const bngradProgramRequest_t *request,
                            bngradProgram_t *program,
                            bngradProgramEntries_t *entries);
/* No call of the program may be running. */
void bngradDestroyProgram(bngradProgram_t program);

/* Prints the program after a stage, or as `llvm`, `assembly` or `ptx`; with
 * `schedules`, one schedule a line. */
int32_t bngradPrintProgram(const bngradProgramRequest_t *request,
                           const char *form);

/* Runs a pipeline, in the form that bngrad-opt takes after --pass-pipeline=, or
 * if it is null, passes such as "--bngrad-decompose". Returns the IR. */
int32_t bngradRunPasses(const char *text, size_t text_size,
                        const char *pipeline, const char *const *passes,
                        size_t num_passes, bngradTake_t take);

/* The version of the library, such as "0.1.0". */
const char *bngradCompilerVersion(void);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* BNGRAD_LIB_COMPILER_LIBRARY_PROGRAMLIBRARY_H */
