/*===- InstructionSet.h - the meaning of BNGRAD_ISA ------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * Reads the environment variable BNGRAD_ISA for the ready kernels and for the
 * compiler. Needs only libc.
 */

#ifndef BNGRAD_LIB_RUNTIME_KERNELS_INSTRUCTIONSET_H
#define BNGRAD_LIB_RUNTIME_KERNELS_INSTRUCTIONSET_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

typedef struct {
  /* The value of BNGRAD_ISA. */
  const char *name;
  /* LLVM's name for it: a CPU, and features to add, such as "+avx512bf16". */
  const char *cpu;
  const char *features;
} bngradInstructionSet_t;

/* The sets of this architecture, the best first. The last entry is empty. */
static const bngradInstructionSet_t bngradInstructionSets[] = {
#define BNGRAD_ISA(name, cpu, kernels) {name, cpu, ""},
#define BNGRAD_ISA_WITH(name, cpu, feature, kernels, bf16_kernels)             \
  {name, cpu, "+" feature},
#include "InstructionSets.def"
    {NULL, NULL, NULL}};

/* Whether this CPU has entry `index` of that table. */
static inline int bngradHasInstructionSet(size_t index) {
#if defined(__x86_64__)
#define BNGRAD_CPU_HAS(feature) (__builtin_cpu_supports(feature) != 0)
  __builtin_cpu_init();
#else
#define BNGRAD_CPU_HAS(feature) 1
#endif
  const int has[] = {
#define BNGRAD_ISA(name, cpu, kernels) BNGRAD_CPU_HAS(cpu),
#define BNGRAD_ISA_WITH(name, cpu, feature, kernels, bf16_kernels)             \
  BNGRAD_CPU_HAS(cpu) && BNGRAD_CPU_HAS(feature),
#include "InstructionSets.def"
      0};
#undef BNGRAD_CPU_HAS
  return has[index];
}

/* Reads BNGRAD_ISA. Returns the index of the instruction set that it names; -1
 * if it is unset or empty; -2 and one line in `error` if it names none that
 * this CPU has. */
static inline int bngradReadInstructionSet(char *error, size_t error_size) {
  const char *value = getenv("BNGRAD_ISA");
  char known[128] = "";
  size_t i;
  if (!value || !*value)
    return -1;
  for (i = 0; bngradInstructionSets[i].name; ++i) {
    const char *name = bngradInstructionSets[i].name;
    if (!bngradHasInstructionSet(i))
      continue;
    if (strcmp(value, name) == 0)
      return (int)i;
    snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
             *known ? ", " : "", name);
  }
  snprintf(error, error_size,
           "BNGRAD_ISA: expected an instruction set that this CPU has (%s), "
           "got '%s'",
           *known ? known : "none", value);
  return -2;
}

/* NOLINTEND(readability-identifier-naming) */

#endif /* BNGRAD_LIB_RUNTIME_KERNELS_INSTRUCTIONSET_H */
