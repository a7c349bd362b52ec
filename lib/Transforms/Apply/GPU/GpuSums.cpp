//===- GpuSums.cpp - the sums of a group's kernels ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "Apply/Sums.h"
#include "GpuKernels.h"
#include "Schedule/OnePassLayout.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

SmallVector<Value>
GpuKernels::cloneTerms(OpBuilder &b, const DenseMap<OpOperand *, Value> &common,
                       const Indices &indices, int64_t lanes) const {
  IRMapping mapping = clonePiece(b, group.reduction, common, indices, lanes);
  storeResults(b, group.reduction, mapping, indices, lanes);
  SmallVector<Value> terms;
  for (auto [i, term] : values.terms) {
    Value value = mapping.lookupOrDefault(term);
    terms.push_back(lanes == 1 ? value : broadcastTo(b, loc, value, lanes));
  }
  return terms;
}

SmallVector<Value> GpuKernels::emitSums(OpBuilder &b, const Walk &walk,
                                        Indices indices,
                                        const ThreadPieces &pieces,
                                        int64_t lanes) const {
  IndexBuilder index = at(b);
  for (unsigned loop : walk.loops)
    indices[loop] = Value();
  DenseMap<OpOperand *, Value> common =
      loadCommon(b, group.reduction, indices, lanes);
  unsigned numSumValues = 2 * numSums();
  Chunks chunks = planChunks(b, pieces);
  SmallVector<Value> carried = zeroSums(b, lanes);
  llvm::append_range(carried, delinearize(b, walk, chunks.start));
  // Whole chunks: all loads of a chunk come before the first sum.
  auto body = scf::ForOp::create(
      b, loc, index.constant(0), chunks.count, index.constant(1), carried,
      [&](OpBuilder &nested, Location, Value chunk, ValueRange args) {
        awaitChunk(nested, chunk);
        SmallVector<Value> position(args.drop_front(numSumValues));
        SmallVector<SmallVector<Value>> terms;
        for (int64_t step = 0; step < kUnroll; ++step) {
          Indices here = getIndices(nested, walk, indices, position, lanes);
          terms.push_back(cloneTerms(nested, common, here, lanes));
          position = advance(nested, walk, position);
        }
        SmallVector<Value> partial = terms.front();
        for (const SmallVector<Value> &more : ArrayRef(terms).drop_front())
          for (auto [sum, term] : llvm::zip_equal(partial, more))
            sum = arith::AddFOp::create(nested, loc, sum, term);
        SmallVector<Value> next =
            addCompensated(nested, loc, args.take_front(numSumValues), partial);
        llvm::append_range(next, position);
        scf::YieldOp::create(nested, loc, next);
      });
  // The rest, at most kUnroll pieces for a thread, as one more chunk.
  awaitRest(b);
  SmallVector<Value> rest;
  for (unsigned i : llvm::seq(numSums()))
    rest.push_back(lanes == 1 ? zero(b, i) : zero(b, i, lanes));
  llvm::append_range(rest, body.getResults().drop_front(numSumValues));
  auto tail = scf::ForOp::create(
      b, loc, chunks.getRest(index), pieces.to, pieces.stride, rest,
      [&](OpBuilder &nested, Location, Value, ValueRange args) {
        ValueRange position = args.drop_front(numSums());
        Indices here = getIndices(nested, walk, indices, position, lanes);
        SmallVector<Value> next;
        for (auto [sum, term] :
             llvm::zip(args, cloneTerms(nested, common, here, lanes)))
          next.push_back(arith::AddFOp::create(nested, loc, sum, term));
        llvm::append_range(next, advance(nested, walk, position));
        scf::YieldOp::create(nested, loc, next);
      });
  keepLoop(body);
  keepLoop(tail);
  return addCompensated(b, loc, body.getResults().take_front(numSumValues),
                        tail.getResults().take_front(numSums()));
}

