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

#include "CpuMoments.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Elements of a block of runs: 16 KiB of f32 stay in every first-level cache.
static constexpr int64_t kBlockElements = 4 << 10;

Value MomentsBuilder::getReciprocal(Value count) const {
  Value one = constant(1, b.getF64Type());
  return div(one, max(count, one));
}

CountedMoments MomentsBuilder::none(std::optional<int64_t> lanes) const {
  Type type = b.getF64Type();
  Value noElements = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  if (lanes)
    type = VectorType::get({*lanes}, type);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return {{zero, zero}, noElements};
}

Value MomentsBuilder::getBlockCenter(Value first, Value sum,
                                     Value elements) const {
  Value divisor = broadcast(toF32(elements), sum);
  Value center = add(first, div(sum, divisor));
  // An infinite center would turn infinite sums into NaN.
  return selectFinite(center, first);
}

Moments MomentsBuilder::getBlockMoments(const BlockSums &block) const {
  Value elements = broadcast(block.elements, block.difference);
  Value reciprocal = broadcast(getReciprocal(block.elements), block.difference);
  Value shift = sub(toF64(block.center), toF64(block.first));
  Value difference = toF64(block.difference);
  Value correction = mul(mul(difference, difference), reciprocal);
  return {add(difference, mul(elements, shift)),
          sub(toF64(block.square), correction)};
}

CountedMoments MomentsBuilder::join(const CountedMoments &l,
                                    const CountedMoments &r) const {
  auto getMean = [&](const CountedMoments &part) {
    Value reciprocal = getReciprocal(part.count);
    return mul(part.moments.sum, broadcast(reciprocal, part.moments.sum));
  };
  Value count = add(l.count, r.count);
  Value weight = mul(mul(l.count, r.count), getReciprocal(count));
  Value distance = sub(getMean(r), getMean(l));
  Value between = mul(mul(distance, distance), broadcast(weight, distance));
  Value squares = add(l.moments.squares, r.moments.squares);
  return {{add(l.moments.sum, r.moments.sum), add(squares, between)}, count};
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
    MomentsBuilder math = momentsAt(inner);
    return math.join(sofar, {math.getBlockMoments(sums), sums.elements});
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
  return emitMomentLoop(b, {zero, runs.count}, runsOfBlock, momentsAt(b).none(),
                        addRuns)
      .moments;
}

BlockSums CpuLoops::emitBlockSums(OpBuilder &b, const RunsToSum &block,
                                  Value first) {
  Interval elements = block.elements;
  Value length = at(b).sub(elements.to, elements.from);
  BlockSums sums;
  sums.first = first;
  sums.elements = momentsAt(b).toDouble(at(b).mul(block.count, length));
  enterStage(moments->sum);
  Value sum = addLanes(b, emitRunSums(b, block)).front();
  sums.center = momentsAt(b).getBlockCenter(first, sum, sums.elements);
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
  MomentsBuilder math = momentsAt(b);
  // The sums of the second stage are about the center that the values of the
  // first stage give.
  enterStage(moments->sum);
  storeSums(b, channels, math.toF32(all.sum));
  emitChannelwise(b, channels);
  Value number = math.toDouble(at(b).product(pick(sizes, reduced)));
  Value elements = math.broadcast(number, all.sum);
  Value reciprocal = math.broadcast(math.getReciprocal(number), all.sum);
  Value shift = math.sub(math.toF64(load(*moments->center)),
                         math.toF64(load(*moments->first)));
  Value difference = math.sub(all.sum, math.mul(elements, shift));
  Value correction = math.mul(math.mul(difference, difference), reciprocal);
  SmallVector<Value> totals(2);
  totals[moments->difference] = math.toF32(difference);
  totals[moments->square] = math.toF32(math.add(all.squares, correction));
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
