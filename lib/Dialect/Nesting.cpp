//===- Nesting.cpp - a limit of nesting in modules ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/Nesting.h"

#include "BytecodeNesting.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Deeper than any real program is nested. Upstream crashes at a few thousand
/// levels, with a stack of 8 MiB.
static constexpr unsigned kMostNesting = 256;

namespace {
/// Finds where a text is nested too deeply.
class NestingScanner {
public:
  explicit NestingScanner(StringRef text) : text(text) {}

  /// The place; npos if there is none.
  size_t find();

private:
  struct Bracket {
    char open;
    /// Operators of an affine expression so far.
    unsigned numOperators = 0;
  };

  /// Skips what starts at the place and has no brackets: a text or a comment.
  bool skipQuoted();
  void open(char bracket) { brackets.push_back({bracket}); }
  void close(char bracket);
  void countOperator();
  void readName();
  void readWord();
  /// Notes a nesting at the place.
  void note(unsigned depth);
  /// Whether the place begins a line outside of brackets.
  bool startsStatement() const {
    if (brackets.size() > 1)
      return false;
    StringRef before = text.take_front(at).rtrim(" \t");
    return before.empty() || before.ends_with('\n');
  }

  char peek(size_t ahead = 1) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }

  StringRef text;
  size_t at = 0;
  bool isTooDeep = false;
  SmallVector<Bracket> brackets = {{'\0'}};
  /// The depth of each alias, and the depth of the alias that is being defined,
  /// or null if none is.
  llvm::StringMap<unsigned> aliases;
  unsigned *defined = nullptr;
};
} // namespace

bool NestingScanner::skipQuoted() {
  if (text[at] == '/' && peek() == '/') {
    at = std::min(text.find('\n', at), text.size());
    return true;
  }
  if (text[at] != '"')
    return false;
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    at += text[at] == '\\';
  ++at;
  return true;
}

void NestingScanner::note(unsigned depth) {
  depth += brackets.size() - 1 + brackets.back().numOperators;
  isTooDeep |= depth > kMostNesting;
  if (defined)
    *defined = std::max(*defined, depth);
}

/// Closes the last bracket of its kind. A '<' inside it need not be a bracket,
/// and then is not closed.
void NestingScanner::close(char bracket) {
  if (bracket == '<' && brackets.back().open != '<')
    return;
  auto open = llvm::find_if(llvm::reverse(brackets), [&](const Bracket &other) {
    return other.open == bracket;
  });
  if (open != brackets.rend())
    brackets.erase(std::prev(open.base()), brackets.end());
}

void NestingScanner::countOperator() {
  ++brackets.back().numOperators;
  note(0);
}

/// Reads a name that may be an alias, at its '#' or '!'.
void NestingScanner::readName() {
  // A definition may follow another one on the same line.
  bool isDefinition = brackets.size() == 1;
  StringRef name = text.substr(at).take_while([](char c) {
    return llvm::isAlnum(c) || StringRef("#!_$-.").contains(c);
  });
  StringRef rest = text.substr(at + name.size()).ltrim();
  if (isDefinition && rest.starts_with("=") && !rest.starts_with("=="))
    defined = &aliases[name];
  else if (auto alias = aliases.find(name); alias != aliases.end())
    note(alias->second + 1);
  at += std::max<size_t>(name.size(), 1);
}

/// Reads a word, which may be an operator of affine expressions.
void NestingScanner::readWord() {
  if (startsStatement())
    defined = nullptr;
  StringRef word = text.substr(at).take_while(
      [](char c) { return llvm::isAlnum(c) || c == '_'; });
  bool isPartOfName = at > 0 && StringRef("@%#!.$-").contains(text[at - 1]);
  if (!isPartOfName && brackets.size() > 1 &&
      (word == "floordiv" || word == "ceildiv" || word == "mod"))
    countOperator();
  at += word.size();
}

