//===- CpuTables.cpp - tables of per-channel operands by element ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuTables.h"
#include "Apply/ElementCloner.h"
#include "Layout/StridedData.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <array>

using namespace mlir;
using namespace mlir::bngrad;

/// The most vectors of a table that is filled by shuffles.
static constexpr int64_t kMostShuffles = 16;

/// Columns whose sums stay in long registers from row to row. Columns for which
/// there are not enough registers are read piece by piece, with jumps from row
/// to row that prefetchers do not follow. This is faster only for data in a
/// core's own cache: in groups with at most `kNarrowBytes` of data, and for any
/// number of columns where a stage reads data again.
static constexpr int64_t kNarrowColumns = 128;
static constexpr int64_t kNarrowBytes = 4 << 20;

int64_t TableLoops::getLineElements() const {
  int64_t width = kLineBytes;
  for (linalg::GenericOp generic : group.elementwise)
    for (Value init : generic.getDpsInits())
      width = std::min(width, getElementBytes(init));
  return kLineBytes / width;
}

Value TableLoops::getRepeats(OpBuilder &b, Value elements, int64_t unit) const {
  // The lowest set bit of the size is its greatest power-of-2 divisor.
  IndexBuilder index = at(b);
  Value unitElements = index.constant(unit);
  Value divisor =
      index.bitAnd(elements, index.sub(index.constant(0), elements));
  return index.div(unitElements, index.max(index.min(divisor, unitElements),
                                           index.constant(1)));
}

bool TableLoops::isTabled(linalg::GenericOp generic, OpOperand *operand) const {
  AffineMap map = generic.getMatchingIndexingMap(operand);
  return !isDataMap(map) && map.isFunctionOfDim(group.features.front()) &&
         !generic.getMatchingBlockArgument(operand).use_empty();
}

llvm::SetVector<Value>
TableLoops::getChannelOperands(ArrayRef<linalg::GenericOp> generics) const {
  llvm::SetVector<Value> operands;
  for (linalg::GenericOp generic : generics)
    for (OpOperand *operand : generic.getDpsInputOperands())
      if (isTabled(generic, operand))
        operands.insert(operand->get());
  return operands;
}

GroupTables TableLoops::listOperands() const {
  GroupTables result;
  auto addOperands = [&](OperandTables &tables,
                         ArrayRef<linalg::GenericOp> generics) {
    bool havePairs = llvm::any_of(generics, [&](linalg::GenericOp generic) {
      return allowsPairs(generic, {Value(), wide});
    });
    for (Value operand : getChannelOperands(generics)) {
      tables.inOrder[operand] = Value();
      if (havePairs)
        tables.pairs[operand] = Value();
    }
  };
  for (const Stage &stage : group.stages) {
    StageTables &ofStage = result.stages.emplace_back();
    if (stage.reduction)
      addOperands(ofStage.reduction, stage.reduction);
  }
  addOperands(result.elementwise, group.elementwise);
  return result;
}

GroupTables TableLoops::createTables(OpBuilder &b,
                                     ArrayRef<TableRequest> requests) const {
  GroupTables result = listOperands();
  // The types of the sums, and the operands of generics, of all stages.
  auto forEachSum = [&](function_ref<void(StageTables &, Type)> body) {
    for (auto [stage, ofStage] : llvm::zip_equal(group.stages, result.stages)) {
      if (!stage.reduction)
        continue;
      ReductionValues values = *getReductionValues(stage.reduction);
      for (Value term : llvm::make_second_range(values.terms))
        body(ofStage, term.getType());
    }
  };
  auto getMaps = [&](TableUse use) {
    SmallVector<ChannelTables *> maps;
    auto addMaps = [&](OperandTables &tables) {
      maps.append({&tables.inOrder, &tables.pairs});
    };
    if (use == TableUse::Elementwise)
      addMaps(result.elementwise);
    else
      for (StageTables &ofStage : result.stages)
        addMaps(ofStage.reduction);
    return maps;
  };

  SmallVector<TableType> types;
  for (auto [use, entries] : requests) {
    unsigned tablesOfSum = use == TableUse::Sums ? 3 : 1;
    if (use == TableUse::Moments || use == TableUse::JoinedMoments)
      types.append(2, {entries, b.getF64Type()});
    else if (use == TableUse::Sums || use == TableUse::JoinedSums)
      forEachSum([&, entries = entries](StageTables &, Type type) {
        types.append(tablesOfSum, {entries, type});
      });
    else
      for (ChannelTables *tables : getMaps(use))
        for (auto [operand, table] : *tables)
          types.push_back({entries, getElementTypeOrSelf(operand)});
  }
  result.memory = CpuLoops::createTables(b, types);

  const Value *next = result.memory.tables.begin();
  for (auto [use, entries] : requests) {
    switch (use) {
    case TableUse::Sums:
      forEachSum([&](StageTables &ofStage, Type) {
        ofStage.sums.sums.push_back({*next, *std::next(next)});
        ofStage.sums.chains.push_back(*std::next(next, 2));
        std::advance(next, 3);
      });
      break;
    case TableUse::JoinedSums:
      forEachSum([&](StageTables &ofStage, Type) {
        ofStage.joined.push_back(*next++);
      });
      break;
    case TableUse::Moments:
    case TableUse::JoinedMoments:
      for (int i = 0; i < 2; ++i)
        (use == TableUse::Moments ? result.moments : result.joinedMoments)
            .push_back(*next++);
      break;
    case TableUse::Reduction:
    case TableUse::Elementwise:
      for (ChannelTables *tables : getMaps(use))
        for (auto &[operand, table] : *tables)
          table = *next++;
      break;
    }
  }
  return result;
}

