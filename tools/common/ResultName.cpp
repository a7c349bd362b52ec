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
  auto op = value.getDefiningOp<GradientOpInterface>();
  if (!op)
    return "";
  Role role = op.getResultRoles()[cast<OpResult>(value).getResultNumber()];
  return stringifyRole(role).str();
}
