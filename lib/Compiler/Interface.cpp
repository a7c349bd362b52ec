//===- Interface.cpp - exported functions of a module ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Compiler/Interface.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/ExportC.h"
#include "BNGrad/Transforms/Partition/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::bngrad;

std::string mlir::bngrad::printSymbol(StringRef name) {
  constexpr size_t kMost = 80;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "@";
  llvm::printEscapedString(name.take_front(kMost), os);
  if (name.size() > kMost)
    os << "... (" << name.size() << " characters)";
  return text;
}

/// Returns the functions that `entries` name, or an empty list and a reason if
/// one of them does not exist.
static SmallVector<func::FuncOp>
findEntries(ModuleOp module, ArrayRef<Entry> entries, std::string &reason) {
  SmallVector<func::FuncOp> selected;
  for (const Entry &entry : entries) {
    auto function = module.lookupSymbol<func::FuncOp>(entry.function);
    if (function && !function.isExternal()) {
      selected.push_back(function);
      continue;
    }
    std::string names;
    for (auto other : module.getOps<func::FuncOp>())
      if (!other.isExternal())
        names += (names.empty() ? "" : ", ") + printSymbol(other.getSymName());
    reason = "to be a function with a body (" + names + "), got " +
             printSymbol(entry.function);
    return {};
  }
  return selected;
}

LogicalResult mlir::bngrad::selectEntries(ModuleOp module,
                                          ArrayRef<Entry> entries,
                                          std::string &reason) {
  if (entries.empty())
    return success();
  SmallVector<func::FuncOp> selected = findEntries(module, entries, reason);
  if (selected.empty())
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    function.setPrivate();
  // Rename all selected functions first, because other entries may take their
  // names.
  SymbolTable symbols(module);
  auto rename = [&](Operation *symbol) {
    LogicalResult result = symbols.renameToUnique(symbol, {&symbols});
    if (failed(result))
      reason = "to be a function whose uses can be renamed, got " +
               printSymbol(SymbolTable::getSymbolName(symbol).getValue());
    return result;
  };
  for (func::FuncOp function : selected)
    if (failed(rename(function)))
      return failure();
  for (auto [function, entry] : llvm::zip_equal(selected, entries)) {
    if (Operation *other = symbols.lookup(entry.name))
      if (failed(rename(other)))
        return failure();
    if (failed(symbols.rename(function, entry.name)))
      return failure();
    function.setPublic();
  }
  return success();
}

bool Parameter::isStatic() const {
  auto memref = dyn_cast<MemRefType>(type);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    memref =
        MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
  return !memref || isKnownFromPointer(memref);
}

bool ExportedFunction::hasPointerForm() const {
  return llvm::all_of(parameters,
                      [](const Parameter &p) { return p.isStatic(); });
}

static LogicalResult verifyType(func::FuncOp function, StringRef what,
                                unsigned i, Type type) {
  bool isResult = what == "result";
  bool isKnown = false;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    isKnown =
        !tensor.getEncoding() && isExportedElementType(tensor.getElementType());
  else if (auto memref = dyn_cast<MemRefType>(type))
    isKnown = !isResult && memref.isStrided() && !memref.getMemorySpace() &&
              isExportedElementType(memref.getElementType());
  else
    isKnown = !isResult && isExportedElementType(type);
  if (isKnown)
    return success();
  return function.emitError()
         << "expected " << what << " " << i << " of "
         << printSymbol(function.getSymName()) << " to be a ranked tensor"
         << (isResult ? "" : ", a strided memref or a scalar")
         << " of index, i1, i8, i16, i32, i64, f16, bf16, f32 or f64, got "
         << type;
}

bool mlir::bngrad::isWritten(Value buffer) {
  return llvm::any_of(buffer.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto view = dyn_cast<ViewLikeOpInterface>(user);
        view && view.getViewSource() == buffer)
      return llvm::any_of(user->getResults(), isWritten);
    if (auto tensor = dyn_cast<bufferization::ToTensorOp>(user))
      return tensor.getWritable();
    // The results of regions are not followed, so a terminator counts as a
    // write. Other memref results, such as a select, are followed.
    if (user->hasTrait<OpTrait::IsTerminator>() && !isa<func::ReturnOp>(user))
      return true;
    if (llvm::any_of(user->getResults(), [](Value result) {
          return isa<BaseMemRefType>(result.getType()) && isWritten(result);
        }))
      return true;
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects)
      return true;
    SmallVector<MemoryEffects::EffectInstance> all;
    effects.getEffectsOnValue(buffer, all);
    return llvm::any_of(all, [](const MemoryEffects::EffectInstance &effect) {
      return !isa<MemoryEffects::Read>(effect.getEffect());
    });
  });
}

