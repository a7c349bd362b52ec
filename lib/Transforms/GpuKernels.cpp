//===- GpuKernels.cpp - what the kernels of a group share -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuKernels.h"
#include "ElementCloner.h"
#include "GpuSchedule.h"
#include "Sums.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// A symbol for the kernels of one more group of `function`.
static std::string createModuleName(func::FuncOp function) {
  unsigned number = 0;
  function.walk([&](gpu::LaunchOp launch) {
    if (auto module = launch.getModuleAttr())
      if (unsigned other;
          !module.getValue().rsplit('_').second.getAsInteger(10, other))
        number = std::max(number, other + 1);
  });
  return (function.getSymName() + "_group_" + Twine(number)).str();
}

GpuKernels::GpuKernels(OpBuilder &b, const ScheduledGroup &group,
                       ScheduleAttr schedule, DeviceBuffers &buffers)
    : group(group), schedule(schedule), buffers(buffers),
      loc(group.getMembers().front().getLoc()), threads(schedule.getThreads()),
      inner(group.numLoops - 1) {
  if (group.reduction)
    values = *getReductionValues(group.reduction);
  linalg::GenericOp first = group.getDataGenerics().front();
  for (Range range :
       cast<linalg::LinalgOp>(first.getOperation()).createLoopRanges(b, loc))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
  SmallVector<Value> channelSizes;
  for (unsigned loop : llvm::seq(group.numLoops)) {
    if (group.isFeature(loop))
      channelSizes.push_back(sizes[loop]);
    else
      reduced.push_back(loop);
  }
  channels = at(b).product(channelSizes);
  module = createModuleName(first->getParentOfType<func::FuncOp>());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void GpuKernels::launch(OpBuilder &b, StringRef name, Value blocks,
                        int64_t numThreads, TypeRange shared,
                        function_ref<void(OpBuilder &, Kernel)> body,
                        int64_t dynamicSharedBytes, int64_t cluster) {
  Value one = constant(b, 1), bytes, clusterX, clusterYZ;
  if (dynamicSharedBytes > 0)
    bytes = arith::ConstantIntOp::create(b, loc, dynamicSharedBytes,
                                         /*width=*/32);
  if (cluster > 1) {
    clusterX = constant(b, cluster);
    clusterYZ = one;
  }
  auto symbol = [&](const Twine &text) {
    return FlatSymbolRefAttr::get(b.getStringAttr(text));
  };
  auto launchOp = gpu::LaunchOp::create(
      b, loc, blocks, one, one, constant(b, numThreads), one, one, bytes,
      buffers.getStream().getType(), buffers.getStream(), shared,
      /*privateAttributions=*/TypeRange(), clusterX, clusterYZ, clusterYZ,
      symbol(module), symbol(name));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&launchOp.getBody().front());
  // The builder forgets the arguments for numbers and sizes of clusters.
  constexpr unsigned kBlockArguments = 12, kClusterArguments = 6;
  if (cluster > 1)
    for (unsigned i : llvm::seq(kClusterArguments))
      launchOp.getBody().insertArgument(kBlockArguments + i, b.getIndexType(),
                                        loc);
  SmallVector<Value> attributions(
      launchOp.getBody().getArguments().take_back(shared.size()));
  body(b, {launchOp.getBlockIds().x, launchOp.getThreadIds().x, attributions});
  gpu::TerminatorOp::create(b, loc);
}

MemRefType GpuKernels::getSharedType(int64_t elements, Type type) const {
  auto space = gpu::AddressSpaceAttr::get(type.getContext(),
                                          gpu::AddressSpace::Workgroup);
  return MemRefType::get({elements}, type, MemRefLayoutAttrInterface(), space);
}

void GpuKernels::barrier(OpBuilder &b) const { gpu::BarrierOp::create(b, loc); }

void GpuKernels::emitIf(OpBuilder &b, Value condition, Body body) const {
  if (matchPattern(condition, m_One()))
    return body(b);
  if (matchPattern(condition, m_Zero()))
    return;
  scf::IfOp::create(b, loc, condition, [&](OpBuilder &nested, Location) {
    body(nested);
    scf::YieldOp::create(nested, loc);
  });
}

