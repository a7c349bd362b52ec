//===- DimClass.cpp - loops and dims with one index -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DimClass.h"

using namespace mlir;
using namespace mlir::bngrad;

/// True if the loops of `op` may be split.
static bool isSplittable(linalg::GenericOp op) {
  return op && op.hasPureTensorSemantics() &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation();
         });
}

linalg::GenericOp mlir::bngrad::getSplittable(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return isSplittable(generic) ? generic : linalg::GenericOp();
}

bool mlir::bngrad::isRemade(Value value) {
  Operation *def = value.getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(def))
    return fill.hasPureTensorSemantics() && isRemade(fill.getDpsInits()[0]);
  return isa_and_present<tensor::EmptyOp>(def);
}

void DimClass::addDim(Value value, int64_t dim) {
  int64_t dimSize = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(dimSize)) {
    sizesAgree &= ShapedType::isDynamic(size) || size == dimSize;
    size = dimSize;
  }
  if (!isRemade(value) && dims.insert({value, dim}).second)
    pending.push_back({value, dim});
}

void DimClass::addLoop(linalg::GenericOp generic, int64_t loop) {
  if (!loops.insert({generic, loop}).second)
    return;
  ops.insert(generic);
  for (OpOperand &operand : generic->getOpOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (cast<AffineDimExpr>(expr).getPosition() == loop) {
        addDim(operand.get(), dim);
        if (generic.isDpsInit(&operand) && generic->getNumResults())
          addDim(generic.getTiedOpResult(&operand), dim);
      }
  }
}

void DimClass::visitReshape(const Reshape &reshape, Value value, int64_t dim) {
  ops.insert(reshape.op);
  for (auto [coarseDim, group] : llvm::enumerate(reshape.groups)) {
    if (group.size() != 1)
      continue;
    if (value == reshape.coarse && dim == static_cast<int64_t>(coarseDim))
      addDim(reshape.fine, group.front());
    if (value == reshape.fine && dim == group.front())
      addDim(reshape.coarse, coarseDim);
  }
}

void DimClass::visit(Value value, int64_t dim) {
  if (auto generic = getSplittable(value.getDefiningOp())) {
    AffineMap map = generic.getIndexingMapMatchingResult(cast<OpResult>(value));
    addLoop(generic, map.getDimPosition(dim));
  } else if (auto reshape = Reshape::get(value.getDefiningOp())) {
    visitReshape(*reshape, value, dim);
  }
  for (OpOperand &use : value.getUses()) {
    if (auto generic = getSplittable(use.getOwner()))
      addLoop(generic,
              generic.getMatchingIndexingMap(&use).getDimPosition(dim));
    else if (auto reshape = Reshape::get(use.getOwner()))
      visitReshape(*reshape, value, dim);
  }
}
