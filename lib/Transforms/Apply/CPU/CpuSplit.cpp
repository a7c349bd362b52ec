//===- CpuSplit.cpp - the schedule split ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads share the rows of few channels, cut into segments of equal length. A
// table collects the sums of the segments of a channel.
//
//===----------------------------------------------------------------------===//

#include "Apply/Sums.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Elements of a segment.
static constexpr int64_t kSegmentElements = 16 << 10;

namespace {
class Split : public CpuLoops {
public:
  Split(OpBuilder &b, const CpuLoops &shared);

  void emit(OpBuilder &b);

private:
  struct Segment {
    Run row;
    Interval elements; // of the row
    Value number;      // among the segments of all channels, channel by channel
  };
  /// The segment at `position` in the order of memory.
  Segment getSegment(OpBuilder &b, Value position) const;
  using OfSegment =
      function_ref<void(OpBuilder &, Value position, ArrayRef<Value> tables)>;
  using OfChannel = function_ref<void(OpBuilder &, ArrayRef<Value> ivs,
                                      ArrayRef<Value> tables)>;
  /// Fills tables with an entry per segment, then reads them by channel.
  void emitBySegments(OpBuilder &b, ArrayRef<TableType> types,
                      OfSegment ofSegment, OfChannel ofChannel) const;
  void emitSums(OpBuilder &b) const;
  void emitSumsOfSegment(OpBuilder &b, Value position,
                         ArrayRef<Value> tables) const;
  void emitSumsOfChannel(OpBuilder &b, ArrayRef<Value> ivs,
                         ArrayRef<Value> tables) const;
  /// The number of a channel, by which its segments are found.
  Value getChannel(OpBuilder &b, ArrayRef<Value> ivs) const;
  void emitMoments(OpBuilder &b);
  void emitMomentsOfSegment(OpBuilder &b, Value position,
                            ArrayRef<Value> tables);
  void emitMomentsOfChannel(OpBuilder &b, ArrayRef<Value> ivs,
                            ArrayRef<Value> tables);
  void emitElementwise(OpBuilder &b, linalg::GenericOp generic) const;

  unsigned inner;              // the loop of a row
  SmallVector<unsigned> outer; // the loops over all rows
  Value segmentElements, segmentsOfRow, segmentsOfChannel, segments;
};
} // namespace

Split::Split(OpBuilder &b, const CpuLoops &shared)
    : CpuLoops(shared), inner(group.numLoops - 1) {
  IndexBuilder index = at(b);
  segmentElements = index.constant(kSegmentElements);
  segmentsOfRow = index.ceilDiv(sizes[inner], segmentElements);
  SmallVector<Value> channelSizes, rowSizes;
  for (unsigned loop : llvm::seq(inner)) {
    outer.push_back(loop);
    (group.isFeature(loop) ? channelSizes : rowSizes).push_back(sizes[loop]);
  }
  Value channels = index.product(channelSizes);
  segmentsOfChannel = index.mul(index.product(rowSizes), segmentsOfRow);
  segments = index.mul(channels, segmentsOfChannel);
}

Split::Segment Split::getSegment(OpBuilder &b, Value position) const {
  IndexBuilder index = at(b);
  Segment segment;
  segment.row.ivs.resize(group.numLoops);
  Value row = index.div(position, segmentsOfRow);
  Value segmentOfRow = index.rem(position, segmentsOfRow);
  segment.row.base = index.mul(row, sizes[inner]);
  delinearize(b, row, outer, segment.row.ivs);
  segment.elements.from = index.mul(segmentOfRow, segmentElements);
  segment.elements.to = index.min(
      index.add(segment.elements.from, segmentElements), sizes[inner]);
  segment.number = index.constant(0);
  for (bool isChannel : {true, false})
    for (unsigned loop : outer)
      if (group.isFeature(loop) == isChannel)
        segment.number = index.add(index.mul(segment.number, sizes[loop]),
                                   segment.row.ivs[loop]);
  segment.number =
      index.add(index.mul(segment.number, segmentsOfRow), segmentOfRow);
  return segment;
}

void Split::emitSumsOfSegment(OpBuilder &b, Value position,
                              ArrayRef<Value> tables) const {
  Segment segment = getSegment(b, position);
  auto getRun = [&](OpBuilder &, Value) { return segment.row; };
  Accumulators sums =
      emitRunSums(b, {constant(b, 1), getRun, segment.elements});
  for (auto [table, sum] : llvm::zip_equal(tables, sums)) {
    Value total = addLanes(b, sum).front();
    memref::StoreOp::create(b, loc, total, table, segment.number);
  }
}

Value Split::getChannel(OpBuilder &b, ArrayRef<Value> ivs) const {
  IndexBuilder index = at(b);
  Value channel = index.constant(0);
  for (unsigned loop : group.features)
    channel = index.add(index.mul(channel, sizes[loop]), ivs[loop]);
  return channel;
}