/// Finds the dynamic sizes of `function`'s results that are sizes of arguments.
static void findSizes(func::FuncOp function,
                      std::vector<Parameter> &parameters) {
  unsigned numArguments = function.getNumArguments();
  if (!llvm::hasSingleElement(function.getBody()))
    return;
  // Build a function that returns only the sizes.
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  func::FuncOp sizes = function.clone();
  module->push_back(sizes);
  auto returnOp = cast<func::ReturnOp>(sizes.back().getTerminator());
  OpBuilder b(returnOp);
  SmallVector<Value> values;
  SmallVector<std::string *> texts;
  for (auto [i, value] : llvm::enumerate(returnOp.getOperands())) {
    auto type = cast<RankedTensorType>(value.getType());
    Parameter &parameter = parameters[numArguments + i];
    parameter.sizes.resize(type.getRank());
    for (int64_t dim : llvm::seq(type.getRank())) {
      if (!type.isDynamicDim(dim))
        continue;
      values.push_back(tensor::DimOp::create(b, returnOp.getLoc(), value, dim));
      texts.push_back(&parameter.sizes[dim]);
    }
  }
  if (values.empty())
    return;
  returnOp->setOperands(values);
  sizes.setFunctionType(b.getFunctionType(sizes.getArgumentTypes(),
                                          ValueRange(values).getTypes()));
  sizes.setResAttrsAttr(nullptr);
  PassManager pm(module->getContext());
  pm.addNestedPass<func::FuncOp>(
      memref::createResolveRankedShapeTypeResultDimsPass());
  pm.addPass(createCanonicalizerPass());
  ScopedDiagnosticHandler silent(module->getContext(),
                                 [](Diagnostic &) { return success(); });
  if (failed(pm.run(*module)))
    return;
  returnOp = cast<func::ReturnOp>(sizes.back().getTerminator());
  for (auto [value, text] : llvm::zip_equal(returnOp.getOperands(), texts)) {
    auto dim = value.getDefiningOp<tensor::DimOp>();
    auto argument = dim ? dyn_cast<BlockArgument>(dim.getSource()) : Value();
    if (!argument || !dim.getConstantIndex())
      continue;
    *text = parameters[cast<BlockArgument>(argument).getArgNumber()].name +
            "->sizes[" + std::to_string(*dim.getConstantIndex()) + "]";
  }
}

/// Returns the module of one process if `module` has shard annotations, or null
/// if it has none.
static FailureOr<OwningOpRef<ModuleOp>> clonePartitioned(ModuleOp module) {
  OwningOpRef<ModuleOp> part;
  bool isAnnotated =
      module.walk([](shard::ShardOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (!isAnnotated)
    return part;
  part = module.clone();
  PassManager pm(module.getContext());
  pm.addPass(createBNGradPartitionPass());
  if (failed(pm.run(*part)))
    return failure();
  return part;
}

FailureOr<std::vector<ExportedFunction>>
mlir::bngrad::findExportedFunctions(ModuleOp module) {
  std::vector<ExportedFunction> functions;
  FailureOr<OwningOpRef<ModuleOp>> part = clonePartitioned(module);
  if (failed(part))
    return failure();
  bool hasFailed = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic())
      continue;
    ExportedFunction &exported = functions.emplace_back();
    exported.name = function.getSymName().str();
    // The names come from the original function, the types from the shards.
    FunctionType types = function.getFunctionType();
    if (*part)
      types = (*part)
                  ->lookupSymbol<func::FuncOp>(function.getSymName())
                  .getFunctionType();
    for (auto [i, type] : llvm::enumerate(types.getInputs())) {
      hasFailed |= failed(verifyType(function, "argument", i, type));
      Parameter &parameter = exported.parameters.emplace_back();
      parameter.type = type;
      parameter.layout = function.getArgAttrOfType<MemRefLayoutAttrInterface>(
          i, bufferization::BufferizationDialect::kBufferLayoutAttrName);
    }
    for (auto [i, type] : llvm::enumerate(types.getResults())) {
      hasFailed |= failed(verifyType(function, "result", i, type));
      Parameter &parameter = exported.parameters.emplace_back();
      parameter.type = type;
      parameter.isResult = true;
    }
    if (hasFailed)
      continue;
    if (!function.isExternal())
      for (BlockArgument argument : function.getArguments())
        exported.parameters[argument.getArgNumber()].isWritten =
            isa<MemRefType>(argument.getType()) && isWritten(argument);
    for (auto [parameter, name] :
         llvm::zip_equal(exported.parameters, nameParameters(function)))
      parameter.name = std::move(name);
    findSizes(function, exported.parameters);
  }
  if (hasFailed)
    return failure();
  return functions;
}
