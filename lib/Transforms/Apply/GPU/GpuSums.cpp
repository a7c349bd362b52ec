//===- GpuSums.cpp - the sums of a group's kernels ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuSums.h"
#include "Apply/ElementCloner.h"
#include "GpuMoments.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The least number of groups of rows that a thread adds if threads share them.
static constexpr int64_t kGroupsOfThread = 8;

/// The terms of a piece, one for each sum.
static SmallVector<Value> cloneTerms(OpBuilder &b, const Pieces &pieces,
                                     const DenseMap<OpOperand *, Value> &common,
                                     const Indices &indices) {
  linalg::GenericOp reduction = pieces.gpu.current.reduction;
  IRMapping mapping = pieces.clone(b, reduction, common, indices);
  pieces.storeResults(b, reduction, mapping, indices);
  SmallVector<Value> terms;
  for (auto [i, term] : pieces.gpu.values.terms) {
    Value value = mapping.lookupOrDefault(term);
    if (pieces.lanes > 1)
      value = broadcastTo(b, pieces.gpu.loc, value, pieces.lanes);
    terms.push_back(value);
  }
  return terms;
}

Value mlir::bngrad::addTree(OpBuilder &b, Location loc,
                            SmallVector<Value> values) {
  while (values.size() > 1) {
    SmallVector<Value> sums;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      sums.push_back(arith::AddFOp::create(b, loc, values[i], values[i + 1]));
    if (values.size() % 2 != 0)
      sums.push_back(values.back());
    values = std::move(sums);
  }
  return values.front();
}

namespace {
/// The terms of the pieces that a thread visits in a walk.
struct ThreadTerms {
  /// The terms of a whole chunk, added up in each lane. Moves `position` past
  /// the chunk.
  SmallVector<Value> addChunk(OpBuilder &b, Value chunk,
                              SmallVector<Value> &position) const;
  /// A loop over the pieces after the whole chunks, from `position` on: at most
  /// kUnroll of each thread. Its first results are their sums.
  scf::ForOp emitRest(OpBuilder &b, const Chunks &chunks,
                      const ThreadPieces &threadPieces,
                      ValueRange position) const;

  const Pieces &pieces;
  const Walk &walk;
  const Indices &indices; // of the loops that are not walked
  const DenseMap<OpOperand *, Value> common;
  const Arrivals &arrivals;
};
} // namespace

SmallVector<Value> ThreadTerms::addChunk(OpBuilder &b, Value chunk,
                                         SmallVector<Value> &position) const {
  IndexBuilder index = pieces.gpu.at(b);
  // All loads come before the first sum.
  SmallVector<SmallVector<Value>> terms;
  for (int64_t step = 0; step < kUnroll; ++step) {
    if (arrivals.steps > 0 && step % arrivals.steps == 0)
      arrivals.awaitStep(b, index.add(index.mul(chunk, index.constant(kUnroll)),
                                      index.constant(step)));
    Indices here = walk.getIndices(index, indices, position);
    terms.push_back(cloneTerms(b, pieces, common, here));
    position = walk.advance(index, position);
  }
  SmallVector<Value> sums = terms.front();
  for (const SmallVector<Value> &more : ArrayRef(terms).drop_front())
    for (auto [sum, term] : llvm::zip_equal(sums, more))
      sum = arith::AddFOp::create(b, pieces.gpu.loc, sum, term);
  return sums;
}

