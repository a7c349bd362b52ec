//===- DropAnnotations.cpp - bngrad-drop-annotations ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What JAX and StableHLO say about a module beside its values: Shardy's meshes
// and shardings, those of GSPMD as strings, and bounds of dynamic sizes. The
// attributes are opaque, so their text is read.
//
//===----------------------------------------------------------------------===//

#include "Import.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
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

/// The attributes of an op, which are its properties if it is unregistered.
static std::string printAttributes(Operation *op) {
  Attribute properties = op->getPropertiesAsAttribute();
  return print(op->getDiscardableAttrDictionary()) +
         (properties ? print(properties) : std::string());
}

/// Whether `type` has bounds of its dynamic sizes as an encoding.
static bool hasBounds(RankedTensorType type) {
  Attribute encoding = type.getEncoding();
  if (!encoding)
    return false;
  StringRef dialect = encoding.getDialect().getNamespace();
  if (auto opaque = dyn_cast<OpaqueAttr>(encoding))
    dialect = opaque.getDialectNamespace();
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

/// The axes in `["x"=2, "y"=4]`, anywhere in `text`.
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
      if (op->getName().getDialectNamespace() == "sdy")
        ops.push_back(op);
      if (op->getName().getStringRef() == "sdy.mesh")
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
    if (auto name = dyn_cast_or_null<StringAttr>(
            getAttribute(op, SymbolTable::getSymbolAttrName())))
      meshes[name.getValue()] = parseMesh(printAttributes(op));
  }

  /// Reports a sharding of `op` that uses an axis with several devices.
  LogicalResult verifyReplicated(Operation *op, StringRef text);
  /// Reports a string of GSPMD such as `{devices=[2,1]0,1}`.
  static LogicalResult verifyGspmd(Operation *op, StringRef text);
  /// Drops what the attributes of `op` say of shardings.
  LogicalResult dropShardings(Operation *op);
  /// Calls `remove` for those of the `attributes` of `op`, its arguments or its
  /// results that are shardings.
  LogicalResult dropShardings(Operation *op,
                              ArrayRef<NamedAttribute> attributes,
                              function_ref<void(StringAttr)> remove);
  /// Erases an op of Shardy: a mesh, or one that returns its operand.
  LogicalResult drop(Operation *op);

  llvm::StringMap<Mesh> meshes;
};
} // namespace

LogicalResult BNGradDropAnnotationsPass::verifyReplicated(Operation *op,
                                                          StringRef text) {
  // Each sharding is `<@mesh, [{"x"}, {}], replicated={"y"}>`, or has a mesh of
  // its own: `<mesh<["x"=2]>, ...>`.
  StringRef rest = text;
  const Mesh *mesh = nullptr;
  Mesh own;
  while (!rest.empty()) {
    if (rest.consume_front("replicated={")) {
      rest = rest.split('}').second;
      continue;
    }
    if (rest.consume_front("mesh<")) {
      auto [axes, after] = rest.split('>');
      own = parseMesh(axes);
      mesh = &own;
      rest = after;
      continue;
    }
    if (rest.consume_front("@")) {
      StringRef name = rest.take_while(
          [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
      auto found = meshes.find(name);
      if (found == meshes.end())
        return op->emitError() << "expected a mesh @" << name << " of sharding "
                               << text << ", got none";
      mesh = &found->second;
      rest = rest.drop_front(name.size());
      continue;
    }
    if (!rest.consume_front("\"")) {
      rest = rest.drop_front();
      continue;
    }
    auto [axis, after] = rest.split('"');
    rest = after;
    int64_t size = mesh ? mesh->lookup(axis) : 0;
    if (size != 1)
      return op->emitError()
             << "expected a module for one device, got sharding " << text
             << " over the " << size << " devices of axis '" << axis << "'";
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
                       : verifyReplicated(op, print(attribute.getValue()))))
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

LogicalResult BNGradDropAnnotationsPass::drop(Operation *op) {
  if (op->getName().getStringRef() == "sdy.mesh") {
    op->erase();
    return success();
  }
  bool isIdentity = op->getNumOperands() == 1 && op->getNumResults() == 1 &&
                    op->getNumRegions() == 0 &&
                    op->getOperand(0).getType() == op->getResult(0).getType();
  if (!isIdentity)
    return op->emitError() << "expected an op of Shardy that returns its "
                              "operand, got '"
                           << op->getName() << "'";
  if (failed(verifyReplicated(op, printAttributes(op))))
    return failure();
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return success();
}
