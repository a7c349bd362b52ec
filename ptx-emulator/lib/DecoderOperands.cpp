//===- DecoderOperands.cpp - operands of instructions -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "Chip.h"
#include "Lexer.h"
#include "Memory.h"

#include <algorithm>

namespace ptx {

const SyntaxOperand &Decoder::operand(unsigned i) const {
  static const SyntaxOperand &none = *new SyntaxOperand;
  return i < numOperands() ? instruction->operands[i] : none;
}

bool Decoder::expectOperands(unsigned count) {
  operandsUsed = count;
  return count == numOperands() ||
         unsupported("expected " + std::to_string(count) + " operands, got " +
                     std::to_string(numOperands()));
}

const Symbol *Decoder::lookup(const std::string &name) const {
  for (size_t i = scopes.size(); i-- > 0;) {
    auto found = scopes[i].symbols.find(name);
    if (found != scopes[i].symbols.end())
      return &found->second;
    if (scopes[i].isFunction)
      break;
  }
  return nullptr;
}

Column Decoder::newRegister(unsigned count) {
  Column column = program.numRegisters;
  program.numRegisters += count;
  return column;
}

Column Decoder::constant(uint64_t bits) {
  auto inserted = constantColumns.try_emplace(bits, 0);
  if (inserted.second) {
    inserted.first->second = ~Column(program.constants.size() / 32);
    program.constants.insert(program.constants.end(), 32, bits);
  }
  return inserted.first->second;
}

/// The offsets of the reserved shared memory, from sm_80 on. It has one part.
bool Decoder::reservedOffset(const std::string &name, Column &column) {
  static const auto &offsets =
      *new std::unordered_map<std::string_view, uint32_t>{
          {"%reserved_smem_offset_begin", kSharedBase - kReservedBytes},
          {"%reserved_smem_offset_end", kSharedBase},
          {"%reserved_smem_offset_cap", kReservedBytes},
          {"%reserved_smem_offset_0", kSharedBase - kReservedBytes},
          {"%reserved_smem_offset_1", kSharedBase - kReservedBytes},
      };
  auto found = offsets.find(name);
  if (found == offsets.end() || chipNumber(module.target) < 80)
    return false;
  program.reservedSharedBytes = kReservedBytes;
  column = constant(found->second);
  return true;
}

bool Decoder::special(const std::string &name, Column &column) {
  static const auto &specials =
      *new std::unordered_map<std::string_view, Special>{
          {"%tid.x", Special::TidX},
          {"%tid.y", Special::TidY},
          {"%tid.z", Special::TidZ},
          {"%ntid.x", Special::NtidX},
          {"%ntid.y", Special::NtidY},
          {"%ntid.z", Special::NtidZ},
          {"%ctaid.x", Special::CtaidX},
          {"%ctaid.y", Special::CtaidY},
          {"%ctaid.z", Special::CtaidZ},
          {"%nctaid.x", Special::NctaidX},
          {"%nctaid.y", Special::NctaidY},
          {"%nctaid.z", Special::NctaidZ},
          {"%laneid", Special::LaneId},
          {"%warpid", Special::WarpId},
          {"%nwarpid", Special::NwarpId},
          {"%smid", Special::SmId},
          {"%nsmid", Special::NsmId},
          {"%gridid", Special::GridId},
          {"%clusterid.x", Special::ClusterIdX},
          {"%clusterid.y", Special::ClusterIdY},
          {"%clusterid.z", Special::ClusterIdZ},
          {"%nclusterid.x", Special::NclusterIdX},
          {"%nclusterid.y", Special::NclusterIdY},
          {"%nclusterid.z", Special::NclusterIdZ},
          {"%cluster_ctaid.x", Special::ClusterCtaidX},
          {"%cluster_ctaid.y", Special::ClusterCtaidY},
          {"%cluster_ctaid.z", Special::ClusterCtaidZ},
          {"%cluster_nctaid.x", Special::ClusterNctaidX},
          {"%cluster_nctaid.y", Special::ClusterNctaidY},
          {"%cluster_nctaid.z", Special::ClusterNctaidZ},
          {"%cluster_ctarank", Special::ClusterCtaRank},
          {"%cluster_nctarank", Special::ClusterNctaRank},
          {"%is_explicit_cluster", Special::IsExplicitCluster},
          {"%lanemask_eq", Special::LanemaskEq},
          {"%lanemask_le", Special::LanemaskLe},
          {"%lanemask_lt", Special::LanemaskLt},
          {"%lanemask_ge", Special::LanemaskGe},
          {"%lanemask_gt", Special::LanemaskGt},
          {"%dynamic_smem_size", Special::DynamicSmemSize},
          {"%total_smem_size", Special::TotalSmemSize},
          {"%aggr_smem_size", Special::AggrSmemSize},
          // The driver has the address of a workspace of the grid here.
          {"%envreg1", Special::GridWorkspaceHigh},
          {"%envreg2", Special::GridWorkspaceLow},
          {"WARP_SZ", Special::WarpSize},
      };
  auto found = specials.find(name);
  if (found == specials.end())
    return reservedOffset(name, column);
  program.usesGridWorkspace |= found->second == Special::GridWorkspaceLow;
  auto inserted = specialColumns.try_emplace(uint8_t(found->second), 0);
  if (inserted.second) {
    inserted.first->second = newRegister();
    program.specials.push_back({inserted.first->second, found->second});
  }
  column = inserted.first->second;
  return true;
}

bool Decoder::symbolAddress(const Symbol &symbol, int64_t offset,
                            Column &column) {
  if (!symbol.dynamicShared) {
    column = constant(symbol.address + offset);
    return true;
  }
  column = ~Column(program.constants.size() / 32);
  program.constants.insert(program.constants.end(), 32, 0);
  dynamicAddresses.push_back({column, offset});
  return true;
}

/// The bits of a literal of type `type`.
static uint64_t literalBits(const SyntaxOperand &operand, Type type) {
  bool isReal = operand.kind == SyntaxOperand::Float;
  double real = isReal ? operand.real : double(operand.integer);
  switch (type) {
  case Type::F64:
    return toBits(real);
  case Type::F32:
    return toBits(float(real));
  case Type::F16:
    return narrow(real, kHalf, Round::NearestEven);
  case Type::BF16:
    return narrow(real, kBFloat, Round::NearestEven);
  default:
    break;
  }
  unsigned bytes = byteWidth(type);
  if (isReal)
    return bytes == 8 ? toBits(real) : toBits(float(real));
  return bytes >= 8 ? operand.integer
                    : operand.integer & ((int64_t(1) << bytes * 8) - 1);
}

bool Decoder::columnOf(const SyntaxOperand &operand, Type type,
                       Column &column) {
  switch (operand.kind) {
  case SyntaxOperand::Integer:
  case SyntaxOperand::Float:
    column = constant(literalBits(operand, type));
    return true;
  case SyntaxOperand::Name:
    break;
  default:
    return unsupported("an operand of this form");
  }
  if (special(operand.name, column))
    return true;
  const Symbol *symbol = lookup(operand.name);
  if (symbol && symbol->kind == Symbol::Register) {
    column = symbol->index;
    return true;
  }
  if (symbol && symbol->kind == Symbol::Memory)
    return symbolAddress(*symbol, operand.integer, column);
  auto shared = moduleShared.find(operand.name);
  if (shared != moduleShared.end())
    return symbolAddress(shared->second, operand.integer, column);
  auto global = globals.find(operand.name);
  if (global != globals.end()) {
    column = constant(global->second + operand.integer);
    return true;
  }
  for (const Variable &variable : module.variables)
    if (variable.name == operand.name && variable.space == Space::Shared)
      return symbolAddress(moduleShared[operand.name] = allocate(variable),
                           operand.integer, column);
  return unsupported(quote(operand.name) + " is not known here");
}

bool Decoder::source(Inst &inst, const SyntaxOperand &operand, Type type) {
  Column column;
  if (!columnOf(operand, type, column))
    return false;
  if (inst.source.full())
    return unsupported("too many operands");
  inst.source.add(column);
  return true;
}

bool Decoder::source(Inst &inst, unsigned i, Type type) {
  operandsUsed = std::max(operandsUsed, i + 1);
  if (i >= numOperands())
    return expectOperands(i + 1);
  return source(inst, operand(i), type);
}

bool Decoder::dest(Inst &inst, const SyntaxOperand &operand, Type type) {
  (void)type;
  if (inst.dest.full())
    return unsupported("too many operands");
  if (operand.kind == SyntaxOperand::Sink) {
    inst.dest.add(newRegister());
    return true;
  }
  const Symbol *symbol =
      operand.kind == SyntaxOperand::Name ? lookup(operand.name) : nullptr;
  if (!symbol || symbol->kind != Symbol::Register)
    return unsupported("expected a register as destination");
  inst.dest.add(symbol->index);
  return true;
}

bool Decoder::dest(Inst &inst, unsigned i, Type type) {
  operandsUsed = std::max(operandsUsed, i + 1);
  if (i >= numOperands())
    return expectOperands(i + 1);
  return dest(inst, operand(i), type);
}

bool Decoder::predSource(Inst &inst, unsigned i) {
  operandsUsed = std::max(operandsUsed, i + 1);
  const SyntaxOperand &op = operand(i);
  if (inst.predSource.full())
    return unsupported("too many predicates");
  inst.predNegated[inst.predSource.count] = op.negated;
  if (op.kind == SyntaxOperand::Integer) {
    inst.predSource.add(op.integer ? 1 : 0);
    return true;
  }
  const Symbol *symbol =
      op.kind == SyntaxOperand::Name ? lookup(op.name) : nullptr;
  if (!symbol || symbol->kind != Symbol::Predicate)
    return unsupported("expected a predicate");
  inst.predSource.add(symbol->index);
  return true;
}

bool Decoder::predDest(Inst &inst, std::string_view name) {
  if (name == "_") {
    inst.predDest.add(program.numPredicates++);
    return true;
  }
  const Symbol *symbol = lookup(std::string(name));
  if (!symbol || symbol->kind != Symbol::Predicate)
    return unsupported("expected a predicate");
  inst.predDest.add(symbol->index);
  return true;
}

bool Decoder::predDest(Inst &inst, unsigned i) {
  operandsUsed = std::max(operandsUsed, i + 1);
  const SyntaxOperand &op = operand(i);
  if (op.kind == SyntaxOperand::Sink)
    return predDest(inst, "_");
  return predDest(inst, op.name);
}

bool Decoder::isPredicate(unsigned i) {
  const SyntaxOperand &op = operand(i);
  const Symbol *symbol =
      op.kind == SyntaxOperand::Name ? lookup(op.name) : nullptr;
  return symbol && symbol->kind == Symbol::Predicate;
}

bool Decoder::address(Inst &inst, unsigned i, Space *symbolSpace) {
  operandsUsed = std::max(operandsUsed, i + 1);
  const SyntaxOperand &op = operand(i);
  if (op.kind != SyntaxOperand::Address)
    return unsupported("expected an address as operand " + std::to_string(i));
  if (!op.elements.empty())
    return unsupported("addresses of tensors");
  SyntaxOperand base;
  if (op.name.empty()) {
    base.kind = SyntaxOperand::Integer;
    base.integer = op.integer;
    return source(inst, base, Type::U64);
  }
  base.kind = SyntaxOperand::Name;
  base.name = op.name;
  const Symbol *symbol = lookup(op.name);
  if (symbol && symbol->kind == Symbol::Register) {
    inst.offset = op.integer;
  } else {
    base.integer = op.integer;
    if (symbol && symbolSpace)
      *symbolSpace = symbol->space;
  }
  return source(inst, base, Type::U64);
}

std::vector<SyntaxOperand> Decoder::elements(unsigned i) const {
  const SyntaxOperand &op = operand(i);
  if (op.kind == SyntaxOperand::Vector)
    return op.elements;
  return {op};
}

unsigned Decoder::registerBytes(const SyntaxOperand &operand,
                                unsigned otherwise) {
  const Symbol *symbol =
      operand.kind == SyntaxOperand::Name ? lookup(operand.name) : nullptr;
  return symbol && symbol->kind == Symbol::Register ? byteWidth(symbol->type)
                                                    : otherwise;
}

} // namespace ptx
