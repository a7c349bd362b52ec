/*===- Kernels.c - tables of the ready kernels ---------------------------===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "Kernels.h"
#include "InstructionSet.h"

/* The first argument if the op has a mask, otherwise the second. */
#define MASKED_Backward(some, none) some
#define MASKED_BackwardElemt(some, none) some
#define MASKED_Training(some, none) none
#define MASKED_Inference(some, none) none

/* The functions of the kernel `kind` for `type` and `isa`. */
#define DECLARE_KERNEL(form, type, isa, kind)                                  \
  int32_t form##_##type##_##isa##_##kind##_packed(void *const *, void *,       \
                                                  const bngrad_threads_t *);   \
  size_t form##_##type##_##isa##_##kind##_packed_workspace(void *const *);
#define DECLARE_KIND(kind, name, op, statistics, results, parameters, type,    \
                     isa)                                                      \
  DECLARE_KERNEL(rows, type, isa, name)                                        \
  DECLARE_KERNEL(planes, type, isa, name)                                      \
  MASKED_##op(DECLARE_KERNEL(rows, type, isa, name##_masked), )                \
      MASKED_##op(DECLARE_KERNEL(planes, type, isa, name##_masked), )
#define DECLARE_TYPE(type, isa) BNGRAD_READY_KERNELS(DECLARE_KIND, type, isa)
#define DECLARE_TABLE(isa, name)                                               \
  int32_t table_##isa##_##name##_packed(void *const *, void *,                 \
                                        const bngrad_threads_t *);
#define DECLARE_WIDER(isa, from, to)                                           \
  DECLARE_TABLE(isa, widen_##from##_##to)                                      \
  DECLARE_TABLE(isa, inv_std_##from##_##to)
#define DECLARE_NARROW(isa, from)                                              \
  DECLARE_TABLE(isa, narrow_##from##_f16)                                      \
  DECLARE_TABLE(isa, narrow_##from##_bf16)                                     \
  DECLARE_TABLE(isa, narrow_##from##_f32)                                      \
  DECLARE_TABLE(isa, narrow_##from##_f64)
#define DECLARE_ISA(isa, bf16_isa)                                             \
  DECLARE_TYPE(f16, isa)                                                       \
  DECLARE_TYPE(bf16, bf16_isa)                                                 \
  DECLARE_TYPE(f32, isa)                                                       \
  DECLARE_TYPE(f64, isa)                                                       \
  DECLARE_WIDER(isa, f16, f32)                                                 \
  DECLARE_WIDER(isa, bf16, f32)                                                \
  DECLARE_WIDER(isa, f32, f32)                                                 \
  DECLARE_WIDER(isa, f16, f64)                                                 \
  DECLARE_WIDER(isa, bf16, f64)                                                \
  DECLARE_WIDER(isa, f32, f64)                                                 \
  DECLARE_WIDER(isa, f64, f64)                                                 \
  DECLARE_NARROW(isa, f32)                                                     \
  DECLARE_NARROW(isa, f64)                                                     \
  DECLARE_TABLE(isa, multiply_f32)                                             \
  DECLARE_TABLE(isa, multiply_f64)
#define BNGRAD_ISA(name, cpu, isa) DECLARE_ISA(isa, isa)
#define BNGRAD_ISA_WITH(name, cpu, feature, isa, bf16_isa)                     \
  DECLARE_ISA(isa, bf16_isa)
#include "InstructionSets.def"

#define CALL(form, type, isa, kind) form##_##type##_##isa##_##kind##_packed
#define SIZE(form, type, isa, kind)                                            \
  form##_##type##_##isa##_##kind##_packed_workspace
#define FORM(form, name, op, type, isa)                                        \
  {                                                                            \
    {CALL(form, type, isa, name), SIZE(form, type, isa, name)}, {              \
      MASKED_##op(CALL(form, type, isa, name##_masked), NULL),                 \
          MASKED_##op(SIZE(form, type, isa, name##_masked), NULL)              \
    }                                                                          \
  }
#define KIND(kind, name, op, statistics, results, parameters, type, isa)       \
  {FORM(rows, name, op, type, isa), FORM(planes, name, op, type, isa)},
#define TYPE(type, isa) {BNGRAD_READY_KERNELS(KIND, type, isa)}
#define TABLE(isa, name) table_##isa##_##name##_packed
#define NARROW(isa, from)                                                      \
  {TABLE(isa, narrow_##from##_f16), TABLE(isa, narrow_##from##_bf16),          \
   TABLE(isa, narrow_##from##_f32), TABLE(isa, narrow_##from##_f64)}
#define WIDER(isa, function)                                                   \
  {                                                                            \
    {TABLE(isa, function##_f16_f32), TABLE(isa, function##_bf16_f32),          \
     TABLE(isa, function##_f32_f32), 0},                                       \
    {                                                                          \
      TABLE(isa, function##_f16_f64), TABLE(isa, function##_bf16_f64),         \
          TABLE(isa, function##_f32_f64), TABLE(isa, function##_f64_f64)       \
    }                                                                          \
  }
#define ISA(name, isa, bf16_isa)                                               \
  {name,                                                                       \
   {TYPE(f16, isa), TYPE(bf16, bf16_isa), TYPE(f32, isa), TYPE(f64, isa)},     \
   WIDER(isa, widen),                                                          \
   WIDER(isa, inv_std),                                                        \
   {NARROW(isa, f32), NARROW(isa, f64)},                                       \
   {TABLE(isa, multiply_f32), TABLE(isa, multiply_f64)}},
/* In the order of bngradInstructionSets. */
static const bngradKernels_t all[] = {
#define BNGRAD_ISA(name, cpu, isa) ISA(name, isa, isa)
#define BNGRAD_ISA_WITH(name, cpu, feature, isa, bf16_isa)                     \
  ISA(name, isa, bf16_isa)
#include "InstructionSets.def"
};

const bngradKernels_t *bngradGetKernels(char *error, size_t error_size) {
  int named = bngradReadInstructionSet(error, error_size);
  if (named != -1)
    return named < 0 ? NULL : &all[named];
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
    if (bngradHasInstructionSet(i))
      return &all[i];
  return NULL;
}