SmallVector<Value>
GpuKernels::emitIf(OpBuilder &b, Value condition,
                   function_ref<SmallVector<Value>(OpBuilder &)> body,
                   ValueRange otherwise) const {
  if (matchPattern(condition, m_One()))
    return body(b);
  if (matchPattern(condition, m_Zero()))
    return otherwise;
  return scf::IfOp::create(
             b, loc, condition,
             [&](OpBuilder &nested, Location) {
               scf::YieldOp::create(nested, loc, body(nested));
             },
             [&](OpBuilder &nested, Location) {
               scf::YieldOp::create(nested, loc, otherwise);
             })
      .getResults();
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

Walk GpuKernels::createWalk(OpBuilder &b, ArrayRef<unsigned> loops,
                            Value stride, int64_t lanes) const {
  Walk walk;
  walk.loops.assign(loops.begin(), loops.end());
  for (unsigned loop : loops)
    walk.sizes.push_back(loop == inner
                             ? at(b).div(sizes[loop], constant(b, lanes))
                             : sizes[loop]);
  walk.steps = delinearize(b, walk, stride);
  return walk;
}

SmallVector<Value> GpuKernels::delinearize(OpBuilder &b, const Walk &walk,
                                           Value position) const {
  Index index = at(b);
  SmallVector<Value> result(walk.loops.size());
  for (size_t i = walk.loops.size(); i-- > 1;) {
    // A loop without iterations has no positions.
    Value size = index.max(walk.sizes[i], index.constant(1));
    result[i] = index.rem(position, size);
    position = index.div(position, size);
  }
  result[0] = position;
  return result;
}

SmallVector<Value> GpuKernels::advance(OpBuilder &b, const Walk &walk,
                                       ValueRange position) const {
  Index index = at(b);
  SmallVector<Value> result(walk.loops.size());
  Value carry = index.constant(0);
  for (size_t i = walk.loops.size(); i-- > 1;) {
    Value next = index.add(index.add(position[i], walk.steps[i]), carry);
    Value wraps = index.compare(arith::CmpIPredicate::uge, next, walk.sizes[i]);
    result[i] = index.select(wraps, index.sub(next, walk.sizes[i]), next);
    carry = index.select(wraps, index.constant(1), index.constant(0));
  }
  result[0] = index.add(index.add(position[0], walk.steps[0]), carry);
  return result;
}

Indices GpuKernels::getIndices(OpBuilder &b, const Walk &walk, Indices indices,
                               ValueRange position, int64_t lanes) const {
  for (auto [loop, value] : llvm::zip_equal(walk.loops, position))
    indices[loop] =
        loop == inner ? at(b).mul(value, constant(b, lanes)) : value;
  return indices;
}

void GpuKernels::setFeatures(OpBuilder &b, Value channel,
                             Indices &indices) const {
  Index index = at(b);
  for (unsigned loop : llvm::reverse(ArrayRef(group.features).drop_front())) {
    indices[loop] = index.rem(channel, sizes[loop]);
    channel = index.div(channel, sizes[loop]);
  }
  indices[group.features.front()] = channel;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

bool GpuKernels::isContiguous(linalg::GenericOp generic,
                              OpOperand &operand) const {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  return map.isProjectedPermutation() && map.getNumResults() > 0 &&
         map.getDimPosition(map.getNumResults() - 1) == inner &&
         cast<MemRefType>(operand.get().getType()).getLayout().isIdentity();
}

/// `memref` of i1 as one of i8, which is what memory holds: a vector of i1
/// would be read as bits.
static Value getBytes(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getElementType().isInteger(1))
    return memref;
  return UnrealizedConversionCastOp::create(b, loc, type.clone(b.getI8Type()),
                                            memref)
      .getResult(0);
}

/// Bytes that a piece of `lanes` elements of `memref` is aligned to.
static llvm::MaybeAlign getAlignment(Value memref, int64_t lanes) {
  int64_t bits = getElementTypeOrSelf(memref).getIntOrFloatBitWidth();
  return llvm::Align(
      std::min<int64_t>(16, lanes * std::max<int64_t>(bits, 8) / 8));
}

Value GpuKernels::loadPiece(OpBuilder &b, linalg::GenericOp generic,
                            OpOperand &operand, const Indices &indices,
                            int64_t lanes) const {
  Value memref = operand.get();
  if (!isa<MemRefType>(memref.getType()))
    return memref; // a scalar input
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  SmallVector<Value> position = applyMap(b, loc, map, indices);
  if (auto copy = onChip.find(memref); copy != onChip.end()) {
    memref = copy->second.memref;
    for (auto [index, first] : llvm::zip_equal(position, copy->second.first))
      index = at(b).sub(index, first);
  }
  if (lanes == 1 || !map.isFunctionOfDim(inner))
    return memref::LoadOp::create(b, loc, memref, position);
  if (!isContiguous(generic, operand)) {
    SmallVector<Value> elements;
    Indices lane(indices);
    for (int64_t i : llvm::seq(lanes)) {
      lane[inner] = at(b).add(indices[inner], constant(b, i));
      elements.push_back(
          memref::LoadOp::create(b, loc, memref, applyMap(b, loc, map, lane)));
    }
    auto type = VectorType::get({lanes}, getElementTypeOrSelf(memref));
    return vector::FromElementsOp::create(b, loc, type, elements);
  }
  Value bytes = getBytes(b, loc, memref);
  auto type = VectorType::get({lanes}, getElementTypeOrSelf(bytes));
  Value value =
      vector::LoadOp::create(b, loc, type, bytes, position,
                             /*nontemporal=*/false, getAlignment(bytes, lanes));
  if (bytes == memref)
    return value;
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zeros);
}

