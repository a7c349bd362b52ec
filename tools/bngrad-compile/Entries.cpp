//===- Entries.cpp - the functions that an output exports -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Entries.h"

#include "common/Diagnostics.h"

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
