//===- IrMutatorValues.cpp - inserts ops between values and their uses ----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IrMutator.h"

#include "IrSession.h"

#include <algorithm>
#include <cctype>

namespace bngrad::fuzz {

using Strings = std::vector<std::string>;

/// Splits at commas outside of brackets.
static Strings splitList(const std::string &text) {
  Strings parts;
  int depth = 0;
  std::string part;
  for (char c : text) {
    depth +=
        (c == '<' || c == '(' || c == '[') - (c == '>' || c == ')' || c == ']');
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else if (c != ' ' || !part.empty()) {
      part += c;
    }
  }
  parts.push_back(part);
  return parts;
}

static std::string join(const Strings &parts, const std::string &with) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i ? with : "") + parts[i];
  return text;
}

/// Uses of values with their types, in the form `(%a, %b : T, U)`.
std::vector<IrMutator::Value> IrMutator::findUses(const std::string &ir) {
  std::vector<Value> uses;
  for (size_t open = ir.find("(%"); open != std::string::npos;
       open = ir.find("(%", open + 1)) {
    int depth = 0;
    size_t close = open;
    for (; close < ir.size() && ir[close] != '\n'; ++close) {
      depth += (ir[close] == '(') - (ir[close] == ')');
      if (depth == 0)
        break;
    }
    std::string inside = ir.substr(open + 1, close - open - 1);
    size_t colon = inside.find(" : ");
    if (colon == std::string::npos)
      continue;
    Strings names = splitList(inside.substr(0, colon));
    Strings types = splitList(inside.substr(colon + 3));
    if (names.size() != types.size())
      continue;
    for (size_t i = 0; i < names.size(); ++i) {
      size_t use = ir.find(names[i], open);
      if (!names[i].empty() && names[i][0] == '%' && use < close)
        uses.push_back({names[i], types[i], use});
    }
  }
  return uses;
}

namespace {

/// A chain of ops that yields the same value, or another one of its type.
class Chain {
public:
  Chain(Random &random, const std::string &prefix, const std::string &value,
        const ShapedType &type)
      : random(random), prefix(prefix), value(value), type(type) {}

  void addRandom() {
    switch (below(random, 13)) {
    case 0:
      return addUnary();
    case 1:
      return addBinary();
    case 2:
      return addCast();
    case 3:
      return addTranspose();
    case 4:
      return addReshape();
    case 5:
      return addExpand();
    case 6:
      return addPad();
    case 7:
      return addInsert();
    case 8:
      return addBuffer();
    case 9:
      return addGeneric();
    case 10:
      return addReduceBroadcast();
    case 11:
      return addTraining();
    default:
      return addUnary(), addPad();
    }
  }

  std::string text;
  const std::string &result() const { return value; }

private:
  std::string name() { return prefix + "_" + std::to_string(numNames++); }
  std::string add(const std::string &statement) {
    std::string result = name();
    text += "    " + result + " = " + statement + "\n";
    return result;
  }
  std::string empty(const ShapedType &of) {
    return add("tensor.empty() : " + of.print());
  }
  std::string element() const { return type.rest; }
  bool isFloat() const {
    return type.rest == "f32" || type.rest == "f16" || type.rest == "bf16" ||
           type.rest == "f64";
  }
  Strings repeat(const std::string &what) const {
    return Strings(type.sizes.size(), what);
  }

  void addUnary() {
    static const Strings kOps = {"arith.negf", "math.absf", "math.sqrt",
                                 "math.exp", "math.tanh"};
    if (isFloat())
      value = add(pick(random, kOps) + " " + value + " : " + type.print());
  }

  void addBinary() {
    static const Strings kOps = {"arith.addf", "arith.mulf", "arith.maximumf"};
    if (isFloat())
      value = add(pick(random, kOps) + " " + value + ", " + value + " : " +
                  type.print());
  }

  void addCast() {
    ShapedType dynamic = type;
    for (std::string &size : dynamic.sizes)
      if (below(random, 2))
        size = "?";
    std::string cast = add("tensor.cast " + value + " : " + type.print() +
                           " to " + dynamic.print());
    value = add("tensor.cast " + cast + " : " + dynamic.print() + " to " +
                type.print());
  }

