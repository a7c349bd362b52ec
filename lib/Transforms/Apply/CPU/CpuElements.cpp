//===- CpuElements.cpp - clones of generics for pieces of a run -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

//===----------------------------------------------------------------------===//
// Clones
//===----------------------------------------------------------------------===//

SmallVector<Value> CpuLoops::getIndices(linalg::GenericOp generic,
                                        OpOperand &operand,
                                        ArrayRef<Value> ivs) const {
  SmallVector<Value> indices;
  for (AffineExpr expr : generic.getMatchingIndexingMap(&operand).getResults())
    indices.push_back(ivs[cast<AffineDimExpr>(expr).getPosition()]);
  return indices;
}

/// True if `operand` has one value for all elements of `run`.
static bool isUniform(linalg::GenericOp generic, OpOperand &operand,
                      const Run &run) {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  return llvm::none_of(llvm::enumerate(run.ivs), [&](auto iv) {
    return !iv.value() && map.isFunctionOfDim(iv.index());
  });
}

void CpuLoops::loadUniform(OpBuilder &b, linalg::GenericOp generic,
                           Run &run) const {
  for (OpOperand &operand : generic->getOpOperands()) {
    if (generic.getMatchingBlockArgument(&operand).use_empty() ||
        run.uniform.contains(&operand) || !isUniform(generic, operand, run))
      continue;
    if (generic.isDpsInit(&operand))
      continue; // the accumulator of a sum
    Value &value = run.uniform[&operand];
    value = operand.get();
    if (isa<MemRefType>(value.getType()))
      value = memref::LoadOp::create(b, loc, value,
                                     getIndices(generic, operand, run.ivs));
  }
}

Value CpuLoops::readOperand(OpBuilder &b, linalg::GenericOp generic,
                            OpOperand &operand, const Run &run,
                            const Piece &piece) const {
  Value value;
  if (isDataMap(generic.getMatchingIndexingMap(&operand))) {
    value = load(b, getFlat(operand.get()),
                 getIndex(b, operand.get(), run, piece.position), piece);
  } else if (run.tables) {
    value = load(b, run.tables->lookup(operand.get()),
                 at(b).add(run.tableOffset, piece.position), piece);
  } else {
    SmallVector<Value> ivs(run.ivs);
    ivs.back() = piece.position;
    value = load(b, operand.get(), getIndices(generic, operand, ivs), piece);
  }
  if (!getElementTypeOrSelf(operand.get()).isInteger(1))
    return value;
  Value zeros =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zeros);
}

IRMapping CpuLoops::clonePiece(OpBuilder &b, linalg::GenericOp generic,
                               const Run &run, const Piece &piece,
                               ValueRange sums) const {
  bool arePairs = takesPairs(generic, run, piece);
  auto read = [&](OpBuilder &, OpOperand &operand) -> Value {
    if (Value uniform = run.uniform.lookup(&operand))
      return uniform;
    bool isData = isDataMap(generic.getMatchingIndexingMap(&operand));
    if (isData && arePairs)
      return loadPairs(b, getFlat(operand.get()),
                       getIndex(b, operand.get(), run, piece.position),
                       piece.lanes);
    if (isData || !generic.isDpsInit(&operand))
      return readOperand(b, generic, operand, run, piece);
    for (auto [term, sum] : llvm::zip(values.terms, sums))
      if (generic.getDpsInitOperand(term.first) == &operand)
        return sum;
    return {};
  };
  auto readIndex = [&](OpBuilder &, unsigned loop) -> Value {
    if (run.ivs[loop])
      return run.ivs[loop];
    return createSteps(b, piece);
  };
  return cloneElement(b, generic, {read, readIndex}, piece.lanes, schedule.fma);
}

Value CpuLoops::createSteps(OpBuilder &b, const Piece &piece) const {
  auto type = VectorType::get({piece.lanes}, b.getIndexType());
  return arith::AddIOp::create(
      b, loc, vector::BroadcastOp::create(b, loc, type, piece.position),
      vector::StepOp::create(b, loc, type));
}

