//===- CpuChannels.cpp - the schedule channels ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread reads each of its channels twice: for the sums, and, last row first,
// from its cache, for the element-wise part.
//
//===----------------------------------------------------------------------===//

#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Bytes read for an element, at most, if the next channel is prefetched
/// besides. More keep the memory busy by themselves.
static constexpr int64_t kMostPrefetchedBytes = 8;
/// Bytes of a channel that is prefetched, at most: half of a second-level cache
/// of 1 MiB, as it must not replace the channel being computed.
static constexpr int64_t kMostChannelBytes = 512 << 10;

/// Bytes of the data that `generic` reads for an element.
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
  // A channel is known by its `ivs`, of which those of `reduced` are null.
  Run getRow(OpBuilder &b, ArrayRef<Value> ivs) const;
  Scalars loadUniformOfChannel(OpBuilder &b, linalg::GenericOp generic,
                               const SmallVector<Value> &ivs) const;
  void emitSums(OpBuilder &b, const SmallVector<Value> &ivs) const;
  /// Position of the row whose results are stored after those of `row`: that
  /// before it in the last of the outer loops, or `row` if it is the first;
  /// without outer loops that of the next channel.
  Value getNext(OpBuilder &b, const Run &row) const;
  void emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                       const SmallVector<Value> &ivs) const;

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

void Channels::emitSums(OpBuilder &b, const SmallVector<Value> &ivs) const {
  Scalars uniform = loadUniformOfChannel(b, group.reduction, ivs);
  auto getRun = [&](OpBuilder &nested, Value number) {
    SmallVector<Value> rowIvs(ivs);
    if (!outer.empty())
      delinearize(nested, number, outer, rowIvs);
    Run run = getRow(nested, rowIvs);
    run.uniform = uniform;
    return run;
  };
  Value rows = at(b).product(pick(sizes, outer));
  SmallVector<Value> sums =
      emitRunSums(b, {rows, getRun, {constant(b, 0), sizes[inner]}});
  storeSums(b, pick(ivs, group.features), addLanes(b, sums));
}

Value Channels::getNext(OpBuilder &b, const Run &row) const {
  IndexBuilder index = at(b);
  if (outer.empty())
    return index.add(row.base, sizes[inner]);
  Value isFirst = index.compare(arith::CmpIPredicate::eq, row.ivs[outer.back()],
                                index.constant(0));
  Value stride = index.product(ArrayRef(sizes).drop_front(outer.back() + 1));
  return index.select(isFirst, row.base, index.sub(row.base, stride));
}

void Channels::emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                               const SmallVector<Value> &ivs) const {
  Scalars uniform = loadUniformOfChannel(b, generic, ivs);
  int64_t readBytes = getReadBytes(generic);
  IndexBuilder before = at(b);
  Value fits = before.compare(arith::CmpIPredicate::ule,
                              before.mul(before.product(pick(sizes, reduced)),
                                         before.constant(readBytes)),
                              before.constant(kMostChannelBytes));
  Value distance = before.select(fits, sizes[inner], before.constant(0));
  emitLoops(b, outer, ivs, [&](OpBuilder &nested, ArrayRef<Value> rowIvs) {
    IndexBuilder index = at(nested);
    // Backwards: the rows that were read last are still in a cache.
    SmallVector<Value> backwards(rowIvs);
    for (unsigned loop : outer)
      backwards[loop] =
          index.sub(index.sub(sizes[loop], index.constant(1)), rowIvs[loop]);
    Run run = getRow(nested, backwards);
    run.uniform = uniform;
    // The next channel's row comes next in memory.
    if (readBytes <= kMostPrefetchedBytes)
      run.prefetchDistance = distance;
    run.next = getNext(nested, run);
    emitElements(nested, generic, run, {index.constant(0), sizes[inner]});
  });
}

void Channels::emit(OpBuilder &b) {
  auto emitChannel = [&](OpBuilder &nested, Value number) {
    SmallVector<Value> ivs(group.numLoops);
    delinearize(nested, number, group.features, ivs);
    if (group.reduction)
      emitSums(nested, ivs);
    emitChannelwise(nested, pick(ivs, group.features));
    for (linalg::GenericOp generic : group.elementwise)
      emitElementwise(nested, generic, ivs);
  };
  emitShares(b, at(b).product(pick(sizes, group.features)),
             [&](OpBuilder &nested, const Share &share) {
               emitFor(nested, share.iterations, emitChannel);
             });
}

void mlir::bngrad::emitChannels(OpBuilder &b, const CpuLoops &shared) {
  Channels(shared).emit(b);
}
