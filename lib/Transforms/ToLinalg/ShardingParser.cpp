//===- ShardingParser.cpp - parses texts of shardings ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingParser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::bngrad;

int64_t ShardingParser::multiply(ArrayRef<int64_t> counts) {
  int64_t product = 1;
  for (int64_t count : counts)
    if (llvm::MulOverflow(product, count, product))
      return INT64_MAX;
  return product;
}

std::string ShardingParser::escape(StringRef text) {
  std::string escaped;
  for (char c : text)
    if (llvm::isPrint(c))
      escaped += c;
    else
      escaped += "\\" + llvm::toHex(StringRef(&c, 1));
  return escaped;
}

LogicalResult ShardingParser::fail(const Twine &expected) {
  skipSpace();
  return emitError() << "expected " << expected << " in sharding " << shown
                     << ", got "
                     << (rest.empty() ? "the end" : "'" + escape(rest) + "'");
}

StringRef ShardingParser::parseWord() {
  skipSpace();
  StringRef word = rest.take_while(
      [](char c) { return llvm::isAlnum(c) || StringRef("_.$-").contains(c); });
  rest = rest.drop_front(word.size());
  return word;
}

FailureOr<std::string> ShardingParser::parseString(char quote) {
  if (!consume(StringRef(&quote, 1)))
    return fail("a name in quotes");
  std::string content;
  while (!rest.empty() && rest.front() != quote) {
    char c = rest.front();
    rest = rest.drop_front();
    if (c == '\\' && rest.size() >= 2 && llvm::isHexDigit(rest[0]) &&
        llvm::isHexDigit(rest[1])) {
      content += static_cast<char>(llvm::hexFromNibbles(rest[0], rest[1]));
      rest = rest.drop_front(2);
    } else if (c == '\\' && !rest.empty()) {
      char escaped = rest.front();
      rest = rest.drop_front();
      content += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
    } else {
      content += c;
    }
  }
  if (failed(expect(StringRef(&quote, 1))))
    return failure();
  return content;
}

FailureOr<int64_t> ShardingParser::parseInteger(int64_t least) {
  skipSpace();
  StringRef before = rest;
  int64_t integer = 0;
  if (!rest.consumeInteger(10, integer) && integer >= least)
    return integer;
  rest = before;
  return fail("an integer of at least " + Twine(least));
}

LogicalResult
ShardingParser::parseList(StringRef close,
                          function_ref<LogicalResult()> parseElement) {
  if (consume(close))
    return success();
  do {
    if (failed(parseElement()))
      return failure();
  } while (consume(","));
  return consume(close) ? success() : fail("',' or '" + close + "'");
}

FailureOr<SmallVector<int64_t>> ShardingParser::parseIntegers(StringRef close,
                                                              int64_t least) {
  SmallVector<int64_t> integers;
  LogicalResult result = parseList(close, [&]() -> LogicalResult {
    FailureOr<int64_t> integer = parseInteger(least);
    if (succeeded(integer))
      integers.push_back(*integer);
    return integer;
  });
  if (failed(result))
    return failure();
  return integers;
}

LogicalResult ShardingParser::parseAxisSize(StringRef name, Mesh &mesh) {
  if (failed(expect("=")))
    return failure();
  FailureOr<int64_t> size = parseInteger(/*least=*/1);
  if (failed(size))
    return failure();
  if (!mesh.try_emplace(name, *size).second)
    return fail("one axis '" + name + "' before this");
  return success();
}

LogicalResult ShardingParser::parseAxisPart(StringRef name, const Mesh *mesh,
                                            bool splits) {
  if (!mesh || !mesh->contains(name))
    return emitError() << "expected axis '" << name << "' of sharding " << shown
                       << " to be in its mesh";
  int64_t size = mesh->lookup(name);
  std::string devices = ("the " + Twine(size) + " devices").str();
  if (consume(":")) {
    if (failed(expect("(")))
      return failure();
    FailureOr<int64_t> before = parseInteger(/*least=*/1);
    if (failed(before) || failed(expect(")")))
      return failure();
    FailureOr<int64_t> part = parseInteger(/*least=*/1);
    if (failed(part))
      return failure();
    if (size % multiply({*before, *part}) != 0)
      return fail("a part of the " + Twine(size) + " devices of axis '" + name +
                  "' before this");
    devices = (Twine(*part) + " of " + devices).str();
    size = *part;
  }
  return size == 1 || !splits ? success()
                              : failOver(devices + " of axis '" + name + "'");
}
