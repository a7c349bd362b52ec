//===- ShardyShardings.cpp - attributes of Shardy -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The grammar is that of Shardy's attrs.td and parsers.cc.
//
//===----------------------------------------------------------------------===//

#include "ShardingParser.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// Parses attributes of Shardy.
class ShardyParser : ShardingParser {
public:
  ShardyParser(const std::string &text, std::optional<Mesh> &mesh,
               EmitError emitError)
      : ShardingParser(text, text, emitError), mesh(mesh) {}

  /// Parses a mesh alone.
  LogicalResult parseMeshAttribute();
  /// Parses any attribute. Shardings name `meshes`.
  LogicalResult parse(const llvm::StringMap<Mesh> &meshes);

private:
  /// `#sdy.sharding` or `#sdy<sharding`: the name.
  StringRef parseKind();
  LogicalResult parseEnd();
  LogicalResult parseBody(StringRef kind, const llvm::StringMap<Mesh> &meshes);
  /// `<["x"=2], device_ids=[0, 1]>`.
  LogicalResult parseMesh();
  /// `<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced=max{"z"}>`.
  LogicalResult parseSharding(const llvm::StringMap<Mesh> &meshes);
  /// `@mesh`, `@"mesh"` or `mesh<["x"=2]>`.
  LogicalResult parseMeshOrName(const llvm::StringMap<Mesh> &meshes);
  /// `{"x", "y":(1)2, ?}p1`.
  LogicalResult parseDim();
  /// `{"x", "y":(1)2}`.
  LogicalResult parseAxes(bool splits);
  LogicalResult parseAxis(bool splits);

  std::optional<Mesh> &mesh;
  bool isWrapped = false;
};
} // namespace

StringRef ShardyParser::parseKind() {
  isWrapped = consume("#sdy<");
  return isWrapped || consume("#sdy.") ? parseWord() : "";
}

LogicalResult ShardyParser::parseEnd() {
  if (isWrapped && failed(expect(">")))
    return failure();
  return expectEnd();
}

LogicalResult ShardyParser::parseMeshAttribute() {
  if (parseKind() != "mesh")
    return fail("an attribute such as #sdy.mesh<[\"x\"=2]>");
  return failed(parseMesh()) ? failure() : parseEnd();
}

LogicalResult ShardyParser::parse(const llvm::StringMap<Mesh> &meshes) {
  StringRef kind = parseKind();
  // These name no axis that splits a value.
  if (kind == "op_sharding_rule" || kind == "propagation_edges")
    return success();
  return failed(parseBody(kind, meshes)) ? failure() : parseEnd();
}

LogicalResult ShardyParser::parseBody(StringRef kind,
                                      const llvm::StringMap<Mesh> &meshes) {
  if (kind == "mesh")
    return parseMesh();
  if (kind == "sharding")
    return parseSharding(meshes);
  if (kind == "sharding_per_value") {
    if (failed(expect("<")) || failed(expect("[")))
      return failure();
    auto parseElement = [&] {
      consume("#sdy.sharding");
      return parseSharding(meshes);
    };
    return failed(parseList("]", parseElement)) ? failure() : expect(">");
  }
  if (kind == "manual_axes" || kind == "axis_ref_list")
    return parseAxes(/*splits=*/true);
  if (kind == "list_of_axis_ref_lists")
    return failed(expect("["))
               ? failure()
               : parseList("]", [&] { return parseAxes(/*splits=*/true); });
  if (kind == "all_to_all_param_list")
    return failed(expect("[")) ? failure()
                               : parseList("]", [&]() -> LogicalResult {
                                   if (failed(parseAxes(/*splits=*/true)) ||
                                       failed(expect(":")) ||
                                       failed(parseInteger(/*least=*/0)) ||
                                       failed(expect("->")))
                                     return failure();
                                   return parseInteger(/*least=*/0);
                                 });
  return fail("a sharding, a mesh or axes");
}

LogicalResult ShardyParser::parseMesh() {
  if (failed(expect("<")) || failed(expect("[")))
    return failure();
  mesh.emplace();
  auto parseAxis = [&]() -> LogicalResult {
    FailureOr<std::string> name = parseString('"');
    return failed(name) ? failure() : parseAxisSize(*name, *mesh);
  };
  if (failed(parseList("]", parseAxis)))
    return failure();
  if (consume(",") &&
      (failed(expect("device_ids")) || failed(expect("=")) ||
       failed(expect("[")) || failed(parseIntegers("]", /*least=*/0))))
    return failure();
  return expect(">");
}

LogicalResult
ShardyParser::parseMeshOrName(const llvm::StringMap<Mesh> &meshes) {
  if (!consume("@"))
    return parseWord() == "mesh" ? parseMesh() : fail("a mesh before this");
  std::string name;
  if (startsWith("\"")) {
    FailureOr<std::string> quoted = parseString('"');
    if (failed(quoted))
      return failure();
    name = *quoted;
  } else {
    name = parseWord();
  }
  auto found = meshes.find(name);
  if (found == meshes.end())
    return emitError() << "expected a mesh @" << name
                       << " of the sharding, got none";
  mesh = found->second;
  return success();
}

LogicalResult ShardyParser::parseSharding(const llvm::StringMap<Mesh> &meshes) {
  if (failed(expect("<")) || failed(parseMeshOrName(meshes)) ||
      failed(expect(",")) || failed(expect("[")) ||
      failed(parseList("]", [&] { return parseDim(); })))
    return failure();
  while (consume(",")) {
    if (consume("replicated")) {
      if (failed(expect("=")) || failed(parseAxes(/*splits=*/false)))
        return failure();
      continue;
    }
    if (!consume("unreduced"))
      return fail("'replicated' or 'unreduced'");
    // The '=' and the kind of reduction may be absent.
    if (consume("="))
      parseWord();
    if (failed(parseAxes(/*splits=*/true)))
      return failure();
  }
  return expect(">");
}

LogicalResult ShardyParser::parseDim() {
  if (failed(expect("{")))
    return failure();
  bool isOpen = false;
  auto parseElement = [&]() -> LogicalResult {
    if (isOpen)
      return fail("'}' after '?'");
    isOpen = consume("?");
    return isOpen ? success() : parseAxis(/*splits=*/true);
  };
  if (failed(parseList("}", parseElement)))
    return failure();
  return consume("p") ? LogicalResult(parseInteger(/*least=*/0)) : success();
}

LogicalResult ShardyParser::parseAxes(bool splits) {
  return failed(expect("{"))
             ? failure()
             : parseList("}", [&] { return parseAxis(splits); });
}

LogicalResult ShardyParser::parseAxis(bool splits) {
  FailureOr<std::string> name = parseString('"');
  return failed(name) ? failure()
                      : parseAxisPart(*name, mesh ? &*mesh : nullptr, splits);
}

static std::string printShardy(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

FailureOr<Mesh> mlir::bngrad::parseMesh(Attribute attribute,
                                        EmitError emitError) {
  std::optional<Mesh> mesh;
  std::string text = printShardy(attribute);
  if (failed(ShardyParser(text, mesh, emitError).parseMeshAttribute()))
    return failure();
  return std::move(*mesh);
}

LogicalResult mlir::bngrad::verifyOneDevice(Attribute attribute,
                                            const llvm::StringMap<Mesh> &meshes,
                                            std::optional<Mesh> &mesh,
                                            EmitError emitError) {
  std::string text = printShardy(attribute);
  return ShardyParser(text, mesh, emitError).parse(meshes);
}
