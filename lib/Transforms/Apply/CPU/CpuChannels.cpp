//===- CpuChannels.cpp - the schedule channels ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread reads each of its channels twice: from memory for the sums, and from
// its cache for the element-wise part.
//
//===----------------------------------------------------------------------===//

#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The longest row for which the next channel's row is prefetched, in bytes
/// read for the row. Prefetching longer rows takes more time than it saves.
static constexpr int64_t kMostPrefetchedBytes = 128 << 10;

/// The bytes of data that `generic` reads per element.
static int64_t getReadBytes(linalg::GenericOp generic) {
  int64_t bytes = 0;
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (isDataMap(generic.getMatchingIndexingMap(operand)))
      bytes += getElementBytes(operand->get());
  return bytes;
}

namespace {
class Channels : public CpuLoops {
public:
  explicit Channels(const CpuLoops &shared)
      : CpuLoops(shared), inner(group.numLoops - 1), outer(reduced) {
    outer.pop_back();
  }

  void emit(OpBuilder &b);

private:
  // Its `ivs` identify a channel; the `ivs` of `reduced` loops are null.
  Run getRow(OpBuilder &b, ArrayRef<Value> ivs) const;
  Scalars loadUniformOfChannel(OpBuilder &b, linalg::GenericOp generic,
                               const SmallVector<Value> &ivs) const;
  /// Row `number` of the channel with indices `ivs`, for sums.
  Run getSummedRow(OpBuilder &b, Value number, const SmallVector<Value> &ivs,
                   const Scalars &uniform) const;
  void emitSums(OpBuilder &b, const SmallVector<Value> &ivs) const;
  void emitMoments(OpBuilder &b, const SmallVector<Value> &ivs);
  /// Position of the row whose results are stored next after `row`. This is the
  /// following row of the last outer loop if `isForward`, otherwise the
  /// preceding one, or `row` itself if it is the first. Without outer loops, it
  /// is the row of the next channel.
  Value getNext(OpBuilder &b, const Run &row, Value isForward) const;
  /// The distance from a row to the next channel's row, which is prefetched
  /// before the results of the row are streamed; 0 if it is not. `threads`
  /// share the last-level cache.
  Value getPrefetchDistance(OpBuilder &b, linalg::GenericOp generic,
                            Value threads) const;
  void emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                       const SmallVector<Value> &ivs, Value threads) const;

  unsigned inner;              // the loop of a row, the run of this schedule
  SmallVector<unsigned> outer; // the loops over the rows of a channel
};
} // namespace

Run Channels::getRow(OpBuilder &b, ArrayRef<Value> ivs) const {
  IndexBuilder index = at(b);
  Run run;
  run.ivs.assign(ivs.begin(), ivs.end());
  run.base = index.constant(0);
  for (unsigned loop : llvm::seq(inner))
    run.base = index.add(index.mul(run.base, sizes[loop]), ivs[loop]);
  run.base = index.mul(run.base, sizes[inner]);
  return run;
}

Scalars Channels::loadUniformOfChannel(OpBuilder &b, linalg::GenericOp generic,
                                       const SmallVector<Value> &ivs) const {
  Run channel;
  channel.ivs = ivs;
  loadUniform(b, generic, channel);
  return channel.uniform;
}

Run Channels::getSummedRow(OpBuilder &b, Value number,
                           const SmallVector<Value> &ivs,
                           const Scalars &uniform) const {
  SmallVector<Value> rowIvs(ivs);
  if (!outer.empty())
    delinearize(b, number, outer, rowIvs);
  Run run = getRow(b, rowIvs);
  run.uniform = uniform;
  return run;
}

void Channels::emitSums(OpBuilder &b, const SmallVector<Value> &ivs) const {
  Scalars uniform = loadUniformOfChannel(b, current.reduction, ivs);
  auto getRun = [&](OpBuilder &nested, Value number) {
    return getSummedRow(nested, number, ivs, uniform);
  };
  Value rows = at(b).product(pick(sizes, outer));
  Accumulators sums =
      emitRunSums(b, {rows, getRun, {constant(b, 0), sizes[inner]}});
  storeSums(b, pick(ivs, group.features), addLanes(b, sums));
}

