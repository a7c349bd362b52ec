//===- GpuMoments.cpp - a mean and squares about it, together -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stages of a mean and of squares about it (Schedule/Moments.h) would read
// the data twice. Instead, a thread adds up the pieces of a chunk, which are in
// registers, about their own mean, the chunk's *center*. In f64, these sums are
// moved to the center of the thread's first chunk and, at the end, to the first
// element of the channel, which all threads have in common, so that their sums
// can be added.
//
//===----------------------------------------------------------------------===//

#include "GpuMoments.h"
#include "Apply/ElementCloner.h"

#include "BNGrad/Transforms/FloatBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Chunks of pieces of at most kMostNarrowLanes elements of 16 bits that a
/// thread adds up about one center.
static constexpr int64_t kNarrowChunks = 4, kMostNarrowLanes = 4;

namespace {
/// The sums of the distances of some elements from a number, and of their
/// squares, in f64.
struct Distances {
  Value sum, squares;
};

/// What a thread knows about the pieces that it has visited.
struct VisitedPieces {
  Value center; // of its first chunk, in f64
  Distances fromCenter;
  Value count; // of pieces

  SmallVector<Value> toValues() const {
    return {center, fromCenter.sum, fromCenter.squares, count};
  }
  static VisitedPieces fromValues(ValueRange values) {
    return {values[0], {values[1], values[2]}, values[3]};
  }
  static constexpr size_t kNumValues = 4;
};

/// The operands of a piece, in registers.
struct LoadedPiece {
  Indices indices;
  DenseMap<OpOperand *, Value> ofSum, ofSquares; // by operand of the reduction
};

/// Adds up the pieces of a thread.
class ThreadMoments {
public:
  ThreadMoments(OpBuilder &b, const Pieces &pieces, const Indices &indices);

  VisitedPieces none(OpBuilder &b) const;
  /// How many chunks of kUnroll pieces are added up about one center: several
  /// if lanes are channels, as arithmetic in f64 takes long for each, and
  /// registers can hold the pieces.
  int64_t countChunksAtOnce() const;
  LoadedPiece load(OpBuilder &b, const Indices &indices) const;
  VisitedPieces add(OpBuilder &b, const VisitedPieces &before,
                    MutableArrayRef<LoadedPiece> chunk) const;
  /// The sums of the distances of all elements from the first of the channel.
  Distances getFromFirst(OpBuilder &b, const VisitedPieces &visited) const;

private:
  /// Converts sums of distances from a number to sums of distances from that
  /// number less `shift`.
  Distances move(OpBuilder &b, const Distances &distances, Value shift,
                 Value elements) const;
  /// The sum of a term, in a lane or in all lanes of a piece.
  Value addPieces(OpBuilder &b, ArrayRef<Value> terms) const;
  /// A term of a reduction for a piece.
  Value getTerm(OpBuilder &b, const IRMapping &mapping, Value term) const;
  Value mulAdd(OpBuilder &b, Value l, Value r, Value addend) const;

  const Pieces &pieces;
  const MomentStages &moments;
  const Location loc;
  linalg::GenericOp sum, squares;
  ReductionValues ofSum, ofSquares;
  const bool joinsLanes;         // adds up the lanes of a piece
  const int64_t elementsOfPiece; // per sum
  const DenseMap<OpOperand *, Value> commonOfSum, commonOfSquares;
  Value first;
};
} // namespace

ThreadMoments::ThreadMoments(OpBuilder &b, const Pieces &pieces,
                             const Indices &indices)
    : pieces(pieces), moments(*pieces.gpu.moments), loc(pieces.gpu.loc),
      sum(pieces.gpu.group.stages[moments.sum].reduction),
      squares(pieces.gpu.group.stages[moments.sum + 1].reduction),
      ofSum(*getReductionValues(sum)), ofSquares(*getReductionValues(squares)),
      joinsLanes(pieces.lanes > 1 && pieces.areOfOneChannel()),
      elementsOfPiece(joinsLanes ? pieces.lanes : 1),
      commonOfSum(pieces.loadCommon(b, sum, indices)),
      commonOfSquares(pieces.loadCommon(b, squares, indices, moments.center)),
      first(commonOfSum.lookup(moments.first)) {
  if (pieces.lanes > 1 && !joinsLanes)
    first = broadcastTo(b, loc, first, pieces.lanes);
}

int64_t ThreadMoments::countChunksAtOnce() const {
  linalg::GenericOp reduction = sum;
  bool isNarrow =
      llvm::all_of(reduction.getDpsInputOperands(), [&](OpOperand *operand) {
        Type type = getElementTypeOrSelf(operand->get());
        return !isDataMap(reduction.getMatchingIndexingMap(operand)) ||
               type.getIntOrFloatBitWidth() <= 16;
      });
  bool isColumn = pieces.gpu.group.isFeature(pieces.gpu.inner);
  return isNarrow && isColumn && pieces.lanes <= kMostNarrowLanes
             ? kNarrowChunks
             : 1;
}

