//===- CpuSplit.cpp - the schedule split ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows of few channels are cut into parts of equal length, which the
// threads share. The sums of the parts of a channel meet in a table.
//
//===----------------------------------------------------------------------===//

#include "Apply/Sums.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Elements of a part.
static constexpr int64_t kPartElements = 16 << 10;

namespace {
class Split : public CpuLoops {
public:
  Split(OpBuilder &b, const CpuLoops &shared);

  void emit(OpBuilder &b) const;

private:
  struct Part {
    Run row;
    Interval elements; // of the row
    Value number;      // among the parts of all channels, channel by channel
  };
  /// The part at `position` in the order of memory.
  Part getPart(OpBuilder &b, Value position) const;
  void emitSums(OpBuilder &b) const;
  void emitSumsOfPart(OpBuilder &b, Value position,
                      ArrayRef<Value> tables) const;
  void emitSumsOfChannel(OpBuilder &b, ArrayRef<Value> ivs,
                         ArrayRef<Value> tables) const;
  void emitElementwise(OpBuilder &b, linalg::GenericOp generic) const;

  unsigned inner;              // the loop of a row
  SmallVector<unsigned> outer; // the loops over all rows
  Value partElements, partsOfRow, partsOfChannel, parts;
};
} // namespace

Split::Split(OpBuilder &b, const CpuLoops &shared)
    : CpuLoops(shared), inner(group.numLoops - 1) {
  IndexBuilder index = at(b);
  partElements = index.constant(kPartElements);
  partsOfRow = index.ceilDiv(sizes[inner], partElements);
  SmallVector<Value> channelSizes, rowSizes;
  for (unsigned loop : llvm::seq(inner)) {
    outer.push_back(loop);
    (group.isFeature(loop) ? channelSizes : rowSizes).push_back(sizes[loop]);
  }
  Value channels = index.product(channelSizes);
  partsOfChannel = index.mul(index.product(rowSizes), partsOfRow);
  parts = index.mul(channels, partsOfChannel);
}

Split::Part Split::getPart(OpBuilder &b, Value position) const {
  IndexBuilder index = at(b);
  Part part;
  part.row.ivs.resize(group.numLoops);
  Value row = index.div(position, partsOfRow);
  Value partOfRow = index.rem(position, partsOfRow);
  part.row.base = index.mul(row, sizes[inner]);
  delinearize(b, row, outer, part.row.ivs);
  part.elements.from = index.mul(partOfRow, partElements);
  part.elements.to =
      index.min(index.add(part.elements.from, partElements), sizes[inner]);
  part.number = index.constant(0);
  for (bool isChannel : {true, false})
    for (unsigned loop : outer)
      if (group.isFeature(loop) == isChannel)
        part.number =
            index.add(index.mul(part.number, sizes[loop]), part.row.ivs[loop]);
  part.number = index.add(index.mul(part.number, partsOfRow), partOfRow);
  return part;
}

void Split::emitSumsOfPart(OpBuilder &b, Value position,
                           ArrayRef<Value> tables) const {
  Part part = getPart(b, position);
  auto getRun = [&](OpBuilder &, Value) { return part.row; };
  SmallVector<Value> sums =
      emitRunSums(b, {constant(b, 1), getRun, part.elements});
  for (auto [i, table] : llvm::enumerate(tables)) {
    Value total = addLanes(b, sums[2 * i], sums[2 * i + 1]);
    memref::StoreOp::create(b, loc, total, table, part.number);
  }
}

void Split::emitSumsOfChannel(OpBuilder &b, ArrayRef<Value> ivs,
                              ArrayRef<Value> tables) const {
  IndexBuilder index = at(b);
  Value channel = index.constant(0);
  for (unsigned loop : group.features)
    channel = index.add(index.mul(channel, sizes[loop]), ivs[loop]);
  Value first = index.mul(channel, partsOfChannel);
  SmallVector<Value> sums = emitSumLoop(
      b, {index.constant(0), partsOfChannel}, zeroSums(b),
      [&](OpBuilder &nested, Value part, ValueRange carried) {
        Value entry = at(nested).add(first, part);
        SmallVector<Value> addends;
        for (Value table : tables)
          addends.push_back(memref::LoadOp::create(nested, loc, table, entry));
        return addCompensated(nested, loc, carried, addends);
      });
  storeSums(b, pick(ivs, group.features), joinErrors(b, sums));
}

void Split::emitSums(OpBuilder &b) const {
  SmallVector<TableType> types;
  for (unsigned i : llvm::seq(numSums()))
    types.push_back({parts, sumType(i)});
  TableMemory memory = createTables(b, types);
  emitShares(b, parts, [&](OpBuilder &nested, const Share &share) {
    emitFor(nested, share.iterations, [&](OpBuilder &inPart, Value position) {
      emitSumsOfPart(inPart, position, memory.tables);
    });
  });
  emitLoops(b, group.features, SmallVector<Value>(group.numLoops),
            [&](OpBuilder &nested, ArrayRef<Value> ivs) {
              emitSumsOfChannel(nested, ivs, memory.tables);
            });
  deallocate(b, memory);
}

void Split::emitElementwise(OpBuilder &b, linalg::GenericOp generic) const {
  emitShares(b, parts, [&](OpBuilder &nested, const Share &share) {
    auto [from, to] = share.iterations;
    // Backwards: the parts that were read last are still in a cache.
    Value last = at(nested).sub(at(nested).add(from, to), constant(nested, 1));
    emitFor(nested, {from, to}, [&](OpBuilder &inPart, Value iv) {
      Part part = getPart(inPart, at(inPart).sub(last, iv));
      emitElements(inPart, generic, part.row, part.elements);
    });
  });
}

void Split::emit(OpBuilder &b) const {
  if (group.reduction)
    emitSums(b);
  emitLoops(b, group.features, SmallVector<Value>(group.numLoops),
            [&](OpBuilder &nested, ArrayRef<Value> ivs) {
              emitChannelwise(nested, pick(ivs, group.features));
            });
  for (linalg::GenericOp generic : group.elementwise)
    emitElementwise(b, generic);
}

void mlir::bngrad::emitSplit(OpBuilder &b, const CpuLoops &shared) {
  Split(b, shared).emit(b);
}
