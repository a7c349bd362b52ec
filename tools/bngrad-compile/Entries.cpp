//===- Entries.cpp - the functions that an output exports -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Entries.h"

#include "common/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::bngrad;

FailureOr<std::vector<Entry>>
mlir::bngrad::parseEntries(ArrayRef<std::string> values) {
  std::vector<Entry> entries;
  LogicalResult result = success();
  for (StringRef value : values) {
    auto [function, name] = value.split('=');
    bool isRenamed = value.contains('=');
    if (function.empty() || (isRenamed && name.empty())) {
      result = reportError("expected --entry to be NAME or NAME=C_NAME, got '" +
                           value + "'");
      continue;
    }
    Entry entry = {function.str(), (isRenamed ? name : function).str()};
    for (const Entry &other : entries) {
      if (entry.function == other.function)
        result = reportError("expected one --entry for a function, got two for "
                             "'" +
                             entry.function + "'");
      else if (entry.name == other.name)
        result = reportError("expected --entry with different names in C, got "
                             "'" +
                             entry.name + "' twice");
    }
    entries.push_back(entry);
  }
  if (failed(result))
    return failure();
  return entries;
}

LogicalResult mlir::bngrad::selectEntries(ModuleOp module,
                                          ArrayRef<Entry> entries) {
  if (entries.empty())
    return success();
  SmallVector<func::FuncOp> selected;
  for (const Entry &entry : entries) {
    auto function = module.lookupSymbol<func::FuncOp>(entry.function);
    if (!function || function.isExternal()) {
      std::string names;
      for (auto other : module.getOps<func::FuncOp>())
        if (!other.isExternal())
          names +=
              (names.empty() ? "" : ", ") + printSymbol(other.getSymName());
      return reportError("expected --entry to be a function with a body (" +
                         names + "), got " + printSymbol(entry.function));
    }
    selected.push_back(function);
  }
  for (auto function : module.getOps<func::FuncOp>())
    function.setPrivate();
  // First of all, selected functions give up their names, which others may
  // take.
  SymbolTable symbols(module);
  auto rename = [&](Operation *symbol) {
    return symbols.renameToUnique(symbol, {&symbols});
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
