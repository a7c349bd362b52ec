//===- Decoder.cpp - parsed instructions to a Program -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "Lexer.h"
#include "Memory.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace ptx {

const DecodeTable &decodeTable() {
  // Never destroyed, as threads may launch while the process ends.
  static const DecodeTable &table = *new DecodeTable([] {
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
    addMatrixInstructions(result);
    addMbarrierInstructions(result);
    addAsyncCopyInstructions(result);
    addControlInstructions(result);
    return result;
  }());
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
      peek().empty() ? "" : " at " + quote("." + std::string(peek()));
  return fail("unknown-instruction", quote(instruction->fullName()) + where);
}

bool Decoder::unsupported(const std::string &reason) {
  return fail("unsupported", quote(instruction->fullName()) + ": " + reason);
}

//===----------------------------------------------------------------------===//
// Modifiers
//===----------------------------------------------------------------------===//

template <typename Fn> bool Decoder::takeFirst(Fn matches) {
  auto found = std::find_if(modifiers.begin(), modifiers.end(), matches);
  if (found == modifiers.end())
    return false;
  modifiers.erase(found);
  return true;
}

std::string_view Decoder::peek() const {
  return modifiers.empty() ? std::string_view() : modifiers.front();
}

bool Decoder::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) !=
         modifiers.end();
}

bool Decoder::take(std::string_view modifier) {
  return takeFirst([&](std::string_view m) { return m == modifier; });
}

int Decoder::takeOneOf(std::initializer_list<std::string_view> names) {
  int index = -1;
  takeFirst([&](std::string_view modifier) {
    const auto *found = std::find(names.begin(), names.end(), modifier);
    if (found == names.end())
      return false;
    index = int(found - names.begin());
    return true;
  });
  return index;
}

Type Decoder::takeType() {
  Type type = Type::None;
  takeFirst([&](std::string_view modifier) {
    type = parseType(modifier);
    return type != Type::None;
  });
  return type;
}

Type Decoder::lastType(unsigned before) const {
  for (auto it = modifiers.rbegin(); it != modifiers.rend(); ++it) {
    Type type = parseType(*it);
    if (type != Type::None && before-- == 0)
      return type;
  }
  return Type::None;
}

bool Decoder::takePrefix(std::string_view prefix) {
  return takeFirst([&](std::string_view modifier) {
    return modifier.substr(0, prefix.size()) == prefix;
  });
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
// Declarations
//===----------------------------------------------------------------------===//

static uint64_t alignTo(uint64_t value, uint64_t align) {
  return align ? (value + align - 1) / align * align : value;
}

/// Allocates a variable of a function (or one in shared memory).
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
  // Parameters of calls are also in local memory.
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
  if (program.numRegisters + program.numPredicates + variable.range >
      kMaxRegisters)
    return fail("unsupported",
                "more than " + std::to_string(kMaxRegisters) + " registers");
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
        return fail("unsupported", "the label " + quote(fixup.label) +
                                       " is not known in its function");
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
    return unsupported("the table " + quote(operand(1).name) + " is not known");
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
                                      : "unknown function " + quote(callee));
  const Function &function = found->second;
  if (!function.hasBody)
    return unsupported("the function " + quote(callee) +
                       " is only declared; link it into the PTX");
  if (std::find(callStack.begin(), callStack.end(), &function) !=
      callStack.end())
    return unsupported("recursion in " + quote(callee));
  if (results.size() != function.results.size() ||
      arguments.size() != function.params.size())
    return unsupported(quote(callee) + " has other parameters");

  // The names of the parameters refer to the caller's operands.
  std::unordered_map<std::string, Symbol> names;
  auto bind = [&](const std::vector<Variable> &formals,
                  const std::vector<SyntaxOperand> &actuals) {
    for (size_t k = 0; k < formals.size(); ++k) {
      const Symbol *actual = lookup(actuals[k].name);
      if (!actual)
        return unsupported(quote(actuals[k].name) + " is not known here");
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

/// Whether an instruction only computes registers from registers. Its results
/// from uninitialised values are harmless unless they are used.
static bool isArithmetic(const std::string &name) {
  static const auto &names = *new std::unordered_set<std::string_view>{
      "abs",  "add",  "bfe",   "bfi",  "bfind", "bmsk",    "brev", "clz",
      "cnot", "cos",  "cvt",   "cvta", "div",   "dp2a",    "dp4a", "ex2",
      "fma",  "lg2",  "mad",   "max",  "min",   "mul",     "neg",  "popc",
      "rcp",  "rem",  "rsqrt", "sad",  "set",   "setp",    "shf",  "sin",
      "slct", "sqrt", "sub",   "tanh", "testp", "copysign"};
  return names.count(name) != 0;
}

/// The emulator does not track whether the carry is defined.
static bool usesCarry(const Instruction &instruction) {
  const std::vector<std::string> &name = instruction.name;
  return std::find(name.begin() + 1, name.end(), "cc") != name.end();
}

bool Decoder::decodeInstruction(const Statement &statement) {
  instruction = &statement.code;
  line = statement.line;
  modifiers.assign(instruction->name.begin() + 1, instruction->name.end());
  operandsUsed = 0;

  Inst inst;
  inst.line = line;
  if (!instruction->guard.empty()) {
    const Symbol *guard = lookup(instruction->guard);
    if (!guard || guard->kind != Symbol::Predicate)
      return unsupported("the guard " + quote(instruction->guard) +
                         " is not a predicate");
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
  if (isArithmetic(name) && !usesCarry(*instruction) &&
      inst.undefinedRule == UndefinedRule::Report)
    inst.undefinedRule = UndefinedRule::Whole;
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

/// Decodes a body into the innermost scope, and closes the scope.
bool Decoder::decodeFunction(const Function &function) {
  callStack.push_back(&function);
  for (const Statement &statement : function.body)
    if (statement.kind == Statement::BranchTargets)
      scopes.back().tables[statement.label] = statement.targets;
  for (const Statement &statement : function.body)
    if (!decodeStatement(statement))
      return false;
  callStack.pop_back();
  // An inlined `ret` branches to the end of the body.
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
  if (module.version >= 8.1)
    program.mostParamBytes = 32764;
  declareKernelParams(kernel);
  if (!decodeFunction(kernel))
    return false;
  // The end of the body is an exit.
  scopes.emplace_back();
  Statement exit;
  exit.code.name = {"exit"};
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

} // namespace ptx
