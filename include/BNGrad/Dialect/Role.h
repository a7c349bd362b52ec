//===- Role.h - operands and results of the ops -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes the operands and results of the ops for the compiler and for the C
// library, without MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_ROLE_H
#define BNGRAD_DIALECT_ROLE_H

#include <cstdint>
#include <string_view>

namespace mlir::bngrad {

/// The meaning of an operand or result, by its ODS name.
enum class Role : uint32_t {
#define BNGRAD_ROLE(role, ...) role,
#include "BNGrad/Dialect/Roles.def"
};

enum class RoleShape {
  Data,    ///< the shape of input
  Channel, ///< the sizes of input at the feature dims
  Sums,    ///< 2, then the sizes of Channel
  Scalar   ///< rank 0
};

/// The rule for the element type of an operand. For a result it is the default:
/// unless the type is Arithmetic, a float result may have any float type.
enum class RoleType {
  Float,      ///< any float type
  AsInput,    ///< the type of input
  AsMean,     ///< the type of mean; without an operand mean, the type of the
              ///< first such operand, and for a result the accumulator type
  Arithmetic, ///< the widest float type of the operands, at least f32
  Bool,       ///< i1
  Integer     ///< i64
};

struct RoleInfo {
  const char *name;
  RoleShape shape;
  RoleType type;
  /// Whether the reference in long double bounds the effect of errors of such
  /// an operand on the results.
  bool takesErrors;
};

/// In the order of Role.
inline constexpr RoleInfo kRoles[] = {
#define BNGRAD_ROLE(role, name, shape, type, takesErrors)                      \
  {name, RoleShape::shape, RoleType::type, takesErrors},
#include "BNGrad/Dialect/Roles.def"
};

inline constexpr uint32_t kNumRoles = sizeof(kRoles) / sizeof(kRoles[0]);

constexpr const RoleInfo &getInfo(Role role) {
  return kRoles[static_cast<uint32_t>(role)];
}

/// The role with an ODS name.
constexpr Role getRole(std::string_view name) {
  uint32_t role = 0;
  // In a constant expression, an unknown name is an error.
  while (kRoles[role].name != name)
    ++role;
  return static_cast<Role>(role);
}

/// The ops that the C library computes.
enum class OpKind {
#define BNGRAD_OP(op, ...) op,
#include "BNGrad/Dialect/Roles.def"
};

struct OpInfo {
  const char *name; ///< its mnemonic, which diagnostics use as well
  const char *part; ///< its name in the C library's descriptions
  OpKind base;      ///< the op of the dialect; of another kind, it has a ReLU
};

/// In the order of OpKind.
inline constexpr OpInfo kOps[] = {
#define BNGRAD_OP(op, name, part) {name, part, OpKind::op},
#define BNGRAD_RELU_OP(op, base, name, part) {name, part, OpKind::base},
#include "BNGrad/Dialect/Roles.def"
};

constexpr const OpInfo &getInfo(OpKind op) {
  return kOps[static_cast<int>(op)];
}

/// How an op of the C library uses an operand.
enum class OperandUse : char {
  None,
  Required,
  Optional,
  Result,
  WantedResult, ///< null if it is not wanted
  Updated,      ///< null, or read and replaced by a new value
  StepResult,   ///< passes between the steps of a call; no function has it
  OpResult,     ///< a result of the dialect's op that no function has
  SideResult    ///< null if it is not wanted; never the only result
};

/// An operand or result of an op.
struct OpOperandInfo {
  OpKind op;
  Role role;
  OperandUse use;
};

/// By op, in the order of the functions in C.
inline constexpr OpOperandInfo kOpOperands[] = {
#define BNGRAD_OPERAND(op, role, use) {OpKind::op, Role::role, OperandUse::use},
#include "BNGrad/Dialect/Roles.def"
};

namespace detail {
struct OperandUses {
  OperandUse of[sizeof(kOps) / sizeof(kOps[0])][kNumRoles] = {};

  constexpr OperandUses() {
    for (const OpOperandInfo &info : kOpOperands)
      of[static_cast<int>(info.op)][static_cast<uint32_t>(info.role)] =
          info.use;
  }
};
inline constexpr OperandUses kOperandUses;
} // namespace detail

constexpr OperandUse getUse(OpKind op, Role role) {
  return detail::kOperandUses
      .of[static_cast<int>(op)][static_cast<uint32_t>(role)];
}

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_ROLE_H