void GpuKernels::storePiece(OpBuilder &b, linalg::GenericOp generic,
                            OpOperand &operand, Value value,
                            const Indices &indices, int64_t lanes) const {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  SmallVector<Value> position = applyMap(b, loc, map, indices);
  Value memref = operand.get();
  if (lanes == 1) {
    memref::StoreOp::create(b, loc, value, memref, position);
    return;
  }
  value = broadcastTo(b, loc, value, lanes);
  if (!isContiguous(generic, operand)) {
    Indices lane(indices);
    for (int64_t i : llvm::seq(lanes)) {
      lane[inner] = at(b).add(indices[inner], constant(b, i));
      memref::StoreOp::create(b, loc,
                              vector::ExtractOp::create(b, loc, value, i),
                              memref, applyMap(b, loc, map, lane));
    }
    return;
  }
  Value bytes = getBytes(b, loc, memref);
  if (bytes != memref)
    value = arith::ExtUIOp::create(
        b, loc, VectorType::get({lanes}, b.getI8Type()), value);
  vector::StoreOp::create(b, loc, value, bytes, position,
                          /*nontemporal=*/false, getAlignment(bytes, lanes));
}

DenseMap<OpOperand *, Value> GpuKernels::loadCommon(OpBuilder &b,
                                                    linalg::GenericOp generic,
                                                    const Indices &indices,
                                                    int64_t lanes) const {
  DenseMap<OpOperand *, Value> common;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (generic.getMatchingBlockArgument(operand).use_empty())
      continue;
    AffineMap map = generic.getMatchingIndexingMap(operand);
    bool differs = llvm::any_of(llvm::enumerate(indices), [&](auto index) {
      return !index.value() && map.isFunctionOfDim(index.index());
    });
    if (!differs)
      common[operand] = loadPiece(b, generic, *operand, indices, lanes);
  }
  return common;
}

IRMapping GpuKernels::clonePiece(OpBuilder &b, linalg::GenericOp generic,
                                 const DenseMap<OpOperand *, Value> &common,
                                 const Indices &indices, int64_t lanes) const {
  auto readOperand = [&](OpBuilder &, OpOperand &operand) -> Value {
    if (Value value = common.lookup(&operand))
      return value;
    if (generic == group.reduction && generic.isDpsInit(&operand) &&
        !isDataMap(generic.getMatchingIndexingMap(&operand)))
      return {}; // the accumulator of a sum
    return loadPiece(b, generic, operand, indices, lanes);
  };
  auto readIndex = [&](OpBuilder &, unsigned loop) -> Value {
    if (loop != inner || lanes == 1)
      return indices[loop];
    auto type = VectorType::get({lanes}, b.getIndexType());
    return arith::AddIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, type, indices[loop]),
        vector::StepOp::create(b, loc, type));
  };
  return cloneElement(b, generic, {readOperand, readIndex}, lanes,
                      schedule.getFma());
}

void GpuKernels::storeResults(OpBuilder &b, linalg::GenericOp generic,
                              const IRMapping &mapping, const Indices &indices,
                              int64_t lanes) const {
  Operation *yield = generic.getBody()->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    OpOperand *init = generic.getDpsInitOperand(i);
    if (isDataMap(generic.getMatchingIndexingMap(init)))
      storePiece(b, generic, *init, mapping.lookupOrDefault(value), indices,
                 lanes);
  }
}

