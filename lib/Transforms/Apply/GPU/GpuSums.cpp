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

/// The least number of groups of rows that a thread adds if threads share them.
static constexpr int64_t kGroupsOfThread = 8;

SmallVector<Value>
GpuKernels::cloneTerms(OpBuilder &b, const DenseMap<OpOperand *, Value> &common,
                       const Indices &indices, int64_t lanes) const {
  IRMapping mapping = clonePiece(b, current.reduction, common, indices, lanes);
  storeResults(b, current.reduction, mapping, indices, lanes);
  SmallVector<Value> terms;
  for (auto [i, term] : values.terms) {
    Value value = mapping.lookupOrDefault(term);
    terms.push_back(lanes == 1 ? value : broadcastTo(b, loc, value, lanes));
  }
  return terms;
}

Value GpuKernels::addTree(OpBuilder &b, SmallVector<Value> values) const {
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

Accumulators GpuKernels::emitSums(OpBuilder &b, const Walk &walk,
                                  Indices indices, const ThreadPieces &pieces,
                                  int64_t lanes) const {
  IndexBuilder index = at(b);
  for (unsigned loop : walk.loops)
    indices[loop] = Value();
  DenseMap<OpOperand *, Value> common =
      loadCommon(b, current.reduction, indices, lanes);
  Chunks chunks = planChunks(b, pieces);
  // Add lanes of one channel first: a running sum with its error per lane takes
  // more instructions and registers.
  bool joinsLanes = lanes > 1 && !flat && !group.isFeature(inner);
  auto addChunk = [&](OpBuilder &nested, ValueRange running,
                      SmallVector<Value> partial) {
    if (joinsLanes)
      for (Value &sum : partial)
        sum = addTree(
            nested,
            vector::ToElementsOp::create(nested, loc, sum).getElements());
    return addCompensated(nested, loc, fromCarried(running), partial);
  };
  SmallVector<Value> carried = toCarried(zeroSums(b, joinsLanes ? 1 : lanes));
  size_t numSumValues = carried.size();
  llvm::append_range(carried, delinearize(b, walk, chunks.start));
  // In whole chunks, all loads come before the first sum.
  auto body = scf::ForOp::create(
      b, loc, index.constant(0), chunks.count, index.constant(1), carried,
      [&](OpBuilder &nested, Location, Value chunk, ValueRange args) {
        SmallVector<Value> position(args.drop_front(numSumValues));
        SmallVector<SmallVector<Value>> terms;
        for (int64_t step = 0; step < kUnroll; ++step) {
          awaitStep(nested, chunk, step);
          Indices here = getIndices(nested, walk, indices, position, lanes);
          terms.push_back(cloneTerms(nested, common, here, lanes));
          position = advance(nested, walk, position);
        }
        SmallVector<Value> partial = terms.front();
        for (const SmallVector<Value> &more : ArrayRef(terms).drop_front())
          for (auto [sum, term] : llvm::zip_equal(partial, more))
            sum = arith::AddFOp::create(nested, loc, sum, term);
        SmallVector<Value> next =
            toCarried(addChunk(nested, args.take_front(numSumValues), partial));
        llvm::append_range(next, position);
        scf::YieldOp::create(nested, loc, next);
      });
  // The rest, at most kUnroll pieces per thread, forms one more chunk.
  SmallVector<Value> rest;
  for (unsigned i : llvm::seq(numSums()))
    rest.push_back(lanes == 1 ? zero(b, i) : zero(b, i, lanes));
  llvm::append_range(rest, body.getResults().drop_front(numSumValues));
  if (comesInStages())
    rest.push_back(index.mul(chunks.count, index.constant(kUnroll)));
  auto tail = scf::ForOp::create(
      b, loc, chunks.getRest(index), pieces.to, pieces.stride, rest,
      [&](OpBuilder &nested, Location, Value, ValueRange args) {
        ValueRange position = args.slice(numSums(), walk.loops.size());
        if (comesInStages())
          awaitStep(nested, args.back());
        Indices here = getIndices(nested, walk, indices, position, lanes);
        SmallVector<Value> next;
        for (auto [sum, term] :
             llvm::zip(args, cloneTerms(nested, common, here, lanes)))
          next.push_back(arith::AddFOp::create(nested, loc, sum, term));
        llvm::append_range(next, advance(nested, walk, position));
        if (comesInStages())
          next.push_back(at(nested).add(args.back(), constant(nested, 1)));
        scf::YieldOp::create(nested, loc, next);
      });
  keepLoop(body);
  keepLoop(tail);
  return addChunk(b, body.getResults().take_front(numSumValues),
                  tail.getResults().take_front(numSums()));
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

SmallVector<Value>
GpuKernels::addAcrossBlock(OpBuilder &b, const Kernel &kernel,
                           ArrayRef<Accumulator> sums) const {
  IndexBuilder index = at(b);
  int64_t warps = threads / CudaChip::kWarpSize;
  Value warpSize = index.constant(CudaChip::kWarpSize);
  Value lane = index.rem(kernel.thread, warpSize);
  Value warp = index.div(kernel.thread, warpSize);
  SmallVector<Value> totals;
  for (Value sum : joinErrors(b, sums))
    totals.push_back(addAcrossWarp(b, sum, CudaChip::kWarpSize));
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

void GpuKernels::forEachOfBlock(
    OpBuilder &b, const Kernel &kernel, int64_t count,
    function_ref<void(OpBuilder &, Value)> body) const {
  if (count <= kernel.threads)
    return emitIf(b,
                  at(b).compare(arith::CmpIPredicate::ult, kernel.thread,
                                constant(b, count)),
                  [&](OpBuilder &nested) { body(nested, kernel.thread); });
  scf::ForOp::create(
      b, loc, kernel.thread, constant(b, count), constant(b, kernel.threads),
      ValueRange(), [&](OpBuilder &nested, Location, Value number, ValueRange) {
        body(nested, number);
        scf::YieldOp::create(nested, loc);
      });
}

int64_t GpuKernels::countSharers(const Kernel &kernel, int64_t count,
                                 int64_t most) const {
  int64_t parts = std::min({most, kernel.threads / count, CudaChip::kWarpSize});
  return parts > 1 ? llvm::bit_floor(static_cast<uint64_t>(parts)) : 1;
}

void GpuKernels::forEachShared(OpBuilder &b, const Kernel &kernel,
                               int64_t count, int64_t parts,
                               SharedBody body) const {
  if (parts == 1)
    return forEachOfBlock(b, kernel, count,
                          [&](OpBuilder &nested, Value number) {
                            body(nested, number, constant(nested, 0));
                          });
  int64_t active = llvm::alignTo(count * parts, CudaChip::kWarpSize);
  forEachOfBlock(b, kernel, active, [&](OpBuilder &nested, Value thread) {
    Value width = constant(nested, parts);
    body(nested, at(nested).div(thread, width), at(nested).rem(thread, width));
  });
}

std::optional<Value> GpuKernels::getSharedNumber(OpBuilder &b,
                                                 const Kernel &kernel,
                                                 int64_t count,
                                                 int64_t parts) const {
  int64_t active = count * parts;
  if (parts > 1)
    active = llvm::alignTo(active, CudaChip::kWarpSize);
  if (active > kernel.threads)
    return std::nullopt;
  return at(b).div(kernel.thread, constant(b, parts));
}

int64_t GpuKernels::countRowSharers(const Kernel &kernel,
                                    const ThreadGrid &grid,
                                    int64_t lanes) const {
  int64_t groups = llvm::divideCeil(grid.rows, getRowsOfWarp(grid.columns));
  return countSharers(kernel, grid.columns * lanes, groups / kGroupsOfThread);
}

void GpuKernels::addAcrossRows(OpBuilder &b, const Kernel &kernel,
                               const ThreadGrid &grid,
                               ArrayRef<Accumulator> sums, int64_t lanes,
                               TotalsBody body) const {
  SmallVector<Value> totals = joinErrors(b, sums);
  if (grid.rows == 1 && lanes == 1)
    return forEachOfBlock(
        b, kernel, grid.columns,
        [&](OpBuilder &nested, Value column) { body(nested, column, totals); });
  IndexBuilder index = at(b);
  int64_t rowsOfWarp = getRowsOfWarp(grid.columns);
  for (Value &total : totals)
    for (int64_t row = 1; row < rowsOfWarp; row *= 2)
      total = arith::AddFOp::create(b, loc, total,
                                    shuffle(b, loc, total, row * grid.columns));
  // [group of rows][element]
  int64_t groups = llvm::divideCeil(grid.rows, rowsOfWarp);
  int64_t elements = grid.columns * lanes;
  Value group = index.div(grid.row, index.constant(rowsOfWarp));
  Value isFirst = index.compare(arith::CmpIPredicate::eq,
                                index.rem(grid.row, index.constant(rowsOfWarp)),
                                index.constant(0));
  Value hasRow = index.compare(arith::CmpIPredicate::ult, grid.row,
                               index.constant(grid.rows));
  emitIf(b, index.bitAnd(isFirst, hasRow), [&](OpBuilder &nested) {
    IndexBuilder inside = at(nested);
    Value slot = inside.add(inside.mul(group, inside.constant(elements)),
                            inside.mul(grid.column, inside.constant(lanes)));
    for (auto [shared, total] : llvm::zip_equal(kernel.shared, totals))
      if (lanes == 1)
        memref::StoreOp::create(nested, loc, total, shared, slot);
      else
        vector::StoreOp::create(nested, loc, total, shared, slot);
  });
  barrier(b);
  int64_t parts = countRowSharers(kernel, grid, lanes);
  bool areWarps = elements * parts % CudaChip::kWarpSize == 0;
  forEachShared(
      b, kernel, elements, parts,
      [&](OpBuilder &nested, Value element, Value part) {
        IndexBuilder inside = at(nested);
        Value isElement = inside.compare(arith::CmpIPredicate::ult, element,
                                         inside.constant(elements));
        // Threads past the last element add up the first one.
        Value own = element;
        if (parts > 1 && !areWarps)
          own = inside.select(isElement, element, inside.constant(0));
        SmallVector<Value> ofElement;
        for (auto [i, shared] : llvm::enumerate(kernel.shared)) {
          SmallVector<Value> values;
          for (int64_t first = 0; first < groups; first += parts) {
            Value group = inside.add(part, inside.constant(first));
            // Threads past the last group add nothing.
            Value isGroup;
            if (first + parts > groups) {
              isGroup = inside.compare(arith::CmpIPredicate::ult, group,
                                       inside.constant(groups));
              group = inside.select(isGroup, group, inside.constant(0));
            }
            Value slot =
                inside.add(inside.mul(group, inside.constant(elements)), own);
            Value value = memref::LoadOp::create(nested, loc, shared, slot);
            values.push_back(
                isGroup ? inside.select(isGroup, value, zero(nested, i))
                        : value);
          }
          ofElement.push_back(
              addAcrossWarp(nested, addTree(nested, values), parts));
        }
        if (parts == 1)
          return body(nested, element, ofElement);
        Value isFirst = inside.bitAnd(
            inside.compare(arith::CmpIPredicate::eq, part, inside.constant(0)),
            isElement);
        emitIf(nested, isFirst,
               [&](OpBuilder &first) { body(first, element, ofElement); });
      });
}

void GpuKernels::storeTotals(OpBuilder &b, ValueRange totals,
                             ArrayRef<Value> memrefs,
                             ValueRange indices) const {
  for (auto [memref, total] : llvm::zip_equal(memrefs, totals))
    memref::StoreOp::create(b, loc, total, memref, indices);
}