void Channels::emitMoments(OpBuilder &b, const SmallVector<Value> &ivs) {
  Run channel;
  channel.ivs = ivs;
  Value first = loadMomentOperands(b, channel);
  auto getRun = [&](OpBuilder &nested, Value number) {
    return getSummedRow(nested, number, ivs, channel.uniform);
  };
  Value rows = at(b).product(pick(sizes, outer));
  Moments all =
      emitRunMoments(b, {rows, getRun, {constant(b, 0), sizes[inner]}}, first);
  finishMoments(b, pick(ivs, group.features), all);
}

Value Channels::getNext(OpBuilder &b, const Run &row, Value isForward) const {
  IndexBuilder index = at(b);
  if (outer.empty())
    return index.add(row.base, sizes[inner]);
  Value isFirst = index.compare(arith::CmpIPredicate::eq, row.ivs[outer.back()],
                                index.constant(0));
  Value stride = index.product(ArrayRef(sizes).drop_front(outer.back() + 1));
  Value before = index.select(isFirst, row.base, index.sub(row.base, stride));
  return index.select(isForward, index.add(row.base, stride), before);
}

Value Channels::getPrefetchDistance(OpBuilder &b, linalg::GenericOp generic,
                                    Value threads) const {
  IndexBuilder index = at(b);
  if (hasRowStrides)
    return index.constant(0);
  Value bytes = index.constant(getReadBytes(generic));
  Value rowBytes = index.mul(sizes[inner], bytes);
  Value isShort = index.compare(arith::CmpIPredicate::ule, rowBytes,
                                index.constant(kMostPrefetchedBytes));
  // The cache holds, for each thread, its current channel and the next.
  Value channelBytes = index.mul(index.product(pick(sizes, reduced)), bytes);
  Value cachedBytes =
      index.mul(index.mul(channelBytes, threads), index.constant(2));
  Value fits = index.compare(arith::CmpIPredicate::ule, cachedBytes,
                             index.constant(schedule.streamingBytes));
  Value isUseful =
      index.bitAnd(isStoredPast(b, generic), index.bitAnd(isShort, fits));
  return index.select(isUseful, sizes[inner], index.constant(0));
}

void Channels::emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                               const SmallVector<Value> &ivs,
                               Value threads) const {
  Scalars uniform = loadUniformOfChannel(b, generic, ivs);
  Value distance = getPrefetchDistance(b, generic, threads);
  // Go forwards if the next channel is prefetched, so that its rows arrive in
  // the order in which the sums read them. Otherwise go backwards, as the rows
  // that were read last are still in a cache.
  Value isForward =
      at(b).compare(arith::CmpIPredicate::ne, distance, constant(b, 0));
  emitLoops(b, outer, ivs, [&](OpBuilder &nested, ArrayRef<Value> rowIvs) {
    IndexBuilder index = at(nested);
    SmallVector<Value> ordered(rowIvs);
    for (unsigned loop : outer) {
      Value last = index.sub(sizes[loop], index.constant(1));
      ordered[loop] =
          index.select(isForward, rowIvs[loop], index.sub(last, rowIvs[loop]));
    }
    Run run = getRow(nested, ordered);
    run.uniform = uniform;
    // The next channel's row comes next in memory.
    run.prefetchDistance = distance;
    run.next = getNext(nested, run, isForward);
    emitElements(nested, generic, run, {index.constant(0), sizes[inner]});
  });
}

void Channels::emit(OpBuilder &b) {
  auto emitShare = [&](OpBuilder &nested, const Share &share) {
    emitFor(nested, share.iterations, [&](OpBuilder &inChannel, Value number) {
      SmallVector<Value> ivs(group.numLoops);
      delinearize(inChannel, number, group.features, ivs);
      emitStages([&] { emitMoments(inChannel, ivs); },
                 [&] {
                   if (current.reduction)
                     emitSums(inChannel, ivs);
                   emitChannelwise(inChannel, pick(ivs, group.features));
                 });
      for (linalg::GenericOp generic : group.elementwise)
        emitElementwise(inChannel, generic, ivs, share.count);
    });
  };
  emitShares(b, at(b).product(pick(sizes, group.features)), emitShare);
}

void mlir::bngrad::emitChannels(OpBuilder &b, const CpuLoops &shared) {
  Channels(shared).emit(b);
}
