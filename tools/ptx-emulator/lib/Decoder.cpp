//===- Decoder.cpp - parsed instructions to a Program -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "Memory.h"

#include <algorithm>
#include <optional>

namespace bngrad::ptx {

const DecodeTable &decodeTable() {
  static const DecodeTable table = [] {
    DecodeTable result;
    addMoveInstructions(result);
    addIntegerInstructions(result);
    addBitInstructions(result);
    addFloatInstructions(result);
    addCompareInstructions(result);
    addConvertInstructions(result);
    addMemoryInstructions(result);
    addAtomicInstructions(result);
    addCollectiveInstructions(result);
    addBarrierInstructions(result);
    addMbarrierInstructions(result);
    addAsyncCopyInstructions(result);
    addControlInstructions(result);
    return result;
  }();
  return table;
}

Decoder::Decoder(const Module &module,
                 const std::unordered_map<std::string, uint64_t> &globals,
                 Program &program)
    : module(module), globals(globals), program(program) {}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

bool Decoder::fail(const std::string &kind, const std::string &message) {
  if (error.empty()) {
    errorKind = kind;
    error = "PTX line " + std::to_string(line) + ": " + message;
  }
  return false;
}

bool Decoder::unknown() {
  std::string where =
      peek().empty() ? "" : " at '." + std::string(peek()) + "'";
  return fail("unknown-instruction",
              "'" + instruction->fullName() + "'" + where);
}

bool Decoder::unsupported(const std::string &reason) {
  return fail("unsupported", "'" + instruction->fullName() + "': " + reason);
}

//===----------------------------------------------------------------------===//
// Modifiers
//===----------------------------------------------------------------------===//

std::string_view Decoder::peek() const {
  return nextModifier < instruction->name.size()
             ? std::string_view(instruction->name[nextModifier])
             : std::string_view();
}

bool Decoder::take(std::string_view modifier) {
  if (peek() != modifier)
    return false;
  ++nextModifier;
  return true;
}

int Decoder::takeOneOf(std::initializer_list<std::string_view> modifiers) {
  int index = 0;
  for (std::string_view modifier : modifiers) {
    if (take(modifier))
      return index;
    ++index;
  }
  return -1;
}

Type Decoder::takeType() {
  Type type = parseType(peek());
  nextModifier += type != Type::None;
  return type;
}

bool Decoder::takePrefix(std::string_view prefix) {
  if (peek().substr(0, prefix.size()) != prefix)
    return false;
  ++nextModifier;
  return true;
}

static bool roundFromIndex(int index, Round &round) {
  static constexpr Round kRounds[] = {Round::NearestEven, Round::Zero,
                                      Round::Down, Round::Up,
                                      Round::NearestAway};
  if (index >= 0)
    round = kRounds[index];
  return index >= 0;
}

bool Decoder::takeRound(Round &round) {
  return roundFromIndex(takeOneOf({"rn", "rz", "rm", "rp", "rna"}), round);
}

bool Decoder::takeIntegerRound(Round &round) {
  return roundFromIndex(takeOneOf({"rni", "rzi", "rmi", "rpi"}), round);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

const SyntaxOperand &Decoder::operand(unsigned i) const {
  static const SyntaxOperand none;
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

bool Decoder::special(const std::string &name, Column &column) {
  static const std::unordered_map<std::string_view, Special> kSpecials = {
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
      {"WARP_SZ", Special::WarpSize},
  };
  auto found = kSpecials.find(name);
  if (found == kSpecials.end())
    return false;
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
  return unsupported("'" + operand.name + "' is not known here");
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

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

static uint64_t alignTo(uint64_t value, uint64_t align) {
  return align ? (value + align - 1) / align * align : value;
}

/// Gives a variable of a function (or one in shared memory) its place.
Symbol Decoder::allocate(const Variable &variable) {
  Symbol symbol;
  symbol.kind = Symbol::Memory;
  symbol.type = variable.type;
  symbol.space = variable.space;
  if (variable.space == Space::Shared) {
    if (variable.elements == 0) {
      symbol.dynamicShared = true;
      dynamicAlign = std::max(dynamicAlign, variable.alignment());
      return symbol;
    }
    uint64_t offset = alignTo(program.staticSharedBytes, variable.alignment());
    symbol.address = kSharedBase + offset;
    program.staticSharedBytes = offset + variable.bytes();
    return symbol;
  }
  // Parameters of calls live in local memory, too.
  symbol.space = Space::Local;
  symbol.address = alignTo(program.localBytes, variable.alignment());
  program.localBytes = symbol.address + variable.bytes();
  return symbol;
}

void Decoder::declareRegister(const std::string &name, Type type) {
  Symbol symbol;
  symbol.type = type;
  if (type == Type::Pred) {
    symbol.kind = Symbol::Predicate;
    symbol.index = program.numPredicates++;
  } else {
    symbol.kind = Symbol::Register;
    symbol.index = newRegister(type == Type::B128 ? 2 : 1);
  }
  scopes.back().symbols[name] = symbol;
}

bool Decoder::declare(const Variable &variable, Space registerSpace) {
  line = variable.line;
  if (variable.space != registerSpace) {
    if (variable.space == Space::Global || variable.space == Space::Constant)
      return fail("unsupported", "a global variable in a function");
    scopes.back().symbols[variable.name] = allocate(variable);
    return true;
  }
  if (variable.vector != 1)
    return fail("unsupported", "vector registers");
  if (variable.range == 0)
    declareRegister(variable.name, variable.type);
  for (uint32_t i = 0; i < variable.range; ++i)
    declareRegister(variable.name + std::to_string(i), variable.type);
  return true;
}

void Decoder::declareKernelParams(const Function &kernel) {
  for (const Variable &param : kernel.params) {
    Symbol symbol;
    symbol.kind = Symbol::Memory;
    symbol.space = Space::Param;
    symbol.type = param.type;
    symbol.address = alignTo(program.paramBytes, param.alignment());
    program.params.push_back(
        {uint32_t(symbol.address), uint32_t(param.bytes())});
    program.paramBytes = symbol.address + param.bytes();
    scopes.back().symbols[param.name] = symbol;
  }
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

bool Decoder::closeScope() {
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  for (Fixup &fixup : scope.fixups) {
    auto found = scope.labels.find(fixup.label);
    if (found == scope.labels.end()) {
      if (scope.isFunction)
        return fail("unsupported", "the label '" + fixup.label +
                                       "' is not known in its function");
      scopes.back().fixups.push_back(std::move(fixup));
      continue;
    }
    Inst &inst = program.code[fixup.inst];
    if (fixup.entry < 0)
      inst.target = found->second;
    else
      inst.targets[fixup.entry] = found->second;
  }
  return true;
}

bool Decoder::decodeBranch(Inst inst) {
  while (take("uni")) {
  }
  if (!peek().empty())
    return unknown();
  if (!expectOperands(1))
    return false;
  inst.handler = executeBranch;
  scopes.back().fixups.push_back({program.code.size(), -1, operand(0).name});
  program.code.push_back(std::move(inst));
  return true;
}

bool Decoder::decodeTableBranch(Inst inst) {
  take("uni");
  if (!peek().empty() || !expectOperands(2))
    return unknown();
  if (!source(inst, 0, Type::U32))
    return false;
  const std::vector<std::string> *table = nullptr;
  for (const Scope &scope : scopes) {
    auto found = scope.tables.find(operand(1).name);
    if (found != scope.tables.end())
      table = &found->second;
  }
  if (!table)
    return unsupported("the table '" + operand(1).name + "' is not known");
  inst.targets.resize(table->size());
  for (size_t i = 0; i < table->size(); ++i)
    scopes.back().fixups.push_back(
        {program.code.size(), int32_t(i), (*table)[i]});
  inst.handler = executeTableBranch;
  program.code.push_back(std::move(inst));
  return true;
}

bool Decoder::decodeCall(Inst inst) {
  take("uni");
  if (!peek().empty())
    return unknown();
  unsigned i = 0;
  std::vector<SyntaxOperand> results, arguments;
  if (operand(0).kind == SyntaxOperand::List)
    results = operand(i++).elements;
  std::string callee = operand(i++).name;
  if (i < numOperands() && operand(i).kind == SyntaxOperand::List)
    arguments = operand(i++).elements;
  auto found = module.functions.find(callee);
  if (found == module.functions.end())
    return unsupported(lookup(callee) ? "indirect calls"
                                      : "unknown function '" + callee + "'");
  const Function &function = found->second;
  if (!function.hasBody)
    return unsupported("the function '" + callee +
                       "' is only declared; link it into the PTX");
  if (std::find(callStack.begin(), callStack.end(), &function) !=
      callStack.end())
    return unsupported("recursion in '" + callee + "'");
  if (results.size() != function.results.size() ||
      arguments.size() != function.params.size())
    return unsupported("'" + callee + "' has other parameters");

  // The names of the parameters stand for what the caller gives.
  std::unordered_map<std::string, Symbol> names;
  auto bind = [&](const std::vector<Variable> &formals,
                  const std::vector<SyntaxOperand> &actuals) {
    for (size_t k = 0; k < formals.size(); ++k) {
      const Symbol *actual = lookup(actuals[k].name);
      if (!actual)
        return unsupported("'" + actuals[k].name + "' is not known here");
      names[formals[k].name] = *actual;
    }
    return true;
  };
  if (!bind(function.results, results) || !bind(function.params, arguments))
    return false;

  // A call under a guard becomes a branch around the body.
  std::optional<size_t> skip;
  if (inst.guard >= 0) {
    inst.guardNegated = !inst.guardNegated;
    inst.handler = executeBranch;
    skip = program.code.size();
    program.code.push_back(inst);
  }
  scopes.emplace_back();
  scopes.back().isFunction = true;
  scopes.back().symbols = std::move(names);
  unsigned callLine = line;
  if (!decodeFunction(function))
    return false;
  line = callLine;
  if (skip)
    program.code[*skip].target = program.code.size();
  return true;
}

bool Decoder::decodeInstruction(const Statement &statement) {
  instruction = &statement.code;
  line = statement.line;
  nextModifier = 1;
  operandsUsed = 0;

  Inst inst;
  inst.line = line;
  if (!instruction->guard.empty()) {
    const Symbol *guard = lookup(instruction->guard);
    if (!guard || guard->kind != Symbol::Predicate)
      return unsupported("the guard '" + instruction->guard +
                         "' is no predicate");
    inst.guard = guard->index;
    inst.guardNegated = instruction->guardNegated;
  }

  const std::string &name = instruction->name[0];
  if (name == "bra")
    return decodeBranch(std::move(inst));
  if (name == "brx" && take("idx"))
    return decodeTableBranch(std::move(inst));
  if (name == "call")
    return decodeCall(std::move(inst));
  if (name == "ret" && callStack.size() > 1) {
    take("uni");
    if (!peek().empty())
      return unknown();
    inst.handler = executeBranch;
    scopes.back().fixups.push_back({program.code.size(), -1, ""});
    program.code.push_back(std::move(inst));
    return true;
  }

  auto found = decodeTable().find(name);
  if (found == decodeTable().end() || !found->second(*this, inst))
    return unknown();
  if (!peek().empty())
    return unknown();
  if (operandsUsed != numOperands())
    return expectOperands(operandsUsed);
  program.code.push_back(std::move(inst));
  return true;
}

bool Decoder::decodeStatement(const Statement &statement) {
  switch (statement.kind) {
  case Statement::Label:
    scopes.back().labels[statement.label] = program.code.size();
    return true;
  case Statement::Code:
    return decodeInstruction(statement);
  case Statement::Declaration:
    return declare(statement.variable, Space::Register);
  case Statement::ScopeBegin:
    scopes.emplace_back();
    return true;
  case Statement::ScopeEnd:
    return closeScope();
  case Statement::BranchTargets:
    return true; // taken before the body
  }
  return true;
}

/// Decodes a body into the scope on top, which it closes.
bool Decoder::decodeFunction(const Function &function) {
  callStack.push_back(&function);
  for (const Statement &statement : function.body)
    if (statement.kind == Statement::BranchTargets)
      scopes.back().tables[statement.label] = statement.targets;
  for (const Statement &statement : function.body)
    if (!decodeStatement(statement))
      return false;
  callStack.pop_back();
  // The end of the body is what an inlined `ret` goes to.
  scopes.back().labels[""] = program.code.size();
  return closeScope();
}

bool Decoder::decode(const Function &kernel) {
  program.name = kernel.name;
  program.function = &kernel;
  line = kernel.line;
  // Predicates 0 and 1 are the constants false and true.
  program.numPredicates = 2;
  if (!kernel.hasBody)
    return fail("unsupported", "'" + kernel.name + "' has no body");
  scopes.emplace_back();
  scopes.back().isFunction = true;
  declareKernelParams(kernel);
  if (!decodeFunction(kernel))
    return false;
  // Running off the end leaves the kernel.
  static const Instruction kExit = {"", false, {"exit"}, {}};
  scopes.emplace_back();
  Statement exit;
  exit.code = kExit;
  exit.line = line;
  if (!decodeInstruction(exit))
    return false;
  program.dynamicSharedOffset =
      alignTo(program.staticSharedBytes, dynamicAlign);
  if (dynamicAddresses.empty() && moduleShared.empty())
    program.dynamicSharedOffset = program.staticSharedBytes;
  for (const DynamicAddress &dynamic : dynamicAddresses)
    for (unsigned lane = 0; lane < 32; ++lane)
      program.constants[~dynamic.column * 32 + lane] =
          kSharedBase + program.dynamicSharedOffset + dynamic.offset;
  return true;
}

} // namespace bngrad::ptx