void CpuLoops::storePiece(OpBuilder &b, linalg::GenericOp generic,
                          const Run &run, const Piece &piece,
                          const IRMapping &mapping, bool isStreaming) const {
  Operation *yield = generic.getBody()->getTerminator();
  bool arePairs = takesPairs(generic, run, piece);
  for (auto [i, result] : llvm::enumerate(yield->getOperands())) {
    OpOperand *init = generic.getDpsInitOperand(i);
    if (!isDataMap(generic.getMatchingIndexingMap(init)))
      continue;
    Value value = arePairs ? roundToPairs(b, generic, i, mapping, piece.lanes)
                           : mapping.lookupOrDefault(result);
    Value flat = getFlat(init->get());
    Value position = getIndex(b, init->get(), run, piece.position);
    if (isStreaming)
      storeStreaming(b, value, flat, position, piece);
    else
      store(b, value, flat, position, piece);
  }
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Value CpuLoops::createMask(OpBuilder &b, Value count, int64_t maskLanes) const {
  // This is lowered to a 32-bit comparison, so clamp `count`.
  Value bounded = at(b).min(count, constant(b, maskLanes));
  return vector::CreateMaskOp::create(
      b, loc, VectorType::get({maskLanes}, b.getI1Type()), bounded);
}

void CpuLoops::emitMasked(OpBuilder &b, Interval elements,
                          PieceBody body) const {
  emitFor(b, elements, constant(b, lanes),
          [&](OpBuilder &nested, Value position) {
            Value rest = at(nested).sub(elements.to, position);
            body(nested, {position, lanes, createMask(nested, rest, lanes)});
          });
}

void CpuLoops::emitPieces(OpBuilder &b, Interval elements, int64_t most,
                          PieceBody body) const {
  IndexBuilder index = at(b);
  SmallVector<int64_t> lengths;
  for (int64_t length = most; length >= wide; length /= 2)
    lengths.push_back(length);
  lengths.push_back(lanes);
  auto [from, to] = elements;
  Value remaining = index.max(index.sub(to, from), index.constant(0));
  for (int64_t length : lengths) {
    Value rest = index.rem(remaining, index.constant(length));
    Value whole = index.sub(remaining, rest);
    if (!matchPattern(whole, m_Zero())) {
      Value end = index.add(from, whole);
      emitFor(b, {from, end}, index.constant(length),
              [&](OpBuilder &nested, Value position) {
                body(nested, {position, length});
              });
      from = end;
    }
    if (matchPattern(rest, m_Zero()))
      return;
    remaining = rest;
  }
  emitMasked(b, {from, to}, body);
}

bool CpuLoops::branchesOnMasks(linalg::GenericOp generic,
                               bool isForBooleans) const {
  // AVX-512 has masked accesses for every element type, AVX2 for elements of at
  // least 32 bits, and older instruction sets have none.
  int64_t leastBits = schedule.vectorBits >= 512   ? 8
                      : schedule.vectorBits >= 256 ? 32
                                                   : 128;
  return llvm::any_of(generic->getOpOperands(), [&](OpOperand &operand) {
    bool isBoolean = getElementTypeOrSelf(operand.get()).isInteger(1);
    return isDataMap(generic.getMatchingIndexingMap(&operand)) &&
           (isForBooleans || !isBoolean) &&
           8 * getElementBytes(getFlat(operand.get())) < leastBits;
  });
}

bool CpuLoops::hasDataResults(linalg::GenericOp generic) const {
  return llvm::any_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
    return isDataMap(generic.getMatchingIndexingMap(&init));
  });
}

void CpuLoops::emitOverlapping(OpBuilder &b, linalg::GenericOp generic,
                               const Run &run, Interval elements,
                               PieceBody body) const {
  IndexBuilder index = at(b);
  Value zero = index.constant(0), vector = index.constant(lanes);
  Value length = index.max(index.sub(elements.to, elements.from), zero);
  Value rest = index.rem(length, vector);
  // LLVM accesses the lanes of a constant mask one by one.
  if (getConstantIntValue(rest))
    return emitPieces(b, elements, wide, body);
  Value overlaps =
      index.bitAnd(index.compare(arith::CmpIPredicate::ne, rest, zero),
                   index.compare(arith::CmpIPredicate::uge, length, vector));
  Piece last = {index.sub(elements.to, vector), lanes};
  ValueRange yielded = generic.getBody()->getTerminator()->getOperands();
  SmallVector<Value> none;
  for (Value result : yielded) {
    Type type = isHalf(result.getType()) ? b.getI16Type() : result.getType();
    none.push_back(arith::ConstantOp::create(
        b, loc, b.getZeroAttr(VectorType::get({lanes}, type))));
  }
  // Compute before storing, as results may overwrite operands. Select integers,
  // for which LLVM supports all selections.
  SmallVector<Value> results = emitIf(
      b, overlaps,
      [&](OpBuilder &nested) {
        IRMapping mapping = clonePiece(nested, generic, run, last);
        return llvm::map_to_vector(yielded, [&](Value result) {
          Value value =
              broadcastTo(nested, loc, mapping.lookupOrDefault(result), lanes);
          return isHalf(result.getType()) ? toBits(nested, loc, value) : value;
        });
      },
      none);
  elements.to = index.sub(elements.to, index.select(overlaps, rest, zero));
  emitPieces(b, elements, wide, body);
  emitIf(b, overlaps, [&](OpBuilder &nested) {
    IRMapping mapping;
    for (auto [result, value] : llvm::zip_equal(yielded, results))
      mapping.map(result,
                  nested.createOrFold<arith::BitcastOp>(
                      loc, VectorType::get({lanes}, result.getType()), value));
    storePiece(nested, generic, run, last, mapping, /*isStreaming=*/false);
  });
}