  void addTranspose() {
    if (!type.isStatic() || type.sizes.size() < 2)
      return;
    std::vector<size_t> order(type.sizes.size()), inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    ShapedType turned = type;
    Strings there, back;
    for (size_t i = 0; i < order.size(); ++i) {
      turned.sizes[i] = type.sizes[order[i]];
      there.push_back(std::to_string(order[i]));
      inverse[order[i]] = i;
    }
    for (size_t i : inverse)
      back.push_back(std::to_string(i));
    auto transpose = [&](const ShapedType &from, const ShapedType &to,
                         const Strings &permutation) {
      std::string init = empty(to);
      std::string result = name();
      // linalg.transpose names its result after its attributes.
      text += "    " + result + " = linalg.transpose ins(" + value + " : " +
              from.print() + ") outs(" + init + " : " + to.print() +
              ") permutation = [" + join(permutation, ", ") + "]\n";
      value = result;
    };
    transpose(type, turned, there);
    if (below(random, 2))
      addOtherUnary(turned);
    transpose(turned, type, back);
  }

  void addOtherUnary(const ShapedType &of) {
    if (isFloat())
      value = add("arith.negf " + value + " : " + of.print());
  }

  void addReshape() {
    size_t rank = type.sizes.size();
    if (!type.isStatic() || rank < 2)
      return;
    // Dims from `first` to `last` become one.
    size_t first = below(random, rank - 1);
    size_t last = first + 1 + below(random, rank - first - 1);
    ShapedType flat = type;
    uint64_t product = 1;
    Strings groups, group;
    flat.sizes.clear();
    for (size_t i = 0; i < rank; ++i) {
      group.push_back(std::to_string(i));
      if (i >= first && i <= last) {
        product *= std::strtoull(type.sizes[i].c_str(), nullptr, 10);
        if (i < last)
          continue;
        flat.sizes.push_back(std::to_string(product));
      } else {
        flat.sizes.push_back(type.sizes[i]);
      }
      groups.push_back("[" + join(group, ", ") + "]");
      group.clear();
    }
    std::string map = " [" + join(groups, ", ") + "]";
    value = add("tensor.collapse_shape " + value + map + " : " + type.print() +
                " into " + flat.print());
    if (below(random, 2))
      addOtherUnary(flat);
    value = add("tensor.expand_shape " + value + map + " output_shape [" +
                join(type.sizes, ", ") + "] : " + flat.print() + " into " +
                type.print());
  }

  /// Expands by a dim of size 1, and collapses it again.
  void addExpand() {
    size_t rank = type.sizes.size();
    if (!type.isStatic() || rank == 0)
      return;
    size_t at = below(random, rank);
    ShapedType wide = type;
    wide.sizes.insert(wide.sizes.begin() + at + below(random, 2), "1");
    Strings groups;
    for (size_t i = 0; i < rank; ++i)
      groups.push_back(i == at ? "[" + std::to_string(i) + ", " +
                                     std::to_string(i + 1) + "]"
                               : "[" + std::to_string(i + (i > at)) + "]");
    std::string map = " [" + join(groups, ", ") + "]";
    value = add("tensor.expand_shape " + value + map + " output_shape [" +
                join(wide.sizes, ", ") + "] : " + type.print() + " into " +
                wide.print());
    if (below(random, 2))
      addOtherUnary(wide);
    value = add("tensor.collapse_shape " + value + map + " : " + wide.print() +
                " into " + type.print());
  }

  void addPad() {
    if (!type.isStatic() || !isFloat() || type.sizes.empty())
      return;
    ShapedType padded = type;
    Strings low, high;
    for (std::string &size : padded.sizes) {
      size_t l = below(random, 3), h = below(random, 3);
      low.push_back(std::to_string(l));
      high.push_back(std::to_string(h));
      size = std::to_string(std::strtoull(size.c_str(), nullptr, 10) + l + h);
    }
    std::string zero = add("arith.constant 0.0 : " + element());
    std::string result = name(), arguments;
    for (size_t i = 0; i < low.size(); ++i)
      arguments +=
          (i ? ", " : "") + prefix + "_i" + std::to_string(i) + ": index";
    text += "    " + result + " = tensor.pad " + value + " low[" +
            join(low, ", ") + "] high[" + join(high, ", ") + "] {\n    ^bb0(" +
            arguments + "):\n      tensor.yield " + zero + " : " + element() +
            "\n    } : " + type.print() + " to " + padded.print() + "\n";
    value =
        add("tensor.extract_slice " + result + "[" + join(low, ", ") + "] [" +
            join(type.sizes, ", ") + "] [" + join(repeat("1"), ", ") +
            "] : " + padded.print() + " to " + type.print());
  }

  /// Inserts into every other element of a larger tensor, and extracts again.
  void addInsert() {
    if (!type.isStatic() || type.sizes.empty())
      return;
    ShapedType large = type;
    for (std::string &size : large.sizes)
      size = std::to_string(2 * std::strtoull(size.c_str(), nullptr, 10) + 1);
    std::string slice = "[" + join(repeat("1"), ", ") + "] [" +
                        join(type.sizes, ", ") + "] [" +
                        join(repeat("2"), ", ") + "] : ";
    std::string init = empty(large);
    std::string whole = add("tensor.insert_slice " + value + " into " + init +
                            slice + type.print() + " into " + large.print());
    value = add("tensor.extract_slice " + whole + slice + large.print() +
                " to " + type.print());
  }

