//===- ResultName.cpp - names of results ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ResultName.h"

#include "BNGrad/Dialect/BNGrad.h"

using namespace mlir;
using namespace mlir::bngrad;

std::string mlir::bngrad::getResultName(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa_and_present<BNGradDialect>(op->getDialect()))
    return "";
  std::string name;
  if (auto named = dyn_cast<OpAsmOpInterface>(op))
    named.getAsmResultNames([&](Value result, StringRef resultName) {
      if (result == value)
        name = resultName.str();
    });
  return name;
}