void Split::emitSumsOfChannel(OpBuilder &b, ArrayRef<Value> ivs,
                              ArrayRef<Value> tables) const {
  IndexBuilder index = at(b);
  Value first = index.mul(getChannel(b, ivs), segmentsOfChannel);
  Accumulators sums = emitAccumulatorLoop(
      b, {index.constant(0), segmentsOfChannel}, zeroSums(b),
      [&](OpBuilder &nested, Value segment, ArrayRef<Accumulator> carried) {
        Value entry = at(nested).add(first, segment);
        SmallVector<Value> addends;
        for (Value table : tables)
          addends.push_back(memref::LoadOp::create(nested, loc, table, entry));
        return addCompensated(nested, loc, carried, addends);
      });
  storeSums(b, pick(ivs, group.features), joinErrors(b, sums));
}

void Split::emitBySegments(OpBuilder &b, ArrayRef<TableType> types,
                           OfSegment ofSegment, OfChannel ofChannel) const {
  TableMemory memory = createTables(b, types);
  emitShares(b, segments, [&](OpBuilder &nested, const Share &share) {
    emitFor(nested, share.iterations,
            [&](OpBuilder &inSegment, Value position) {
              ofSegment(inSegment, position, memory.tables);
            });
  });
  emitLoops(b, group.features, SmallVector<Value>(group.numLoops),
            [&](OpBuilder &nested, ArrayRef<Value> ivs) {
              ofChannel(nested, ivs, memory.tables);
            });
  deallocate(b, memory);
}

void Split::emitSums(OpBuilder &b) const {
  SmallVector<TableType> types;
  for (unsigned i : llvm::seq(numSums()))
    types.push_back({segments, sumType(i)});
  emitBySegments(
      b, types,
      [&](OpBuilder &nested, Value position, ArrayRef<Value> tables) {
        emitSumsOfSegment(nested, position, tables);
      },
      [&](OpBuilder &nested, ArrayRef<Value> ivs, ArrayRef<Value> tables) {
        emitSumsOfChannel(nested, ivs, tables);
      });
}

void Split::emitMomentsOfSegment(OpBuilder &b, Value position,
                                 ArrayRef<Value> tables) {
  Segment segment = getSegment(b, position);
  Value first = loadMomentOperands(b, segment.row);
  auto getRun = [&](OpBuilder &, Value) { return segment.row; };
  Moments sums =
      emitRunMoments(b, {constant(b, 1), getRun, segment.elements}, first);
  memref::StoreOp::create(b, loc, sums.sum, tables[0], segment.number);
  memref::StoreOp::create(b, loc, sums.squares, tables[1], segment.number);
}

void Split::emitMomentsOfChannel(OpBuilder &b, ArrayRef<Value> ivs,
                                 ArrayRef<Value> tables) {
  IndexBuilder index = at(b);
  Value first = index.mul(getChannel(b, ivs), segmentsOfChannel);
  auto addSegment = [&](OpBuilder &nested, Value segment,
                        const CountedMoments &sofar) {
    IndexBuilder inside = at(nested);
    Value start =
        inside.mul(inside.rem(segment, segmentsOfRow), segmentElements);
    Value elements =
        inside.min(segmentElements, inside.sub(sizes[inner], start));
    Value entry = inside.add(first, segment);
    Value sum = memref::LoadOp::create(nested, loc, tables[0], entry);
    Value squares = memref::LoadOp::create(nested, loc, tables[1], entry);
    MomentsBuilder math = momentsAt(nested);
    return math.join(sofar, {{sum, squares}, math.toDouble(elements)});
  };
  Moments all =
      emitMomentLoop(b, {index.constant(0), segmentsOfChannel},
                     index.constant(1), momentsAt(b).none(), addSegment)
          .moments;
  finishMoments(b, pick(ivs, group.features), all);
}

void Split::emitMoments(OpBuilder &b) {
  emitBySegments(
      b, {{segments, b.getF64Type()}, {segments, b.getF64Type()}},
      [&](OpBuilder &nested, Value position, ArrayRef<Value> tables) {
        emitMomentsOfSegment(nested, position, tables);
      },
      [&](OpBuilder &nested, ArrayRef<Value> ivs, ArrayRef<Value> tables) {
        emitMomentsOfChannel(nested, ivs, tables);
      });
}

void Split::emitElementwise(OpBuilder &b, linalg::GenericOp generic) const {
  Value step = getStep(b, segmentElements);
  auto emitSegment = [&](OpBuilder &nested, Value position) {
    IndexBuilder index = at(nested);
    Segment segment = getSegment(nested, position);
    Value first = index.add(segment.row.base, segment.elements.from);
    // The segment that is stored next, unless this one ends a step.
    segment.row.next = index.add(first, segmentElements);
    emitElements(nested, generic, segment.row, segment.elements);
  };
  emitShares(b, segments, [&](OpBuilder &nested, const Share &share) {
    emitStepsBack(nested, share.iterations, step,
                  [&](OpBuilder &inStep, Interval positions) {
                    emitFor(inStep, positions, emitSegment);
                  });
  });
}

void Split::emit(OpBuilder &b) {
  emitStages([&] { emitMoments(b); },
             [&] {
               if (current.reduction)
                 emitSums(b);
               emitLoops(b, group.features, SmallVector<Value>(group.numLoops),
                         [&](OpBuilder &nested, ArrayRef<Value> ivs) {
                           emitChannelwise(nested, pick(ivs, group.features));
                         });
             });
  for (linalg::GenericOp generic : group.elementwise)
    emitElementwise(b, generic);
}

void mlir::bngrad::emitSplit(OpBuilder &b, const CpuLoops &shared) {
  Split(b, shared).emit(b);
}
