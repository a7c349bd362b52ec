//===- VectorLoopsSums.cpp - sums and what follows per channel ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementCloner.h"
#include "Sums.h"
#include "VectorLoopsImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Terms of a chain in each lane of a row, at least.
static constexpr int64_t kChain = 16;

Value VectorLoops::zero(OpBuilder &b, unsigned i, int64_t zeroLanes) const {
  return arith::ConstantOp::create(
      b, loc, b.getZeroAttr(VectorType::get({zeroLanes}, sumType(i))));
}

SmallVector<Value> VectorLoops::zeroSums(OpBuilder &b, int64_t sumLanes) const {
  SmallVector<Value> sums;
  for (unsigned i : llvm::seq(numSums()))
    sums.append(2, zero(b, i, sumLanes));
  return sums;
}

SmallVector<Value> VectorLoops::addTerms(OpBuilder &b, const Run &run,
                                         const Piece &piece, ValueRange sums) {
  IRMapping mapping = clonePiece(b, group.reduction, run, piece, sums);
  storePiece(b, group.reduction, run, piece, mapping, /*isStreaming=*/false);
  Operation *yield = group.reduction.getBody()->getTerminator();
  SmallVector<Value> next;
  for (auto [term, sum] : llvm::zip_equal(values.terms, sums)) {
    Value value = mapping.lookup(yield->getOperand(term.first));
    // What is computed from a lane that is masked off need not be 0.
    if (piece.mask)
      value = arith::SelectOp::create(b, loc, piece.mask, value, sum);
    next.push_back(value);
  }
  return next;
}

SmallVector<Value> VectorLoops::addRest(OpBuilder &b, const Run &run,
                                        Value position, Value rest,
                                        ValueRange sums) {
  auto addPiece = [&](OpBuilder &nested, int64_t first, ValueRange before) {
    Value left = at(nested).sub(rest, constant(nested, first));
    std::optional<int64_t> count = getConstantIntValue(left);
    Piece piece = {at(nested).add(position, constant(nested, first)), lanes,
                   Value()};
    if (!count || *count < lanes)
      piece.mask = createMask(nested, left, lanes);
    SmallVector<Value> parts;
    for (Value sum : before)
      parts.push_back(vector::ExtractStridedSliceOp::create(nested, loc, sum,
                                                            first, lanes, 1));
    SmallVector<Value> after = addTerms(nested, run, piece, parts);
    for (auto [sum, part] : llvm::zip_equal(before, after))
      part = vector::InsertStridedSliceOp::create(nested, loc, part, sum, first,
                                                  1);
    return after;
  };
  SmallVector<Value> carried(sums);
  for (int64_t first = 0; first < wide; first += lanes) {
    Value isThere =
        at(b).compare(arith::CmpIPredicate::ugt, rest, constant(b, first));
    if (matchPattern(isThere, m_Zero()))
      break;
    if (matchPattern(isThere, m_One())) {
      carried = addPiece(b, first, carried);
      continue;
    }
    carried = scf::IfOp::create(
                  b, loc, isThere,
                  [&](OpBuilder &nested, Location) {
                    scf::YieldOp::create(nested, loc,
                                         addPiece(nested, first, carried));
                  },
                  [&](OpBuilder &nested, Location) {
                    scf::YieldOp::create(nested, loc, carried);
                  })
                  .getResults();
  }
  return carried;
}

SmallVector<Value>
VectorLoops::emitSumRows(OpBuilder &b, Value rows,
                         function_ref<Run(OpBuilder &, Value)> getRun,
                         Value from, Value to) {
  Index index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  Value length = index.max(index.sub(to, from), zeroIndex);
  Value rest = index.rem(length, index.constant(wide));
  Value end = index.sub(index.add(from, length), rest);
  bool hasRest = !matchPattern(rest, m_Zero());
  SmallVector<Value> zeros;
  for (unsigned i : llvm::seq(numSums()))
    zeros.push_back(zero(b, i, wide));
  // Short rows share a chain.
  Value chain = index.mul(index.max(rowChain, index.constant(kChain)),
                          index.constant(wide));
  Value terms = index.ceilDiv(length, index.constant(wide));
  Value together = index.max(index.div(rowChain, index.max(terms, one)), one);
  auto addRow = [&](OpBuilder &row, const Run &run, Value start, Value stop,
                    ValueRange partials) -> SmallVector<Value> {
    SmallVector<Value> carried(partials);
    // The rest of the row, fewer than `wide` elements, is a term of its first
    // chain.
    if (hasRest)
      carried =
          scf::IfOp::create(
              row, loc,
              at(row).both(
                  at(row).compare(arith::CmpIPredicate::eq, start, from),
                  at(row).compare(arith::CmpIPredicate::ne, rest,
                                  constant(row, 0))),
              [&](OpBuilder &nested, Location) {
                scf::YieldOp::create(nested, loc,
                                     addRest(nested, run, end, rest, partials));
              },
              [&](OpBuilder &nested, Location) {
                scf::YieldOp::create(nested, loc, partials);
              })
              .getResults();
    return createFor(row, loc, start, stop, constant(row, wide), carried,
                     [&](OpBuilder &nested, Location, Value position,
                         ValueRange sums) {
                       scf::YieldOp::create(nested, loc,
                                            addTerms(nested, run,
                                                     {position, wide, Value()},
                                                     sums));
                     })
        .getResults();
  };
  auto groups = createFor(
      b, loc, zeroIndex, rows, together, zeroSums(b, wide),
      [&](OpBuilder &inGroup, Location, Value firstRow, ValueRange groupSums) {
        Index inside = at(inGroup);
        Value endRow = inside.min(inside.add(firstRow, together), rows);
        // Once, even if a row is no longer than its rest.
        Value last = inside.max(end, inside.add(from, inside.constant(1)));
        auto chains = createFor(
            inGroup, loc, from, last, chain, groupSums,
            [&](OpBuilder &inChain, Location, Value start, ValueRange sums) {
              Value stop = at(inChain).min(at(inChain).add(start, chain), end);
              auto partial = createFor(
                  inChain, loc, firstRow, endRow, constant(inChain, 1), zeros,
                  [&](OpBuilder &inRow, Location, Value row,
                      ValueRange partials) {
                    Run run = getRun(inRow, row);
                    readCommon(inRow, group.reduction, run);
                    scf::YieldOp::create(
                        inRow, loc, addRow(inRow, run, start, stop, partials));
                  });
              scf::YieldOp::create(
                  inChain, loc,
                  addCompensated(inChain, loc, sums, partial.getResults()));
            });
        scf::YieldOp::create(inGroup, loc, chains.getResults());
      });
  return groups.getResults();
}