scf::ForOp ThreadTerms::emitRest(OpBuilder &b, const Chunks &chunks,
                                 const ThreadPieces &threadPieces,
                                 ValueRange position) const {
  const GpuGroup &gpu = pieces.gpu;
  IndexBuilder index = gpu.at(b);
  SmallVector<Value> carried;
  for (unsigned i : llvm::seq(gpu.numSums()))
    carried.push_back(pieces.lanes == 1 ? gpu.zero(b, i)
                                        : gpu.zero(b, i, pieces.lanes));
  llvm::append_range(carried, position);
  if (arrivals.steps > 0)
    carried.push_back(index.mul(chunks.count, index.constant(kUnroll)));
  return scf::ForOp::create(
      b, gpu.loc, chunks.getRest(index), threadPieces.to, threadPieces.stride,
      carried, [&](OpBuilder &nested, Location, Value, ValueRange args) {
        IndexBuilder inside = gpu.at(nested);
        ValueRange before = args.slice(gpu.numSums(), walk.loops.size());
        if (arrivals.steps > 0)
          arrivals.awaitStep(nested, args.back());
        Indices here = walk.getIndices(inside, indices, before);
        SmallVector<Value> next;
        for (auto [sum, term] :
             llvm::zip(args, cloneTerms(nested, pieces, common, here)))
          next.push_back(arith::AddFOp::create(nested, gpu.loc, sum, term));
        llvm::append_range(next, walk.advance(inside, before));
        if (arrivals.steps > 0)
          next.push_back(inside.add(args.back(), inside.constant(1)));
        scf::YieldOp::create(nested, gpu.loc, next);
      });
}

Accumulators mlir::bngrad::emitSums(OpBuilder &b, const Pieces &pieces,
                                    const Walk &walk, Indices indices,
                                    const ThreadPieces &threadPieces,
                                    const Arrivals &arrivals) {
  const GpuGroup &gpu = pieces.gpu;
  if (gpu.computesMoments())
    return emitMoments(b, pieces, walk, indices, threadPieces, arrivals);
  IndexBuilder index = gpu.at(b);
  for (unsigned loop : walk.loops)
    indices[loop] = Value();
  ThreadTerms terms = {pieces, walk, indices,
                       pieces.loadCommon(b, gpu.current.reduction, indices),
                       arrivals};
  Chunks chunks(index, threadPieces);
  // Add lanes of one channel first: a running sum with its error per lane takes
  // more instructions and registers.
  bool joinsLanes = pieces.lanes > 1 && pieces.areOfOneChannel();
  auto addToRunning = [&](OpBuilder &nested, ValueRange running,
                          SmallVector<Value> partial) {
    if (joinsLanes)
      for (Value &sum : partial)
        sum = addTree(
            nested, gpu.loc,
            vector::ToElementsOp::create(nested, gpu.loc, sum).getElements());
    return addCompensated(nested, gpu.loc, fromCarried(running), partial);
  };
  SmallVector<Value> carried =
      toCarried(gpu.zeroSums(b, joinsLanes ? 1 : pieces.lanes));
  size_t numSumValues = carried.size();
  llvm::append_range(carried, walk.delinearize(index, chunks.start));
  auto body = scf::ForOp::create(
      b, gpu.loc, index.constant(0), chunks.count, index.constant(1), carried,
      [&](OpBuilder &nested, Location, Value chunk, ValueRange args) {
        SmallVector<Value> position(args.drop_front(numSumValues));
        SmallVector<Value> partial = terms.addChunk(nested, chunk, position);
        SmallVector<Value> next = toCarried(
            addToRunning(nested, args.take_front(numSumValues), partial));
        llvm::append_range(next, position);
        scf::YieldOp::create(nested, gpu.loc, next);
      });
  // The rest forms one more chunk.
  scf::ForOp rest = terms.emitRest(b, chunks, threadPieces,
                                   body.getResults().drop_front(numSumValues));
  pieces.keepLoop(body);
  pieces.keepLoop(rest);
  return addToRunning(b, body.getResults().take_front(numSumValues),
                      rest.getResults().take_front(gpu.numSums()));
}

