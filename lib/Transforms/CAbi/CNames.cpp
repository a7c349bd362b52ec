//===- CNames.cpp - reserved names of C and C++ ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CAbi/ExportC.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace {
enum class Kind { Keyword, Macro, UsedType, Declared, Math, Namespace };

/// A row of CNames.def.
struct Row {
  Kind kind;
  StringLiteral where, c, cClause, cxx, cxxClause, names;
};

/// What a reserved name denotes in C or C++.
struct Meaning {
  const Row *row = nullptr;
  /// Whether the name is a math function for a type that was added in C23.
  bool isSinceC23 = false;

  explicit operator bool() const { return row; }
};
} // namespace

static constexpr Row kRows[] = {
#define BNGRAD_C_NAMES(kind, ...) {Kind::kind, __VA_ARGS__},
#include "CNames.def"
};

// Suffixes of math functions, by type: C99 7.12 and 7.3; C23 7.12 (also for
// decimal types) and H.11.
static constexpr StringLiteral kSuffixes[] = {"f", "l"};
static constexpr StringLiteral kSuffixesOfC23[] = {
    "d32", "d64", "d96", "d128", "d64x", "d128x", "f16",
    "f32", "f64", "f96", "f128", "f32x", "f64x",  "f128x"};

/// The rows of CNames.def by exact name, and by prefix for names that end in
/// `*`.
static const auto &getNames() {
  struct Names {
    llvm::StringMap<const Row *> exact;
    SmallVector<std::pair<StringRef, const Row *>> prefixes;
  };
  // Never destroyed, because other threads may still compile while the process
  // exits.
  static const Names &names = *new Names([] {
    Names result;
    for (const Row &row : kRows) {
      SmallVector<StringRef> words;
      row.names.split(words, ' ');
      for (StringRef word : words) {
        if (word.consume_back("*"))
          result.prefixes.push_back({word, &row});
        else
          result.exact.try_emplace(word, &row);
      }
    }
    return result;
  }());
  return names;
}

static Meaning findMeaning(StringRef name) {
  const auto &names = getNames();
  if (const Row *row = names.exact.lookup(name))
    return {row};
  for (auto [prefix, row] : names.prefixes)
    if (name.starts_with(prefix))
      return {row};
  auto findMath = [&](ArrayRef<StringLiteral> suffixes) -> const Row * {
    for (StringRef suffix : suffixes)
      if (name.ends_with(suffix))
        if (const Row *row = names.exact.lookup(name.drop_back(suffix.size()));
            row && row->kind == Kind::Math)
          return row;
    return nullptr;
  };
  if (const Row *row = findMath(kSuffixes))
    return {row};
  if (const Row *row = findMath(kSuffixesOfC23))
    return {row, /*isSinceC23=*/true};
  return {};
}

static std::string describe(Meaning meaning) {
  const Row &row = *meaning.row;
  std::string text;
  switch (row.kind) {
  case Kind::Keyword:
    text = "a keyword";
    break;
  case Kind::Macro:
    text = "a macro of " + row.where.str();
    break;
  case Kind::Namespace:
    text = "a namespace";
    break;
  case Kind::UsedType:
  case Kind::Declared:
  case Kind::Math:
    text = row.where.empty() ? "a function" : "declared in " + row.where.str();
    break;
  }
  if (meaning.isSinceC23)
    return text + " since C23";
  bool isStandardC =
      row.c.empty() || row.c == "C99" || row.c == "C11" || row.c == "C23";
  text += isStandardC ? " since " : " in ";
  text += row.c;
  if (!row.c.empty() && !row.cxx.empty())
    text += " and ";
  return text + row.cxx.str();
}

/// Whether `name` is an identifier in every version of C: ASCII letters, digits
/// and `_`.
static bool isIdentifier(StringRef name) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, isWord);
}

/// Whether the name may be declared in BNGrad's headers or defined by a library
/// that the output is linked with.
static bool isOfRuntime(StringRef name) {
  static constexpr StringLiteral kPrefixes[] = {
      "bngrad", "BNGRAD_", "kmp_", "kmpc_", "mgpu", "omp_", "ompc_", "ompt_"};
  return llvm::any_of(
      kPrefixes, [&](StringRef prefix) { return name.starts_with(prefix); });
}

/// Whether LLVM treats `name` as a C library function.
static bool isKnownToLLVM(StringRef name) {
  static const auto &library = *new llvm::TargetLibraryInfoImpl(
      llvm::Triple("x86_64-unknown-linux-gnu"));
  llvm::LibFunc function;
  return library.getLibFunc(name, function);
}

bool mlir::bngrad::isCLibraryName(StringRef name) {
  Meaning meaning = findMeaning(name);
  return isKnownToLLVM(name) ||
         (meaning && (meaning.row->kind == Kind::Declared ||
                      meaning.row->kind == Kind::Math));
}

bool mlir::bngrad::isCParameterName(StringRef name) {
  // C99 7.1.3 and C++11 [global.names] reserve names with a leading underscore,
  // in some or all scopes depending on the next character.
  if (!isIdentifier(name) || name.front() == '_' || isOfRuntime(name))
    return false;
  Meaning meaning = findMeaning(name);
  return !meaning || meaning.row->kind == Kind::Declared ||
         meaning.row->kind == Kind::Math ||
         meaning.row->kind == Kind::Namespace;
}

std::string mlir::bngrad::findExportNameError(StringRef name) {
  if (!isIdentifier(name))
    return "not a C identifier";
  // C99 7.1.3 and C++11 [global.names] reserve these names at file scope.
  if (name.front() == '_')
    return "names with a leading underscore are reserved since C99 and C++11";
  if (isOfRuntime(name))
    return "reserved for the runtime libraries";
  if (Meaning meaning = findMeaning(name))
    return describe(meaning);
  if (isKnownToLLVM(name))
    return "reserved for the C library";
  return "";
}
