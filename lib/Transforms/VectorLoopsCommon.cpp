//===- VectorLoopsCommon.cpp - loops, memory and elements -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementCloner.h"
#include "VectorLoopsImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void VectorLoops::initialize(OpBuilder &b) {
  FloatType type = b.getF32Type();
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (Operation &op : *generic.getBody())
      for (Value operand : op.getOperands())
        if (operand.getType().isF64())
          type = b.getF64Type();
  lanes = schedule.getVectorBits() / type.getWidth();
  wide = 4 * lanes;
  if (group.reduction)
    values = *getReductionValues(group.reduction);

  auto first =
      cast<linalg::LinalgOp>(group.getDataGenerics().front().getOperation());
  for (Range range : first.createLoopRanges(b, loc))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
  for (unsigned loop : llvm::seq(group.numLoops))
    if (!group.isFeature(loop))
      reduced.push_back(loop);
  count = at(b).product(sizes);
  int64_t width = 0;
  // Members may have views of their own of the same data.
  llvm::SetVector<Value> seen, viewed;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          seen.insert(operand.get()) && viewed.insert(getViewed(operand.get())))
        width += llvm::divideCeil(
            getElementTypeOrSelf(operand.get()).getIntOrFloatBitWidth(), 8);
  bytes = at(b).mul(count, constant(b, width));
  // The more terms, the longer the chains that the bound has room for.
  SmallVector<Value> reducedSizes;
  for (unsigned loop : reduced)
    reducedSizes.push_back(sizes[loop]);
  Value terms = at(b).product(reducedSizes);
  rowChain = constant(b, 8);
  for (auto [least, chain] : {std::pair(1024, 16), {4096, 32}})
    rowChain = at(b).select(
        at(b).compare(arith::CmpIPredicate::uge, terms, constant(b, least)),
        constant(b, chain), rowChain);
  // Views are made here, where they dominate every loop.
  for (Value memref : seen)
    getFlat(b, memref);
}

void VectorLoops::emitFor(OpBuilder &b, Value from, Value to, Value step,
                          IndexBody body) const {
  createFor(b, loc, from, to, step, ValueRange(),
            [&](OpBuilder &nested, Location, Value iv, ValueRange) {
              body(nested, iv);
              scf::YieldOp::create(nested, loc);
            });
}

void VectorLoops::emitLoops(
    OpBuilder &b, ArrayRef<unsigned> loops, SmallVector<Value> ivs,
    function_ref<void(OpBuilder &, ArrayRef<Value>)> body) const {
  if (loops.empty())
    return body(b, ivs);
  emitFor(b, constant(b, 0), sizes[loops.front()],
          [&](OpBuilder &nested, Value iv) {
            ivs[loops.front()] = iv;
            emitLoops(nested, loops.drop_front(), ivs, body);
          });
}

Value VectorLoops::getShares(OpBuilder &b) const {
  Index index = at(b);
  return index.select(index.compare(arith::CmpIPredicate::ult, count,
                                    index.constant(limits::kSerialElements)),
                      index.constant(1), index.constant(schedule.getThreads()));
}

void VectorLoops::emitShares(OpBuilder &b, Value total, ShareBody body,
                             Value isLittle) const {
  Index index = at(b);
  Value zero = index.constant(0), one = index.constant(1);
  Value shares = getShares(b);
  if (matchPattern(shares, m_One()))
    return body(b, zero, zero, total);
  scf::ParallelOp::create(
      b, loc, zero, shares, one,
      [&](OpBuilder &nested, Location, ValueRange iv) {
        Index inside = at(nested);
        Value from = inside.div(inside.mul(iv[0], total), shares);
        Value next = inside.add(iv[0], inside.constant(1));
        Value to = inside.div(inside.mul(next, total), shares);
        if (isLittle) {
          Value isFirst = inside.compare(arith::CmpIPredicate::eq, iv[0], zero);
          from = inside.select(isLittle, inside.select(isFirst, zero, total),
                               from);
          to = inside.select(isLittle, total, to);
        }
        body(nested, iv[0], from, to);
        // Streaming stores are not ordered with what another thread reads.
        LLVM::FenceOp::create(nested, loc, LLVM::AtomicOrdering::seq_cst);
      });
}

void VectorLoops::emitIf(OpBuilder &b, Value condition, Body thenBody,
                         Body elseBody) const {
  if (matchPattern(condition, m_One()))
    return thenBody(b);
  if (matchPattern(condition, m_Zero()))
    return elseBody(b);
  scf::IfOp::create(
      b, loc, condition,
      [&](OpBuilder &nested, Location) {
        thenBody(nested);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        elseBody(nested);
        scf::YieldOp::create(nested, loc);
      });
}

