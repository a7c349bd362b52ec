//===- DropAnnotations.cpp - bngrad-drop-annotations ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JAX and StableHLO annotate modules with Shardy's meshes and shardings, with
// XLA's shardings as strings, and with bounds of dynamic sizes.
//
//===----------------------------------------------------------------------===//

#include "Import.h"
#include "Shardings.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

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
/// op. Shardings, which name a mesh, come before attributes that only name
/// axes.
static SmallVector<Attribute> getShardings(Operation *op) {
  SmallVector<Attribute> withMesh, withoutMesh;
  auto add = [&](NamedAttribute attribute) {
    Attribute value = attribute.getValue();
    if (getNamespace(value) != "sdy")
      return;
    bool hasMesh = StringRef(print(value)).starts_with("#sdy.sharding");
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
  if (dialect != "stablehlo" && dialect != "mhlo")
    return false;
  std::string printed = print(encoding);
  StringRef text = printed;
  return text.contains("bounds") || text.contains("type_extensions");
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

namespace {
struct BNGradDropAnnotationsPass
    : bngrad::impl::BNGradDropAnnotationsPassBase<BNGradDropAnnotationsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    dropBounds(module);
    meshes.clear();
    numDevices = 1;
    if (auto count = module->getAttrOfType<IntegerAttr>("mhlo.num_partitions"))
      numDevices = count.getValue().getSExtValue();
    SmallVector<Operation *> ops;
    WalkResult walk =
        module.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
          StringRef name = op->getName().getStringRef();
          // A return is dropped along with its parent op.
          if (name.starts_with("sdy.") && name != "sdy.return")
            ops.push_back(op);
          return name == "sdy.mesh" ? readMesh(op) : success();
        });
    if (!walk.wasInterrupted())
      walk = module.walk(
          [&](Operation *op) { return WalkResult(dropShardings(op)); });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (Operation *op : ops)
      if (failed(drop(op)))
        return signalPassFailure();
  }

private:
  /// Errors: a diagnostic at `op`.
  LogicalResult readMesh(Operation *op);
  /// Reports a sharding of `op` that uses an axis with several devices. An
  /// attribute without a mesh uses the mesh of the preceding one.
  LogicalResult verifyReplicated(Operation *op, ArrayRef<Attribute> attributes);
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
  /// The number of devices of the module, for shardings that do not give one.
  int64_t numDevices = 1;
};
} // namespace

LogicalResult BNGradDropAnnotationsPass::readMesh(Operation *op) {
  auto name = dyn_cast_or_null<StringAttr>(
      getAttribute(op, SymbolTable::getSymbolAttrName()));
  Attribute attribute = getAttribute(op, "mesh");
  if (!name || !attribute)
    return success();
  FailureOr<Mesh> mesh = parseMesh(attribute, [&] { return op->emitError(); });
  if (succeeded(mesh))
    meshes[name.getValue()] = std::move(*mesh);
  return mesh;
}

LogicalResult
BNGradDropAnnotationsPass::verifyReplicated(Operation *op,
                                            ArrayRef<Attribute> attributes) {
  std::optional<Mesh> mesh;
  auto emitError = [&] { return op->emitError(); };
  for (Attribute attribute : attributes) {
    // Debugging information is in dictionaries of strings.
    WalkResult walk = attribute.walk([&](Attribute nested) -> WalkResult {
      return getNamespace(nested) == "sdy"
                 ? verifyOneDevice(nested, meshes, mesh, emitError)
                 : success();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult BNGradDropAnnotationsPass::dropShardings(
    Operation *op, ArrayRef<NamedAttribute> attributes,
    function_ref<void(StringAttr)> remove) {
  for (NamedAttribute attribute : attributes) {
    StringRef name = attribute.getName();
    auto text = dyn_cast<StringAttr>(attribute.getValue());
    bool isXla = name == "mhlo.sharding" && text;
    if (!isXla && !name.starts_with("sdy."))
      continue;
    if (failed(isXla ? verifyOneDevice(text.getValue(), numDevices,
                                       [&] { return op->emitError(); })
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