  void addBuffer() {
    ShapedType buffer = type;
    buffer.kind = "memref";
    std::string memory = add("bufferization.to_buffer " + value + " : " +
                             type.print() + " to " + buffer.print());
    value = add("bufferization.to_tensor " + memory +
                " restrict : " + buffer.print() + " to " + type.print());
  }

  std::string map(const Strings &results) const {
    Strings dims;
    for (size_t i = 0; i < type.sizes.size(); ++i)
      dims.push_back("d" + std::to_string(i));
    return "affine_map<(" + join(dims, ", ") + ") -> (" + join(results, ", ") +
           ")>";
  }

  void addGeneric() {
    if (!type.isStatic() || !isFloat())
      return;
    Strings dims;
    for (size_t i = 0; i < type.sizes.size(); ++i)
      dims.push_back("d" + std::to_string(i));
    std::string init = empty(type), result = name();
    std::string e = element();
    text += "    " + result + " = linalg.generic {indexing_maps = [" +
            map(dims) + ", " + map(dims) + "], iterator_types = [" +
            join(repeat("\"parallel\""), ", ") + "]} ins(" + value + " : " +
            type.print() + ") outs(" + init + " : " + type.print() +
            ") {\n    ^bb0(" + prefix + "_a: " + e + ", " + prefix +
            "_b: " + e + "):\n      " + prefix + "_c = arith.mulf " + prefix +
            "_a, " + prefix + "_a : " + e + "\n      linalg.yield " + prefix +
            "_c : " + e + "\n    } -> " + type.print() + "\n";
    value = result;
  }

  void addReduceBroadcast() {
    if (!type.isStatic() || !isFloat() || type.sizes.empty())
      return;
    size_t dim = below(random, type.sizes.size());
    ShapedType less = type;
    less.sizes.erase(less.sizes.begin() + dim);
    std::string zero = add("arith.constant 0.0 : " + element());
    std::string init = empty(less);
    std::string start =
        add("linalg.fill ins(" + zero + " : " + element() + ") outs(" + init +
            " : " + less.print() + ") -> " + less.print());
    std::string sum = name(), wide = name();
    std::string dims = " dimensions = [" + std::to_string(dim) + "]";
    text += "    " + sum + " = linalg.reduce { arith.addf } ins(" + value +
            " : " + type.print() + ") outs(" + start + " : " + less.print() +
            ")" + dims + "\n";
    std::string other = empty(type);
    text += "    " + wide + " = linalg.broadcast ins(" + sum + " : " +
            less.print() + ") outs(" + other + " : " + type.print() + ")" +
            dims + "\n";
    value = add("arith.addf " + value + ", " + wide + " : " + type.print());
  }

  void addTraining() {
    if (!isFloat() || type.sizes.empty())
      return;
    size_t dim = below(random, type.sizes.size());
    ShapedType channel = type;
    channel.sizes = {type.sizes[dim]};
    std::string output = name(), c = channel.print();
    text += "    " + output + ":4 = bngrad.batch_norm_training input(" + value +
            " : " + type.print() +
            ") {feature_dims = array<i64: " + std::to_string(dim) +
            ">, epsilon = 1.0e-3 : f64} : " + type.print() + ", " + c + ", " +
            c + ", " + c + "\n";
    value = output + "#0";
  }

  Random &random;
  std::string prefix, value;
  ShapedType type;
  unsigned numNames = 0;
};

} // namespace

bool IrMutator::insertNeighbour(std::string &ir) {
  std::vector<Value> uses = findUses(ir);
  if (uses.empty())
    return false;
  Value use = pick(random, uses);
  ShapedType type;
  if (!ShapedType::parse(use.type, type) || type.kind != "tensor")
    return false;
  Chain chain(random, fresh(), use.name, type);
  for (size_t i = 1 + below(random, 3); i > 0; --i)
    chain.addRandom();
  ir.replace(use.use, use.name.size(), chain.result());
  size_t line = ir.rfind('\n', use.use);
  ir.insert(line == std::string::npos ? 0 : line + 1, chain.text);
  return true;
}

