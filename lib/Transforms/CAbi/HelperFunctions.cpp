//===- HelperFunctions.cpp - functions that generated code calls ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HelperFunctions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::bngrad;

LogicalResult mlir::bngrad::verifyLibraryFunction(Operation *symbol, Type type,
                                                  StringRef purpose) {
  auto function = dyn_cast<LLVM::LLVMFuncOp>(symbol);
  if (function && function.getFunctionType() == type)
    return success();
  return symbol->emitError()
         << "expected no symbol called '"
         << SymbolTable::getSymbolName(symbol).getValue()
         << "', the name of a function needed to " << purpose << ", got '"
         << symbol->getName() << "'";
}

LogicalResult mlir::bngrad::addHelperFunctions(ModuleOp module, StringRef text,
                                               StringRef purpose) {
  OwningOpRef<ModuleOp> helpers =
      parseSourceString<ModuleOp>(text, module.getContext());
  assert(helpers && "a constant");
  for (Operation &helper : llvm::make_early_inc_range(*helpers->getBody())) {
    StringAttr name = SymbolTable::getSymbolName(&helper);
    if (Operation *there = module.lookupSymbol(name)) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(helper);
      bool isExternal = function && function.isExternal();
      Type type = isExternal ? Type(function.getFunctionType()) : Type();
      if (failed(verifyLibraryFunction(there, type, purpose)))
        return failure();
      continue;
    }
    helper.remove();
    helper.walk([&](Operation *op) { op->setLoc(module.getLoc()); });
    module.getBody()->push_front(&helper);
  }
  return success();
}

std::optional<SmallVector<func::CallOp>>
mlir::bngrad::findCalls(func::FuncOp function, ModuleOp module) {
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(function, module);
  if (!uses)
    return std::nullopt;
  SmallVector<func::CallOp> calls;
  for (SymbolTable::SymbolUse use : *uses) {
    if (isa<func::FuncOp>(use.getUser()))
      continue;
    auto call = dyn_cast<func::CallOp>(use.getUser());
    if (!call)
      return std::nullopt;
    calls.push_back(call);
  }
  return calls;
}