Value VectorLoops::addLanes(OpBuilder &b, Value sum, Value error) const {
  Value total = arith::AddFOp::create(b, loc, sum, error);
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, total,
                                     arith::FastMathFlags::reassoc);
}

void VectorLoops::storeSums(OpBuilder &b, ArrayRef<Value> features,
                            ValueRange totals) {
  SmallVector<Value> ivs(group.numLoops);
  for (auto [loop, iv] : llvm::zip_equal(group.features, features))
    ivs[loop] = iv;
  for (auto [term, total] : llvm::zip_equal(values.terms, totals)) {
    OpOperand *init = group.reduction.getDpsInitOperand(term.first);
    SmallVector<Value> indices = indicesOf(group.reduction, *init, ivs);
    Value before = memref::LoadOp::create(b, loc, init->get(), indices);
    Value after = arith::AddFOp::create(b, loc, before, total);
    memref::StoreOp::create(b, loc, after, init->get(), indices);
  }
}

/// The per-channel generics for one channel.
void VectorLoops::emitChannelwise(OpBuilder &b, ArrayRef<Value> features) {
  for (linalg::GenericOp generic : group.channelwise) {
    ElementCloner cloner(generic);
    IRMapping mapping = cloner.clone(b, features);
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands()))
      cloner.store(b, features, i, mapping.lookupOrDefault(value));
  }
}

bool VectorLoops::hasChannelVectors() const {
  auto hasVectors = [](linalg::GenericOp generic, OpOperand &operand) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    Type type = getElementTypeOrSelf(operand.get());
    return !isa<MemRefType>(operand.get().getType()) ||
           (map.isConstant() && !generic.isDpsInit(&operand)) ||
           (map.getNumResults() == 1 && isMemRefWithIdentity(operand.get()) &&
            isVectorElement(type) && !type.isInteger(1));
  };
  if (group.features.size() != 1)
    return false;
  for (auto [result, term] : values.terms) {
    linalg::GenericOp reduction = group.reduction;
    if (!hasVectors(reduction, *reduction.getDpsInitOperand(result)))
      return false;
  }
  return llvm::all_of(group.channelwise, [&](linalg::GenericOp generic) {
    return isVectorizable(generic) &&
           llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
             return hasVectors(generic, operand);
           });
  });
}

void VectorLoops::storeSums(OpBuilder &b, const Piece &piece,
                            ValueRange totals) const {
  linalg::GenericOp reduction = group.reduction;
  for (auto [term, total] : llvm::zip_equal(values.terms, totals)) {
    Value output = reduction.getDpsInitOperand(term.first)->get();
    Value before = load(b, output, piece.position, piece);
    Value after = arith::AddFOp::create(b, loc, before, total);
    store(b, after, output, piece.position, piece, /*isStreaming=*/false);
  }
}

void VectorLoops::emitChannelwise(OpBuilder &b, const Piece &piece) const {
  auto readIndex = [&](OpBuilder &, unsigned) -> Value {
    auto type = VectorType::get({piece.lanes}, b.getIndexType());
    return arith::AddIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, type, piece.position),
        vector::StepOp::create(b, loc, type));
  };
  for (linalg::GenericOp generic : group.channelwise) {
    auto readOperand = [&, generic](OpBuilder &, OpOperand &operand) mutable {
      Value value = operand.get();
      if (!isa<MemRefType>(value.getType()))
        return value;
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      if (!map.isConstant())
        return load(b, value, piece.position, piece);
      SmallVector<Value> indices;
      for (int64_t i : map.getConstantResults())
        indices.push_back(constant(b, i));
      return memref::LoadOp::create(b, loc, value, indices).getResult();
    };
    IRMapping mapping = cloneElement(b, generic, {readOperand, readIndex},
                                     piece.lanes, schedule.getFma());
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands()))
      store(b, mapping.lookupOrDefault(value),
            generic.getDpsInitOperand(i)->get(), piece.position, piece,
            /*isStreaming=*/false);
  }
}