int64_t GpuKernels::getLanes(ArrayRef<linalg::GenericOp> generics) const {
  if (!llvm::all_of(generics, isVectorizable))
    return 1;
  return getMostLanes(generics, schedule.getVectorBits());
}

void GpuKernels::emitElements(OpBuilder &b, linalg::GenericOp generic,
                              const Walk &walk, const Indices &first,
                              Value from, Value thread, Value stride, Value to,
                              int64_t lanes) const {
  Index index = at(b);
  Indices none(group.numLoops);
  DenseMap<OpOperand *, Value> common = loadCommon(b, generic, none, lanes);
  auto locate = [&](OpBuilder &nested, ValueRange position) {
    Indices indices = getIndices(nested, walk, none, position, lanes);
    for (auto [i, start] : llvm::enumerate(first))
      indices[i] = at(nested).add(indices[i], start);
    return indices;
  };
  Value chunk = index.mul(stride, index.constant(kUnroll));
  Value chunks = index.div(index.sub(index.max(to, from), from), chunk);
  Value start = index.add(from, thread);
  // Whole chunks: everything is loaded before the first store.
  auto body = scf::ForOp::create(
      b, loc, index.constant(0), chunks, index.constant(1),
      delinearize(b, walk, start),
      [&](OpBuilder &nested, Location, Value, ValueRange args) {
        SmallVector<Value> position(args);
        SmallVector<std::pair<Indices, IRMapping>> pieces;
        for (int64_t step = 0; step < kUnroll; ++step) {
          Indices here = locate(nested, position);
          pieces.push_back(
              {here, clonePiece(nested, generic, common, here, lanes)});
          position = advance(nested, walk, position);
        }
        for (auto &[here, mapping] : pieces)
          storeResults(nested, generic, mapping, here, lanes);
        scf::YieldOp::create(nested, loc, position);
      });
  Value rest = index.add(start, index.mul(chunks, chunk));
  scf::ForOp::create(
      b, loc, rest, to, stride, body.getResults(),
      [&](OpBuilder &nested, Location, Value, ValueRange position) {
        Indices here = locate(nested, position);
        IRMapping mapping = clonePiece(nested, generic, common, here, lanes);
        storeResults(nested, generic, mapping, here, lanes);
        scf::YieldOp::create(nested, loc, advance(nested, walk, position));
      });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Value GpuKernels::zero(OpBuilder &b, unsigned i, int64_t lanes) const {
  Type type = sumType(i);
  if (lanes > 1)
    type = VectorType::get({lanes}, type);
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

SmallVector<Value> GpuKernels::zeroSums(OpBuilder &b, int64_t lanes) const {
  SmallVector<Value> sums;
  for (unsigned i : llvm::seq(numSums()))
    sums.append(2, zero(b, i, lanes));
  return sums;
}

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
                                        Indices indices, Value first,
                                        Value thread, Value stride, Value to,
                                        ValueRange sums, int64_t lanes) const {
  Index index = at(b);
  for (unsigned loop : walk.loops)
    indices[loop] = Value();
  DenseMap<OpOperand *, Value> common =
      loadCommon(b, group.reduction, indices, lanes);
  unsigned numSumValues = 2 * numSums();
  Value chunk = index.mul(stride, index.constant(kUnroll));
  Value chunks = index.div(index.sub(index.max(to, first), first), chunk);
  Value start = index.add(first, thread);
  SmallVector<Value> carried(sums);
  llvm::append_range(carried, delinearize(b, walk, start));
  // Whole chunks: all loads of a chunk come before the first sum.
  auto body = scf::ForOp::create(
      b, loc, index.constant(0), chunks, index.constant(1), carried,
      [&](OpBuilder &nested, Location, Value, ValueRange args) {
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
  // What is left, fewer than kUnroll pieces for a thread.
  Value rest = index.add(start, index.mul(chunks, chunk));
  auto tail = scf::ForOp::create(
      b, loc, rest, to, stride, body.getResults(),
      [&](OpBuilder &nested, Location, Value, ValueRange args) {
        ValueRange position = args.drop_front(numSumValues);
        Indices here = getIndices(nested, walk, indices, position, lanes);
        SmallVector<Value> next =
            addCompensated(nested, loc, args.take_front(numSumValues),
                           cloneTerms(nested, common, here, lanes));
        llvm::append_range(next, advance(nested, walk, position));
        scf::YieldOp::create(nested, loc, next);
      });
  return SmallVector<Value>(tail.getResults().take_front(numSumValues));
}

SmallVector<Value> GpuKernels::joinErrors(OpBuilder &b, ValueRange sums) const {
  SmallVector<Value> joined;
  for (unsigned i : llvm::seq(numSums()))
    joined.push_back(
        arith::AddFOp::create(b, loc, sums[2 * i], sums[2 * i + 1]));
  return joined;
}

/// `value` of the lane whose number differs in the bits of `offset`.
static Value shuffle(OpBuilder &b, Location loc, Value value, int64_t offset) {
  auto exchange = [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, loc, word, static_cast<int32_t>(offset),
                                  static_cast<int32_t>(kWarp),
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  if (!value.getType().isF64())
    return exchange(value);
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
    types.push_back(getSharedType(threads / kWarp, sumType(i)));
  return types;
}

SmallVector<Value> GpuKernels::addAcrossBlock(OpBuilder &b,
                                              const Kernel &kernel,
                                              ValueRange sums) const {
  Index index = at(b);
  int64_t warps = threads / kWarp;
  Value warpSize = index.constant(kWarp);
  Value lane = index.rem(kernel.thread, warpSize);
  Value warp = index.div(kernel.thread, warpSize);
  SmallVector<Value> totals;
  for (Value sum : joinErrors(b, sums)) {
    if (isa<VectorType>(sum.getType()))
      sum =
          vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, sum);
    totals.push_back(addAcrossWarp(b, sum, kWarp));
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
                                          zero(nested, i, 1));
          blockTotals.push_back(addAcrossWarp(nested, value, lanes));
        }
        return blockTotals;
      },
      totals);
}

