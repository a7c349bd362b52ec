//===- IrMutator.cpp - changes textual IR ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IrMutator.h"

#include "BNGrad/Dialect/Role.h"
#include "BNGrad/Dialect/Schedule.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace bngrad::fuzz {

using Strings = std::vector<std::string>;

static bool isNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '.' || c == '-';
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static void replaceAll(std::string &text, const std::string &from,
                       const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

static Strings findWords(const std::string &text, const Strings &words,
                         std::vector<size_t> &places) {
  Strings found;
  for (const std::string &word : words)
    for (size_t at = text.find(word); at != std::string::npos;
         at = text.find(word, at + 1))
      found.push_back(word), places.push_back(at);
  return found;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool ShapedType::parse(const std::string &text, ShapedType &type) {
  size_t open = text.find('<');
  if (open == std::string::npos || text.back() != '>')
    return false;
  type.kind = text.substr(0, open);
  std::string body = text.substr(open + 1, text.size() - open - 2);
  type.sizes.clear();
  while (true) {
    size_t end = 0;
    while (end < body.size() && (isDigit(body[end]) || body[end] == '?'))
      ++end;
    if (end == 0 || end >= body.size() || body[end] != 'x')
      break;
    type.sizes.push_back(body.substr(0, end));
    body = body.substr(end + 1);
  }
  type.rest = body;
  return !body.empty() && body[0] != '*';
}

std::string ShapedType::print() const {
  std::string text = kind + "<";
  for (const std::string &size : sizes)
    text += size + "x";
  return text + rest + ">";
}

bool ShapedType::isStatic() const {
  return std::find(sizes.begin(), sizes.end(), "?") == sizes.end();
}

std::vector<IrMutator::Range>
IrMutator::findShapedTypes(const std::string &ir) {
  std::vector<Range> types;
  for (const char *kind : {"tensor<", "memref<", "vector<"})
    for (size_t at = ir.find(kind); at != std::string::npos;
         at = ir.find(kind, at + 1)) {
      unsigned depth = 0;
      for (size_t end = at; end < ir.size() && ir[end] != '\n'; ++end) {
        if (ir[end] == '<')
          ++depth;
        // Not the arrow of a map in a layout.
        if (ir[end] == '>' && ir[end - 1] != '-' && --depth == 0) {
          types.push_back({at, end + 1});
          break;
        }
      }
    }
  return types;
}

bool IrMutator::changeSize(std::string &ir) {
  std::vector<Range> types = findShapedTypes(ir);
  if (types.empty())
    return false;
  Range range = pick(random, types);
  ShapedType type;
  if (!ShapedType::parse(ir.substr(range.begin, range.end - range.begin),
                         type) ||
      type.sizes.empty())
    return false;
  size_t dim = below(random, type.sizes.size());
  std::string from = type.sizes[dim], to = size();
  if (below(random, 4) == 0) {
    type.sizes[dim] = to;
    ir.replace(range.begin, range.end - range.begin, type.print());
    return true;
  }
  // Every type with that size, from the last one on.
  std::sort(types.begin(), types.end(),
            [](Range a, Range b) { return a.begin > b.begin; });
  for (Range each : types) {
    if (!ShapedType::parse(ir.substr(each.begin, each.end - each.begin), type))
      continue;
    std::replace(type.sizes.begin(), type.sizes.end(), from, to);
    ir.replace(each.begin, each.end - each.begin, type.print());
  }
  return true;
}

bool IrMutator::changeElementType(std::string &ir) {
  static const Strings kTypes = {"f32", "f16", "bf16", "f64",   "i1",
                                 "i8",  "i32", "i64",  "index", "complex<f32>"};
  // The first four are more frequent: the others are rarely valid.
  auto any = [&] { return kTypes[below(random, below(random, 3) ? 4 : 10)]; };
  std::string from = any(), to = any();
  std::vector<size_t> places;
  findWords(ir, {from}, places);
  places.erase(std::remove_if(places.begin(), places.end(),
                              [&](size_t at) {
                                size_t end = at + from.size();
                                char before = at ? ir[at - 1] : ' ';
                                char after = end < ir.size() ? ir[end] : ' ';
                                return (isNameChar(before) && before != 'x') ||
                                       isNameChar(after);
                              }),
               places.end());
  if (places.empty())
    return false;
  if (below(random, 4) == 0)
    places = {pick(random, places)};
  std::sort(places.rbegin(), places.rend());
  for (size_t at : places)
    ir.replace(at, from.size(), to);
  return true;
}

bool IrMutator::changeType(std::string &ir) {
  std::vector<Range> types = findShapedTypes(ir);
  if (types.empty())
    return false;
  Range range = pick(random, types);
  std::string from = ir.substr(range.begin, range.end - range.begin);
  ShapedType type;
  if (!ShapedType::parse(from, type))
    return false;
  switch (below(random, 6)) {
  case 0:
    type.sizes.insert(type.sizes.begin() + below(random, type.sizes.size() + 1),
                      size());
    break;
  case 1:
    if (!type.sizes.empty())
      type.sizes.erase(type.sizes.begin() + below(random, type.sizes.size()));
    break;
  case 2:
    for (std::string &size : type.sizes)
      size = "?";
    break;
  case 3:
    if (type.sizes.size() > 1)
      std::swap(type.sizes[below(random, type.sizes.size())],
                type.sizes[below(random, type.sizes.size())]);
    break;
  case 4: {
    std::string strides;
    for (size_t i = 0; i < type.sizes.size(); ++i)
      strides += (i ? ", " : "") + (below(random, 2) ? "?" : number());
    type.kind = "memref";
    type.rest = type.rest.substr(0, type.rest.find(',')) + ", strided<[" +
                strides + "], offset: ?>";
    break;
  }
  default:
    type.kind = type.kind == "tensor" ? "memref" : "tensor";
  }
  if (below(random, 3))
    replaceAll(ir, from, type.print());
  else
    ir.replace(range.begin, from.size(), type.print());
  return true;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// Lines, each with the lines of its regions.
std::vector<IrMutator::Range> IrMutator::findStatements(const std::string &ir) {
  std::vector<Range> statements;
  std::vector<size_t> open; // line starts of the open regions
  for (size_t begin = 0, end; begin < ir.size(); begin = end) {
    end = std::min(ir.find('\n', begin), ir.size() - 1) + 1;
    size_t depth = open.size();
    bool closes = false;
    for (size_t i = begin; i < end; ++i) {
      if (ir[i] == '{')
        open.push_back(begin);
      if (ir[i] != '}' || open.empty())
        continue;
      if (open.back() < begin) {
        statements.push_back({open.back(), end});
        closes = true;
      }
      open.pop_back();
    }
    if (!closes && open.size() == depth)
      statements.push_back({begin, end});
  }
  return statements;
}

bool IrMutator::changeStatements(std::string &ir) {
  std::vector<Range> statements = findStatements(ir);
  if (statements.size() < 2)
    return false;
  Range one = pick(random, statements), two = pick(random, statements);
  std::string text = ir.substr(one.begin, one.end - one.begin);
  switch (below(random, 4)) {
  case 0:
    ir.erase(one.begin, one.end - one.begin);
    return true;
  case 1: { // duplicated, with new names
    std::string copy = text;
    size_t equals = copy.find(" = ");
    size_t percent = copy.find('%');
    if (equals != std::string::npos && percent < equals) {
      size_t end = percent + 1;
      while (end < copy.size() && isNameChar(copy[end]))
        ++end;
      copy.replace(percent, end - percent, fresh());
    }
    ir.insert(one.end, copy);
    return true;
  }
  case 2: // exchanged
    if (one.begin > two.begin)
      std::swap(one, two);
    if (one.end > two.begin)
      return false;
    text = ir.substr(two.begin, two.end - two.begin) +
           ir.substr(one.end, two.begin - one.end) +
           ir.substr(one.begin, one.end - one.begin);
    ir.replace(one.begin, two.end - one.begin, text);
    return true;
  default: // moved
    ir.insert(two.begin, text);
    return true;
  }
}

/// The beginnings of schedules of each kind.
static Strings getKindWords() {
  Strings words;
  for (const mlir::bngrad::ScheduleInfo &info : mlir::bngrad::kSchedules)
    words.push_back(std::string("<") + info.name);
  return words;
}

/// The beginnings of the clauses of operands.
static Strings getRoleWords() {
  Strings words;
  for (const mlir::bngrad::RoleInfo &info : mlir::bngrad::kRoles)
    words.push_back(std::string(" ") + info.name + "(");
  return words;
}

bool IrMutator::changeOp(std::string &ir) {
  static const std::vector<Strings> kFamilies = {
      {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf",
       "arith.minimumf", "arith.maxnumf", "arith.remf"},
      {"arith.negf", "math.absf", "math.sqrt", "math.rsqrt", "math.exp",
       "math.log", "math.tanh", "math.erf", "math.floor", "math.sin"},
      {"arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.remsi",
       "arith.andi", "arith.xori", "arith.maxsi", "arith.shli"},
      {"linalg.add", "linalg.mul", "linalg.sub", "linalg.div", "linalg.max"},
      {"linalg.exp", "linalg.abs", "linalg.negf", "linalg.sqrt"},
      {"ogt", "olt", "oeq", "une", "uno", "ord", "ult"},
      {"tensor.expand_shape", "tensor.collapse_shape"},
      {"tensor.extract_slice", "tensor.insert_slice"},
      {"bngrad.batch_norm_backward_reduce", "bngrad.batch_norm_backward_elemt",
       "bngrad.batch_norm_backward"},
      {"bngrad.batch_norm_training_reduce", "bngrad.batch_norm_training",
       "bngrad.batch_norm_inference"},
      {"variance(", "inv_std("},
      getRoleWords(),
      getKindWords(),
      {"memref.alloc", "memref.alloca"},
      {"scf.for", "scf.parallel", "scf.forall"}};
  const Strings &family = pick(random, kFamilies);
  std::vector<size_t> places;
  Strings found = findWords(ir, family, places);
  if (found.empty())
    return false;
  size_t i = below(random, found.size());
  ir.replace(places[i], found[i].size(), pick(random, family));
  return true;
}

//===----------------------------------------------------------------------===//
// Operands, numbers, attributes
//===----------------------------------------------------------------------===//

bool IrMutator::changeOperand(std::string &ir) {
  std::vector<Range> names;
  for (size_t at = ir.find('%'); at != std::string::npos;
       at = ir.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < ir.size() && (isNameChar(ir[end]) || ir[end] == '#'))
      ++end;
    names.push_back({at, end});
  }
  if (names.size() < 2)
    return false;
  Range from = pick(random, names), to = pick(random, names);
  ir.replace(from.begin, from.end - from.begin,
             ir.substr(to.begin, to.end - to.begin));
  return true;
}

std::string IrMutator::number() {
  static const Strings kNumbers = {"0",
                                   "1",
                                   "2",
                                   "3",
                                   "4",
                                   "5",
                                   "7",
                                   "8",
                                   "16",
                                   "-1",
                                   "-2",
                                   "31",
                                   "32",
                                   "33",
                                   "64",
                                   "100",
                                   "1024",
                                   "65536",
                                   "127",
                                   "-128",
                                   "2147483647",
                                   "4294967296",
                                   "9223372036854775807",
                                   "-9223372036854775808"};
  // The last ones are beyond most limits.
  return kNumbers[below(random, below(random, 5) ? 10 : kNumbers.size())];
}

std::string IrMutator::size() {
  static const Strings kSizes = {"1", "?", "2",  "3",  "4",   "5",  "7",
                                 "8", "0", "16", "17", "130", "64", "4096"};
  return kSizes[below(random, below(random, 8) ? 10 : kSizes.size())];
}

std::string IrMutator::fresh() {
  return "%fuzz" + std::to_string(random() % 100000) + "_" +
         std::to_string(numFresh++);
}

std::vector<IrMutator::Range> IrMutator::findNumbers(const std::string &ir) {
  std::vector<Range> numbers;
  for (size_t i = 1; i < ir.size(); ++i) {
    if (!isDigit(ir[i]) || isNameChar(ir[i - 1]) || ir[i - 1] == '%' ||
        ir[i - 1] == '#')
      continue;
    size_t end = i;
    while (end < ir.size() && isDigit(ir[end]))
      ++end;
    // Sizes of types are changed elsewhere.
    if (end == ir.size() || ir[end] != 'x')
      numbers.push_back({i, end});
    i = end;
  }
  return numbers;
}

bool IrMutator::changeNumber(std::string &ir) {
  std::vector<Range> numbers = findNumbers(ir);
  if (numbers.empty())
    return false;
  Range at = pick(random, numbers);
  static const Strings kFloats = {"0x7FC00000", "0x7F800000", "0xFF800000",
                                  "1.0e-45",    "3.4e38",     "-0.0",
                                  "1.0",        "1.0e-320",   "0.5"};
  bool isFloat = at.end < ir.size() && ir[at.end] == '.';
  ir.replace(at.begin, at.end - at.begin,
             isFloat && below(random, 3) ? pick(random, kFloats) : number());
  return true;
}

bool IrMutator::changeMap(std::string &ir) {
  static const Strings kResults = {"d0",       "d1",  "d2",
                                   "0",        "1",   "d0 + d1",
                                   "d0 * 2",   "-d0", "d0 floordiv 2",
                                   "d1 mod 2", "s0",  "d3"};
  std::vector<size_t> maps;
  findWords(ir,
            {"affine_map<", "permutation = [", "feature_dims = array<i64: ",
             "dimensions = [", "iterator_types = ["},
            maps);
  if (maps.empty())
    return false;
  size_t begin = pick(random, maps);
  size_t arrow = ir.compare(begin, 11, "affine_map<") == 0
                     ? ir.find("-> (", begin)
                     : std::string::npos;
  begin = arrow == std::string::npos
              ? ir.find_first_of("[:", begin) + 1
              : (below(random, 8) ? arrow + 4 : ir.find('(', begin) + 1);
  size_t end = ir.find_first_of(")]>", begin);
  if (end == std::string::npos)
    return false;
  Strings parts;
  for (size_t at = begin; at < end;) {
    size_t comma = std::min(ir.find(", ", at), end);
    parts.push_back(ir.substr(at, comma - at));
    at = comma == end ? end : comma + 2;
  }
  bool isIterators = !parts.empty() && parts[0][0] == '"';
  auto part = [&]() -> std::string {
    if (isIterators)
      return below(random, 2) ? "\"parallel\"" : "\"reduction\"";
    return arrow == std::string::npos ? " " + number() : pick(random, kResults);
  };
  size_t i = below(random, parts.size());
  switch (below(random, 4)) {
  case 0:
    parts.insert(parts.begin() + i, part());
    break;
  case 1:
    if (!parts.empty())
      parts.erase(parts.begin() + i);
    break;
  case 2:
    if (!parts.empty())
      std::swap(parts[i], parts[below(random, parts.size())]);
    break;
  default:
    if (!parts.empty())
      parts[i] = part();
  }
  std::string text;
  for (const std::string &each : parts)
    text += (text.empty() ? "" : ", ") + each;
  ir.replace(begin, end - begin, text);
  return true;
}

bool IrMutator::changeAttribute(std::string &ir) {
  static const std::vector<Strings> kFamilies = {
      {"fastmath<contract>", "fastmath<reassoc>", "fastmath<fast>",
       "fastmath<nnan>", "fastmath<reassoc,contract>", "fastmath<none>"},
      {"<batch>", "<global>"},
      {"feature_dims = array<i64: 1>", "feature_dims = array<i64: 0>",
       "feature_dims = array<i64: 0, 1>", "feature_dims = array<i64>",
       "feature_dims = array<i64: 2, 1>"},
      {"private", "public", "nested"},
      {"restrict", "restrict writable", "writable"},
      {"{bufferization.writable = false}", "{bufferization.writable = true}",
       "{llvm.noalias}"},
      {" : f64", " : f32", " : i64"}};
  std::vector<Range> schedules;
  for (size_t at = ir.find("#bngrad.schedule<"); at != std::string::npos;
       at = ir.find("#bngrad.schedule<", at + 1))
    schedules.push_back({at, ir.find('>', at) + 1});
  if (!schedules.empty() && below(random, 2)) {
    Range range = pick(random, schedules);
    if (range.end > range.begin)
      ir.replace(range.begin, range.end - range.begin,
                 makeSchedule(below(random, 2)));
    return true;
  }
  if (below(random, 2)) {
    const Strings &family = pick(random, kFamilies);
    std::vector<size_t> places;
    Strings found = findWords(ir, family, places);
    if (found.empty())
      return false;
    size_t i = below(random, found.size());
    ir.replace(places[i], found[i].size(), pick(random, family));
    return true;
  }
  // An entry of a dictionary.
  std::vector<size_t> opens;
  findWords(ir, {" {"}, opens);
  if (opens.empty())
    return false;
  size_t begin = pick(random, opens) + 2;
  size_t end = ir.find_first_of("}\n", begin);
  if (end == std::string::npos || ir[end] == '\n')
    return false;
  size_t comma = ir.find(", ", begin);
  if (comma < end && below(random, 2))
    ir.erase(begin, comma + 2 - begin);
  else if (below(random, 2))
    ir.insert(begin, "bngrad.schedule = " + makeSchedule(below(random, 2)) +
                         (begin == end ? "" : ", "));
  else
    ir.erase(begin, end - begin);
  return true;
}

/// Values of a parameter: legal ones, its limits, and values beyond them.
static Strings listValues(const mlir::bngrad::ParameterRange &range) {
  using Form = mlir::bngrad::ParameterRange::Form;
  std::vector<int64_t> values = {1, 2, 3, 8, 32, 100, 1024, 1 << 20, -1, 0};
  if (range.form == Form::PowersOf2)
    for (int64_t value = range.least; value <= range.most; value *= 2)
      values.push_back(value);
  if (range.form == Form::Multiples)
    for (int64_t factor : {1, 2, 4, 8})
      values.push_back(range.least * factor);
  // Those beside the limits wrap around.
  for (int64_t value : {range.least, range.most})
    for (uint64_t offset : {-1, 0, 1})
      values.push_back(static_cast<int64_t>(value + offset));
  Strings texts;
  for (int64_t value : values)
    texts.push_back(std::to_string(value));
  return texts;
}

std::string IrMutator::makeSchedule(bool gpu) {
  using namespace mlir::bngrad;
  if (below(random, 16) == 0)
    return "#bngrad.schedule<loops>";
  std::vector<ScheduleKind> kinds;
  for (const ScheduleInfo &info : kSchedules)
    if (info.target == (gpu ? ScheduleTarget::Gpu : ScheduleTarget::Cpu))
      kinds.push_back(info.kind);
  ScheduleKind kind = pick(random, kinds);
  std::string text = std::string("#bngrad.schedule<") + getInfo(kind).name;
  auto addParameters = [&](auto all, auto own) {
    for (const auto &parameter : all) {
      // Parameters of another kind are errors, but rare.
      bool isOwn = llvm::any_of(
          own, [&](const auto &other) { return other.name == parameter.name; });
      if (below(random, isOwn ? 3 : 60) == 0)
        text += ", " + parameter.name.str() + " = " +
                (below(random, 12) ? pick(random, listValues(parameter.range))
                                   : number());
    }
  };
  if (gpu)
    addParameters(getScheduleParameters<GpuSchedule>(),
                  getScheduleParameters<GpuSchedule>(kind));
  else
    addParameters(getScheduleParameters<CpuSchedule>(),
                  getScheduleParameters<CpuSchedule>(kind));
  if (below(random, 3) == 0)
    text += below(random, 8) ? ", fma = true" : ", fma = 1";
  return text + ">";
}

} // namespace bngrad::fuzz
