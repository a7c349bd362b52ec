//===- Module.h - parsed PTX ------------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The syntax of a module, before the decoder interprets instructions
// (Decoder.h).
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_MODULE_H
#define PTX_EMULATOR_LIB_MODULE_H

#include "Types.h"

#include <map>
#include <string>
#include <vector>

namespace ptx {

enum class Space : uint8_t {
  Register,
  Generic,
  Global,
  Constant,
  Shared,        // of the own block
  SharedCluster, // of any block of the cluster
  Local,
  Param
};

struct SyntaxOperand {
  enum Kind {
    Name,    // register, symbol, label; with an offset as in `sym+4`
    Integer, // literal
    Float,   // literal
    Vector,  // {a, b}
    List,    // (a, b), of a call
    Address, // [base+offset]; further components in `elements`
    Sink     // _
  };
  Kind kind = Sink;
  std::string name;
  bool negated = false;
  /// The q of `p|q`.
  std::string second;
  int64_t integer = 0; // Integer, and the offset of Name and Address
  double real = 0;     // Float
  std::vector<SyntaxOperand> elements;
};

struct Instruction {
  std::string guard; // empty: none
  bool guardNegated = false;
  /// The name split at its dots: {"ld", "global", "v4", "f32"}.
  std::vector<std::string> name;
  std::vector<SyntaxOperand> operands;

  std::string fullName() const;
};

/// A value in the initialiser of a module-scope variable.
struct Initializer {
  std::string symbol; // empty: `bits`
  bool generic = false;
  uint64_t bits = 0; // a literal, or the offset from `symbol`
};

/// Largest number of registers of a kernel: more than compilers use, and few
/// enough that the registers of a block fit into memory.
inline constexpr uint32_t kMaxRegisters = 1 << 18;
/// Largest number of elements of an array: more than any memory has.
inline constexpr uint64_t kMaxElements = uint64_t(1) << 40;
/// Largest alignment of a variable, in bytes: more than any access needs.
inline constexpr uint64_t kMaxAlign = uint64_t(1) << 20;

struct Variable {
  std::string name;
  Space space = Space::Register;
  Type type = Type::None;
  uint32_t vector = 1;
  uint64_t align = 0;
  /// `%r<5>` declares 5 names; 0 for a plain name.
  uint32_t range = 0;
  bool isArray = false;
  bool isExtern = false;
  uint64_t elements = 1; // 0: an array without a size
  std::vector<Initializer> initializers;
  unsigned line = 0;

  uint64_t elementBytes() const { return uint64_t(byteWidth(type)) * vector; }
  uint64_t bytes() const { return elementBytes() * elements; }
  uint64_t alignment() const { return align ? align : elementBytes(); }
};

struct Statement {
  enum Kind { Label, Code, Declaration, ScopeBegin, ScopeEnd, BranchTargets };
  Kind kind = Code;
  unsigned line = 0;
  std::string label;
  Instruction code;
  Variable variable;
  std::vector<std::string> targets;
};

struct Function {
  std::string name;
  bool isEntry = false;
  bool hasBody = false;
  unsigned line = 0;
  std::vector<Variable> results, params;
  std::vector<Statement> body;
  // Directives; 0 if absent.
  uint64_t maxThreads = 0;
  uint64_t maxThreadDims[3] = {0, 0, 0};
  uint64_t requiredThreads[3] = {0, 0, 0};
  uint64_t requiredCluster[3] = {0, 0, 0};
  bool explicitCluster = false;
  uint64_t maxClusterRank = 0;
};

struct Module {
  /// The version of PTX, such as 8.1; 0 if the text has none.
  double version = 0;
  std::string target;
  std::vector<Variable> variables;
  std::map<std::string, Function> functions;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_MODULE_H