VisitedPieces ThreadMoments::none(OpBuilder &b) const {
  FloatBuilder math = {b, loc};
  Value center = math.toF64(first), zero = math.constant(0, center);
  return {center, {zero, zero}, pieces.gpu.constant(b, 0)};
}

LoadedPiece ThreadMoments::load(OpBuilder &b, const Indices &indices) const {
  LoadedPiece piece = {indices, commonOfSum, commonOfSquares};
  DenseMap<std::pair<Value, AffineMap>, Value> loaded;
  auto loadOperands = [&](linalg::GenericOp reduction,
                          DenseMap<OpOperand *, Value> &values) {
    for (OpOperand *operand : reduction.getDpsInputOperands()) {
      if (values.contains(operand) ||
          reduction.getMatchingBlockArgument(operand).use_empty())
        continue;
      Value &value =
          loaded[{operand->get(), reduction.getMatchingIndexingMap(operand)}];
      if (!value)
        value = pieces.load(b, reduction, *operand, indices);
      values[operand] = value;
    }
  };
  loadOperands(sum, piece.ofSum);
  loadOperands(squares, piece.ofSquares);
  return piece;
}

Value ThreadMoments::getTerm(OpBuilder &b, const IRMapping &mapping,
                             Value term) const {
  Value value = mapping.lookupOrDefault(term);
  return pieces.lanes > 1 ? broadcastTo(b, loc, value, pieces.lanes) : value;
}

Value ThreadMoments::addPieces(OpBuilder &b, ArrayRef<Value> terms) const {
  Value total = terms.front();
  for (Value term : terms.drop_front())
    total = arith::AddFOp::create(b, loc, total, term);
  if (!joinsLanes)
    return total;
  return addTree(b, loc,
                 vector::ToElementsOp::create(b, loc, total).getElements());
}

Value ThreadMoments::mulAdd(OpBuilder &b, Value l, Value r,
                            Value addend) const {
  if (pieces.gpu.schedule.fma)
    return LLVM::FMAOp::create(b, loc, l, r, addend);
  FloatBuilder math = {b, loc};
  return math.add(math.mul(l, r), addend);
}

Distances ThreadMoments::move(OpBuilder &b, const Distances &distances,
                              Value shift, Value elements) const {
  FloatBuilder math = {b, loc};
  Value sum = mulAdd(b, math.broadcast(elements, shift), shift, distances.sum);
  return {sum,
          mulAdd(b, shift, math.add(distances.sum, sum), distances.squares)};
}

VisitedPieces ThreadMoments::add(OpBuilder &b, const VisitedPieces &before,
                                 MutableArrayRef<LoadedPiece> chunk) const {
  FloatBuilder math = {b, loc};
  SmallVector<Value> terms, squareTerms;
  for (const LoadedPiece &piece : chunk)
    terms.push_back(getTerm(b, pieces.clone(b, sum, piece.ofSum, piece.indices),
                            ofSum.terms[0].second));
  int64_t elements = static_cast<int64_t>(chunk.size()) * elementsOfPiece;
  Value total = addPieces(b, terms);
  Value center =
      math.add(first, math.mul(total, math.constant(1.0 / elements, total)));
  // An infinite center would turn infinite sums into NaN.
  center = math.selectFinite(center, first);
  terms.clear();
  for (LoadedPiece &piece : chunk) {
    piece.ofSquares[moments.center] = center;
    IRMapping mapping =
        pieces.clone(b, squares, piece.ofSquares, piece.indices);
    terms.push_back(
        getTerm(b, mapping, ofSquares.terms[moments.difference].second));
    squareTerms.push_back(
        getTerm(b, mapping, ofSquares.terms[moments.square].second));
  }
  Value isFirst = isZero(pieces.gpu.at(b), before.count);
  Value exactCenter = math.toF64(center);
  Value firstCenter =
      arith::SelectOp::create(b, loc, isFirst, exactCenter, before.center);
  Distances ofChunk = move(
      b,
      {math.toF64(addPieces(b, terms)), math.toF64(addPieces(b, squareTerms))},
      math.sub(exactCenter, firstCenter),
      arith::ConstantOp::create(
          b, loc, b.getF64FloatAttr(static_cast<double>(elements))));
  return {firstCenter,
          {math.add(before.fromCenter.sum, ofChunk.sum),
           math.add(before.fromCenter.squares, ofChunk.squares)},
          pieces.gpu.at(b).add(
              before.count,
              pieces.gpu.constant(b, static_cast<int64_t>(chunk.size())))};
}