std::string IrMutator::mutatePipeline() {
  static const Strings kStages = {"import",    "decompose", "fuse", "group",
                                  "bufferize", "apply",     "lower"};
  static const Strings kChips = {"sm_75", "sm_80", "sm_90", "sm_100",
                                 "sm_75,sm_90"};
  static const Strings kFuncPasses = {"bngrad-import",
                                      "bngrad-fold-transpose",
                                      "bngrad-split",
                                      "bngrad-decompose",
                                      "bngrad-fuse",
                                      "bngrad-group",
                                      "bngrad-prepare-bufferize",
                                      "bngrad-return-allocs",
                                      "bngrad-apply-schedule",
                                      "bngrad-expand-copies",
                                      "bngrad-linalg-to-loops",
                                      "bngrad-reassociate-sums"};
  auto func = [](const std::string &passes) {
    return "builtin.module(func.func(" + passes + "))";
  };
  bool gpu = below(random, 2);
  auto schedule = [&]() -> std::string {
    return below(random, 2) ? "schedule=\"" + makeSchedule(gpu) + "\" " : "";
  };
  switch (below(random, 10)) {
  case 0:
  case 1:
    return "builtin.module(bngrad-cpu-pipeline{stop-after=" +
           pick(random, kStages) +
           " threads=2 vector-bits=512 fma=true "
           "bf16-conversion=false f16-conversion=true l1-bytes=49152 "
           "last-level-bytes=33554432})";
  case 2:
    return "builtin.module(bngrad-cuda-pipeline{stop-after=" +
           kStages[below(random, below(random, 10) ? 6 : 7)] +
           " chip=" + pick(random, kChips) +
           (below(random, 2) ? " device-arguments=true" : "") + "})";
  case 3:
    return func("bngrad-decompose,bngrad-fuse,canonicalize");
  case 4:
    gpu = false;
    return func("bngrad-decompose,bngrad-fuse,bngrad-group{" + schedule() +
                "threads=4}");
  case 5:
    gpu = true;
    return func("bngrad-decompose,bngrad-fuse,bngrad-group{" + schedule() +
                "chip=" + pick(random, kChips) + "}");
  case 6:
    return "builtin.module(canonicalize,func.func(bngrad-fold-transpose,"
           "bngrad-split,bngrad-decompose,bngrad-fuse),cse)";
  case 7: {
    static const Strings kModulePasses = {
        "bngrad-expand-truncf", "bngrad-share-loops", "bngrad-export-c",
        "bngrad-loop-annotations"};
    return "builtin.module(" + pick(random, kModulePasses) + ")";
  }
  default:
    return func(pick(random, kFuncPasses));
  }
}

bool IrMutator::mutateOnce(std::string &ir) {
  switch (below(random, 22)) {
  case 0:
  case 1:
  case 2:
    return changeSize(ir);
  case 3:
    return changeElementType(ir);
  case 4:
  case 5:
    return changeType(ir);
  case 6:
  case 7:
    return changeStatements(ir);
  case 8:
    return changeOperand(ir);
  case 9:
  case 10:
    return changeNumber(ir);
  case 11:
  case 12:
    return changeMap(ir);
  case 13:
  case 14:
    return changeAttribute(ir);
  case 15:
  case 16:
    return changeOp(ir);
  default:
    return insertNeighbour(ir);
  }
}

static void split(const std::string &input, std::string &pipeline,
                  std::string &ir) {
  llvm::StringRef header, rest;
  if (splitInput(input, header, rest)) {
    pipeline = header.str();
    ir = rest.str();
  } else {
    ir = input;
  }
}

static std::string unite(const std::string &pipeline, const std::string &ir) {
  return kHeader.str() + pipeline + "\n" + ir;
}

std::string IrMutator::mutate(const std::string &input) {
  std::string pipeline, ir;
  split(input, pipeline, ir);
  if (pipeline.empty() || below(random, 5) == 0)
    pipeline = mutatePipeline();
  unsigned changes = below(random, 4) ? 1 + below(random, 2) : below(random, 6);
  for (unsigned tries = 0; changes > 0 && tries < 20; ++tries)
    changes -= mutateOnce(ir);
  return unite(pipeline, ir);
}

std::string IrMutator::splice(const std::string &first,
                              const std::string &second) {
  std::string pipeline, ir, otherPipeline, other;
  split(first, pipeline, ir);
  split(second, otherPipeline, other);
  if (below(random, 3) == 0)
    return unite(otherPipeline, ir);
  std::vector<Range> from = findStatements(other), to = findStatements(ir);
  if (from.empty() || to.empty())
    return unite(pipeline, other);
  Range piece = pick(random, from);
  ir.insert(pick(random, to).begin,
            other.substr(piece.begin, piece.end - piece.begin));
  return unite(pipeline, ir);
}

} // namespace bngrad::fuzz
