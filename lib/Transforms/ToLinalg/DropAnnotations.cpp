//===- DropAnnotations.cpp - bngrad-drop-annotations ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JAX and StableHLO annotate modules with Shardy's meshes and shardings, with
// GSPMD's shardings as strings, and with bounds of dynamic sizes. The
// attributes are opaque, so this pass reads their text.
//
//===----------------------------------------------------------------------===//

#include "Import.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADDROPANNOTATIONSPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

static StringRef getNamespace(Attribute attribute) {
  if (auto opaque = dyn_cast<OpaqueAttr>(attribute))
    return opaque.getDialectNamespace();
  return attribute.getDialect().getNamespace();
}

/// Shardy's attributes of an op, also from the properties of an unregistered
/// op. Attributes that name a mesh come before those that only name axes.
static SmallVector<Attribute> getShardings(Operation *op) {
  SmallVector<Attribute> withMesh, withoutMesh;
  auto add = [&](NamedAttribute attribute) {
    Attribute value = attribute.getValue();
    if (getNamespace(value) != "sdy")
      return;
    std::string printed = print(value);
    StringRef text = printed;
    bool hasMesh = text.contains("@") || text.contains("mesh<");
    (hasMesh ? withMesh : withoutMesh).push_back(value);
  };
  llvm::for_each(op->getDiscardableAttrs(), add);
  if (auto properties =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    llvm::for_each(properties, add);
  llvm::append_range(withMesh, withoutMesh);
  return withMesh;
}

/// Whether `type` has bounds of its dynamic sizes as an encoding.
static bool hasBounds(RankedTensorType type) {
  Attribute encoding = type.getEncoding();
  if (!encoding)
    return false;
  StringRef dialect = getNamespace(encoding);
  std::string printed = print(encoding);
  StringRef text = printed;
  return (dialect == "stablehlo" || dialect == "mhlo") &&
         (text.contains("bounds") || text.contains("type_extensions"));
}

static void dropBounds(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](RankedTensorType type) -> std::optional<Type> {
    if (!hasBounds(type))
      return std::nullopt;
    return RankedTensorType::get(type.getShape(), type.getElementType());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// The sizes of the axes of a mesh, by name.
using Mesh = llvm::StringMap<int64_t>;

/// The axes in `["x"=2, "y"=4]`, which are the first strings in `text`.
static Mesh parseMesh(StringRef text) {
  Mesh mesh;
  while (true) {
    text = text.split('"').second;
    auto [name, rest] = text.split('"');
    int64_t size = 0;
    if (!rest.consume_front("=") || rest.consumeInteger(10, size))
      return mesh;
    mesh[name] = size;
    text = rest;
  }
}

namespace {
struct BNGradDropAnnotationsPass
    : bngrad::impl::BNGradDropAnnotationsPassBase<BNGradDropAnnotationsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    dropBounds(module);
    meshes.clear();
    SmallVector<Operation *> ops;
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      StringRef name = op->getName().getStringRef();
      // A return is dropped along with its parent op.
      if (name.starts_with("sdy.") && name != "sdy.return")
        ops.push_back(op);
      if (name == "sdy.mesh")
        readMesh(op);
    });
    WalkResult walk = module.walk(
        [&](Operation *op) { return WalkResult(dropShardings(op)); });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (Operation *op : ops)
      if (failed(drop(op)))
        return signalPassFailure();
  }

private:
  void readMesh(Operation *op) {
    auto name = dyn_cast_or_null<StringAttr>(
        getAttribute(op, SymbolTable::getSymbolAttrName()));
    Attribute mesh = getAttribute(op, "mesh");
    if (name && mesh)
      meshes[name.getValue()] = parseMesh(print(mesh));
  }

  /// Reports a sharding of `op` that uses an axis with several devices. An
  /// attribute without a mesh uses the mesh of the preceding one.
  LogicalResult verifyReplicated(Operation *op, ArrayRef<Attribute> attributes);
  /// Reads a mesh at the start of `text`, `@mesh` or `mesh<["x"=2]>`, if there
  /// is one.
  ///
  /// Errors: a diagnostic at `op`, if there is no such mesh.
  LogicalResult consumeMesh(Operation *op, StringRef &text,
                            std::optional<Mesh> &mesh);
  /// Reports a string of GSPMD such as `{devices=[2,1]0,1}`.
  static LogicalResult verifyGspmd(Operation *op, StringRef text);
  /// Drops the shardings among the attributes of `op`.
  LogicalResult dropShardings(Operation *op);
  /// Calls `remove` for each sharding among the `attributes` of `op`, of its
  /// arguments or of its results.
  LogicalResult dropShardings(Operation *op,
                              ArrayRef<NamedAttribute> attributes,
                              function_ref<void(StringAttr)> remove);
  /// Erases an op of Shardy: a mesh, a group, an op that returns its operand,
  /// or an op whose region computes its results.
  LogicalResult drop(Operation *op);

  llvm::StringMap<Mesh> meshes;
};
} // namespace

LogicalResult
BNGradDropAnnotationsPass::consumeMesh(Operation *op, StringRef &text,
                                       std::optional<Mesh> &mesh) {
  if (text.consume_front("mesh<")) {
    auto [axes, after] = text.split('>');
    mesh = parseMesh(axes);
    text = after;
    return success();
  }
  if (!text.consume_front("@"))
    return success();
  StringRef name;
  if (text.consume_front("\""))
    std::tie(name, text) = text.split('"');
  else
    name = text.take_while([](char c) {
      return llvm::isAlnum(c) || StringRef("_.$-").contains(c);
    });
  text.consume_front(name);
  auto found = meshes.find(name);
  if (found == meshes.end())
    return op->emitError() << "expected a mesh @" << name
                           << " of the sharding, got none";
  mesh = found->second;
  return success();
}

