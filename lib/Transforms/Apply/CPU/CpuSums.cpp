//===- CpuSums.cpp - sums of runs, and per-channel generics ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "Apply/Sums.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The least number of terms of a chain in each lane of a run.
static constexpr int64_t kChain = 16;

//===----------------------------------------------------------------------===//
// Sums of runs
//===----------------------------------------------------------------------===//

SmallVector<Value> CpuLoops::zeroTerms(OpBuilder &b, int64_t termLanes) const {
  SmallVector<Value> zeros;
  for (unsigned i : llvm::seq(numSums()))
    zeros.push_back(zero(b, i, termLanes));
  return zeros;
}

SmallVector<Value> CpuLoops::addTerms(OpBuilder &b, const Run &run,
                                      const Piece &piece,
                                      ValueRange sums) const {
  linalg::GenericOp reduction = current.reduction;
  IRMapping mapping = clonePiece(b, reduction, run, piece, sums);
  storePiece(b, reduction, run, piece, mapping, /*isStreaming=*/false);
  Operation *yield = reduction.getBody()->getTerminator();
  SmallVector<Value> next;
  for (auto [term, sum] : llvm::zip_equal(values.terms, sums)) {
    Value value = mapping.lookup(yield->getOperand(term.first));
    // A masked-off lane may have a term that is not 0.
    if (piece.mask)
      value = arith::SelectOp::create(b, loc, piece.mask, value, sum);
    next.push_back(value);
  }
  return next;
}

SmallVector<Value> CpuLoops::addRestPiece(OpBuilder &b, const Run &run,
                                          const ChainPlan &plan, int64_t first,
                                          bool overlaps,
                                          ValueRange sums) const {
  IndexBuilder index = at(b);
  Value remaining = index.sub(plan.rest, index.constant(first));
  std::optional<int64_t> count = getConstantIntValue(remaining);
  Piece piece = {index.add(plan.elements.to, index.constant(first)), lanes};
  Value isBefore;
  if (overlaps) {
    Value last = index.sub(index.add(plan.elements.to, plan.rest),
                           index.constant(lanes));
    Value position = index.min(piece.position, last);
    isBefore = createMask(b, index.sub(piece.position, position), lanes);
    piece.position = position;
  } else if (!count || *count < lanes) {
    piece.mask = createMask(b, remaining, lanes);
  }
  SmallVector<Value> slices;
  for (Value sum : sums)
    slices.push_back(
        vector::ExtractStridedSliceOp::create(b, loc, sum, first, lanes, 1));
  SmallVector<Value> next = addTerms(b, run, piece, slices);
  if (isBefore)
    for (auto [value, slice] : llvm::zip_equal(next, slices))
      value = arith::SelectOp::create(b, loc, isBefore, slice, value);
  for (auto [sum, slice] : llvm::zip_equal(sums, next))
    slice = vector::InsertStridedSliceOp::create(b, loc, slice, sum, first, 1);
  return next;
}

SmallVector<Value> CpuLoops::addRest(OpBuilder &b, const Run &run,
                                     const ChainPlan &plan,
                                     ValueRange sums) const {
  SmallVector<Value> carried(sums);
  auto addIf = [&](Value condition, int64_t first, bool overlaps) {
    carried = emitIf(
        b, condition,
        [&](OpBuilder &nested) {
          return addRestPiece(nested, run, plan, first, overlaps, carried);
        },
        carried);
  };
  IndexBuilder index = at(b);
  // Overlapping registers have the rest in other lanes. Whether there is a mask
  // of i1 must not change the bits of the sums.
  bool overlap = !getConstantIntValue(plan.rest) &&
                 branchesOnMasks(current.reduction, /*isForBooleans=*/false) &&
                 !hasDataResults(current.reduction);
  Value isLong;
  if (overlap) {
    Value length =
        index.sub(index.add(plan.elements.to, plan.rest), plan.elements.from);
    Value vector = index.constant(lanes);
    isLong = index.compare(arith::CmpIPredicate::uge, length, vector);
    addIf(index.compare(arith::CmpIPredicate::ult, length, vector), 0,
          /*overlaps=*/false);
  }
  for (int64_t first = 0; first < wide; first += lanes) {
    Value hasPiece = index.compare(arith::CmpIPredicate::ugt, plan.rest,
                                   index.constant(first));
    if (matchPattern(hasPiece, m_Zero()))
      break;
    addIf(overlap ? index.bitAnd(hasPiece, isLong) : hasPiece, first, overlap);
  }
  return carried;
}

SmallVector<Value> CpuLoops::addChain(OpBuilder &b, const Run &run,
                                      const ChainPlan &plan, Interval chain,
                                      ValueRange sums) const {
  SmallVector<Value> carried(sums);
  // The rest of the run belongs to its first chain.
  if (!matchPattern(plan.rest, m_Zero())) {
    Value isFirst =
        at(b).compare(arith::CmpIPredicate::eq, chain.from, plan.elements.from);
    Value hasRest =
        at(b).compare(arith::CmpIPredicate::ne, plan.rest, constant(b, 0));
    carried = emitIf(
        b, at(b).bitAnd(isFirst, hasRest),
        [&](OpBuilder &nested) { return addRest(nested, run, plan, sums); },
        sums);
  }
  return emitSumLoop(
      b, chain, constant(b, wide), carried,
      [&](OpBuilder &nested, Value position, ValueRange partials) {
        return addTerms(nested, run, {position, wide}, partials);
      });
}