void TableLoops::fillByRow(OpBuilder &b, const ChannelTables &tables,
                           const TileRows &rows) const {
  Value zeroIndex = constant(b, 0);
  for (auto [operand, table] : tables)
    emitFor(b, {zeroIndex, rows.count},
            [&, operand = operand, table = table](OpBuilder &nested,
                                                  Value channel) {
              IndexBuilder index = at(nested);
              Value value = memref::LoadOp::create(
                  nested, loc, operand,
                  ValueRange{index.add(rows.firstChannel, channel)});
              Value start = index.mul(channel, rows.size);
              emitFor(nested, {zeroIndex, rows.size}, constant(nested, lanes),
                      [&](OpBuilder &inRow, Value element) {
                        Value entries = broadcastTo(inRow, loc, value, lanes);
                        store(inRow, entries, castToStorage(inRow, loc, table),
                              at(inRow).add(start, element), {element, lanes});
                      });
            });
}

void TableLoops::copyChannels(OpBuilder &b, Value operand, Value table,
                              const ChannelEntries &entries) const {
  Interval all = {constant(b, 0), entries.channels};
  if (isMemRefWithIdentity(operand)) {
    emitPieces(b, all, wide, [&](OpBuilder &nested, const Piece &piece) {
      // Tables are padded, and need no mask.
      store(nested, load(nested, operand, piece.position, piece),
            castToStorage(nested, loc, table),
            at(nested).add(entries.first, piece.position),
            {piece.position, piece.lanes});
    });
    return;
  }
  emitFor(b, all, [&](OpBuilder &nested, Value channel) {
    Value value = memref::LoadOp::create(nested, loc, operand, channel);
    memref::StoreOp::create(nested, loc, value, table,
                            at(nested).add(entries.first, channel));
  });
}

bool TableLoops::fillFromRegister(OpBuilder &b, const ChannelTables &tables,
                                  const ChannelEntries &entries) const {
  std::optional<int64_t> channels = getConstantIntValue(entries.channels);
  std::optional<int64_t> columns = getConstantIntValue(entries.columns);
  if (!channels || *channels > lanes || !columns ||
      *columns > kMostShuffles * lanes || !llvm::all_of(tables, [](auto table) {
        return isMemRefWithIdentity(table.first);
      }))
    return false;
  Piece all = {constant(b, 0), lanes, createMask(b, entries.channels, lanes)};
  for (auto [operand, table] : tables) {
    Value values = load(b, operand, all.position, all);
    for (int64_t first = 0; first < *columns; first += lanes) {
      auto channelsOfPiece = llvm::map_to_vector(
          llvm::seq(first, first + lanes),
          [&](int64_t column) { return column % *channels; });
      Value repeated =
          vector::ShuffleOp::create(b, loc, values, values, channelsOfPiece);
      // Tables are padded, and need no mask.
      store(b, repeated, castToStorage(b, loc, table),
            at(b).add(entries.first, constant(b, first)), {{}, lanes});
    }
  }
  return true;
}