SmallVector<Value> GpuKernels::addAcrossRows(OpBuilder &b, const Kernel &kernel,
                                             Value row, Value column,
                                             int64_t columns, int64_t rows,
                                             ValueRange sums,
                                             int64_t lanes) const {
  Index index = at(b);
  SmallVector<Value> totals = joinErrors(b, sums);
  // [row][lane][column]: neighbours write to neighbours.
  auto getSlot = [&](OpBuilder &nested, Value slotRow, int64_t lane) {
    Index inside = at(nested);
    Value line = inside.add(inside.mul(slotRow, inside.constant(lanes)),
                            inside.constant(lane));
    return inside.add(inside.mul(line, inside.constant(columns)), column);
  };
  auto getLane = [&](OpBuilder &nested, Value value, int64_t lane) -> Value {
    if (lanes == 1)
      return value;
    return vector::ExtractOp::create(nested, loc, value, lane);
  };
  for (int64_t active = llvm::PowerOf2Ceil(rows); active > 1; active /= 2) {
    int64_t half = active / 2;
    Value halfValue = index.constant(half);
    Value isUpper = index.compare(arith::CmpIPredicate::uge, row, halfValue);
    Value isActive = index.compare(arith::CmpIPredicate::ult, row,
                                   index.constant(std::min(active, rows)));
    emitIf(b, b.createOrFold<arith::AndIOp>(loc, isUpper, isActive),
           [&](OpBuilder &nested) {
             Value slotRow = at(nested).sub(row, halfValue);
             for (auto [shared, total] : llvm::zip_equal(kernel.shared, totals))
               for (int64_t lane : llvm::seq(lanes))
                 memref::StoreOp::create(nested, loc,
                                         getLane(nested, total, lane), shared,
                                         getSlot(nested, slotRow, lane));
           });
    barrier(b);
    Value other = index.add(row, halfValue);
    Value hasOther = index.compare(arith::CmpIPredicate::ult, other,
                                   index.constant(std::min(active, rows)));
    Value isLower = index.compare(arith::CmpIPredicate::ult, row, halfValue);
    totals = emitIf(
        b, b.createOrFold<arith::AndIOp>(loc, isLower, hasOther),
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

void GpuKernels::emitChannelwise(OpBuilder &b, const Indices &indices) const {
  SmallVector<Value> features;
  for (unsigned loop : group.features)
    features.push_back(indices[loop]);
  for (linalg::GenericOp generic : group.channelwise) {
    ElementCloner cloner(generic);
    IRMapping mapping = cloner.clone(b, features);
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands()))
      cloner.store(b, features, i, mapping.lookupOrDefault(value));
  }
}