CpuLoops::ChainPlan CpuLoops::planChains(OpBuilder &b,
                                         Interval elements) const {
  IndexBuilder index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  ChainPlan plan;
  Value length = index.max(index.sub(elements.to, elements.from), zeroIndex);
  plan.rest = index.rem(length, index.constant(wide));
  Value end = index.sub(index.add(elements.from, length), plan.rest);
  plan.elements = {elements.from, end};
  plan.zeros = zeroTerms(b, wide);
  // The sums of a block have smaller errors than those of a channel
  // (docs/numerics.md, section 10).
  Value chainTerms =
      moments ? index.min(chainRows, index.constant(kChain)) : chainRows;
  plan.chain = index.mul(index.max(chainTerms, index.constant(kChain)),
                         index.constant(wide));
  Value terms = index.ceilDiv(length, index.constant(wide));
  plan.runsOfChain =
      index.max(index.div(chainTerms, index.max(terms, one)), one);
  return plan;
}

Accumulators CpuLoops::addChains(OpBuilder &b, const RunsToSum &runs,
                                 const ChainPlan &plan, Interval numbers,
                                 ArrayRef<Accumulator> sums) const {
  Interval elements = plan.elements;
  // Run at least one iteration, even if a run is no longer than its rest.
  Value last = at(b).max(elements.to, at(b).add(elements.from, constant(b, 1)));
  return emitAccumulatorLoop(
      b, {elements.from, last}, plan.chain, sums,
      [&](OpBuilder &inChain, Value start, ArrayRef<Accumulator> chainSums) {
        Value stop =
            at(inChain).min(at(inChain).add(start, plan.chain), elements.to);
        SmallVector<Value> terms = emitSumLoop(
            inChain, numbers, plan.zeros,
            [&](OpBuilder &inRun, Value number, ValueRange partials) {
              Run run = runs.getRun(inRun, number);
              loadUniform(inRun, current.reduction, run);
              return addChain(inRun, run, plan, {start, stop}, partials);
            });
        return addCompensated(inChain, loc, chainSums, terms);
      });
}

Accumulators CpuLoops::emitRunSums(OpBuilder &b, const RunsToSum &runs) const {
  ChainPlan plan = planChains(b, runs.elements);
  return emitAccumulatorLoop(
      b, {constant(b, 0), runs.count}, plan.runsOfChain, zeroSums(b, wide),
      [&](OpBuilder &nested, Value first, ArrayRef<Accumulator> sums) {
        Value end =
            at(nested).min(at(nested).add(first, plan.runsOfChain), runs.count);
        return addChains(nested, runs, plan, {first, end}, sums);
      });
}

SmallVector<Value> CpuLoops::addLanes(OpBuilder &b,
                                      ArrayRef<Accumulator> sums) const {
  auto addLanesOf = [&](const Accumulator &sum) -> Value {
    Value total = arith::AddFOp::create(b, loc, sum.sum, sum.error);
    // Add halves, as the target determines the order of vector.reduction.
    int64_t half = cast<VectorType>(total.getType()).getNumElements() / 2;
    for (; half > 0; half /= 2) {
      auto getHalf = [&](int64_t first) -> Value {
        return vector::ExtractStridedSliceOp::create(
            b, loc, total, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{half},
            ArrayRef<int64_t>{1});
      };
      total = arith::AddFOp::create(b, loc, getHalf(0), getHalf(half));
    }
    return vector::ExtractOp::create(b, loc, total, ArrayRef<int64_t>{0});
  };
  return llvm::map_to_vector(sums, addLanesOf);
}

//===----------------------------------------------------------------------===//
// Results of a channel
//===----------------------------------------------------------------------===//

void CpuLoops::storeSums(OpBuilder &b, ArrayRef<Value> features,
                         ValueRange totals) const {
  linalg::GenericOp reduction = current.reduction;
  SmallVector<Value> ivs(group.numLoops);
  for (auto [loop, iv] : llvm::zip_equal(group.features, features))
    ivs[loop] = iv;
  for (auto [term, total] : llvm::zip_equal(values.terms, totals)) {
    OpOperand *init = reduction.getDpsInitOperand(term.first);
    SmallVector<Value> indices = getIndices(reduction, *init, ivs);
    Value before = memref::LoadOp::create(b, loc, init->get(), indices);
    Value after = arith::AddFOp::create(b, loc, before, total);
    memref::StoreOp::create(b, loc, after, init->get(), indices);
  }
}

bool CpuLoops::hasChannelVectors() const {
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
    linalg::GenericOp reduction = current.reduction;
    if (!hasVectors(reduction, *reduction.getDpsInitOperand(result)))
      return false;
  }
  return llvm::all_of(current.channelwise, [&](linalg::GenericOp generic) {
    return isVectorizable(generic) &&
           llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
             return hasVectors(generic, operand);
           });
  });
}

void CpuLoops::storeSums(OpBuilder &b, const Piece &piece,
                         ValueRange totals) const {
  linalg::GenericOp reduction = current.reduction;
  for (auto [term, total] : llvm::zip_equal(values.terms, totals)) {
    Value output = reduction.getDpsInitOperand(term.first)->get();
    Value before = load(b, output, piece.position, piece);
    Value after = arith::AddFOp::create(b, loc, before, total);
    store(b, after, output, piece.position, piece);
  }
}

void CpuLoops::emitChannelwise(OpBuilder &b, const Piece &piece) const {
  auto readIndex = [&](OpBuilder &, unsigned) { return createSteps(b, piece); };
  for (linalg::GenericOp generic : current.channelwise) {
    auto read = [&, generic](OpBuilder &, OpOperand &operand) mutable {
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
    IRMapping mapping =
        cloneElement(b, generic, {read, readIndex}, piece.lanes, schedule.fma);
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands()))
      store(b, mapping.lookupOrDefault(value),
            generic.getDpsInitOperand(i)->get(), piece.position, piece);
  }
}