size_t NestingScanner::find() {
  while (at < text.size()) {
    size_t start = at;
    char c = text[at];
    if (skipQuoted())
      continue;
    if (c == '#' || c == '!') {
      readName();
    } else if (llvm::isAlpha(c)) {
      readWord();
    } else if ((c == '-' && peek() == '>') ||
               ((c == '<' || c == '>') && peek() == '=')) {
      at += 2;
    } else {
      if (c == '(' || c == '[' || c == '{' || c == '<') {
        open(c);
        note(0);
      } else if (c == ')' || c == ']' || c == '}' || c == '>') {
        close(c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<');
      } else if (c == '+' || c == '-' || c == '*') {
        countOperator();
      } else if (c == ',' || c == '=' || c == ':') {
        brackets.back().numOperators = 0;
      }
      ++at;
    }
    if (isTooDeep)
      return start;
  }
  return StringRef::npos;
}

/// The option of upstream's transform-preload-library.
static constexpr StringLiteral kLibraryPaths = "transform-library-paths=";

/// What a scanner of text finds.
static constexpr StringLiteral kTextKinds = "brackets, aliases and operators";

static std::string describeError(StringRef what) {
  return ("expected " + what + " to be nested at most " + Twine(kMostNesting) +
          " deep, got more")
      .str();
}

/// Checks the nesting that is visible in the bytes. limitNesting() makes the
/// reader check encoded attributes and types.
static LogicalResult verifyNesting(llvm::MemoryBufferRef buffer,
                                   MLIRContext *context) {
  StringRef text = buffer.getBuffer();
  auto report = [&](size_t line, size_t column) {
    return emitError(FileLineColLoc::get(context, buffer.getBufferIdentifier(),
                                         line, column));
  };
  auto fail = [&](StringRef what, size_t line, size_t column) {
    return report(line, column) << describeError(what);
  };
  if (isBytecode(buffer)) {
    if (hasExcessEntries(text))
      return report(0, 0) << "expected as many attributes and types in groups "
                             "of the bytecode as it declares, got more";
    if (hasDeepRegions(text, kMostNesting))
      return fail("regions", 0, 0);
    bool isTooDeep = false;
    forEachText(text, [&](StringRef entry) {
      isTooDeep = isTooDeep || NestingScanner(entry).find() != StringRef::npos;
    });
    return isTooDeep ? fail(kTextKinds, 0, 0) : success();
  }
  size_t place = NestingScanner(text).find();
  if (place == StringRef::npos)
    return success();
  StringRef before = text.take_front(place);
  size_t line = before.count('\n') + 1;
  size_t column = place - (before.rfind('\n') + 1) + 1;
  return fail(kTextKinds, line, column);
}

OwningOpRef<ModuleOp>
mlir::bngrad::parseModule(std::unique_ptr<llvm::MemoryBuffer> buffer,
                          MLIRContext *context) {
  if (failed(::verifyNesting(*buffer, context)))
    return {};
  ParserConfig config(context);
  limitNesting(config, kMostNesting);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, config);
}

LogicalResult mlir::bngrad::verifyNesting(llvm::MemoryBufferRef buffer,
                                          MLIRContext *context) {
  if (failed(::verifyNesting(buffer, context)))
    return failure();
  if (!isBytecode(buffer))
    return success();
  ParserConfig config(context, /*verifyAfterParse=*/false);
  bool isTooDeep = false;
  limitNesting(config, kMostNesting, &isTooDeep);
  // Other errors are left to the reader of the bytecode.
  ScopedDiagnosticHandler handler(
      context, [&](Diagnostic &) { return success(!isTooDeep); });
  Block block;
  (void)readBytecodeFile(buffer, &block, config);
  return failure(isTooDeep);
}

static LogicalResult verifyFile(StringRef path, MLIRContext *context) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file =
      llvm::MemoryBuffer::getFile(path);
  return file ? mlir::bngrad::verifyNesting(**file, context) : success();
}

LogicalResult mlir::bngrad::verifyNestingOfLibraries(StringRef pipeline,
                                                     MLIRContext *context) {
  namespace fs = llvm::sys::fs;
  while (!pipeline.empty()) {
    pipeline = pipeline.split(kLibraryPaths).second;
    // A list may be in braces.
    StringRef list = pipeline.ltrim('{').take_until(
        [](char c) { return c == ' ' || c == '}'; });
    for (StringRef path : llvm::split(list, ',')) {
      if (failed(verifyFile(path, context)))
        return failure();
      std::error_code error;
      for (fs::directory_iterator entry(path, error), end;
           !error && entry != end; entry.increment(error))
        if (StringRef(entry->path()).ends_with(".mlir") &&
            failed(verifyFile(entry->path(), context)))
          return failure();
    }
  }
  return success();
}

LogicalResult mlir::bngrad::verifyNesting(StringRef text, std::string &reason) {
  if (NestingScanner(text).find() == StringRef::npos)
    return success();
  reason = describeError(kTextKinds);
  return failure();
}