LogicalResult
BNGradDropAnnotationsPass::verifyReplicated(Operation *op,
                                            ArrayRef<Attribute> attributes) {
  std::optional<Mesh> mesh;
  for (Attribute attribute : attributes) {
    std::string text = print(attribute);
    // Each sharding is `<@mesh, [{"x"}, {}], replicated={"y"}>`, or contains a
    // mesh: `<mesh<["x"=2]>, ...>`.
    for (StringRef rest = text; !rest.empty();) {
      if (failed(consumeMesh(op, rest, mesh)))
        return failure();
      if (rest.consume_front("replicated={")) {
        rest = rest.split('}').second;
        continue;
      }
      if (!rest.consume_front("\"")) {
        rest = rest.drop_front();
        continue;
      }
      StringRef axis;
      std::tie(axis, rest) = rest.split('"');
      if (!mesh || !mesh->contains(axis))
        return op->emitError() << "expected axis '" << axis << "' of sharding "
                               << attribute << " to be in its mesh";
      if (int64_t size = mesh->lookup(axis); size != 1)
        return op->emitError()
               << "expected a module for one device, got sharding " << attribute
               << " over the " << size << " devices of axis '" << axis << "'";
    }
  }
  return success();
}

LogicalResult BNGradDropAnnotationsPass::verifyGspmd(Operation *op,
                                                     StringRef text) {
  StringRef rest = text;
  int64_t devices = 1;
  size_t begin = rest.find("devices=[");
  if (begin != StringRef::npos) {
    rest = rest.substr(begin + StringRef("devices=[").size());
    rest = rest.take_until([](char c) { return c == ']'; });
    SmallVector<StringRef> sizes;
    rest.split(sizes, ',');
    // The last size counts copies.
    if (text.contains("last_tile_dim_replicate"))
      sizes.pop_back();
    for (StringRef size : sizes) {
      int64_t value = 0;
      devices *= size.getAsInteger(10, value) ? 0 : value;
    }
  }
  if (devices == 1)
    return success();
  return op->emitError() << "expected a module for one device, got sharding \""
                         << text << "\" over " << devices << " devices";
}

LogicalResult BNGradDropAnnotationsPass::dropShardings(
    Operation *op, ArrayRef<NamedAttribute> attributes,
    function_ref<void(StringAttr)> remove) {
  for (NamedAttribute attribute : attributes) {
    StringRef name = attribute.getName();
    auto text = dyn_cast<StringAttr>(attribute.getValue());
    bool isGspmd = name == "mhlo.sharding" && text;
    if (!isGspmd && !name.starts_with("sdy."))
      continue;
    if (failed(isGspmd ? verifyGspmd(op, text)
                       : verifyReplicated(op, attribute.getValue())))
      return failure();
    remove(attribute.getName());
  }
  return success();
}

LogicalResult BNGradDropAnnotationsPass::dropShardings(Operation *op) {
  if (failed(dropShardings(
          op, llvm::to_vector(op->getDiscardableAttrs()),
          [&](StringAttr name) { op->removeDiscardableAttr(name); })))
    return failure();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  for (unsigned i : llvm::seq(function.getNumArguments()))
    if (failed(dropShardings(
            op, llvm::to_vector(function.getArgAttrs(i)),
            [&](StringAttr name) { function.removeArgAttr(i, name); })))
      return failure();
  for (unsigned i : llvm::seq(function.getNumResults()))
    if (failed(dropShardings(
            op, llvm::to_vector(function.getResultAttrs(i)),
            [&](StringAttr name) { function.removeResultAttr(i, name); })))
      return failure();
  return success();
}

/// Whether the values of two ranges have the same types.
static bool haveSameTypes(ValueRange values, ValueRange others) {
  return values.getTypes() == others.getTypes();
}

/// The body of an op whose region computes its results from its operands, such
/// as sdy.manual_computation with all sizes as on one device; else null.
static Block *getBody(Operation *op) {
  if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock())
    return nullptr;
  Block &body = op->getRegion(0).front();
  if (body.empty() || body.back().getName().getStringRef() != "sdy.return" ||
      !haveSameTypes(body.getArguments(), op->getOperands()) ||
      !haveSameTypes(body.back().getOperands(), op->getResults()))
    return nullptr;
  return &body;
}

LogicalResult BNGradDropAnnotationsPass::drop(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (name == "sdy.mesh") {
    op->erase();
    return success();
  }
  if (failed(verifyReplicated(op, getShardings(op))))
    return failure();
  IRRewriter rewriter(op->getContext());
  if (Block *body = getBody(op)) {
    Operation *terminator = &body->back();
    rewriter.inlineBlockBefore(body, op, op->getOperands());
    rewriter.replaceOp(op, terminator->getOperands());
    rewriter.eraseOp(terminator);
    return success();
  }
  bool isIdentity = op->getNumOperands() == 1 && op->getNumRegions() == 0 &&
                    haveSameTypes(op->getOperands(), op->getResults());
  if (!isIdentity && name != "sdy.sharding_group")
    return op->emitError() << "expected an op of Shardy that returns its "
                              "operand or what its region computes, got '"
                           << op->getName() << "'";
  if (isIdentity)
    rewriter.replaceOp(op, op->getOperands());
  else
    rewriter.eraseOp(op);
  return success();
}