void VectorLoops::delinearize(OpBuilder &b, Value position,
                              ArrayRef<unsigned> loops,
                              MutableArrayRef<Value> ivs) const {
  Index index = at(b);
  for (unsigned loop : llvm::reverse(loops.drop_front())) {
    ivs[loop] = index.rem(position, sizes[loop]);
    position = index.div(position, sizes[loop]);
  }
  ivs[loops.front()] = position;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value VectorLoops::getFlat(OpBuilder &b, Value memref) {
  Value &flat = flats[memref];
  if (flat)
    return flat;
  flat = memref;
  if (cast<MemRefType>(memref.getType()).getRank() > 1) {
    SmallVector<ReassociationIndices> all(
        1, llvm::to_vector<2>(llvm::seq<int64_t>(0, group.numLoops)));
    flat = memref::CollapseShapeOp::create(b, loc, memref, all);
  }
  if (getElementTypeOrSelf(memref).isInteger(1))
    flat = getBytes(b, flat);
  return flat;
}

/// A memref of i1 as one of i8, which is what memory holds: a vector of i1
/// would be read as bits.
Value VectorLoops::getBytes(OpBuilder &b, Value memref) const {
  auto type = cast<MemRefType>(memref.getType());
  return UnrealizedConversionCastOp::create(b, loc, type.clone(b.getI8Type()),
                                            memref)
      .getResult(0);
}

Value VectorLoops::load(OpBuilder &b, Value memref, ValueRange indices,
                        const Piece &piece) const {
  Type elementType = getElementTypeOrSelf(memref);
  bool isMask = elementType.isInteger(1);
  if (isMask) {
    memref = getBytes(b, memref);
    elementType = b.getI8Type();
  }
  auto type = VectorType::get({piece.lanes}, elementType);
  if (!piece.mask)
    return vector::LoadOp::create(b, loc, type, memref, indices);
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(b, loc, type, memref, indices, piece.mask,
                                      zeros);
}

void VectorLoops::store(OpBuilder &b, Value value, Value memref,
                        ValueRange indices, const Piece &piece,
                        bool isStreaming) const {
  value = broadcastTo(b, loc, value, piece.lanes);
  if (getElementTypeOrSelf(value).isInteger(1))
    value = arith::ExtUIOp::create(
        b, loc, VectorType::get({piece.lanes}, b.getI8Type()), value);
  if (piece.mask) {
    vector::MaskedStoreOp::create(b, loc, memref, indices, piece.mask, value);
    return;
  }
  if (!isStreaming) {
    Type type = getElementTypeOrSelf(value);
    bool isNarrow = type.isF16() || type.isBF16();
    if (!isNarrow || piece.lanes <= lanes) {
      vector::StoreOp::create(b, loc, value, memref, indices);
      return;
    }
    // What one conversion gives is stored by itself; LLVM would join two first.
    SmallVector<Value> position(indices);
    for (int64_t first = 0; first < piece.lanes; first += lanes) {
      Value part =
          vector::ExtractStridedSliceOp::create(b, loc, value, first, lanes, 1);
      position.back() = at(b).add(indices.back(), constant(b, first));
      vector::StoreOp::create(b, loc, part, memref, position);
    }
    return;
  }
  // LLVM drops the hint from stores of 16-bit floats.
  if (auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value));
      type && type.getWidth() == 16) {
    Type bits = b.getI16Type();
    value = arith::BitcastOp::create(
        b, loc, VectorType::get({piece.lanes}, bits), value);
    auto memrefType = cast<MemRefType>(memref.getType());
    memref = UnrealizedConversionCastOp::create(b, loc, memrefType.clone(bits),
                                                memref)
                 .getResult(0);
  }
  int64_t pieceBytes =
      piece.lanes * getElementTypeOrSelf(value).getIntOrFloatBitWidth() / 8;
  vector::StoreOp::create(b, loc, value, memref, indices, /*nontemporal=*/true,
                          llvm::MaybeAlign(std::min(kLineBytes, pieceBytes)));
}

SmallVector<Value> VectorLoops::createTables(OpBuilder &b,
                                             const TableTypes &types) const {
  Index index = at(b);
  auto typeOf = [](Type elementType) {
    return MemRefType::get({ShapedType::kDynamic}, elementType);
  };
  Value size = index.constant(0);
  SmallVector<Value> offsets, lengths;
  for (auto [entries, type] : types) {
    // A table is read and written by vectors that start at any entry, and by
    // the rows of `rows` up to a line later. Whole lines.
    Value length =
        index.add(entries, index.constant(2 * wide + 2 * kLineBytes - 1));
    length = index.sub(length, index.rem(length, index.constant(kLineBytes)));
    offsets.push_back(size);
    lengths.push_back(length);
    int64_t width = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
    size = index.add(size, index.mul(length, index.constant(width)));
  }
  Value memory =
      memref::AllocOp::create(b, loc, typeOf(b.getI8Type()), ValueRange{size},
                              ValueRange(), b.getI64IntegerAttr(kLineBytes));
  SmallVector<Value> tables;
  for (auto [type, offset, length] : llvm::zip_equal(types, offsets, lengths))
    tables.push_back(memref::ViewOp::create(b, loc, typeOf(type.second), memory,
                                            offset, ValueRange{length}));
  return tables;
}

