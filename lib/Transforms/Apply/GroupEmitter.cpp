//===- GroupEmitter.cpp - base of the CPU and GPU emitters ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupEmitter.h"
#include "ElementCloner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

SmallVector<Value> mlir::bngrad::pick(ArrayRef<Value> values,
                                      ArrayRef<unsigned> loops) {
  return llvm::map_to_vector(loops,
                             [&](unsigned loop) { return values[loop]; });
}

GroupEmitter::GroupEmitter(OpBuilder &b, const ScheduledGroup &group)
    : group(group), loc(group.getMembers().front().getLoc()) {
  enterStage(0);
  linalg::GenericOp first = group.getDataGenerics().front();
  for (Range range :
       cast<linalg::LinalgOp>(first.getOperation()).createLoopRanges(b, loc))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
  for (unsigned loop : llvm::seq(group.numLoops))
    if (!group.isFeature(loop))
      reduced.push_back(loop);
}

void GroupEmitter::enterStage(unsigned number) {
  stageNumber = number;
  current = group.stages[number];
  values = current.reduction ? *getReductionValues(current.reduction)
                             : ReductionValues();
  sumTypes.clear();
  for (auto [result, term] : values.terms)
    sumTypes.push_back(cast<FloatType>(term.getType()));
}

void GroupEmitter::emitIf(OpBuilder &b, Value condition, Body thenBody) const {
  if (matchPattern(condition, m_One()))
    return thenBody(b);
  if (matchPattern(condition, m_Zero()))
    return;
  scf::IfOp::create(b, loc, condition, [&](OpBuilder &nested, Location) {
    thenBody(nested);
    scf::YieldOp::create(nested, loc);
  });
}

void GroupEmitter::emitIf(OpBuilder &b, Value condition, Body thenBody,
                          Body elseBody) const {
  mlir::bngrad::emitIf(b, loc, condition, thenBody, elseBody);
}

SmallVector<Value> GroupEmitter::emitIf(OpBuilder &b, Value condition,
                                        ValuesBody thenBody,
                                        ValueRange otherwise) const {
  if (matchPattern(condition, m_One()))
    return thenBody(b);
  if (matchPattern(condition, m_Zero()))
    return otherwise;
  return scf::IfOp::create(
             b, loc, condition,
             [&](OpBuilder &nested, Location) {
               scf::YieldOp::create(nested, loc, thenBody(nested));
             },
             [&](OpBuilder &nested, Location) {
               scf::YieldOp::create(nested, loc, otherwise);
             })
      .getResults();
}

void GroupEmitter::delinearize(OpBuilder &b, Value position,
                               ArrayRef<unsigned> loops,
                               MutableArrayRef<Value> ivs) const {
  IndexBuilder index = at(b);
  for (unsigned loop : llvm::reverse(loops.drop_front())) {
    ivs[loop] = index.rem(position, sizes[loop]);
    position = index.div(position, sizes[loop]);
  }
  ivs[loops.front()] = position;
}

Value GroupEmitter::zero(OpBuilder &b, unsigned i,
                         std::optional<int64_t> lanes) const {
  Type type = sumType(i);
  if (lanes)
    type = VectorType::get({*lanes}, type);
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

Accumulators GroupEmitter::zeroSums(OpBuilder &b,
                                    std::optional<int64_t> lanes) const {
  Accumulators sums;
  for (unsigned i : llvm::seq(numSums())) {
    Value none = zero(b, i, lanes);
    sums.push_back({none, none});
  }
  return sums;
}

SmallVector<Value> GroupEmitter::joinErrors(OpBuilder &b,
                                            ArrayRef<Accumulator> sums) const {
  return llvm::map_to_vector(sums, [&](const Accumulator &sum) -> Value {
    return arith::AddFOp::create(b, loc, sum.sum, sum.error);
  });
}

void GroupEmitter::emitChannelwise(OpBuilder &b,
                                   ArrayRef<Value> features) const {
  for (linalg::GenericOp generic : current.channelwise) {
    ElementCloner cloner(generic);
    IRMapping mapping = cloner.clone(b, features);
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands()))
      cloner.store(b, features, i, mapping.lookupOrDefault(value));
  }
}
