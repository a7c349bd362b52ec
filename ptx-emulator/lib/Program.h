//===- Program.h - a kernel ready to run ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_PROGRAM_H
#define PTX_EMULATOR_LIB_PROGRAM_H

#include "Module.h"
#include "Order.h"
#include "Rounding.h"

#include <array>
#include <memory>
#include <set>

namespace ptx {

class Warp;
struct Inst;

/// Executes `inst` for the lanes in `mask`.
using Handler = void (*)(Warp &warp, const Inst &inst, uint32_t mask);

/// 32 values: a register of a warp (from 0), or the constant ~column.
using Column = int32_t;

/// A list of at most N numbers.
template <typename T, unsigned N> struct Few {
  std::array<T, N> items{};
  uint8_t count = 0;

  void add(T value) { items[count++] = value; }
  bool full() const { return count == N; }
  T operator[](unsigned i) const { return items[i]; }
  const T *begin() const { return items.data(); }
  const T *end() const { return items.data() + count; }
};

/// Treatment of uninitialised registers.
enum class UndefinedRule : uint8_t {
  Report,  // any undefined source is an error
  Whole,   // the results are undefined if a source is
  Parts,   // a part of the result is undefined if that of a source is
  Bitwise, // a byte of the result is defined if no undefined byte decides it
  Handler  // the handler propagates or checks undefined bytes
};

/// A decoded instruction. The handler and its decode function define the exact
/// meaning of a field.
struct Inst {
  Handler handler = nullptr;
  uint32_t line = 0;
  int32_t guard = -1; // predicate, or -1
  bool guardNegated = false;
  UndefinedRule undefinedRule = UndefinedRule::Report;
  uint8_t readBytes = 0xFF; // a bit for each byte of a source that is read
  uint8_t partBytes = 0;    // of UndefinedRule::Parts
  uint8_t table = 0;        // of UndefinedRule::Bitwise, as that of lop3
  Few<Column, 8> dest;
  Few<Column, 10> source;
  Few<int32_t, 2> predDest;
  Few<int32_t, 2> predSource;
  bool predNegated[2] = {false, false};

  Type type = Type::None;
  Type sourceType = Type::None;
  Space space = Space::Generic;
  Space otherSpace = Space::Generic;
  Round round = Round::NearestEven;
  bool flushSubnormals = false;
  bool saturate = false;
  bool relu = false;
  bool signExtend = false;
  bool strong = false; // volatile, relaxed or stronger
  Scope scope = Scope::None;
  bool acquire = false;
  bool release = false;
  bool aligned = false;
  uint8_t bytes = 0;     // of an element in memory
  uint8_t destBytes = 0; // of a destination register
  uint16_t mode = 0;
  uint16_t mode2 = 0;
  int64_t offset = 0;            // added to an address
  uint32_t target = 0;           // of a branch
  std::vector<uint32_t> targets; // of a table branch
};

/// Special registers.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NclusterIdX,
  NclusterIdY,
  NclusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtaRank,
  ClusterNctaRank,
  IsExplicitCluster,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  DynamicSmemSize,
  TotalSmemSize,
  AggrSmemSize,
  GridWorkspaceHigh,
  GridWorkspaceLow,
  WarpSize
};

struct Program {
  std::string name;
  const Function *function = nullptr;
  std::vector<Inst> code;
  uint32_t numRegisters = 0;
  uint32_t numPredicates = 0;
  std::vector<uint64_t> constants; // 32 equal values each
  struct SpecialColumn {
    Column column;
    Special special;
  };
  std::vector<SpecialColumn> specials;
  struct Param {
    uint32_t offset;
    uint32_t bytes;
  };
  std::vector<Param> params;
  uint64_t paramBytes = 0;
  uint32_t mostParamBytes = 4096; // larger from PTX 8.1 on
  uint64_t staticSharedBytes = 0;
  uint32_t dynamicSharedOffset = 0;
  uint32_t reservedSharedBytes = 0; // before the static ones
  bool usesGridWorkspace = false;
  uint64_t localBytes = 0;
  /// Lines that a warning was printed for.
  mutable std::set<uint32_t> warnedLines;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_PROGRAM_H
