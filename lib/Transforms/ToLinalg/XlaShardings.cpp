//===- XlaShardings.cpp - shardings of XLA --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The grammar is that of HloParserImpl::ParseSharding in XLA.
//
//===----------------------------------------------------------------------===//

#include "ShardingParser.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// Parses shardings of XLA.
class XlaParser : ShardingParser {
public:
  XlaParser(StringRef text, int64_t numDevices, EmitError emitError)
      : ShardingParser("\"" + escape(text) + "\"", text, emitError),
        numDevices(numDevices) {}

  LogicalResult parse();

private:
  /// The properties of a sharding without a mesh.
  struct Properties {
    /// A word such as "replicated".
    StringRef kind;
    bool hasDevice = false;
    SmallVector<int64_t> tiles;
    /// The kinds of the last tiles.
    SmallVector<StringRef> lastKinds;
  };

  /// Each of these begins after the `{`.
  LogicalResult parseSharding();
  LogicalResult parseNamedSharding();
  LogicalResult parseMaximalMesh();
  LogicalResult skipMetadata();

  LogicalResult parseProperty(Properties &properties);
  LogicalResult verify(const Properties &properties);
  /// `[2,2]<=[4]` or `[2,2]0,1,2,3`.
  LogicalResult parseTiles(SmallVectorImpl<int64_t> &tiles);
  /// `[2,2]T(1,0)` or `[4]`: the number of devices.
  FailureOr<int64_t> parseIota();

  /// `mesh['x'=2,'y'=4]` after the word; also without quotes.
  LogicalResult parseMesh();
  /// `device_ids=(0,1)` after the '='.
  LogicalResult parseDeviceIds();
  /// `, [{'x'}, {?}]`, `, replicated` or `, manual={'x'}` after the comma.
  LogicalResult parseNamedProperty();
  LogicalResult parseAxes(bool splits);
  FailureOr<std::string> parseName();

  /// The number of devices of shardings that do not give one.
  int64_t numDevices;
  Mesh mesh;
  /// The axes of the mesh, which may be numbered.
  SmallVector<std::string> axes;
};
} // namespace

LogicalResult XlaParser::parse() {
  // The default of MHLO is replicated.
  if (rest.empty())
    return success();
  if (failed(expect("{")))
    return failure();
  LogicalResult result = success();
  // A tuple may be empty, and nothing else may.
  if (startsWith("{") || startsWith("}"))
    result = parseList(
        "}", [&] { return failed(expect("{")) ? failure() : parseSharding(); });
  else
    result = parseSharding();
  return failed(result) ? failure() : expectEnd();
}

LogicalResult XlaParser::parseSharding() {
  if (startsWith("mesh"))
    return parseNamedSharding();
  if (consume("maximal_mesh"))
    return parseMaximalMesh();
  Properties properties;
  while (!consume("}"))
    if (failed(parseProperty(properties)))
      return failure();
  return verify(properties);
}

LogicalResult XlaParser::parseProperty(Properties &properties) {
  StringRef before = rest, word = parseWord();
  if (word == "replicated" || word == "maximal" || word == "manual" ||
      word == "unknown" || word == "unreduced") {
    if (!properties.kind.empty())
      return fail("one kind before this");
    properties.kind = word;
    return success();
  }
  if (word == "last_tile_dim_replicate") {
    properties.lastKinds.push_back("replicated");
    return success();
  }
  if (word == "shard_as" || word == "shard_like")
    return parseInteger(/*least=*/0);
  if (word == "device" && consume("=")) {
    properties.hasDevice = true;
    return parseInteger(/*least=*/0);
  }
  if (word == "devices" && consume("="))
    return parseTiles(properties.tiles);
  if (word == "last_tile_dims" && consume("=")) {
    if (failed(expect("{")))
      return failure();
    return parseList("}", [&]() -> LogicalResult {
      properties.lastKinds.push_back(parseWord());
      return properties.lastKinds.back().empty() ? fail("a kind") : success();
    });
  }
  if (word == "metadata" && consume("="))
    return skipMetadata();
  rest = before;
  return fail("a property such as 'replicated' or 'devices='");
}

LogicalResult XlaParser::verify(const Properties &properties) {
  StringRef kind = properties.kind;
  ArrayRef<int64_t> tiles = properties.tiles;
  if ((kind == "maximal") != properties.hasDevice)
    return fail("'maximal' with 'device=' before this");
  if (kind.empty() == tiles.empty())
    return fail("'devices=' or a kind such as 'replicated' before this");
  if (kind == "manual" || kind == "unreduced")
    return verifyDevices(numDevices);
  if (!kind.empty())
    return success();
  size_t numLast = properties.lastKinds.size();
  if (numLast > tiles.size())
    return fail("at most " + Twine(tiles.size()) +
                " kinds of tiles before "
                "this");
  SmallVector<int64_t> splits(tiles.drop_back(numLast));
  for (auto [tile, lastKind] :
       llvm::zip_equal(tiles.take_back(numLast), properties.lastKinds))
    if (lastKind != "replicated")
      splits.push_back(tile);
  return verifyDevices(multiply(splits));
}