/// `value` of the lane whose number differs in the bits of `offset`.
static Value shuffle(OpBuilder &b, Location loc, Value value, int64_t offset) {
  auto exchange = [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, loc, word, static_cast<int32_t>(offset),
                                  static_cast<int32_t>(CudaChip::kWarpSize),
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Type type = value.getType();
  if (type.isF32())
    return exchange(value);
  // A word holds one of 16 bits: a user's sum may be of such a type.
  if (type.getIntOrFloatBitWidth() == 16) {
    Value bits = arith::BitcastOp::create(b, loc, b.getI16Type(), value);
    Value word = exchange(arith::ExtUIOp::create(b, loc, b.getI32Type(), bits));
    return arith::BitcastOp::create(
        b, loc, type, arith::TruncIOp::create(b, loc, b.getI16Type(), word));
  }
  // There are no shuffles of 64 bits.
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

Value GpuKernels::addAcrossWarp(OpBuilder &b, Value value,
                                int64_t lanes) const {
  for (int64_t offset = lanes / 2; offset > 0; offset /= 2)
    value =
        arith::AddFOp::create(b, loc, value, shuffle(b, loc, value, offset));
  return value;
}

SmallVector<Type> GpuKernels::getSharedTypesForBlock() const {
  SmallVector<Type> types;
  for (unsigned i : llvm::seq(numSums()))
    types.push_back(getSharedType(threads / CudaChip::kWarpSize, sumType(i)));
  return types;
}

SmallVector<Value> GpuKernels::addAcrossBlock(OpBuilder &b,
                                              const Kernel &kernel,
                                              ValueRange sums) const {
  IndexBuilder index = at(b);
  int64_t warps = threads / CudaChip::kWarpSize;
  Value warpSize = index.constant(CudaChip::kWarpSize);
  Value lane = index.rem(kernel.thread, warpSize);
  Value warp = index.div(kernel.thread, warpSize);
  SmallVector<Value> totals;
  for (Value sum : joinErrors(b, sums)) {
    if (isa<VectorType>(sum.getType()))
      sum =
          vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, sum);
    totals.push_back(addAcrossWarp(b, sum, CudaChip::kWarpSize));
  }
  if (warps == 1)
    return totals;
  Value isFirstLane =
      index.compare(arith::CmpIPredicate::eq, lane, index.constant(0));
  emitIf(b, isFirstLane, [&](OpBuilder &nested) {
    for (auto [shared, total] : llvm::zip_equal(kernel.shared, totals))
      memref::StoreOp::create(nested, loc, total, shared, warp);
  });
  barrier(b);
  // All lanes of the first warp take part in its shuffles.
  Value isFirstWarp =
      index.compare(arith::CmpIPredicate::ult, kernel.thread, warpSize);
  return emitIf(
      b, isFirstWarp,
      [&](OpBuilder &nested) {
        int64_t lanes = llvm::PowerOf2Ceil(warps);
        Value isWarp = at(nested).compare(arith::CmpIPredicate::ult, lane,
                                          constant(nested, warps));
        Value slot = at(nested).select(isWarp, lane, constant(nested, 0));
        SmallVector<Value> blockTotals;
        for (auto [i, shared] : llvm::enumerate(kernel.shared)) {
          Value value = memref::LoadOp::create(nested, loc, shared, slot);
          value = arith::SelectOp::create(nested, loc, isWarp, value,
                                          zero(nested, i));
          blockTotals.push_back(addAcrossWarp(nested, value, lanes));
        }
        return blockTotals;
      },
      totals);
}

SmallVector<Value> GpuKernels::addAcrossRows(OpBuilder &b, const Kernel &kernel,
                                             const ThreadGrid &grid,
                                             ValueRange sums,
                                             int64_t lanes) const {
  IndexBuilder index = at(b);
  Value row = grid.row;
  SmallVector<Value> totals = joinErrors(b, sums);
  // [row][lane][column]: neighbours write to neighbours.
  auto getSlot = [&](OpBuilder &nested, Value slotRow, int64_t lane) {
    IndexBuilder inside = at(nested);
    Value line = inside.add(inside.mul(slotRow, inside.constant(lanes)),
                            inside.constant(lane));
    return inside.add(inside.mul(line, inside.constant(grid.columns)),
                      grid.column);
  };
  auto getLane = [&](OpBuilder &nested, Value value, int64_t lane) -> Value {
    if (lanes == 1)
      return value;
    return vector::ExtractOp::create(nested, loc, value, lane);
  };
  for (int64_t active = llvm::PowerOf2Ceil(grid.rows); active > 1;
       active /= 2) {
    int64_t half = active / 2;
    Value halfValue = index.constant(half);
    Value isUpper = index.compare(arith::CmpIPredicate::uge, row, halfValue);
    Value isActive = index.compare(arith::CmpIPredicate::ult, row,
                                   index.constant(std::min(active, grid.rows)));
    emitIf(b, index.bitAnd(isUpper, isActive), [&](OpBuilder &nested) {
      Value slotRow = at(nested).sub(row, halfValue);
      for (auto [shared, total] : llvm::zip_equal(kernel.shared, totals))
        for (int64_t lane : llvm::seq(lanes))
          memref::StoreOp::create(nested, loc, getLane(nested, total, lane),
                                  shared, getSlot(nested, slotRow, lane));
    });
    barrier(b);
    Value other = index.add(row, halfValue);
    Value hasOther = index.compare(arith::CmpIPredicate::ult, other,
                                   index.constant(std::min(active, grid.rows)));
    Value isLower = index.compare(arith::CmpIPredicate::ult, row, halfValue);
    totals = emitIf(
        b, index.bitAnd(isLower, hasOther),
        [&](OpBuilder &nested) {
          SmallVector<Value> next;
          for (auto [shared, total] : llvm::zip_equal(kernel.shared, totals)) {
            Value memref = shared;
            auto load = [&](int64_t lane) -> Value {
              return memref::LoadOp::create(nested, loc, memref,
                                            getSlot(nested, row, lane));
            };
            Value value;
            if (lanes == 1)
              value = load(0);
            else
              value = vector::FromElementsOp::create(
                  nested, loc, total.getType(),
                  llvm::map_to_vector(llvm::seq(lanes), load));
            next.push_back(arith::AddFOp::create(nested, loc, total, value));
          }
          return next;
        },
        totals);
    // The next step writes where this one reads.
    if (half > 1)
      barrier(b);
  }
  return totals;
}

void GpuKernels::storeTotals(OpBuilder &b, ValueRange totals,
                             ArrayRef<Value> memrefs,
                             ValueRange indices) const {
  for (auto [memref, total] : llvm::zip_equal(memrefs, totals)) {
    if (isa<VectorType>(total.getType()))
      vector::StoreOp::create(b, loc, total, memref, indices);
    else
      memref::StoreOp::create(b, loc, total, memref, indices);
  }
}

void GpuKernels::storeSums(OpBuilder &b, const Indices &indices,
                           ValueRange totals) const {
  linalg::GenericOp reduction = group.reduction;
  for (auto [i, total] : llvm::enumerate(totals)) {
    unsigned result = values.terms[i].first;
    OpOperand *init = reduction.getDpsInitOperand(result);
    Value before = buffers.getInitialValue(result);
    if (!before)
      before = loadPiece(b, reduction, *init, indices, /*lanes=*/1);
    Value after = arith::AddFOp::create(b, loc, before, total);
    storePiece(b, reduction, *init, after, indices, /*lanes=*/1);
  }
}
