//===- Interface.cpp - exported functions of an IR file -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interface.h"

#include "common/Diagnostics.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Lower/ExportC.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::bngrad;

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

/// Finds the dynamic sizes of `function`'s results that are sizes of arguments.
static void findSizes(func::FuncOp function,
                      std::vector<Parameter> &parameters) {
  unsigned numArguments = function.getNumArguments();
  if (!llvm::hasSingleElement(function.getBody()))
    return;
  // A function that returns the sizes alone.
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

FailureOr<std::vector<ExportedFunction>>
mlir::bngrad::findExportedFunctions(ModuleOp module) {
  std::vector<ExportedFunction> functions;
  bool hasFailed = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic())
      continue;
    ExportedFunction &exported = functions.emplace_back();
    exported.name = function.getSymName().str();
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
      hasFailed |= failed(verifyType(function, "argument", i, type));
      Parameter &parameter = exported.parameters.emplace_back();
      parameter.type = type;
      parameter.layout = function.getArgAttrOfType<MemRefLayoutAttrInterface>(
          i, bufferization::BufferizationDialect::kBufferLayoutAttrName);
    }
    for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
      hasFailed |= failed(verifyType(function, "result", i, type));
      Parameter &parameter = exported.parameters.emplace_back();
      parameter.type = type;
      parameter.isResult = true;
    }
    if (hasFailed)
      continue;
    for (auto [parameter, name] :
         llvm::zip_equal(exported.parameters, nameParameters(function)))
      parameter.name = std::move(name);
    findSizes(function, exported.parameters);
  }
  if (hasFailed)
    return failure();
  return functions;
}