FailureOr<int64_t> XlaParser::parseIota() {
  if (failed(expect("[")))
    return failure();
  FailureOr<SmallVector<int64_t>> sizes = parseIntegers("]", /*least=*/1);
  if (failed(sizes))
    return failure();
  if (consume("T")) {
    if (failed(expect("(")))
      return failure();
    FailureOr<SmallVector<int64_t>> order = parseIntegers(")", /*least=*/0);
    if (failed(order))
      return failure();
    llvm::sort(*order);
    if (!llvm::equal(*order, llvm::seq<int64_t>(0, sizes->size())))
      return fail("an order of " + Twine(sizes->size()) + " dims before this");
  }
  return multiply(*sizes);
}

LogicalResult XlaParser::parseTiles(SmallVectorImpl<int64_t> &tiles) {
  if (failed(expect("[")))
    return failure();
  FailureOr<SmallVector<int64_t>> sizes = parseIntegers("]", /*least=*/1);
  if (failed(sizes))
    return failure();
  tiles = *sizes;
  FailureOr<int64_t> count = 0;
  if (consume("<=")) {
    count = parseIota();
    if (failed(count))
      return failure();
  } else {
    do {
      if (failed(parseInteger(/*least=*/0)))
        return failure();
      ++*count;
    } while (consume(","));
  }
  if (tiles.empty() || *count != multiply(tiles))
    return fail("one device for each tile before this");
  return success();
}

LogicalResult XlaParser::skipMetadata() {
  if (failed(expect("{")))
    return failure();
  for (unsigned depth = 1; depth > 0;) {
    if (rest.empty())
      return fail("'}'");
    if (startsWith("\"")) {
      if (failed(parseString('"')))
        return failure();
      continue;
    }
    depth += rest.front() == '{';
    depth -= rest.front() == '}';
    rest = rest.drop_front();
  }
  return success();
}

FailureOr<std::string> XlaParser::parseName() {
  for (char quote : {'\'', '"'})
    if (startsWith(StringRef(&quote, 1)))
      return parseString(quote);
  // A part of an axis may follow: x:(1)2.
  StringRef word = parseWord();
  if (word.empty())
    return fail("a name");
  return word.str();
}

LogicalResult XlaParser::parseMaximalMesh() {
  if (failed(expect("[")) || failed(expect("device_id")) ||
      failed(expect("=")) || failed(parseInteger(/*least=*/0)) ||
      failed(expect("]")))
    return failure();
  if (consume(",") && (failed(expect("metadata")) || failed(expect("=")) ||
                       failed(skipMetadata())))
    return failure();
  return expect("}");
}

LogicalResult XlaParser::parseMesh() {
  if (failed(expect("mesh")) || failed(expect("[")))
    return failure();
  mesh.clear();
  axes.clear();
  return parseList("]", [&]() -> LogicalResult {
    FailureOr<std::string> name = parseName();
    if (failed(name))
      return failure();
    axes.push_back(*name);
    return parseAxisSize(*name, mesh);
  });
}

LogicalResult XlaParser::parseDeviceIds() {
  if (failed(expect("(")))
    return failure();
  if (startsWith("["))
    return failed(parseIota()) ? failure() : expect(")");
  return parseIntegers(")", /*least=*/0);
}

LogicalResult XlaParser::parseNamedSharding() {
  if (failed(parseMesh()))
    return failure();
  while (!consume("}"))
    if (failed(expect(",")) || failed(parseNamedProperty()))
      return failure();
  return success();
}

LogicalResult XlaParser::parseNamedProperty() {
  if (consume("["))
    return parseList("]", [&] { return parseAxes(/*splits=*/true); });
  StringRef before = rest, word = parseWord();
  if (word == "device_ids" && consume("="))
    return parseDeviceIds();
  if (word == "metadata" && consume("="))
    return skipMetadata();
  bool splits = word == "unreduced" || word == "manual";
  if (splits || word == "replicated") {
    if (consume("="))
      return parseAxes(splits);
    if (!splits)
      return success();
    return verifyDevices(
        multiply(llvm::to_vector(llvm::make_second_range(mesh))));
  }
  rest = before;
  return fail("'[', 'replicated', 'unreduced' or 'manual'");
}

LogicalResult XlaParser::parseAxes(bool splits) {
  if (failed(expect("{")))
    return failure();
  return parseList("}", [&]() -> LogicalResult {
    if (consume("?"))
      return success();
    FailureOr<std::string> name = parseName();
    if (failed(name))
      return failure();
    size_t number = 0;
    bool isNumber = !mesh.contains(*name) && llvm::to_integer(*name, number) &&
                    number < axes.size();
    return parseAxisPart(isNumber ? axes[number] : *name, &mesh, splits);
  });
}

LogicalResult mlir::bngrad::verifyOneDevice(StringRef text, int64_t numDevices,
                                            EmitError emitError) {
  return XlaParser(text, numDevices, emitError).parse();
}
