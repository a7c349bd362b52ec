//===- Decoder.h - parsed instructions to a Program -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_DECODER_H
#define PTX_EMULATOR_LIB_DECODER_H

#include "Program.h"

#include <unordered_map>

namespace ptx {

/// The entity that a name in a function refers to.
struct Symbol {
  enum Kind { Register, Predicate, Memory, Code };
  Kind kind = Register;
  int32_t index = 0; // of the register or predicate
  Type type = Type::None;
  Space space = Space::Register; // of Memory
  uint64_t address = 0;
  bool dynamicShared = false; // the address follows the static ones
};

class Decoder;

/// Decodes one instruction. It takes modifiers and operands; those that remain
/// are errors.
using DecodeFunction = bool (*)(Decoder &decoder, Inst &inst);
using DecodeTable = std::unordered_map<std::string_view, DecodeFunction>;

/// Decodes one kernel and inlines its calls.
class Decoder {
public:
  Decoder(const Module &module,
          const std::unordered_map<std::string, uint64_t> &globals,
          Program &program);

  /// Returns false and sets `errorKind` and `error` if the kernel cannot run.
  bool decode(const Function &kernel);
  std::string errorKind, error;

  //===--------------------------------------------------------------------===//
  // For the functions that decode one instruction
  //===--------------------------------------------------------------------===//

  // Like ptxas, these accept modifiers in any order; only those of one kind,
  // such as the types of the destination and the source, keep theirs.

  /// Takes `modifier`, if the instruction has it.
  bool take(std::string_view modifier);
  bool has(std::string_view modifier) const;
  /// Takes the first modifier that is one of `names`: its index there, or -1.
  int takeOneOf(std::initializer_list<std::string_view> names);
  /// Takes the first type; Type::None if there is none.
  Type takeType();
  /// The last type, or the one `before` types before it, which is not taken.
  Type lastType(unsigned before = 0) const;
  /// Takes the first modifier that begins with `prefix`.
  bool takePrefix(std::string_view prefix);
  /// The first modifier that is left; empty if there is none.
  std::string_view peek() const;
  /// Takes a rounding mode of floating-point or (as in .rni) integer form.
  bool takeRound(Round &round);
  bool takeIntegerRound(Round &round);

  unsigned numOperands() const { return instruction->operands.size(); }
  const SyntaxOperand &operand(unsigned i) const;
  /// Marks operands up to `count` as read.
  bool expectOperands(unsigned count);

  /// Adds operand `i` to the sources, the destinations and so on of `inst`.
  bool source(Inst &inst, unsigned i, Type type);
  bool source(Inst &inst, const SyntaxOperand &operand, Type type);
  /// A destination; `_` is a register that is never read.
  bool dest(Inst &inst, unsigned i, Type type);
  bool dest(Inst &inst, const SyntaxOperand &operand, Type type);
  bool predSource(Inst &inst, unsigned i);
  bool predDest(Inst &inst, unsigned i);
  bool predDest(Inst &inst, std::string_view name);
  /// An address: a source, and `inst.offset`. Sets `symbolSpace` to the space
  /// of the symbol, if the address has one.
  bool address(Inst &inst, unsigned i, Space *symbolSpace = nullptr);
  /// The elements of a vector operand, or the operand itself.
  std::vector<SyntaxOperand> elements(unsigned i) const;
  /// The width of a register operand in bytes; `otherwise` for literals and
  /// `_`.
  unsigned registerBytes(const SyntaxOperand &operand, unsigned otherwise);
  bool isPredicate(unsigned i);

  /// A column that holds `bits` in all lanes.
  Column constant(uint64_t bits);
  const Symbol *lookup(const std::string &name) const;

  /// Fails: the instruction or a modifier is unknown.
  bool unknown();
  /// Fails with `reason`.
  bool unsupported(const std::string &reason);

private:
  struct Fixup {
    size_t inst;
    int32_t entry; // in targets, or -1
    std::string label;
  };
  struct Scope {
    std::unordered_map<std::string, Symbol> symbols;
    std::unordered_map<std::string, uint32_t> labels;
    std::unordered_map<std::string, std::vector<std::string>> tables;
    std::vector<Fixup> fixups;
    bool isFunction = false;
  };

  template <typename Fn> bool takeFirst(Fn matches);
  bool fail(const std::string &kind, const std::string &message);
  bool decodeFunction(const Function &function);
  bool decodeStatement(const Statement &statement);
  bool decodeInstruction(const Statement &statement);
  bool decodeBranch(Inst inst);
  bool decodeTableBranch(Inst inst);
  bool decodeCall(Inst inst);
  bool declare(const Variable &variable, Space registerSpace);
  void declareRegister(const std::string &name, Type type);
  void declareKernelParams(const Function &kernel);
  Symbol allocate(const Variable &variable);
  bool closeScope();
  Column newRegister(unsigned count = 1);
  bool special(const std::string &name, Column &column);
  bool reservedOffset(const std::string &name, Column &column);
  bool symbolAddress(const Symbol &symbol, int64_t offset, Column &column);
  bool columnOf(const SyntaxOperand &operand, Type type, Column &column);

  const Module &module;
  const std::unordered_map<std::string, uint64_t> &globals;
  Program &program;
  std::vector<Scope> scopes;
  std::vector<const Function *> callStack;
  std::unordered_map<uint64_t, Column> constantColumns;
  std::unordered_map<uint8_t, Column> specialColumns;
  std::unordered_map<std::string, Symbol> moduleShared;
  struct DynamicAddress {
    Column column;
    int64_t offset;
  };
  std::vector<DynamicAddress> dynamicAddresses;
  uint64_t dynamicAlign = 16;

  const Instruction *instruction = nullptr;
  unsigned line = 0;
  std::vector<std::string_view> modifiers; // not taken yet
  unsigned operandsUsed = 0;
};

/// All instructions except those that the decoder handles itself.
const DecodeTable &decodeTable();

// One function for each file of Instructions/.
void addMoveInstructions(DecodeTable &table);
void addIntegerInstructions(DecodeTable &table);
void addBitInstructions(DecodeTable &table);
void addFloatInstructions(DecodeTable &table);
void addCompareInstructions(DecodeTable &table);
void addConvertInstructions(DecodeTable &table);
void addMemoryInstructions(DecodeTable &table);
void addAtomicInstructions(DecodeTable &table);
void addCollectiveInstructions(DecodeTable &table);
void addBarrierInstructions(DecodeTable &table);
void addMatrixInstructions(DecodeTable &table);
void addMbarrierInstructions(DecodeTable &table);
void addAsyncCopyInstructions(DecodeTable &table);
void addControlInstructions(DecodeTable &table);

/// st.async (AsyncCopy.cpp).
bool decodeStoreAsync(Decoder &decoder, Inst &inst);

/// Executes a branch to `inst.target`, if `inst.mode` is 0 (Control.cpp).
void executeBranch(Warp &warp, const Inst &inst, uint32_t mask);
void executeTableBranch(Warp &warp, const Inst &inst, uint32_t mask);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_DECODER_H
