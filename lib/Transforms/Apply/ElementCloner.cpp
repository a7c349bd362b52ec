//===- ElementCloner.cpp - clones the computation of one element ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementCloner.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

Value mlir::bngrad::broadcastTo(OpBuilder &b, Location loc, Value value,
                                int64_t lanes) {
  if (isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(
      b, loc, VectorType::get({lanes}, value.getType()), value);
}

bool mlir::bngrad::isVectorizable(linalg::GenericOp generic) {
  return llvm::all_of(generic.getBody()->without_terminator(),
                      [](Operation &op) {
                        // Masked-off lanes are computed, too.
                        return isa<linalg::IndexOp>(op) ||
                               (op.getNumOperands() == 0 &&
                                op.hasTrait<OpTrait::ConstantLike>()) ||
                               (OpTrait::hasElementwiseMappableTraits(&op) &&
                                isSpeculatable(&op));
                      });
}

/// Adds a fence after the load of `value`: the x86 back end would turn a select
/// of it into a masked load, which waits for the condition.
static Value fenceLoad(OpBuilder &b, Value value) {
  Operation *def = value.getDefiningOp();
  if (auto extend = dyn_cast_or_null<arith::ExtFOp>(def))
    def = extend.getIn().getDefiningOp();
  Type element = getElementTypeOrSelf(value);
  if (!isa_and_present<vector::LoadOp>(def) ||
      !(element.isF32() || element.isF64()))
    return value;
  return LLVM::CallIntrinsicOp::create(b, value.getLoc(), value.getType(),
                                       b.getStringAttr("llvm.arithmetic.fence"),
                                       ValueRange{value})
      .getResult(0);
}

/// Drops fast-math flags, so that LLVM computes all elements alike, including
/// the remainder of a loop.
static void computeAsWritten(Operation *op) {
  auto arithmetic = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!arithmetic || !arithmetic.getFastMathFlagsAttr() ||
      arithmetic.getFastMathFlagsAttr().getValue() ==
          arith::FastMathFlags::none)
    return;
  op->setAttr(arithmetic.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(),
                                            arith::FastMathFlags::none));
}

/// Clones `op`, on vectors if it has a vector operand.
static void cloneOp(OpBuilder &b, Operation &op, IRMapping &mapping,
                    int64_t lanes) {
  bool takesVector = llvm::any_of(op.getOperands(), [&](Value operand) {
    return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
  });
  if (!takesVector) {
    computeAsWritten(b.clone(op, mapping));
    return;
  }
  if (auto extension = dyn_cast<arith::ExtFOp>(op)) {
    Value value = mapping.lookup(extension.getIn());
    if (getElementTypeOrSelf(value) == extension.getType()) {
      mapping.map(extension.getOut(), value);
      return;
    }
  }
  IRMapping vectors;
  for (Value operand : op.getOperands())
    vectors.map(operand, broadcastTo(b, op.getLoc(),
                                     mapping.lookupOrDefault(operand), lanes));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    for (Value choice : {select.getTrueValue(), select.getFalseValue()})
      vectors.map(choice, fenceLoad(b, vectors.lookup(choice)));
  Operation *clone = op.clone(vectors);
  for (OpResult result : clone->getResults())
    result.setType(VectorType::get({lanes}, result.getType()));
  computeAsWritten(clone);
  b.insert(clone);
  mapping.map(op.getResults(), clone->getResults());
}

/// The product with a single use that may be fused into `op`; null if none. The
/// choice depends only on the body, so that all its clones round alike.
static arith::MulFOp getFusedProduct(Operation &op) {
  auto allows = [](auto arithmetic) {
    return bitEnumContainsAll(arithmetic.getFastmath(),
                              arith::FastMathFlags::contract);
  };
  auto find = [&](auto sum) -> arith::MulFOp {
    // Narrower types would be rounded twice.
    if (!allows(sum) || !(sum.getType().isF32() || sum.getType().isF64()))
      return {};
    for (Value operand : {sum.getRhs(), sum.getLhs()})
      if (auto product = operand.template getDefiningOp<arith::MulFOp>();
          product && product->hasOneUse() && allows(product) &&
          product->getBlock() == op.getBlock())
        return product;
    return {};
  };
  if (auto add = dyn_cast<arith::AddFOp>(op))
    return find(add);
  if (auto sub = dyn_cast<arith::SubFOp>(op))
    return find(sub);
  return {};
}