/// `value` from the lane whose number differs in the bits of `offset`.
static Value shuffle(OpBuilder &b, Location loc, Value value, int64_t offset) {
  auto exchange = [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, loc, word, static_cast<int32_t>(offset),
                                  static_cast<int32_t>(CudaChip::kWarpSize),
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Type type = value.getType();
  if (isa<VectorType>(type)) {
    SmallVector<Value> lanes(
        vector::ToElementsOp::create(b, loc, value).getElements());
    for (Value &lane : lanes)
      lane = shuffle(b, loc, lane, offset);
    return vector::FromElementsOp::create(b, loc, type, lanes);
  }
  if (type.isF32())
    return exchange(value);
  // A user's sum may have 16 bits; shuffle it in a word.
  if (type.getIntOrFloatBitWidth() == 16) {
    Value bits = arith::BitcastOp::create(b, loc, b.getI16Type(), value);
    Value word = exchange(arith::ExtUIOp::create(b, loc, b.getI32Type(), bits));
    return arith::BitcastOp::create(
        b, loc, type, arith::TruncIOp::create(b, loc, b.getI16Type(), word));
  }
  // 64-bit values need two shuffles.
  auto words = VectorType::get({2}, b.getI32Type());
  auto one = VectorType::get({1}, b.getF64Type());
  Value halves = vector::BitCastOp::create(
      b, loc, words, vector::FromElementsOp::create(b, loc, one, value));
  SmallVector<Value> exchanged;
  for (int64_t i : llvm::seq(2))
    exchanged.push_back(exchange(vector::ExtractOp::create(b, loc, halves, i)));
  Value both = vector::FromElementsOp::create(b, loc, words, exchanged);
  return vector::ExtractOp::create(
      b, loc, vector::BitCastOp::create(b, loc, one, both), 0);
}

Value mlir::bngrad::addAcrossWarp(OpBuilder &b, Location loc, Value value,
                                  int64_t lanes) {
  for (int64_t offset = lanes / 2; offset > 0; offset /= 2)
    value =
        arith::AddFOp::create(b, loc, value, shuffle(b, loc, value, offset));
  return value;
}

SmallVector<Value> mlir::bngrad::addAcrossBlock(OpBuilder &b,
                                                const Kernel &kernel,
                                                ArrayRef<Accumulator> sums,
                                                ValueRange scratch) {
  const GpuGroup &gpu = kernel.gpu;
  Location loc = gpu.loc;
  IndexBuilder index = gpu.at(b);
  int64_t warps = kernel.threads / CudaChip::kWarpSize;
  Value warpSize = index.constant(CudaChip::kWarpSize);
  Value lane = index.rem(kernel.thread, warpSize);
  Value warp = index.div(kernel.thread, warpSize);
  SmallVector<Value> totals;
  for (Value sum : gpu.joinErrors(b, sums))
    totals.push_back(addAcrossWarp(b, loc, sum, CudaChip::kWarpSize));
  if (warps == 1)
    return totals;
  gpu.emitIf(b, isZero(index, lane), [&](OpBuilder &nested) {
    for (auto [shared, total] : llvm::zip_equal(scratch, totals))
      memref::StoreOp::create(nested, loc, total, shared, warp);
  });
  gpu.barrier(b);
  // All lanes of the first warp take part in its shuffles.
  Value isFirstWarp = isBelow(index, kernel.thread, warpSize);
  return gpu.emitIf(
      b, isFirstWarp,
      [&](OpBuilder &nested) {
        int64_t lanes = llvm::PowerOf2Ceil(warps);
        IndexBuilder inside = gpu.at(nested);
        Value isWarp = isBelow(inside, lane, inside.constant(warps));
        Value slot = inside.select(isWarp, lane, inside.constant(0));
        SmallVector<Value> blockTotals;
        for (auto [i, shared] : llvm::enumerate(scratch)) {
          Value value = memref::LoadOp::create(nested, loc, shared, slot);
          value = arith::SelectOp::create(nested, loc, isWarp, value,
                                          gpu.zero(nested, i));
          blockTotals.push_back(addAcrossWarp(nested, loc, value, lanes));
        }
        return blockTotals;
      },
      totals);
}

int64_t mlir::bngrad::countRowSharers(const Kernel &kernel,
                                      const ThreadGrid &grid, int64_t lanes) {
  int64_t groups = llvm::divideCeil(grid.rows, getRowsOfWarp(grid.columns));
  return kernel.countSharers(grid.columns * lanes, groups / kGroupsOfThread);
}

void mlir::bngrad::addAcrossRows(OpBuilder &b, const Kernel &kernel,
                                 const ThreadGrid &grid,
                                 ArrayRef<Accumulator> sums, int64_t lanes,
                                 ValueRange scratch, TotalsBody body) {
  const GpuGroup &gpu = kernel.gpu;
  Location loc = gpu.loc;
  SmallVector<Value> totals = gpu.joinErrors(b, sums);
  if (grid.rows == 1 && lanes == 1)
    return kernel.forEach(
        b, grid.columns,
        [&](OpBuilder &nested, Value column) { body(nested, column, totals); });
  IndexBuilder index = gpu.at(b);
  int64_t rowsOfWarp = getRowsOfWarp(grid.columns);
  for (Value &total : totals)
    for (int64_t row = 1; row < rowsOfWarp; row *= 2)
      total = arith::AddFOp::create(b, loc, total,
                                    shuffle(b, loc, total, row * grid.columns));
  // [group of rows][element]
  int64_t groups = llvm::divideCeil(grid.rows, rowsOfWarp);
  int64_t elements = grid.columns * lanes;
  Value group = index.div(grid.row, index.constant(rowsOfWarp));
  Value isFirst =
      isZero(index, index.rem(grid.row, index.constant(rowsOfWarp)));
  Value hasRow = isBelow(index, grid.row, index.constant(grid.rows));
  gpu.emitIf(b, index.bitAnd(isFirst, hasRow), [&](OpBuilder &nested) {
    IndexBuilder inside = gpu.at(nested);
    Value slot = inside.add(inside.mul(group, inside.constant(elements)),
                            inside.mul(grid.column, inside.constant(lanes)));
    for (auto [shared, total] : llvm::zip_equal(scratch, totals))
      if (lanes == 1)
        memref::StoreOp::create(nested, loc, total, shared, slot);
      else
        vector::StoreOp::create(nested, loc, total, shared, slot);
  });
  gpu.barrier(b);
  int64_t parts = countRowSharers(kernel, grid, lanes);
  bool areWarps = elements * parts % CudaChip::kWarpSize == 0;
  kernel.forEachShared(
      b, elements, parts, [&](OpBuilder &nested, Value element, Value part) {
        IndexBuilder inside = gpu.at(nested);
        Value isElement = isBelow(inside, element, inside.constant(elements));
        // Threads past the last element add up the first one.
        Value own = element;
        if (parts > 1 && !areWarps)
          own = inside.select(isElement, element, inside.constant(0));
        SmallVector<Value> ofElement;
        for (auto [i, shared] : llvm::enumerate(scratch)) {
          SmallVector<Value> values;
          for (int64_t first = 0; first < groups; first += parts) {
            Value group = inside.add(part, inside.constant(first));
            // Threads past the last group add nothing.
            Value isGroup;
            if (first + parts > groups) {
              isGroup = isBelow(inside, group, inside.constant(groups));
              group = inside.select(isGroup, group, inside.constant(0));
            }
            Value slot =
                inside.add(inside.mul(group, inside.constant(elements)), own);
            Value value = memref::LoadOp::create(nested, loc, shared, slot);
            values.push_back(
                isGroup ? inside.select(isGroup, value, gpu.zero(nested, i))
                        : value);
          }
          ofElement.push_back(
              addAcrossWarp(nested, loc, addTree(nested, loc, values), parts));
        }
        if (parts == 1)
          return body(nested, element, ofElement);
        Value isFirst = inside.bitAnd(isZero(inside, part), isElement);
        gpu.emitIf(nested, isFirst,
                   [&](OpBuilder &first) { body(first, element, ofElement); });
      });
}
