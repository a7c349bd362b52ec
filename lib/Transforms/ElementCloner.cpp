//===- ElementCloner.cpp - clones the computation of one element ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementCloner.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The indices of an operand read by `map`.
static SmallVector<Value> applyMap(OpBuilder &b, Location loc, AffineMap map,
                                   ArrayRef<Value> ivs) {
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      indices.push_back(ivs[dim.getPosition()]);
      continue;
    }
    // Loops that the expression leaves out may be missing.
    SmallVector<Value> operands(ivs);
    Value any = *llvm::find_if(ivs, [](Value iv) { return iv != nullptr; });
    for (Value &operand : operands)
      operand = operand ? operand : any;
    indices.push_back(affine::AffineApplyOp::create(
        b, loc, AffineMap::get(map.getNumDims(), 0, expr), operands));
  }
  return indices;
}

void ElementCloner::load(OpBuilder &b, ArrayRef<Value> ivs) {
  for (OpOperand &operand : generic->getOpOperands()) {
    BlockArgument arg = generic.getMatchingBlockArgument(&operand);
    Value &value = args[arg.getArgNumber()];
    if (value || arg.use_empty())
      continue;
    if (!isa<MemRefType>(operand.get().getType())) {
      value = operand.get(); // a scalar input
      continue;
    }
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    bool isReady =
        llvm::all_of(llvm::seq<unsigned>(map.getNumDims()), [&](unsigned dim) {
          return ivs[dim] || !map.isFunctionOfDim(dim);
        });
    // An output may be written by the loops that are still missing.
    bool waitsForLoops =
        generic.isDpsInit(&operand) && llvm::is_contained(ivs, Value());
    if (isReady && !waitsForLoops)
      value = memref::LoadOp::create(b, generic.getLoc(), operand.get(),
                                     applyMap(b, generic.getLoc(), map, ivs));
  }
}

Value ElementCloner::loadOutput(OpBuilder &b, ArrayRef<Value> ivs, unsigned i) {
  OpOperand *init = generic.getDpsInitOperand(i);
  return memref::LoadOp::create(
      b, generic.getLoc(), init->get(),
      applyMap(b, generic.getLoc(), generic.getMatchingIndexingMap(init), ivs));
}

IRMapping ElementCloner::clone(OpBuilder &b, ArrayRef<Value> ivs) {
  ElementCloner element(*this);
  element.load(b, ivs);
  IRMapping mapping;
  for (auto [arg, value] :
       llvm::zip_equal(generic.getBody()->getArguments(), element.args))
    if (value)
      mapping.map(arg, value);
  for (Operation &op : generic.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(op))
      mapping.map(index.getResult(), ivs[index.getDim()]);
    else
      b.clone(op, mapping);
  }
  return mapping;
}

void ElementCloner::store(OpBuilder &b, ArrayRef<Value> ivs, unsigned i,
                          Value value) {
  OpOperand *init = generic.getDpsInitOperand(i);
  memref::StoreOp::create(
      b, generic.getLoc(), value, init->get(),
      applyMap(b, generic.getLoc(), generic.getMatchingIndexingMap(init), ivs));
}