/// Clones `op` and the product in it as one operation with one rounding.
static void cloneFused(OpBuilder &b, Operation &op, arith::MulFOp product,
                       IRMapping &mapping, int64_t lanes) {
  Location loc = op.getLoc();
  bool isRhs = op.getOperand(1) == product.getResult();
  SmallVector<Value> operands;
  for (Value operand :
       {product.getLhs(), product.getRhs(), op.getOperand(isRhs ? 0 : 1)})
    operands.push_back(mapping.lookupOrDefault(operand));
  auto isVector = [](Value value) { return isa<VectorType>(value.getType()); };
  if (llvm::any_of(operands, isVector))
    for (Value &operand : operands)
      operand = broadcastTo(b, loc, operand, lanes);
  // a - x*y is -x*y + a, x*y - a is x*y + -a.
  if (isa<arith::SubFOp>(op)) {
    Value &negated = operands[isRhs ? 0 : 2];
    negated = arith::NegFOp::create(b, loc, negated);
  }
  Operation *clone = mapping.lookup(product.getResult()).getDefiningOp();
  mapping.map(op.getResult(0),
              LLVM::FMAOp::create(b, loc, operands[0].getType(), operands));
  mapping.erase(product.getResult());
  clone->erase();
}

IRMapping mlir::bngrad::cloneElement(OpBuilder &b, linalg::GenericOp generic,
                                     ElementReader reader, int64_t lanes,
                                     bool fma) {
  IRMapping mapping;
  for (OpOperand &operand : generic->getOpOperands()) {
    BlockArgument arg = generic.getMatchingBlockArgument(&operand);
    if (!arg.use_empty())
      if (Value value = reader.readOperand(b, operand))
        mapping.map(arg, value);
  }
  auto isUnread = [&](Value value) {
    return value.getParentBlock() == generic.getBody() &&
           !mapping.contains(value);
  };
  for (Operation &op : generic.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(op))
      mapping.map(index.getResult(), reader.readIndex(b, index.getDim()));
    else if (llvm::any_of(op.getOperands(), isUnread))
      continue;
    else if (arith::MulFOp product = fma ? getFusedProduct(op) : nullptr)
      cloneFused(b, op, product, mapping, lanes);
    else
      cloneOp(b, op, mapping, lanes);
  }
  return mapping;
}

SmallVector<Value> mlir::bngrad::applyMap(OpBuilder &b, Location loc,
                                          AffineMap map, ArrayRef<Value> ivs) {
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      indices.push_back(ivs[dim.getPosition()]);
      continue;
    }
    // Loops that the expression does not use may be missing.
    SmallVector<Value> operands(ivs);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    for (Value &operand : operands)
      operand = operand ? operand : zero;
    indices.push_back(affine::AffineApplyOp::create(
        b, loc, AffineMap::get(map.getNumDims(), 0, expr), operands));
  }
  return indices;
}

void ElementCloner::load(OpBuilder &b, ArrayRef<Value> ivs) {
  for (OpOperand &operand : generic->getOpOperands()) {
    BlockArgument arg = generic.getMatchingBlockArgument(&operand);
    Value &value = args[arg.getArgNumber()];
    if (value || arg.use_empty() || unread.test(arg.getArgNumber()))
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
    // The missing loops may still write an output.
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
  return cloneElement(
      b, generic,
      {[&](OpBuilder &, OpOperand &operand) {
         return element
             .args[generic.getMatchingBlockArgument(&operand).getArgNumber()];
       },
       [&](OpBuilder &, unsigned loop) { return ivs[loop]; }});
}

void ElementCloner::store(OpBuilder &b, ArrayRef<Value> ivs, unsigned i,
                          Value value) {
  OpOperand *init = generic.getDpsInitOperand(i);
  memref::StoreOp::create(
      b, generic.getLoc(), value, init->get(),
      applyMap(b, generic.getLoc(), generic.getMatchingIndexingMap(init), ivs));
}