//===----------------------------------------------------------------------===//
// Element-wise generics
//===----------------------------------------------------------------------===//

int64_t CpuLoops::getPageElements(linalg::GenericOp generic) const {
  int64_t width = 1;
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (isDataMap(generic.getMatchingIndexingMap(operand)))
      width = std::max(width, getElementBytes(operand->get()));
  return kPageBytes / width;
}

void CpuLoops::prefetch(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                        const Piece &piece) const {
  if (hasRowStrides || !run.prefetchDistance ||
      matchPattern(run.prefetchDistance, m_Zero()))
    return;
  IndexBuilder index = at(b);
  // Do not prefetch past the end: a masked piece may have less data.
  int64_t fetched = piece.mask ? 1 : piece.lanes;
  Value first =
      index.add(index.add(run.base, piece.position), run.prefetchDistance);
  first = index.min(first, index.sub(count, index.constant(fetched)));
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (!isDataMap(generic.getMatchingIndexingMap(operand)))
      continue;
    Value flat = getFlat(operand->get());
    int64_t line = kLineBytes / getElementBytes(flat);
    for (int64_t element = 0; element < fetched; element += line)
      memref::PrefetchOp::create(
          b, loc, flat, index.add(first, index.constant(element)),
          /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
  }
}

/// The hardware's prefetchers stop at the end of a page. So the first access to
/// the next page waits for its translation, and so do streaming stores.
void CpuLoops::prefetchPages(OpBuilder &b, Value flat, Value position,
                             Value length) const {
  IndexBuilder index = at(b);
  Value page = index.constant(kPageBytes / getElementBytes(flat));
  Value first = index.sub(position, index.rem(position, page));
  auto prefetchPage = [&](OpBuilder &nested, Value start) {
    // Do not prefetch past the end of the data.
    Value last = at(nested).sub(count, constant(nested, 1));
    memref::PrefetchOp::create(nested, loc, flat, at(nested).min(start, last),
                               /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
  };
  if (!length)
    return prefetchPage(b, first);
  emitFor(b, {first, index.add(position, length)}, page, prefetchPage);
}

void CpuLoops::emitElements(OpBuilder &b, linalg::GenericOp generic, Run run,
                            Interval elements) const {
  loadUniform(b, generic, run);
  Value isStreaming = isStoredPast(b, generic);
  emitIf(
      b, isStreaming,
      [&](OpBuilder &nested) {
        if (run.next && !hasRowStrides)
          prefetchPages(nested, getFlatResult(generic), run.next,
                        at(nested).sub(elements.to, elements.from));
        emitElementPieces(nested, generic, run, elements,
                          /*isStreaming=*/true);
      },
      [&](OpBuilder &nested) {
        emitElementPieces(nested, generic, run, elements,
                          /*isStreaming=*/false);
      });
}

void CpuLoops::emitElementPieces(OpBuilder &b, linalg::GenericOp generic,
                                 const Run &run, Interval elements,
                                 bool isStreaming) const {
  IndexBuilder index = at(b);
  Value result = getFlatResult(generic);
  int64_t width = getElementBytes(result);
  auto emitPiece = [&](OpBuilder &nested, const Piece &piece) {
    // Stream whole lines, in one piece or several.
    bool fillsLines =
        piece.lanes == wide || piece.lanes * width % kLineBytes == 0;
    bool isStreamedPiece = isStreaming && !piece.mask && fillsLines;
    if (isStreamedPiece)
      prefetch(nested, generic, run, piece);
    // A streamed run starts at a line, not at the tables' first pair.
    Run read = isStreaming ? run : withPairs(generic, run, piece);
    IRMapping mapping = clonePiece(nested, generic, read, piece);
    storePiece(nested, generic, read, piece, mapping, isStreamedPiece);
  };
  if (isStreaming) {
    // Elements before the first line of the result.
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, result);
    Value first =
        getIndex(b, generic.getDpsInitOperand(0)->get(), run, elements.from);
    Value start = index.mul(first, index.constant(width));
    Value toLine = getElementsToLine(b, index.add(address, start), width);
    Value firstOfLine =
        index.min(index.add(elements.from, toLine), elements.to);
    emitMasked(b, {elements.from, firstOfLine}, emitPiece);
    elements.from = firstOfLine;
  }
  // Runs with tables keep the mask, as rows are folded to whole vectors where
  // possible.
  if (!isStreaming && !run.tables &&
      branchesOnMasks(generic, /*isForBooleans=*/true))
    emitOverlapping(b, generic, run, elements, emitPiece);
  else
    emitPieces(b, elements, wide, emitPiece);
}