void TableLoops::fillByChannel(OpBuilder &b, const ChannelTables &tables,
                               const ChannelEntries &entries) const {
  if (fillFromRegister(b, tables, entries))
    return;
  IndexBuilder index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  for (auto [operand, table] : tables)
    copyChannels(b, operand, table, entries);
  // The filled part of a table is doubled until it is long enough.
  Value end = entries.columns;
  scf::WhileOp::create(
      b, loc, b.getIndexType(), index.max(entries.channels, one),
      [&](OpBuilder &before, Location, ValueRange filled) {
        Value isShort =
            at(before).compare(arith::CmpIPredicate::ult, filled[0], end);
        scf::ConditionOp::create(before, loc, isShort, filled);
      },
      [&](OpBuilder &after, Location, ValueRange filled) {
        Value width = at(after).min(filled[0], at(after).sub(end, filled[0]));
        emitFor(after, {zeroIndex, width}, constant(after, lanes),
                [&](OpBuilder &nested, Value entry) {
                  Piece source = {at(nested).add(entries.first, entry), lanes};
                  for (auto [operand, table] : tables) {
                    Value stored = castToStorage(nested, loc, table);
                    store(nested, load(nested, stored, source.position, source),
                          stored, at(nested).add(filled[0], source.position),
                          source);
                  }
                });
        scf::YieldOp::create(after, loc,
                             at(after).mul(filled[0], constant(after, 2)));
      });
}

void TableLoops::readEntries(OpBuilder &b, linalg::GenericOp generic,
                             const Piece &piece, Run &run) const {
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (isTabled(generic, operand))
      run.uniform[operand] = readOperand(b, generic, *operand, run, piece);
}

void TableLoops::readOrderedEntries(OpBuilder &b, linalg::GenericOp generic,
                                    const Piece &piece, Run &run) const {
  readEntries(b, generic, piece, run);
  run.hasOrderedEntries = allowsPairs(generic, piece);
  if (!run.hasOrderedEntries)
    return;
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (isTabled(generic, operand))
      run.uniform[operand] = toPairs(b, run.uniform[operand]);
}

Value TableLoops::areNarrow(OpBuilder &b, Value columns) const {
  if (areReadAgain())
    return arith::ConstantIntOp::create(b, loc, 1, 1);
  IndexBuilder index = at(b);
  auto isAtMost = [&](Value value, int64_t most) {
    return index.compare(arith::CmpIPredicate::ule, value, constant(b, most));
  };
  Value most =
      index.select(isAtMost(bytes, kNarrowBytes), constant(b, kNarrowColumns),
                   constant(b, std::min(getMostColumns(), kNarrowColumns)));
  return index.compare(arith::CmpIPredicate::ule, columns, most);
}

void TableLoops::fillPairs(OpBuilder &b, const OperandTables &tables,
                           Value first, Value columns) const {
  if (tables.pairs.empty() || matchPattern(columns, m_Zero()))
    return;
  IndexBuilder index = at(b);
  Value piece = index.constant(wide);
  Value whole = index.sub(columns, index.rem(columns, piece));
  emitFor(
      b, {index.constant(0), whole}, piece,
      [&](OpBuilder &nested, Value position) {
        Piece entries = {at(nested).add(first, position), wide};
        for (auto [from, to] : llvm::zip_equal(tables.inOrder, tables.pairs)) {
          Value inOrder = load(nested, castToStorage(nested, loc, from.second),
                               entries.position, entries);
          store(nested, toPairs(nested, inOrder),
                castToStorage(nested, loc, to.second), entries.position,
                entries);
        }
      });
}

void TableLoops::fillSumPairs(OpBuilder &b, const GroupTables &tables,
                              Value first, Value columns) const {
  Value read = at(b).select(areNarrow(b, columns), constant(b, 0), columns);
  fillPairs(b, tables.stages[stageNumber].reduction, first, read);
}

void TableLoops::fillElementPairs(OpBuilder &b, const GroupTables &tables,
                                  Value first, Value columns) const {
  IndexBuilder index = at(b);
  Value read = index.constant(0);
  for (linalg::GenericOp generic : group.elementwise)
    if (allowsPairs(generic, {Value(), wide}))
      read = index.select(isStoredPast(b, generic), read, columns);
  fillPairs(b, tables.elementwise, first, read);
}
