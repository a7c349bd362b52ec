//===- Operands.h - operands of the C library's functions -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of the C library's functions, for the library and for its clients
// in this repository: they pass arrays with an element for each role.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_OPERANDS_H
#define BNGRAD_LIB_RUNTIME_OPERANDS_H

#include "BNGrad/Dialect/Role.h"
#include "BNGrad/Runtime/Runtime.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

namespace bngrad {

using mlir::bngrad::OperandUse;
using mlir::bngrad::OpKind;
using mlir::bngrad::RoleShape;
using mlir::bngrad::RoleType;

/// The roles as indices of arrays.
enum Operand {
#define BNGRAD_ROLE(role, ...) role,
#include "BNGrad/Dialect/Roles.def"
  kNumOperands
};

/// The number of gradients, which are the first operands of the table.
inline constexpr int kNumOutputs = GradOffset + 1;

/// The order of a kernel's parameters: the roles of results come last.
constexpr Operand getParameter(int index) {
  return static_cast<Operand>((index + GradOutput) % kNumOperands);
}

constexpr const mlir::bngrad::RoleInfo &getInfo(int operand) {
  return mlir::bngrad::kRoles[operand];
}

/// Returns a name such as "grad_input".
constexpr const char *getName(Operand operand) { return getInfo(operand).name; }

/// Returns a name such as "batch_norm_backward".
constexpr const char *getName(OpKind op) {
  return mlir::bngrad::getInfo(op).name;
}

/// The op of the dialect that `op` computes, alone or with a ReLU.
constexpr OpKind getBase(OpKind op) { return mlir::bngrad::getInfo(op).base; }

constexpr bool hasRelu(OpKind op) { return getBase(op) != op; }

constexpr OperandUse getUse(OpKind op, int operand) {
  return mlir::bngrad::getUse(op, static_cast<mlir::bngrad::Role>(operand));
}

constexpr bool isInput(OpKind op, int operand) {
  OperandUse use = getUse(op, operand);
  return use == OperandUse::Required || use == OperandUse::Optional;
}

/// Whether the function in C has an operand as a result.
constexpr bool isResult(OpKind op, int operand) {
  OperandUse use = getUse(op, operand);
  return use == OperandUse::Result || use == OperandUse::WantedResult ||
         use == OperandUse::SideResult;
}

/// Whether the function in C writes to an operand.
constexpr bool isWritten(OpKind op, int operand) {
  return isResult(op, operand) || getUse(op, operand) == OperandUse::Updated;
}

/// Whether the C library may write to an operand.
constexpr bool isOutput(OpKind op, int operand) {
  return isWritten(op, operand) ||
         getUse(op, operand) == OperandUse::StepResult;
}

/// Calls `function(operand)` for each operand that the function in C of an op
/// writes to, last one first: gradients and statistics of few elements come
/// before data.
template <typename Function> void forEachWritten(OpKind op, Function function) {
  for (auto i = std::size(mlir::bngrad::kOpOperands); i-- > 0;) {
    const mlir::bngrad::OpOperandInfo &info = mlir::bngrad::kOpOperands[i];
    auto operand = static_cast<Operand>(info.role);
    if (info.op == op && isWritten(op, operand))
      function(operand);
  }
}

constexpr bool isForward(OpKind op) {
  return getBase(op) == OpKind::Training || op == OpKind::Inference;
}

constexpr bool isData(int operand) {
  return getInfo(operand).shape == RoleShape::Data;
}

constexpr bool isScalar(int operand) {
  return getInfo(operand).shape == RoleShape::Scalar;
}

/// The operand that determines the type of an operand, or the default type of a
/// result; the operand itself if there is none.
constexpr int getTypeOf(int operand) {
  RoleType type = getInfo(operand).type;
  return type == RoleType::AsInput  ? Input
         : type == RoleType::AsMean ? Mean
                                    : operand;
}

/// Lists the results one of which must be wanted, such as "'a', 'b' or 'c'" if
/// `quote` is "'".
inline std::string listWanted(OpKind op, const char *quote) {
  std::string text;
  int rest = 0;
  auto isWanted = [&](const mlir::bngrad::OpOperandInfo &info) {
    return info.op == op && info.use == OperandUse::WantedResult;
  };
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    rest += isWanted(info);
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    if (isWanted(info)) {
      const char *name = mlir::bngrad::getInfo(info.role).name;
      text.append(quote).append(name).append(quote);
      text += --rest > 1 ? ", " : rest == 1 ? " or " : "";
    }
  return text;
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

namespace detail {
/// Whether an operand is an argument of the function that makes the descriptor
/// of an op, or of the function that computes it.
constexpr bool isArgument(const mlir::bngrad::OpOperandInfo &info, OpKind op,
                          bool ofCall) {
  return info.op == op && info.use != OperandUse::StepResult &&
         info.use != OperandUse::OpResult &&
         (ofCall || !isScalar(static_cast<int>(info.role)));
}

constexpr size_t countArguments(OpKind op, bool ofCall) {
  size_t count = 0;
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    count += isArgument(info, op, ofCall);
  return count;
}

/// The number of arguments of the op that has the most.
constexpr size_t countMostArguments(bool ofCall) {
  size_t most = 0;
#define BNGRAD_OP(op, ...)                                                     \
  most = std::max(most, countArguments(OpKind::op, ofCall));
#include "BNGrad/Dialect/Roles.def"
  return most;
}

/// The operands that are arguments, in their order.
template <OpKind op, bool ofCall> constexpr auto listArguments() {
  std::array<int, countArguments(op, ofCall)> operands{};
  size_t next = 0;
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    if (isArgument(info, op, ofCall))
      operands[next++] = static_cast<int>(info.role);
  return operands;
}

/// Calls `function` with the elements of `values` that are its arguments.
template <OpKind op, bool ofCall, typename Function, typename Values,
          size_t... i>
bngradStatus_t apply(const Function &function, const Values &values,
                     std::index_sequence<i...>) {
  constexpr auto kArguments = listArguments<op, ofCall>();
  return function(values[kArguments[i]]...);
}

template <OpKind op, bool ofCall, typename Function, typename Values>
bngradStatus_t apply(const Function &function, const Values &values) {
  return apply<op, ofCall>(
      function, values, std::make_index_sequence<countArguments(op, ofCall)>());
}

/// A pointer that becomes the type of a parameter.
struct AnyPointer {
  void *pointer;
  template <typename T> operator T *() const {
    return static_cast<T *>(pointer);
  }
};
} // namespace detail

/// Calls the function of the C library that makes the descriptor of `op`, which
/// has these types.
template <typename Descriptor, typename Options>
bngradStatus_t createDescriptor(OpKind op, bngradHandle_t handle,
                                Descriptor *descriptor, const Options *options,
                                const TensorDescriptors &tensors) {
  switch (op) {
#define BNGRAD_OP(op, ...)                                                     \
  case OpKind::op:                                                             \
    return detail::apply<OpKind::op, false>(                                   \
        [&](auto... of) -> bngradStatus_t {                                    \
          if constexpr (std::is_invocable_v<                                   \
                            decltype(bngradCreateBatchNorm##op##Descriptor) &, \
                            bngradHandle_t, Descriptor *, const Options *,     \
                            decltype(of)...>)                                  \
            return bngradCreateBatchNorm##op##Descriptor(handle, descriptor,   \
                                                         options, of...);      \
          else                                                                 \
            return BNGRAD_INTERNAL_ERROR;                                      \
        },                                                                     \
        tensors.of);
#include "BNGrad/Dialect/Roles.def"
  }
  return BNGRAD_INTERNAL_ERROR;
}

/// Calls the function of the C library that computes `op`, whose descriptor has
/// this type; `data` also has the addresses of scalars. `stream` is for a GPU.
template <typename Descriptor>
bngradStatus_t compute(OpKind op, Descriptor descriptor, void *workspace,
                       size_t workspaceSize, void *const (&data)[kNumOperands],
                       void *stream = nullptr) {
  detail::AnyPointer pointers[kNumOperands];
  for (int i = 0; i < kNumOperands; ++i)
    pointers[i] = {data[i]};
  switch (op) {
#define BNGRAD_OP(op, ...)                                                     \
  case OpKind::op:                                                             \
    return detail::apply<OpKind::op, true>(                                    \
        [&](auto... of) -> bngradStatus_t {                                    \
          if constexpr (std::is_invocable_v<decltype(bngradBatchNorm##op) &,   \
                                            Descriptor, void *, size_t,        \
                                            decltype(of)..., void *>)          \
            return bngradBatchNorm##op(descriptor, workspace, workspaceSize,   \
                                       of..., stream);                         \
          else                                                                 \
            return BNGRAD_INTERNAL_ERROR;                                      \
        },                                                                     \
        pointers);
#include "BNGrad/Dialect/Roles.def"
  }
  return BNGRAD_INTERNAL_ERROR;
}

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_OPERANDS_H