void VectorLoops::deallocate(OpBuilder &b, Value table) const {
  memref::DeallocOp::create(b, loc,
                            table.getDefiningOp<memref::ViewOp>().getSource());
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

SmallVector<Value> VectorLoops::indicesOf(linalg::GenericOp generic,
                                          OpOperand &operand,
                                          ArrayRef<Value> ivs) const {
  SmallVector<Value> indices;
  for (AffineExpr expr : generic.getMatchingIndexingMap(&operand).getResults())
    indices.push_back(ivs[cast<AffineDimExpr>(expr).getPosition()]);
  return indices;
}

bool VectorLoops::differsInRun(linalg::GenericOp generic, OpOperand &operand,
                               const Run &run) const {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  return llvm::any_of(llvm::enumerate(run.ivs), [&](auto iv) {
    return !iv.value() && map.isFunctionOfDim(iv.index());
  });
}

void VectorLoops::readCommon(OpBuilder &b, linalg::GenericOp generic,
                             Run &run) const {
  for (OpOperand &operand : generic->getOpOperands()) {
    if (generic.getMatchingBlockArgument(&operand).use_empty() ||
        run.common.contains(&operand) || differsInRun(generic, operand, run))
      continue;
    if (generic.isDpsInit(&operand))
      continue; // the accumulator of a sum
    Value &value = run.common[&operand];
    value = operand.get();
    if (isa<MemRefType>(value.getType()))
      value = memref::LoadOp::create(b, loc, value,
                                     indicesOf(generic, operand, run.ivs));
  }
}

IRMapping VectorLoops::clonePiece(OpBuilder &b, linalg::GenericOp generic,
                                  const Run &run, const Piece &piece,
                                  ValueRange sums) {
  Index index = at(b);
  auto readOperand = [&](OpBuilder &, OpOperand &operand) -> Value {
    if (Value common = run.common.lookup(&operand))
      return common;
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    if (generic.isDpsInit(&operand) && !isDataMap(map)) {
      for (auto [term, sum] : llvm::zip(values.terms, sums))
        if (generic.getDpsInitOperand(term.first) == &operand)
          return sum;
      return {};
    }
    Value value;
    if (isDataMap(map)) {
      value = load(b, getFlat(b, operand.get()),
                   index.add(run.base, piece.position), piece);
    } else if (run.tables) {
      value = load(b, run.tables->lookup(operand.get()),
                   index.add(run.tableOffset, piece.position), piece);
    } else {
      SmallVector<Value> ivs(run.ivs);
      ivs.back() = piece.position;
      value = load(b, operand.get(), indicesOf(generic, operand, ivs), piece);
    }
    if (getElementTypeOrSelf(operand.get()).isInteger(1)) {
      Value zeros =
          arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
      value =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zeros);
    }
    return value;
  };
  auto readIndex = [&](OpBuilder &, unsigned loop) -> Value {
    if (run.ivs[loop])
      return run.ivs[loop];
    auto type = VectorType::get({piece.lanes}, b.getIndexType());
    return arith::AddIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, type, piece.position),
        vector::StepOp::create(b, loc, type));
  };
  return cloneElement(b, generic, {readOperand, readIndex}, piece.lanes,
                      schedule.getFma());
}

void VectorLoops::storePiece(OpBuilder &b, linalg::GenericOp generic,
                             const Run &run, const Piece &piece,
                             const IRMapping &mapping, bool isStreaming) {
  Value position = at(b).add(run.base, piece.position);
  Operation *yield = generic.getBody()->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    OpOperand *init = generic.getDpsInitOperand(i);
    if (isDataMap(generic.getMatchingIndexingMap(init)))
      store(b, mapping.lookupOrDefault(value), getFlat(b, init->get()),
            position, piece, isStreaming);
  }
}

Value VectorLoops::createMask(OpBuilder &b, Value count,
                              int64_t maskLanes) const {
  // Lowered to a comparison of 32 bits, so not left to be more than that.
  Value bounded = at(b).min(count, constant(b, maskLanes));
  return vector::CreateMaskOp::create(
      b, loc, VectorType::get({maskLanes}, b.getI1Type()), bounded);
}

