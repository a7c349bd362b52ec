//===- CpuMoments.cpp - mean and squares of a channel in one pass ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stages of a mean and of squares about it (Schedule/Moments.h) would read
// the data twice. Instead, a block of elements that stays in a cache is read
// twice: for its own mean, and for the sums about that mean. Blocks are joined
// in double precision, in their order, which gives both stages' sums for the
// whole channel (docs/mathematics.md, section 10).
//
//===----------------------------------------------------------------------===//

#include "Apply/FloatBuilder.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Elements of a block of runs: 16 KiB of f32 stay in every first-level cache.
static constexpr int64_t kBlockElements = 4 << 10;

Value CpuLoops::toDouble(OpBuilder &b, Value number) const {
  return FloatBuilder{b, loc}.toDouble(number);
}

Value CpuLoops::getReciprocal(OpBuilder &b, Value count) const {
  Value one = arith::ConstantOp::create(b, loc, b.getF64FloatAttr(1));
  Value divisor = arith::MaximumFOp::create(b, loc, count, one);
  return arith::DivFOp::create(b, loc, one, divisor);
}

CountedMoments CpuLoops::noMoments(OpBuilder &b,
                                   std::optional<int64_t> momentLanes) const {
  Type type = b.getF64Type();
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  if (momentLanes)
    type = VectorType::get({*momentLanes}, type);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return {{zero, zero}, none};
}

CountedMoments CpuLoops::emitMomentLoop(OpBuilder &b, Interval range,
                                        Value step, const CountedMoments &first,
                                        MomentsBody body) const {
  auto flatten = [](const CountedMoments &all) -> SmallVector<Value> {
    return {all.moments.sum, all.moments.squares, all.count};
  };
  auto unflatten = [](ValueRange all) -> CountedMoments {
    return {{all[0], all[1]}, all[2]};
  };
  return unflatten(
      emitSumLoop(b, range, step, flatten(first),
                  [&](OpBuilder &nested, Value iv, ValueRange carried) {
                    return flatten(body(nested, iv, unflatten(carried)));
                  }));
}

Value CpuLoops::getBlockCenter(OpBuilder &b, Value first, Value sum,
                               Value elements) const {
  FloatBuilder math = {b, loc};
  Value divisor = math.broadcast(math.truncate(elements), sum);
  Value center = math.add(first, math.div(sum, divisor));
  // An infinite center would turn infinite sums into NaN.
  return math.selectFinite(center, first);
}

Moments CpuLoops::getBlockMoments(OpBuilder &b, const BlockSums &block) const {
  FloatBuilder math = {b, loc};
  Value elements = math.broadcast(block.elements, block.difference);
  Value reciprocal =
      math.broadcast(getReciprocal(b, block.elements), block.difference);
  Value shift = math.sub(math.extend(block.center), math.extend(block.first));
  Value difference = math.extend(block.difference);
  Value correction = math.mul(math.mul(difference, difference), reciprocal);
  return {math.add(difference, math.mul(elements, shift)),
          math.sub(math.extend(block.square), correction)};
}

CountedMoments CpuLoops::joinMoments(OpBuilder &b, const CountedMoments &l,
                                     const CountedMoments &r) const {
  FloatBuilder math = {b, loc};
  auto getMean = [&](const CountedMoments &part) {
    Value reciprocal = getReciprocal(b, part.count);
    return math.mul(part.moments.sum,
                    math.broadcast(reciprocal, part.moments.sum));
  };
  Value count = math.add(l.count, r.count);
  Value weight = math.mul(math.mul(l.count, r.count), getReciprocal(b, count));
  Value distance = math.sub(getMean(r), getMean(l));
  Value between =
      math.mul(math.mul(distance, distance), math.broadcast(weight, distance));
  Value squares = math.add(l.moments.squares, r.moments.squares);
  return {{math.add(l.moments.sum, r.moments.sum), math.add(squares, between)},
          count};
}

Value CpuLoops::loadMomentOperands(OpBuilder &b, Run &run) const {
  loadUniform(b, group.stages[moments->sum].reduction, run);
  Value first = run.uniform.lookup(moments->first);
  // This is a placeholder for the center of each block.
  run.uniform[moments->center] = first;
  loadUniform(b, group.stages[moments->sum + 1].reduction, run);
  return first;
}