Distances ThreadMoments::getFromFirst(OpBuilder &b,
                                      const VisitedPieces &visited) const {
  FloatBuilder math = {b, loc};
  IndexBuilder index = pieces.gpu.at(b);
  Value elements =
      math.toDouble(index.mul(visited.count, index.constant(elementsOfPiece)));
  Value shift = math.sub(visited.center, math.toF64(first));
  return move(b, visited.fromCenter, shift, elements);
}

Accumulators mlir::bngrad::emitMoments(OpBuilder &b, const Pieces &pieces,
                                       const Walk &walk, Indices indices,
                                       const ThreadPieces &threadPieces,
                                       const Arrivals &arrivals) {
  const GpuGroup &gpu = pieces.gpu;
  IndexBuilder index = gpu.at(b);
  for (unsigned loop : walk.loops)
    indices[loop] = Value();
  ThreadMoments thread(b, pieces, indices);
  Chunks chunks(index, threadPieces);
  // Adds `count` pieces to what a loop carries.
  auto addPieces = [&](OpBuilder &nested, ValueRange carried, int64_t count) {
    IndexBuilder inside = gpu.at(nested);
    VisitedPieces before = VisitedPieces::fromValues(carried);
    SmallVector<Value> position(carried.drop_front(VisitedPieces::kNumValues));
    SmallVector<LoadedPiece> chunk;
    // All loads come before the first sum.
    for (int64_t step = 0; step < count; ++step) {
      if (arrivals.steps > 0 && step % arrivals.steps == 0)
        arrivals.awaitStep(nested,
                           inside.add(before.count, inside.constant(step)));
      chunk.push_back(
          thread.load(nested, walk.getIndices(inside, indices, position)));
      position = walk.advance(inside, position);
    }
    SmallVector<Value> next = thread.add(nested, before, chunk).toValues();
    llvm::append_range(next, position);
    scf::YieldOp::create(nested, gpu.loc, next);
  };
  SmallVector<Value> carried = thread.none(b).toValues();
  llvm::append_range(carried, walk.delinearize(index, chunks.start));
  // Adds `size` pieces at a time.
  auto emitLoop = [&](Value from, Value to, Value step, int64_t size) {
    auto loop = scf::ForOp::create(
        b, gpu.loc, from, to, step, carried,
        [&](OpBuilder &nested, Location, Value, ValueRange args) {
          addPieces(nested, args, size);
        });
    pieces.keepLoop(loop);
    carried.assign(loop.result_begin(), loop.result_end());
  };
  Value next = index.constant(0), one = index.constant(1);
  if (int64_t most = thread.countChunksAtOnce(); most > 1) {
    Value count = index.div(chunks.count, index.constant(most));
    emitLoop(next, count, one, most * kUnroll);
    next = index.mul(count, index.constant(most));
  }
  emitLoop(next, chunks.count, one, kUnroll);
  // Each of the remaining pieces is a chunk.
  emitLoop(chunks.getRest(index), threadPieces.to, threadPieces.stride, 1);
  Distances total = thread.getFromFirst(b, VisitedPieces::fromValues(carried));
  Value noError = FloatBuilder{b, gpu.loc}.constant(0, total.sum);
  return {{total.sum, noError}, {total.squares, noError}};
}

void mlir::bngrad::computeMoments(OpBuilder &b, const GpuGroup &gpu,
                                  const Indices &indices, ValueRange totals,
                                  const DenseMap<OpOperand *, Value> &loaded,
                                  DenseMap<Value, Value> known,
                                  ResultBody body) {
  FloatBuilder math = {b, gpu.loc};
  const MomentStages &moments = *gpu.moments;
  GpuGroup stage(gpu);
  auto compute = [&](unsigned number, ValueRange ofStage) {
    stage.enterStage(number);
    computeChannel(b, stage, indices, ofStage, loaded, known,
                   [&](OpBuilder &nested, OpOperand &result, Value value) {
                     known[getViewed(result.get())] = value;
                     body(nested, result, value);
                   });
  };
  auto get = [&](OpOperand *operand) {
    return math.toF64(known.at(getViewed(operand->get())));
  };
  Value sum = totals[0], squares = totals[1];
  compute(moments.sum, math.toF32(sum));
  // The sums of the second stage are about the center that the values of the
  // first stage give.
  Value shift = math.sub(get(moments.center), get(moments.first));
  Value elements =
      math.toDouble(gpu.at(b).product(pick(gpu.sizes, gpu.reduced)));
  Value difference = math.sub(sum, math.mul(elements, shift));
  SmallVector<Value> ofSquares(2);
  ofSquares[moments.difference] = math.toF32(difference);
  ofSquares[moments.square] =
      math.toF32(math.sub(squares, math.mul(shift, math.add(sum, difference))));
  compute(moments.sum + 1, ofSquares);
}