void VectorLoops::emitMasked(OpBuilder &b, Value from, Value to,
                             PieceBody body) const {
  emitFor(b, from, to, constant(b, lanes),
          [&](OpBuilder &nested, Value position) {
            Value rest = at(nested).sub(to, position);
            body(nested, {position, lanes, createMask(nested, rest, lanes)});
          });
}

void VectorLoops::emitPieces(OpBuilder &b, Value from, Value to, int64_t most,
                             PieceBody body) const {
  Index index = at(b);
  SmallVector<int64_t> lengths;
  for (int64_t length = most; length >= wide; length /= 2)
    lengths.push_back(length);
  lengths.push_back(lanes);
  Value left = index.max(index.sub(to, from), index.constant(0));
  for (int64_t length : lengths) {
    Value rest = index.rem(left, index.constant(length));
    Value whole = index.sub(left, rest);
    if (!matchPattern(whole, m_Zero())) {
      Value end = index.add(from, whole);
      emitFor(b, from, end, index.constant(length),
              [&](OpBuilder &nested, Value position) {
                body(nested, {position, length, Value()});
              });
      from = end;
    }
    if (matchPattern(rest, m_Zero()))
      return;
    left = rest;
  }
  emitMasked(b, from, to, body);
}

void VectorLoops::prefetch(OpBuilder &b, linalg::GenericOp generic,
                           const Run &run, const Piece &piece) {
  // What fits into the caches needs no help.
  if (!run.ahead || matchPattern(isStreamed(b), m_Zero()))
    return;
  Index index = at(b);
  Value first = index.add(index.add(run.base, piece.position), run.ahead);
  Value last = index.sub(count, index.constant(1));
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (!isDataMap(generic.getMatchingIndexingMap(operand)))
      continue;
    Value flat = getFlat(b, operand->get());
    int64_t width = getElementTypeOrSelf(flat).getIntOrFloatBitWidth() / 8;
    for (int64_t element = 0; element < piece.lanes;
         element += kLineBytes / width) {
      // Behind the end there is nothing to come.
      Value position =
          index.min(index.add(first, index.constant(element)), last);
      memref::PrefetchOp::create(b, loc, flat, position, /*isWrite=*/false,
                                 /*localityHint=*/2, /*isDataCache=*/true);
    }
  }
}

Value VectorLoops::isStreamed(OpBuilder &b) const {
  if (schedule.getStreamingBytes() == 0)
    return arith::ConstantIntOp::create(b, loc, 0, 1);
  return at(b).compare(arith::CmpIPredicate::ugt, bytes,
                       constant(b, schedule.getStreamingBytes()));
}

void VectorLoops::emitElementwiseRun(OpBuilder &b, linalg::GenericOp generic,
                                     Run run, Value from, Value to) {
  readCommon(b, generic, run);
  // Two results would be two streams, with lines of their own to start at.
  Value isStreaming = generic.getNumDpsInits() == 1
                          ? isStreamed(b)
                          : arith::ConstantIntOp::create(b, loc, 0, 1);
  emitIf(
      b, isStreaming,
      [&](OpBuilder &nested) {
        emitElementwiseRun(nested, generic, run, from, to, true);
      },
      [&](OpBuilder &nested) {
        emitElementwiseRun(nested, generic, run, from, to, false);
      });
}

void VectorLoops::emitElementwiseRun(OpBuilder &b, linalg::GenericOp generic,
                                     const Run &run, Value from, Value to,
                                     bool isStreaming) {
  Index index = at(b);
  Value result = getFlat(b, generic.getDpsInitOperand(0)->get());
  int64_t width =
      llvm::divideCeil(getElementTypeOrSelf(result).getIntOrFloatBitWidth(), 8);
  auto emitPiece = [&](OpBuilder &nested, const Piece &piece) {
    // Whole lines go past the caches, in one piece or several.
    bool fillsLines =
        piece.lanes == wide || piece.lanes * width % kLineBytes == 0;
    bool isStreamed = isStreaming && !piece.mask && fillsLines;
    if (isStreamed)
      prefetch(nested, generic, run, piece);
    IRMapping mapping = clonePiece(nested, generic, run, piece);
    storePiece(nested, generic, run, piece, mapping, isStreamed);
  };
  if (isStreaming) {
    // Up to the first line of the result.
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, result);
    Value start = index.mul(index.add(run.base, from), index.constant(width));
    Value past =
        index.rem(index.add(address, start), index.constant(kLineBytes));
    Value head = index.rem(index.sub(index.constant(kLineBytes), past),
                           index.constant(kLineBytes));
    Value body =
        index.min(index.add(from, index.div(head, index.constant(width))), to);
    emitMasked(b, from, body, emitPiece);
    from = body;
  }
  emitPieces(b, from, to, wide, emitPiece);
}
