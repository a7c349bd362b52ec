//===- Utils.cpp - small questions about linalg ops -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;

Value mlir::bngrad::cloneInit(OpBuilder &b, Value init) {
  Operation *def = init.getDefiningOp();
  IRMapping mapping;
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(def)) {
    Value target = fill.getDpsInits()[0];
    Value cloned = cloneInit(b, target);
    if (!cloned)
      return {};
    mapping.map(target, cloned);
  } else if (!isa_and_present<tensor::EmptyOp>(def)) {
    return {};
  }
  return b.clone(*def, mapping)->getResult(0);
}

Value mlir::bngrad::getMemory(Value memref) {
  while (Operation *def = memref.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(def))
      memref = view.getViewSource();
    else if (isa<memref::ExtractStridedMetadataOp, UnrealizedConversionCastOp>(
                 def) &&
             def->getNumOperands() == 1)
      memref = def->getOperand(0);
    else
      break;
  }
  return memref;
}

bool mlir::bngrad::areDisjoint(Value a, Value b) {
  auto part = a.getDefiningOp<memref::SubViewOp>();
  auto other = b.getDefiningOp<memref::SubViewOp>();
  if (!part || !other || part.getSource() != other.getSource())
    return false;
  FailureOr<bool> overlap = ValueBoundsConstraintSet::areOverlappingSlices(
      a.getContext(), HyperrectangularSlice(part),
      HyperrectangularSlice(other));
  return succeeded(overlap) && !*overlap;
}