Moments CpuLoops::emitRunMoments(OpBuilder &b, const RunsToSum &runs,
                                 Value first) {
  IndexBuilder index = at(b);
  Value zero = index.constant(0), one = index.constant(1);
  Value size = index.constant(kBlockElements), unit = index.constant(wide);
  Value from = runs.elements.from, to = runs.elements.to;
  Value length = index.max(index.sub(to, from), zero);
  // A block has several short runs, or one of the equal parts of a long run.
  Value runsOfBlock = index.max(index.div(size, index.max(length, one)), one);
  Value parts = index.max(index.ceilDiv(length, size), one);
  Value partLength = index.max(
      index.mul(index.ceilDiv(index.ceilDiv(length, parts), unit), unit), one);
  auto addBlock = [&](OpBuilder &inner, const RunsToSum &block,
                      const CountedMoments &sofar) {
    BlockSums sums = emitBlockSums(inner, block, first);
    return joinMoments(inner, sofar,
                       {getBlockMoments(inner, sums), sums.elements});
  };
  auto addRuns = [&](OpBuilder &nested, Value start,
                     const CountedMoments &sofar) {
    Value rest = at(nested).sub(runs.count, start);
    Value count = at(nested).min(runsOfBlock, rest);
    auto getRun = [&](OpBuilder &inRun, Value number) {
      return runs.getRun(inRun, at(inRun).add(start, number));
    };
    // The length of a whole run may be static.
    if (matchPattern(parts, m_One()))
      return addBlock(nested, {count, getRun, runs.elements}, sofar);
    return emitMomentLoop(
        nested, runs.elements, partLength, sofar,
        [&](OpBuilder &inner, Value position, const CountedMoments &carried) {
          Value end = at(inner).min(at(inner).add(position, partLength), to);
          return addBlock(inner, {count, getRun, {position, end}}, carried);
        });
  };
  return emitMomentLoop(b, {zero, runs.count}, runsOfBlock, noMoments(b),
                        addRuns)
      .moments;
}

BlockSums CpuLoops::emitBlockSums(OpBuilder &b, const RunsToSum &block,
                                  Value first) {
  Interval elements = block.elements;
  Value length = at(b).sub(elements.to, elements.from);
  BlockSums sums;
  sums.first = first;
  sums.elements = toDouble(b, at(b).mul(block.count, length));
  enterStage(moments->sum);
  Value sum = addLanes(b, emitRunSums(b, block)).front();
  sums.center = getBlockCenter(b, first, sum, sums.elements);
  enterStage(moments->sum + 1);
  auto getRun = [&](OpBuilder &nested, Value number) {
    Run run = block.getRun(nested, number);
    run.uniform[moments->center] = sums.center;
    return run;
  };
  SmallVector<Value> totals =
      addLanes(b, emitRunSums(b, {block.count, getRun, elements}));
  sums.difference = totals[moments->difference];
  sums.square = totals[moments->square];
  return sums;
}

template <typename Channels>
void CpuLoops::finishMomentsOf(OpBuilder &b, const Channels &channels,
                               const Moments &all, LoadOperand load) {
  FloatBuilder math = {b, loc};
  // The sums of the second stage are about the center that the values of the
  // first stage give.
  enterStage(moments->sum);
  storeSums(b, channels, math.truncate(all.sum));
  emitChannelwise(b, channels);
  Value number = toDouble(b, at(b).product(pick(sizes, reduced)));
  Value elements = math.broadcast(number, all.sum);
  Value reciprocal = math.broadcast(getReciprocal(b, number), all.sum);
  Value shift = math.sub(math.extend(load(*moments->center)),
                         math.extend(load(*moments->first)));
  Value difference = math.sub(all.sum, math.mul(elements, shift));
  Value correction = math.mul(math.mul(difference, difference), reciprocal);
  SmallVector<Value> totals(2);
  totals[moments->difference] = math.truncate(difference);
  totals[moments->square] = math.truncate(math.add(all.squares, correction));
  enterStage(moments->sum + 1);
  storeSums(b, channels, totals);
  emitChannelwise(b, channels);
}

void CpuLoops::finishMoments(OpBuilder &b, ArrayRef<Value> features,
                             const Moments &channel) {
  SmallVector<Value> ivs(group.numLoops);
  for (auto [loop, iv] : llvm::zip_equal(group.features, features))
    ivs[loop] = iv;
  finishMomentsOf(b, features, channel, [&](OpOperand &operand) -> Value {
    auto reduction = cast<linalg::GenericOp>(operand.getOwner());
    return memref::LoadOp::create(b, loc, operand.get(),
                                  getIndices(reduction, operand, ivs));
  });
}

void CpuLoops::finishMoments(OpBuilder &b, const Piece &piece,
                             const Moments &all) {
  finishMomentsOf(b, piece, all, [&](OpOperand &operand) {
    return load(b, operand.get(), piece.position, piece);
  });
}

bool CpuLoops::haveMomentsVectors() {
  for (unsigned stage : {moments->sum, moments->sum + 1}) {
    enterStage(stage);
    if (!hasChannelVectors())
      return false;
  }
  return llvm::all_of(
      ArrayRef{moments->first, moments->center},
      [](OpOperand *operand) { return isMemRefWithIdentity(operand->get()); });
}
