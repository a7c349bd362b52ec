//===- Operands.h - operands of the C library's functions -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the tensors of the gradient and of its halves once, for the C
// library and for its clients in this repository, which pass them as an array.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_OPERANDS_H
#define BNGRAD_LIB_RUNTIME_OPERANDS_H

#include "BNGrad/Runtime/Runtime.h"

namespace bngrad {

/// The whole gradient, or one of its halves.
enum class Part { Whole, Reduce, Elemt };

/// Such as "the whole gradient".
constexpr const char *getName(Part part) {
  return part == Part::Whole    ? "the whole gradient"
         : part == Part::Reduce ? "the half reduce"
                                : "the half elemt";
}

enum class OperandShape {
  Data,     // the shape of input
  Channels, // the sizes of its feature dims
  Sums      // 2, then the sizes of the feature dims
};

enum class OperandUse : char { None, Input, Output };

/// OPERAND(operand, name, shape, whole, reduce, elemt) for each tensor, in the
/// order of the functions in C: outputs first. Statistic is variance or
/// inv_std. As an output of the whole gradient, the sums pass between its
/// steps; no caller passes them.
// clang-format off
#define BNGRAD_OPERANDS(OPERAND) \
  OPERAND(GradInput,  "grad_input",  Data,     Output, None,   Output) \
  OPERAND(GradScale,  "grad_scale",  Channels, Output, None,   None)   \
  OPERAND(GradOffset, "grad_offset", Channels, Output, None,   None)   \
  OPERAND(GradOutput, "grad_output", Data,     Input,  Input,  Input)  \
  OPERAND(Input,      "input",       Data,     Input,  Input,  Input)  \
  OPERAND(Scale,      "scale",       Channels, Input,  None,   Input)  \
  OPERAND(Mean,       "mean",        Channels, Input,  Input,  Input)  \
  OPERAND(Statistic,  "statistic",   Channels, Input,  None,   Input)  \
  OPERAND(Mask,       "mask",        Data,     Input,  Input,  Input)  \
  OPERAND(Sums,       "sums",        Sums,     Output, Output, Input)
// clang-format on

enum Operand {
#define OPERAND(operand, ...) operand,
  BNGRAD_OPERANDS(OPERAND)
#undef OPERAND
      kNumOperands
};

/// The number of gradients.
inline constexpr int kNumOutputs = 3;

struct OperandInfo {
  const char *name;
  OperandShape shape;
  OperandUse uses[3]; // by part
};

/// By operand.
inline constexpr OperandInfo kOperands[] = {
#define OPERAND(operand, name, shape, whole, reduce, elemt)                    \
  {name,                                                                       \
   OperandShape::shape,                                                        \
   {OperandUse::whole, OperandUse::reduce, OperandUse::elemt}},
    BNGRAD_OPERANDS(OPERAND)
#undef OPERAND
};

/// Such as "grad_input".
constexpr const char *getName(Operand operand) {
  return kOperands[operand].name;
}

constexpr bool isOutput(Part part, int operand) {
  return kOperands[operand].uses[static_cast<int>(part)] == OperandUse::Output;
}

constexpr bool isData(int operand) {
  return kOperands[operand].shape == OperandShape::Data;
}

/// Owns the descriptors of the tensors of a call; null if absent.
struct TensorDescriptors {
  TensorDescriptors() = default;
  TensorDescriptors(const TensorDescriptors &) = delete;
  TensorDescriptors &operator=(const TensorDescriptors &) = delete;
  ~TensorDescriptors() {
    for (bngradTensorDescriptor_t descriptor : of)
      bngradDestroyTensorDescriptor(descriptor);
  }

  bngradTensorDescriptor_t of[kNumOperands] = {};
};

/// Calls the function of the C library that makes the descriptor of `part`.
inline bngradStatus_t
createDescriptor(Part part, bngradHandle_t handle,
                 bngradBatchNormBackwardDescriptor_t *descriptor,
                 const bngradBatchNormBackwardOptions_t *options,
                 const TensorDescriptors &tensors) {
  const auto &of = tensors.of;
  switch (part) {
  case Part::Whole:
    return bngradCreateBatchNormBackwardDescriptor(
        handle, descriptor, options, of[GradInput], of[GradScale],
        of[GradOffset], of[GradOutput], of[Input], of[Scale], of[Mean],
        of[Statistic], of[Mask]);
  case Part::Reduce:
    return bngradCreateBatchNormBackwardReduceDescriptor(
        handle, descriptor, options, of[Sums], of[GradOutput], of[Input],
        of[Mean], of[Mask]);
  case Part::Elemt:
    return bngradCreateBatchNormBackwardElemtDescriptor(
        handle, descriptor, options, of[GradInput], of[GradOutput], of[Input],
        of[Scale], of[Mean], of[Statistic], of[Sums], of[Mask]);
  }
  return BNGRAD_INTERNAL_ERROR;
}

/// Calls the function of the C library that computes `part`. Only Elemt reads
/// `count`, the elements per channel.
inline bngradStatus_t compute(Part part,
                              bngradBatchNormBackwardDescriptor_t descriptor,
                              void *workspace, size_t workspaceSize,
                              void *const (&of)[kNumOperands],
                              const int64_t *count) {
  switch (part) {
  case Part::Whole:
    return bngradBatchNormBackward(descriptor, workspace, workspaceSize,
                                   of[GradInput], of[GradScale], of[GradOffset],
                                   of[GradOutput], of[Input], of[Scale],
                                   of[Mean], of[Statistic], of[Mask], nullptr);
  case Part::Reduce:
    return bngradBatchNormBackwardReduce(descriptor, workspace, workspaceSize,
                                         of[Sums], of[GradOutput], of[Input],
                                         of[Mean], of[Mask], nullptr);
  case Part::Elemt:
    return bngradBatchNormBackwardElemt(
        descriptor, workspace, workspaceSize, of[GradInput], of[GradOutput],
        of[Input], of[Scale], of[Mean], of[Statistic], of[Sums], count,
        of[Mask], nullptr);
  }
  return BNGRAD_INTERNAL_ERROR;
}

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_OPERANDS_H
