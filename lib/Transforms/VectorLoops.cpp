//===- VectorLoops.cpp - schedules with vectors ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Data are dense and read through flat views: an element is known by its
// position in memory. A *run* is a stretch of consecutive elements. Per-channel
// values in a run are either one per run (`channels`, `split`: the run lies in
// one channel) or read from a table with an entry per element (`tiles`,
// `rows`).
//
// All sizes are index values that fold where they are static; the same code
// makes loops for static and for dynamic shapes.
//
// Sums: a few terms are added one by one, in each lane of a vector;
// the chains are added with TwoSum, whose error joins the next chain; the lanes
// are added at the end (docs/numerics.md, section 4).
//
//===----------------------------------------------------------------------===//

#include "VectorLoops.h"
#include "ElementCloner.h"
#include "Sums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Terms of a chain in each lane of a row.
static constexpr int64_t kChain = 16;
/// A cache line; streaming stores start at one.
static constexpr int64_t kLineBytes = 64;
/// Rows of the second pass of `rows` that are read forward before stepping
/// back: bytes of data.
static constexpr int64_t kStepBytes = 3 << 20;
/// Blocks of the first pass, at most, where there are so many bytes of data.
/// Powers of 2 are even shares for most numbers of threads.
static constexpr std::pair<int64_t, int64_t> kBlocks[] = {
    {128 << 10, 2}, {512 << 10, 4}, {1 << 20, 8}, {2 << 20, 16}, {4 << 20, 32}};
/// Channels whose sums are more work for one thread than it is to wake another.
static constexpr int64_t kSerialChannels = 64;
/// Rows of at most kNarrowBytes of data are read side by side, kVisitBytes of
/// them: as many as still look like one stream of memory.
static constexpr int64_t kNarrowBytes = 3 << 10, kVisitBytes = 16 << 10;
/// Elements of a piece of `split`.
static constexpr int64_t kPieceElements = 16 << 10;
/// By per-channel memref, in the order in which they were made.
using Tables = llvm::MapVector<Value, Value>;
/// Entries and element types of tables.
using TableTypes = SmallVector<std::pair<Value, Type>>;

namespace {
/// Index arithmetic at an insertion point, folded where it can be.
struct Index {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) const {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value l, Value r) const { return fold<arith::AddIOp>(l, r); }
  Value sub(Value l, Value r) const { return fold<arith::SubIOp>(l, r); }
  Value mul(Value l, Value r) const { return fold<arith::MulIOp>(l, r); }
  Value div(Value l, Value r) const { return fold<arith::DivUIOp>(l, r); }
  Value rem(Value l, Value r) const { return fold<arith::RemUIOp>(l, r); }
  Value min(Value l, Value r) const { return fold<arith::MinSIOp>(l, r); }
  Value max(Value l, Value r) const { return fold<arith::MaxSIOp>(l, r); }
  Value ceilDiv(Value l, Value r) const {
    return div(add(l, sub(r, constant(1))), r);
  }
  Value compare(arith::CmpIPredicate predicate, Value l, Value r) const {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, l, r);
  }
  Value select(Value condition, Value l, Value r) const {
    return b.createOrFold<arith::SelectOp>(loc, condition, l, r);
  }
  Value product(ArrayRef<Value> factors) const {
    Value result = constant(1);
    for (Value factor : factors)
      result = mul(result, factor);
    return result;
  }

private:
  template <typename OpTy> Value fold(Value l, Value r) const {
    return b.createOrFold<OpTy>(loc, l, r);
  }
};

/// What the elements of a run have in common.
struct Run {
  Value base;                          // position of its element 0 in the data
  SmallVector<Value> ivs;              // by loop; null: differs in the run
  const Tables *tables;                // by per-channel memref; null: no tables
  Value tableOffset;                   // entry of element 0
  DenseMap<OpOperand *, Value> common; // operands that do not differ
  Value ahead; // how much further in the data is what will be read next; null:
               // right behind the run, which the hardware sees
};

/// Elements of a run from `position` on.
struct Piece {
  Value position;
  int64_t lanes;
  Value mask; // null: all lanes
};

/// Sums of columns.
struct SumTables {
  SmallVector<Value> sums;   // for each sum: it, and its error
  SmallVector<Value> chains; // for each sum: the terms of a chain of rows
};

/// An scf.for that LLVM leaves as it is: its body is as long as pays already.
template <typename... Args> scf::ForOp createFor(OpBuilder &b, Args &&...args) {
  auto loop = scf::ForOp::create(b, std::forward<Args>(args)...);
  auto unroll = LLVM::LoopUnrollAttr::get(b.getContext(), b.getBoolAttr(true),
                                          {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(b.getContext(), {}, {}, {},
                                              unroll, {}, {}, {}, {}, {}, {},
                                              {}, {}, {}, {}, {}));
  return loop;
}

class VectorLoops {
public:
  VectorLoops(OpBuilder &b, const ScheduledGroup &group, ScheduleAttr schedule)
      : group(group), schedule(schedule), loc(group.getMembers()[0].getLoc()) {
    initialize(b);
  }

  void emitChannels(OpBuilder &b);
  void emitSplit(OpBuilder &b);
  void emitTiles(OpBuilder &b);
  void emitRows(OpBuilder &b);
  void emitBySizes(OpBuilder &b);

private:
  using Body = function_ref<void(OpBuilder &)>;
  using IndexBody = function_ref<void(OpBuilder &, Value)>;
  /// A share: which one it is, and its range.
  using ShareBody = function_ref<void(OpBuilder &, Value, Value, Value)>;

  // Loops.
  void initialize(OpBuilder &b);
  Index at(OpBuilder &b) const { return {b, loc}; }
  Value constant(OpBuilder &b, int64_t value) const {
    return at(b).constant(value);
  }
  void emitFor(OpBuilder &b, Value from, Value to, Value step,
               IndexBody body) const;
  void emitFor(OpBuilder &b, Value from, Value to, IndexBody body) const {
    emitFor(b, from, to, constant(b, 1), body);
  }
  /// Loops over `loops` of the data, outermost first, that set `ivs`.
  void emitLoops(OpBuilder &b, ArrayRef<unsigned> loops, SmallVector<Value> ivs,
                 function_ref<void(OpBuilder &, ArrayRef<Value>)> body) const;
  /// How many shares loops are cut into: one, if the problem is small.
  Value getShares(OpBuilder &b) const;
  /// Cuts [0, count) into shares for the threads; into one where `isLittle`.
  void emitShares(OpBuilder &b, Value count, ShareBody body,
                  Value isLittle = {}) const;
  void emitIf(OpBuilder &b, Value condition, Body thenBody,
              Body elseBody) const;
  /// The indices of `loops` that make up `position`.
  void delinearize(OpBuilder &b, Value position, ArrayRef<unsigned> loops,
                   MutableArrayRef<Value> ivs) const;

  // Memory.
  Value getFlat(OpBuilder &b, Value memref);
  Value getBytes(OpBuilder &b, Value memref) const;
  /// A table as what vectors are stored to: of bytes if it is one of i1.
  Value getStored(OpBuilder &b, Value table) const {
    return getElementTypeOrSelf(table).isInteger(1) ? getBytes(b, table)
                                                    : table;
  }
  Value load(OpBuilder &b, Value memref, ValueRange indices,
             const Piece &piece) const;
  void store(OpBuilder &b, Value value, Value memref, ValueRange indices,
             const Piece &piece, bool isStreaming) const;
  /// Tables in one piece of memory, which goes with `deallocate` of any.
  SmallVector<Value> createTables(OpBuilder &b, const TableTypes &types) const;
  void deallocate(OpBuilder &b, Value table) const;

  // Elements.
  SmallVector<Value> indicesOf(linalg::GenericOp generic, OpOperand &operand,
                               ArrayRef<Value> ivs) const;
  bool differsInRun(linalg::GenericOp generic, OpOperand &operand,
                    const Run &run) const;
  /// Reads what the elements of `run` have in common.
  void readCommon(OpBuilder &b, linalg::GenericOp generic, Run &run) const;
  /// `sums`: what the accumulators of a reduction hold; none: what adds to them
  /// is left out.
  IRMapping clonePiece(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                       const Piece &piece, ValueRange sums = {});
  void storePiece(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                  const Piece &piece, const IRMapping &mapping,
                  bool isStreaming);
  /// A mask of the first `count` of `maskLanes` lanes.
  Value createMask(OpBuilder &b, Value count, int64_t maskLanes) const;
  /// Fetches what will be read `run.ahead` elements after a piece.
  void prefetch(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                const Piece &piece);
  /// Pieces of at most `lanes` elements, masked, for [from, to).
  void emitMasked(OpBuilder &b, Value from, Value to, int64_t lanes,
                  function_ref<void(OpBuilder &, const Piece &)> body) const;
  /// The element-wise part of elements [from, to) of a run.
  void emitElementwiseRun(OpBuilder &b, linalg::GenericOp generic, Run run,
                          Value from, Value to);
  void emitElementwiseRun(OpBuilder &b, linalg::GenericOp generic,
                          const Run &run, Value from, Value to,
                          bool isStreaming);
  /// An i1: results are to be stored past the caches.
  Value isStreamed(OpBuilder &b) const;

  // Sums.
  unsigned numSums() const { return values.terms.size(); }
  FloatType sumType(unsigned i) const {
    return cast<FloatType>(values.terms[i].second.getType());
  }
  Value zero(OpBuilder &b, unsigned i, int64_t lanes) const;
  /// (sum, error) of each sum, all 0.
  SmallVector<Value> zeroSums(OpBuilder &b, int64_t lanes) const;
  /// Adds up elements [from, to) of `rows` runs, in vectors of `wide` lanes.
  SmallVector<Value> emitSumRows(OpBuilder &b, Value rows,
                                 function_ref<Run(OpBuilder &, Value)> getRun,
                                 Value from, Value to);
  /// `sums` and the terms of a piece, lane by lane.
  SmallVector<Value> addTerms(OpBuilder &b, const Run &run, const Piece &piece,
                              ValueRange sums);
  /// The sum of all lanes.
  Value addLanes(OpBuilder &b, Value sum, Value error) const;
  /// Adds `totals` to what the outputs of the reduction hold for a channel.
  void storeSums(OpBuilder &b, ArrayRef<Value> features, ValueRange totals);
  void emitChannelwise(OpBuilder &b, ArrayRef<Value> features);
  /// True if the channels are one loop whose values lie side by side.
  bool hasChannelVectors() const;
  /// As storeSums and emitChannelwise, for a piece of the channels.
  void storeSums(OpBuilder &b, const Piece &piece, ValueRange totals) const;
  void emitChannelwise(OpBuilder &b, const Piece &piece) const;

  // `tiles` and `rows`.
  /// Adds the terms of rows [from, to) to the entries of `tables` from `entry`
  /// on, one for each of `columns` columns.
  void emitColumnSums(OpBuilder &b, const SumTables &tables, Value entry,
                      Value columns,
                      function_ref<Run(OpBuilder &, Value)> getRun, Value from,
                      Value to);
  /// Pieces for all columns, most of them of `wide` elements.
  void emitColumns(OpBuilder &b, Value columns,
                   function_ref<void(OpBuilder &, const Piece &)> body) const;
  void emitZeroTables(OpBuilder &b, const SumTables &tables, Value entry,
                      Value columns) const;
  /// Adds the types of sum tables to `types`; takes the tables of the first
  /// from `tables`.
  void requestSumTables(TableTypes &types, Value entries) const;
  SumTables takeSumTables(ArrayRef<Value> &tables) const;
  /// Entries of sum `i`, each with its error.
  Value addPair(OpBuilder &b, const SumTables &tables, unsigned i,
                const Piece &piece) const;
  /// The same of a table for each per-channel operand of `generics`.
  void requestTables(TableTypes &types, ArrayRef<linalg::GenericOp> generics,
                     Value entries) const;
  Tables takeTables(ArrayRef<Value> &tables,
                    ArrayRef<linalg::GenericOp> generics) const;
  /// The per-channel operands of `generic`, without the sums.
  llvm::SetVector<Value>
  getChannelOperands(ArrayRef<linalg::GenericOp> generics) const;
  /// Elements of a line in the narrowest result.
  int64_t getLineElements() const;
  /// How often `elements` must be repeated to fill whole units, each a power of
  /// 2 of elements.
  Value getRepeats(OpBuilder &b, Value elements, int64_t unit) const;

  ScheduledGroup group;
  ScheduleAttr schedule;
  Location loc;
  ReductionValues values;
  SmallVector<Value> sizes;      // by loop
  SmallVector<unsigned> reduced; // loops that are summed over
  Value count;                   // elements of the data
  Value bytes;                   // of all data operands
  Value rowChain;                // rows of a chain in a column
  int64_t lanes, wide;           // of a register, and of four
  DenseMap<Value, Value> flats;
};
} // namespace

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void VectorLoops::initialize(OpBuilder &b) {
  FloatType type = b.getF32Type();
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (Operation &op : *generic.getBody())
      for (Value operand : op.getOperands())
        if (operand.getType().isF64())
          type = b.getF64Type();
  lanes = schedule.getVectorBits() / type.getWidth();
  wide = 4 * lanes;
  if (group.reduction)
    values = *getReductionValues(group.reduction);

  auto first =
      cast<linalg::LinalgOp>(group.getDataGenerics().front().getOperation());
  for (Range range : first.createLoopRanges(b, loc))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
  for (unsigned loop : llvm::seq(group.numLoops))
    if (!group.isFeature(loop))
      reduced.push_back(loop);
  count = at(b).product(sizes);
  int64_t width = 0;
  // Members may have views of their own of the same data.
  llvm::SetVector<Value> seen, viewed;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          seen.insert(operand.get()) && viewed.insert(getViewed(operand.get())))
        width += llvm::divideCeil(
            getElementTypeOrSelf(operand.get()).getIntOrFloatBitWidth(), 8);
  bytes = at(b).mul(count, constant(b, width));
  // The more terms, the longer the chains that the bound has room for.
  SmallVector<Value> reducedSizes;
  for (unsigned loop : reduced)
    reducedSizes.push_back(sizes[loop]);
  Value terms = at(b).product(reducedSizes);
  rowChain = constant(b, 8);
  for (auto [least, chain] : {std::pair(1024, 16), {4096, 32}})
    rowChain = at(b).select(
        at(b).compare(arith::CmpIPredicate::uge, terms, constant(b, least)),
        constant(b, chain), rowChain);
  // Views are made here, where they dominate every loop.
  for (Value memref : seen)
    getFlat(b, memref);
}

void VectorLoops::emitFor(OpBuilder &b, Value from, Value to, Value step,
                          IndexBody body) const {
  createFor(b, loc, from, to, step, ValueRange(),
            [&](OpBuilder &nested, Location, Value iv, ValueRange) {
              body(nested, iv);
              scf::YieldOp::create(nested, loc);
            });
}

void VectorLoops::emitLoops(
    OpBuilder &b, ArrayRef<unsigned> loops, SmallVector<Value> ivs,
    function_ref<void(OpBuilder &, ArrayRef<Value>)> body) const {
  if (loops.empty())
    return body(b, ivs);
  emitFor(b, constant(b, 0), sizes[loops.front()],
          [&](OpBuilder &nested, Value iv) {
            ivs[loops.front()] = iv;
            emitLoops(nested, loops.drop_front(), ivs, body);
          });
}

Value VectorLoops::getShares(OpBuilder &b) const {
  Index index = at(b);
  return index.select(index.compare(arith::CmpIPredicate::ult, count,
                                    index.constant(limits::kSerialElements)),
                      index.constant(1), index.constant(schedule.getThreads()));
}

void VectorLoops::emitShares(OpBuilder &b, Value total, ShareBody body,
                             Value isLittle) const {
  Index index = at(b);
  Value zero = index.constant(0), one = index.constant(1);
  Value shares = getShares(b);
  if (matchPattern(shares, m_One()))
    return body(b, zero, zero, total);
  if (isLittle)
    shares = index.select(isLittle, one, shares);
  scf::ParallelOp::create(
      b, loc, zero, shares, one,
      [&](OpBuilder &nested, Location, ValueRange iv) {
        Index inside = at(nested);
        Value from = inside.div(inside.mul(iv[0], total), shares);
        Value next = inside.add(iv[0], inside.constant(1));
        Value to = inside.div(inside.mul(next, total), shares);
        body(nested, iv[0], from, to);
        // Streaming stores are not ordered with what another thread reads.
        LLVM::FenceOp::create(nested, loc, LLVM::AtomicOrdering::seq_cst);
      });
}

void VectorLoops::emitIf(OpBuilder &b, Value condition, Body thenBody,
                         Body elseBody) const {
  if (matchPattern(condition, m_One()))
    return thenBody(b);
  if (matchPattern(condition, m_Zero()))
    return elseBody(b);
  scf::IfOp::create(
      b, loc, condition,
      [&](OpBuilder &nested, Location) {
        thenBody(nested);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        elseBody(nested);
        scf::YieldOp::create(nested, loc);
      });
}

void VectorLoops::delinearize(OpBuilder &b, Value position,
                              ArrayRef<unsigned> loops,
                              MutableArrayRef<Value> ivs) const {
  Index index = at(b);
  for (unsigned loop : llvm::reverse(loops.drop_front())) {
    ivs[loop] = index.rem(position, sizes[loop]);
    position = index.div(position, sizes[loop]);
  }
  ivs[loops.front()] = position;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value VectorLoops::getFlat(OpBuilder &b, Value memref) {
  Value &flat = flats[memref];
  if (flat)
    return flat;
  flat = memref;
  if (cast<MemRefType>(memref.getType()).getRank() > 1) {
    SmallVector<ReassociationIndices> all(
        1, llvm::to_vector<2>(llvm::seq<int64_t>(0, group.numLoops)));
    flat = memref::CollapseShapeOp::create(b, loc, memref, all);
  }
  if (getElementTypeOrSelf(memref).isInteger(1))
    flat = getBytes(b, flat);
  return flat;
}

/// A memref of i1 as one of i8, which is what memory holds: a vector of i1
/// would be read as bits.
Value VectorLoops::getBytes(OpBuilder &b, Value memref) const {
  auto type = cast<MemRefType>(memref.getType());
  return UnrealizedConversionCastOp::create(b, loc, type.clone(b.getI8Type()),
                                            memref)
      .getResult(0);
}

Value VectorLoops::load(OpBuilder &b, Value memref, ValueRange indices,
                        const Piece &piece) const {
  Type elementType = getElementTypeOrSelf(memref);
  bool isMask = elementType.isInteger(1);
  if (isMask) {
    memref = getBytes(b, memref);
    elementType = b.getI8Type();
  }
  auto type = VectorType::get({piece.lanes}, elementType);
  if (!piece.mask)
    return vector::LoadOp::create(b, loc, type, memref, indices);
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(b, loc, type, memref, indices, piece.mask,
                                      zeros);
}

void VectorLoops::store(OpBuilder &b, Value value, Value memref,
                        ValueRange indices, const Piece &piece,
                        bool isStreaming) const {
  value = broadcastTo(b, loc, value, piece.lanes);
  if (getElementTypeOrSelf(value).isInteger(1))
    value = arith::ExtUIOp::create(
        b, loc, VectorType::get({piece.lanes}, b.getI8Type()), value);
  if (piece.mask) {
    vector::MaskedStoreOp::create(b, loc, memref, indices, piece.mask, value);
    return;
  }
  if (!isStreaming) {
    vector::StoreOp::create(b, loc, value, memref, indices);
    return;
  }
  // LLVM drops the hint from stores of 16-bit floats.
  if (auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value));
      type && type.getWidth() == 16) {
    Type bits = b.getI16Type();
    value = arith::BitcastOp::create(
        b, loc, VectorType::get({piece.lanes}, bits), value);
    auto memrefType = cast<MemRefType>(memref.getType());
    memref = UnrealizedConversionCastOp::create(b, loc, memrefType.clone(bits),
                                                memref)
                 .getResult(0);
  }
  vector::StoreOp::create(b, loc, value, memref, indices,
                          /*nontemporal=*/true, llvm::MaybeAlign(kLineBytes));
}

SmallVector<Value> VectorLoops::createTables(OpBuilder &b,
                                             const TableTypes &types) const {
  Index index = at(b);
  auto typeOf = [](Type elementType) {
    return MemRefType::get({ShapedType::kDynamic}, elementType);
  };
  Value size = index.constant(0);
  SmallVector<Value> offsets, lengths;
  for (auto [entries, type] : types) {
    // A table is read and written by vectors that start at any entry, and by
    // the rows of `rows` up to a line later. Whole lines.
    Value length =
        index.add(entries, index.constant(2 * wide + 2 * kLineBytes - 1));
    length = index.sub(length, index.rem(length, index.constant(kLineBytes)));
    offsets.push_back(size);
    lengths.push_back(length);
    int64_t width = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
    size = index.add(size, index.mul(length, index.constant(width)));
  }
  Value memory =
      memref::AllocOp::create(b, loc, typeOf(b.getI8Type()), ValueRange{size},
                              ValueRange(), b.getI64IntegerAttr(kLineBytes));
  SmallVector<Value> tables;
  for (auto [type, offset, length] : llvm::zip_equal(types, offsets, lengths))
    tables.push_back(memref::ViewOp::create(b, loc, typeOf(type.second), memory,
                                            offset, ValueRange{length}));
  return tables;
}

void VectorLoops::deallocate(OpBuilder &b, Value table) const {
  memref::DeallocOp::create(b, loc,
                            table.getDefiningOp<memref::ViewOp>().getSource());
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

SmallVector<Value> VectorLoops::indicesOf(linalg::GenericOp generic,
                                          OpOperand &operand,
                                          ArrayRef<Value> ivs) const {
  SmallVector<Value> indices;
  for (AffineExpr expr : generic.getMatchingIndexingMap(&operand).getResults())
    indices.push_back(ivs[cast<AffineDimExpr>(expr).getPosition()]);
  return indices;
}

bool VectorLoops::differsInRun(linalg::GenericOp generic, OpOperand &operand,
                               const Run &run) const {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  return llvm::any_of(llvm::enumerate(run.ivs), [&](auto iv) {
    return !iv.value() && map.isFunctionOfDim(iv.index());
  });
}

void VectorLoops::readCommon(OpBuilder &b, linalg::GenericOp generic,
                             Run &run) const {
  for (OpOperand &operand : generic->getOpOperands()) {
    if (generic.getMatchingBlockArgument(&operand).use_empty() ||
        differsInRun(generic, operand, run))
      continue;
    if (generic.isDpsInit(&operand))
      continue; // the accumulator of a sum
    Value &value = run.common[&operand];
    value = operand.get();
    if (isa<MemRefType>(value.getType()))
      value = memref::LoadOp::create(b, loc, value,
                                     indicesOf(generic, operand, run.ivs));
  }
}

IRMapping VectorLoops::clonePiece(OpBuilder &b, linalg::GenericOp generic,
                                  const Run &run, const Piece &piece,
                                  ValueRange sums) {
  Index index = at(b);
  auto readOperand = [&](OpBuilder &, OpOperand &operand) -> Value {
    if (Value common = run.common.lookup(&operand))
      return common;
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    if (generic.isDpsInit(&operand) && !isDataMap(map)) {
      for (auto [term, sum] : llvm::zip(values.terms, sums))
        if (generic.getDpsInitOperand(term.first) == &operand)
          return sum;
      return {};
    }
    Value value;
    if (isDataMap(map)) {
      value = load(b, getFlat(b, operand.get()),
                   index.add(run.base, piece.position), piece);
    } else if (run.tables) {
      return load(b, run.tables->lookup(operand.get()),
                  index.add(run.tableOffset, piece.position), piece);
    } else {
      SmallVector<Value> ivs(run.ivs);
      ivs.back() = piece.position;
      value = load(b, operand.get(), indicesOf(generic, operand, ivs), piece);
    }
    if (getElementTypeOrSelf(operand.get()).isInteger(1)) {
      Value zeros =
          arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
      value =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zeros);
    }
    return value;
  };
  auto readIndex = [&](OpBuilder &, unsigned loop) -> Value {
    if (run.ivs[loop])
      return run.ivs[loop];
    auto type = VectorType::get({piece.lanes}, b.getIndexType());
    return arith::AddIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, type, piece.position),
        vector::StepOp::create(b, loc, type));
  };
  return cloneElement(b, generic, {readOperand, readIndex}, piece.lanes,
                      schedule.getFma());
}

void VectorLoops::storePiece(OpBuilder &b, linalg::GenericOp generic,
                             const Run &run, const Piece &piece,
                             const IRMapping &mapping, bool isStreaming) {
  Value position = at(b).add(run.base, piece.position);
  Operation *yield = generic.getBody()->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    OpOperand *init = generic.getDpsInitOperand(i);
    if (isDataMap(generic.getMatchingIndexingMap(init)))
      store(b, mapping.lookupOrDefault(value), getFlat(b, init->get()),
            position, piece, isStreaming);
  }
}

Value VectorLoops::createMask(OpBuilder &b, Value count,
                              int64_t maskLanes) const {
  // Lowered to a comparison of 32 bits, so not left to be more than that.
  Value bounded = at(b).min(count, constant(b, maskLanes));
  return vector::CreateMaskOp::create(
      b, loc, VectorType::get({maskLanes}, b.getI1Type()), bounded);
}

void VectorLoops::emitMasked(
    OpBuilder &b, Value from, Value to, int64_t pieceLanes,
    function_ref<void(OpBuilder &, const Piece &)> body) const {
  emitFor(b, from, to, constant(b, pieceLanes),
          [&](OpBuilder &nested, Value position) {
            Value rest = at(nested).sub(to, position);
            body(nested,
                 {position, pieceLanes, createMask(nested, rest, pieceLanes)});
          });
}

void VectorLoops::prefetch(OpBuilder &b, linalg::GenericOp generic,
                           const Run &run, const Piece &piece) {
  // What fits into the caches needs no help.
  if (!run.ahead || matchPattern(isStreamed(b), m_Zero()))
    return;
  Index index = at(b);
  Value first = index.add(index.add(run.base, piece.position), run.ahead);
  Value last = index.sub(count, index.constant(1));
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (!isDataMap(generic.getMatchingIndexingMap(operand)))
      continue;
    Value flat = getFlat(b, operand->get());
    int64_t width = getElementTypeOrSelf(flat).getIntOrFloatBitWidth() / 8;
    for (int64_t element = 0; element < piece.lanes;
         element += kLineBytes / width) {
      // Behind the end there is nothing to come.
      Value position =
          index.min(index.add(first, index.constant(element)), last);
      memref::PrefetchOp::create(b, loc, flat, position, /*isWrite=*/false,
                                 /*localityHint=*/2, /*isDataCache=*/true);
    }
  }
}

Value VectorLoops::isStreamed(OpBuilder &b) const {
  if (schedule.getStreamingBytes() == 0)
    return arith::ConstantIntOp::create(b, loc, 0, 1);
  return at(b).compare(arith::CmpIPredicate::ugt, bytes,
                       constant(b, schedule.getStreamingBytes()));
}

void VectorLoops::emitElementwiseRun(OpBuilder &b, linalg::GenericOp generic,
                                     Run run, Value from, Value to) {
  readCommon(b, generic, run);
  // Two results would be two streams, with lines of their own to start at.
  Value isStreaming = generic.getNumDpsInits() == 1
                          ? isStreamed(b)
                          : arith::ConstantIntOp::create(b, loc, 0, 1);
  emitIf(
      b, isStreaming,
      [&](OpBuilder &nested) {
        emitElementwiseRun(nested, generic, run, from, to, true);
      },
      [&](OpBuilder &nested) {
        emitElementwiseRun(nested, generic, run, from, to, false);
      });
}

void VectorLoops::emitElementwiseRun(OpBuilder &b, linalg::GenericOp generic,
                                     const Run &run, Value from, Value to,
                                     bool isStreaming) {
  Index index = at(b);
  auto emitPiece = [&](OpBuilder &nested, const Piece &piece) {
    if (isStreaming && !piece.mask)
      prefetch(nested, generic, run, piece);
    IRMapping mapping = clonePiece(nested, generic, run, piece);
    storePiece(nested, generic, run, piece, mapping,
               isStreaming && !piece.mask);
  };
  if (isStreaming) {
    // Up to the first line of the result.
    Value result = getFlat(b, generic.getDpsInitOperand(0)->get());
    int64_t width = getElementTypeOrSelf(result).getIntOrFloatBitWidth() / 8;
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, result);
    Value start = index.mul(index.add(run.base, from), index.constant(width));
    Value past =
        index.rem(index.add(address, start), index.constant(kLineBytes));
    Value head = index.rem(index.sub(index.constant(kLineBytes), past),
                           index.constant(kLineBytes));
    Value body =
        index.min(index.add(from, index.div(head, index.constant(width))), to);
    emitMasked(b, from, body, lanes, emitPiece);
    from = body;
  }
  Value length = index.max(index.sub(to, from), index.constant(0));
  Value rest = index.rem(length, index.constant(wide));
  Value end = index.sub(index.add(from, length), rest);
  emitFor(b, from, end, index.constant(wide),
          [&](OpBuilder &nested, Value position) {
            emitPiece(nested, {position, wide, Value()});
          });
  emitMasked(b, end, to, lanes, emitPiece);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Value VectorLoops::zero(OpBuilder &b, unsigned i, int64_t zeroLanes) const {
  return arith::ConstantOp::create(
      b, loc, b.getZeroAttr(VectorType::get({zeroLanes}, sumType(i))));
}

SmallVector<Value> VectorLoops::zeroSums(OpBuilder &b, int64_t sumLanes) const {
  SmallVector<Value> sums;
  for (unsigned i : llvm::seq(numSums()))
    sums.append(2, zero(b, i, sumLanes));
  return sums;
}

SmallVector<Value> VectorLoops::addTerms(OpBuilder &b, const Run &run,
                                         const Piece &piece, ValueRange sums) {
  IRMapping mapping = clonePiece(b, group.reduction, run, piece, sums);
  storePiece(b, group.reduction, run, piece, mapping, /*isStreaming=*/false);
  Operation *yield = group.reduction.getBody()->getTerminator();
  SmallVector<Value> next;
  for (auto [term, sum] : llvm::zip_equal(values.terms, sums)) {
    Value value = mapping.lookup(yield->getOperand(term.first));
    // What is computed from a lane that is masked off need not be 0.
    if (piece.mask)
      value = arith::SelectOp::create(b, loc, piece.mask, value, sum);
    next.push_back(value);
  }
  return next;
}

SmallVector<Value>
VectorLoops::emitSumRows(OpBuilder &b, Value rows,
                         function_ref<Run(OpBuilder &, Value)> getRun,
                         Value from, Value to) {
  Index index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  Value length = index.max(index.sub(to, from), zeroIndex);
  Value rest = index.rem(length, index.constant(wide));
  Value end = index.sub(index.add(from, length), rest);
  bool hasRest = !matchPattern(rest, m_Zero());
  SmallVector<Value> zeros;
  for (unsigned i : llvm::seq(numSums()))
    zeros.push_back(zero(b, i, wide));
  // Short rows share a chain.
  Value chain = index.constant(kChain * wide);
  Value terms = index.ceilDiv(length, index.constant(wide));
  Value together = index.max(index.div(rowChain, index.max(terms, one)), one);
  auto addRow = [&](OpBuilder &row, const Run &run, Value start, Value stop,
                    ValueRange partials) -> SmallVector<Value> {
    SmallVector<Value> carried(partials);
    // The rest of the row, fewer than `wide` elements, is a term of its first
    // chain.
    if (hasRest)
      carried =
          scf::IfOp::create(
              row, loc,
              row.createOrFold<arith::AndIOp>(
                  loc, at(row).compare(arith::CmpIPredicate::eq, start, from),
                  at(row).compare(arith::CmpIPredicate::ne, rest,
                                  constant(row, 0))),
              [&](OpBuilder &nested, Location) {
                Value mask = createMask(nested, rest, wide);
                scf::YieldOp::create(
                    nested, loc,
                    addTerms(nested, run, {end, wide, mask}, partials));
              },
              [&](OpBuilder &nested, Location) {
                scf::YieldOp::create(nested, loc, partials);
              })
              .getResults();
    return createFor(row, loc, start, stop, constant(row, wide), carried,
                     [&](OpBuilder &nested, Location, Value position,
                         ValueRange sums) {
                       scf::YieldOp::create(nested, loc,
                                            addTerms(nested, run,
                                                     {position, wide, Value()},
                                                     sums));
                     })
        .getResults();
  };
  auto groups = createFor(
      b, loc, zeroIndex, rows, together, zeroSums(b, wide),
      [&](OpBuilder &inGroup, Location, Value firstRow, ValueRange groupSums) {
        Index inside = at(inGroup);
        Value endRow = inside.min(inside.add(firstRow, together), rows);
        // Once, even if a row is no longer than its rest.
        Value last = inside.max(end, inside.add(from, inside.constant(1)));
        auto chains = createFor(
            inGroup, loc, from, last, chain, groupSums,
            [&](OpBuilder &inChain, Location, Value start, ValueRange sums) {
              Value stop = at(inChain).min(at(inChain).add(start, chain), end);
              auto partial = createFor(
                  inChain, loc, firstRow, endRow, constant(inChain, 1), zeros,
                  [&](OpBuilder &inRow, Location, Value row,
                      ValueRange partials) {
                    Run run = getRun(inRow, row);
                    readCommon(inRow, group.reduction, run);
                    scf::YieldOp::create(
                        inRow, loc, addRow(inRow, run, start, stop, partials));
                  });
              scf::YieldOp::create(
                  inChain, loc,
                  addCompensated(inChain, loc, sums, partial.getResults()));
            });
        scf::YieldOp::create(inGroup, loc, chains.getResults());
      });
  return groups.getResults();
}

Value VectorLoops::addLanes(OpBuilder &b, Value sum, Value error) const {
  Value total = arith::AddFOp::create(b, loc, sum, error);
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, total,
                                     arith::FastMathFlags::reassoc);
}

void VectorLoops::storeSums(OpBuilder &b, ArrayRef<Value> features,
                            ValueRange totals) {
  SmallVector<Value> ivs(group.numLoops);
  for (auto [loop, iv] : llvm::zip_equal(group.features, features))
    ivs[loop] = iv;
  for (auto [term, total] : llvm::zip_equal(values.terms, totals)) {
    OpOperand *init = group.reduction.getDpsInitOperand(term.first);
    SmallVector<Value> indices = indicesOf(group.reduction, *init, ivs);
    Value before = memref::LoadOp::create(b, loc, init->get(), indices);
    Value after = arith::AddFOp::create(b, loc, before, total);
    memref::StoreOp::create(b, loc, after, init->get(), indices);
  }
}

/// The per-channel generics for one channel.
void VectorLoops::emitChannelwise(OpBuilder &b, ArrayRef<Value> features) {
  for (linalg::GenericOp generic : group.channelwise) {
    ElementCloner cloner(generic);
    IRMapping mapping = cloner.clone(b, features);
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands()))
      cloner.store(b, features, i, mapping.lookupOrDefault(value));
  }
}

static bool isMemRefWithIdentity(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && type.getLayout().isIdentity();
}

/// True if vectors of `type` can be loaded and stored.
static bool isVectorElement(Type type) {
  return type.isIntOrFloat() &&
         (type.isInteger(1) ||
          (type.getIntOrFloatBitWidth() >= 8 &&
           llvm::isPowerOf2_64(type.getIntOrFloatBitWidth())));
}

bool VectorLoops::hasChannelVectors() const {
  auto hasVectors = [](linalg::GenericOp generic, OpOperand &operand) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    Type type = getElementTypeOrSelf(operand.get());
    return !isa<MemRefType>(operand.get().getType()) ||
           (map.isConstant() && !generic.isDpsInit(&operand)) ||
           (map.getNumResults() == 1 && isMemRefWithIdentity(operand.get()) &&
            isVectorElement(type) && !type.isInteger(1));
  };
  if (group.features.size() != 1)
    return false;
  for (auto [result, term] : values.terms) {
    linalg::GenericOp reduction = group.reduction;
    if (!hasVectors(reduction, *reduction.getDpsInitOperand(result)))
      return false;
  }
  return llvm::all_of(group.channelwise, [&](linalg::GenericOp generic) {
    return isVectorizable(generic) &&
           llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
             return hasVectors(generic, operand);
           });
  });
}

void VectorLoops::storeSums(OpBuilder &b, const Piece &piece,
                            ValueRange totals) const {
  linalg::GenericOp reduction = group.reduction;
  for (auto [term, total] : llvm::zip_equal(values.terms, totals)) {
    Value output = reduction.getDpsInitOperand(term.first)->get();
    Value before = load(b, output, piece.position, piece);
    Value after = arith::AddFOp::create(b, loc, before, total);
    store(b, after, output, piece.position, piece, /*isStreaming=*/false);
  }
}

void VectorLoops::emitChannelwise(OpBuilder &b, const Piece &piece) const {
  auto readIndex = [&](OpBuilder &, unsigned) -> Value {
    auto type = VectorType::get({piece.lanes}, b.getIndexType());
    return arith::AddIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, type, piece.position),
        vector::StepOp::create(b, loc, type));
  };
  for (linalg::GenericOp generic : group.channelwise) {
    auto readOperand = [&, generic](OpBuilder &, OpOperand &operand) mutable {
      Value value = operand.get();
      if (!isa<MemRefType>(value.getType()))
        return value;
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      if (!map.isConstant())
        return load(b, value, piece.position, piece);
      SmallVector<Value> indices;
      for (int64_t i : map.getConstantResults())
        indices.push_back(constant(b, i));
      return memref::LoadOp::create(b, loc, value, indices).getResult();
    };
    IRMapping mapping = cloneElement(b, generic, {readOperand, readIndex},
                                     piece.lanes, schedule.getFma());
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands()))
      store(b, mapping.lookupOrDefault(value),
            generic.getDpsInitOperand(i)->get(), piece.position, piece,
            /*isStreaming=*/false);
  }
}

//===----------------------------------------------------------------------===//
// channels
//===----------------------------------------------------------------------===//

void VectorLoops::emitChannels(OpBuilder &b) {
  unsigned inner = group.numLoops - 1;
  SmallVector<unsigned> outer(reduced);
  outer.pop_back();
  SmallVector<Value> featureSizes, outerSizes;
  for (unsigned loop : group.features)
    featureSizes.push_back(sizes[loop]);
  for (unsigned loop : outer)
    outerSizes.push_back(sizes[loop]);
  auto getRun = [&](OpBuilder &nested, ArrayRef<Value> ivs) {
    Run run;
    run.ivs.assign(ivs.begin(), ivs.end());
    run.tables = nullptr;
    Index index = at(nested);
    run.base = index.constant(0);
    for (unsigned loop : llvm::seq(inner))
      run.base = index.add(index.mul(run.base, sizes[loop]), ivs[loop]);
    run.base = index.mul(run.base, sizes[inner]);
    return run;
  };
  emitShares(
      b, at(b).product(featureSizes),
      [&](OpBuilder &share, Value, Value from, Value to) {
        emitFor(share, from, to, [&](OpBuilder &channel, Value position) {
          SmallVector<Value> ivs(group.numLoops);
          delinearize(channel, position, group.features, ivs);
          SmallVector<Value> features;
          for (unsigned loop : group.features)
            features.push_back(ivs[loop]);
          Value zeroIndex = constant(channel, 0);
          if (group.reduction) {
            auto getRow = [&](OpBuilder &nested, Value row) {
              SmallVector<Value> rowIvs(ivs);
              if (!outer.empty())
                delinearize(nested, row, outer, rowIvs);
              return getRun(nested, rowIvs);
            };
            SmallVector<Value> sums =
                emitSumRows(channel, at(channel).product(outerSizes), getRow,
                            constant(channel, 0), sizes[inner]);
            SmallVector<Value> totals;
            for (unsigned i : llvm::seq(numSums()))
              totals.push_back(addLanes(channel, sums[2 * i], sums[2 * i + 1]));
            storeSums(channel, features, totals);
          }
          emitChannelwise(channel, features);
          for (linalg::GenericOp generic : group.elementwise)
            emitLoops(channel, outer, ivs,
                      [&](OpBuilder &row, ArrayRef<Value> rowIvs) {
                        // The next channel's row comes next in memory.
                        Run run = getRun(row, rowIvs);
                        run.ahead = sizes[inner];
                        emitElementwiseRun(row, generic, run, zeroIndex,
                                           sizes[inner]);
                      });
        });
      });
}

//===----------------------------------------------------------------------===//
// split
//===----------------------------------------------------------------------===//

void VectorLoops::emitSplit(OpBuilder &b) {
  Index index = at(b);
  unsigned inner = group.numLoops - 1;
  Value zeroIndex = index.constant(0),
        pieceSize = index.constant(kPieceElements);
  Value pieces = index.ceilDiv(sizes[inner], pieceSize); // of a row
  SmallVector<unsigned> outer = llvm::to_vector(llvm::seq<unsigned>(0, inner));
  SmallVector<Value> outerSizes, channelSizes, rowSizes;
  for (unsigned loop : outer) {
    outerSizes.push_back(sizes[loop]);
    (group.isFeature(loop) ? channelSizes : rowSizes).push_back(sizes[loop]);
  }
  Value channels = index.product(channelSizes);
  Value piecesOfChannel = index.mul(index.product(rowSizes), pieces);
  Value total = index.mul(channels, piecesOfChannel);

  // The piece at `position` in the order of memory: its run, its elements, and
  // its number among the pieces of all channels.
  struct Part {
    Run run;
    Value from, to, number;
  };
  auto getPart = [&](OpBuilder &nested, Value position) {
    Index inside = at(nested);
    Part part;
    part.run.tables = nullptr;
    part.run.ivs.resize(group.numLoops);
    Value row = inside.div(position, pieces);
    Value piece = inside.rem(position, pieces);
    part.run.base = inside.mul(row, sizes[inner]);
    delinearize(nested, row, outer, part.run.ivs);
    part.from = inside.mul(piece, pieceSize);
    part.to = inside.min(inside.add(part.from, pieceSize), sizes[inner]);
    part.number = inside.constant(0);
    for (bool isChannel : {true, false})
      for (unsigned loop : outer)
        if (group.isFeature(loop) == isChannel)
          part.number = inside.add(inside.mul(part.number, sizes[loop]),
                                   part.run.ivs[loop]);
    part.number = inside.add(inside.mul(part.number, pieces), piece);
    return part;
  };

  if (group.reduction) {
    TableTypes types;
    for (unsigned i : llvm::seq(numSums()))
      types.push_back({total, sumType(i)});
    SmallVector<Value> partials = createTables(b, types);
    emitShares(b, total, [&](OpBuilder &share, Value, Value from, Value to) {
      emitFor(share, from, to, [&](OpBuilder &nested, Value position) {
        Part part = getPart(nested, position);
        auto getRun = [&](OpBuilder &, Value) { return part.run; };
        SmallVector<Value> sums = emitSumRows(nested, constant(nested, 1),
                                              getRun, part.from, part.to);
        for (unsigned i : llvm::seq(numSums()))
          memref::StoreOp::create(
              nested, loc, addLanes(nested, sums[2 * i], sums[2 * i + 1]),
              partials[i], part.number);
      });
    });
    emitLoops(
        b, group.features, SmallVector<Value>(group.numLoops),
        [&](OpBuilder &nested, ArrayRef<Value> ivs) {
          Index inside = at(nested);
          SmallVector<Value> features;
          Value channel = inside.constant(0);
          for (unsigned loop : group.features) {
            features.push_back(ivs[loop]);
            channel = inside.add(inside.mul(channel, sizes[loop]), ivs[loop]);
          }
          Value first = inside.mul(channel, piecesOfChannel);
          SmallVector<Value> zeros;
          for (unsigned i : llvm::seq(numSums()))
            zeros.append(2, arith::ConstantOp::create(
                                nested, loc, nested.getZeroAttr(sumType(i))));
          auto loop = createFor(
              nested, loc, zeroIndex, piecesOfChannel, constant(nested, 1),
              zeros, [&](OpBuilder &part, Location, Value iv, ValueRange sums) {
                Value entry = at(part).add(first, iv);
                SmallVector<Value> addends;
                for (Value partial : partials)
                  addends.push_back(
                      memref::LoadOp::create(part, loc, partial, entry));
                scf::YieldOp::create(part, loc,
                                     addCompensated(part, loc, sums, addends));
              });
          SmallVector<Value> totals;
          for (unsigned i : llvm::seq(numSums()))
            totals.push_back(arith::AddFOp::create(
                nested, loc, loop.getResult(2 * i), loop.getResult(2 * i + 1)));
          storeSums(nested, features, totals);
        });
    deallocate(b, partials.front());
  }
  emitLoops(b, group.features, SmallVector<Value>(group.numLoops),
            [&](OpBuilder &nested, ArrayRef<Value> ivs) {
              SmallVector<Value> features;
              for (unsigned loop : group.features)
                features.push_back(ivs[loop]);
              emitChannelwise(nested, features);
            });
  for (linalg::GenericOp generic : group.elementwise)
    emitShares(b, total, [&](OpBuilder &share, Value, Value from, Value to) {
      // Backwards: what was read last is still in a cache.
      Value last = at(share).sub(at(share).add(from, to), constant(share, 1));
      emitFor(share, from, to, [&](OpBuilder &nested, Value iv) {
        Part part = getPart(nested, at(nested).sub(last, iv));
        emitElementwiseRun(nested, generic, part.run, part.from, part.to);
      });
    });
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

int64_t VectorLoops::getLineElements() const {
  int64_t width = kLineBytes;
  for (linalg::GenericOp generic : group.elementwise)
    for (Value init : generic.getDpsInits())
      width = std::min<int64_t>(
          width, llvm::divideCeil(
                     getElementTypeOrSelf(init).getIntOrFloatBitWidth(), 8));
  return kLineBytes / width;
}

Value VectorLoops::getRepeats(OpBuilder &b, Value elements,
                              int64_t unit) const {
  // The lowest set bit of the size is its greatest power-of-2 divisor.
  Index index = at(b);
  Value line = index.constant(unit);
  Value low = b.createOrFold<arith::AndIOp>(
      loc, elements, index.sub(index.constant(0), elements));
  return index.div(line, index.max(index.min(low, line), index.constant(1)));
}

llvm::SetVector<Value>
VectorLoops::getChannelOperands(ArrayRef<linalg::GenericOp> generics) const {
  llvm::SetVector<Value> operands;
  for (linalg::GenericOp generic : generics)
    for (OpOperand *operand : generic.getDpsInputOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(operand);
      if (!isDataMap(map) && map.isFunctionOfDim(group.features.front()) &&
          !generic.getMatchingBlockArgument(operand).use_empty())
        operands.insert(operand->get());
    }
  return operands;
}

void VectorLoops::requestTables(TableTypes &types,
                                ArrayRef<linalg::GenericOp> generics,
                                Value entries) const {
  for (Value operand : getChannelOperands(generics))
    types.push_back({entries, getElementTypeOrSelf(operand)});
}

Tables VectorLoops::takeTables(ArrayRef<Value> &tables,
                               ArrayRef<linalg::GenericOp> generics) const {
  Tables taken;
  for (Value operand : getChannelOperands(generics)) {
    taken[operand] = tables.front();
    tables = tables.drop_front();
  }
  return taken;
}

Value VectorLoops::addPair(OpBuilder &b, const SumTables &tables, unsigned i,
                           const Piece &piece) const {
  return arith::AddFOp::create(
      b, loc, load(b, tables.sums[2 * i], piece.position, piece),
      load(b, tables.sums[2 * i + 1], piece.position, piece));
}

void VectorLoops::requestSumTables(TableTypes &types, Value entries) const {
  for (unsigned i : llvm::seq(numSums()))
    types.append(3, {entries, sumType(i)});
}

SumTables VectorLoops::takeSumTables(ArrayRef<Value> &tables) const {
  SumTables taken;
  for (unsigned i = 0; i < numSums(); ++i) {
    llvm::append_range(taken.sums, tables.take_front(2));
    taken.chains.push_back(tables[2]);
    tables = tables.drop_front(3);
  }
  return taken;
}

void VectorLoops::emitZeroTables(OpBuilder &b, const SumTables &tables,
                                 Value entry, Value columns) const {
  emitFor(b, constant(b, 0), columns, constant(b, lanes),
          [&](OpBuilder &nested, Value column) {
            Value position = at(nested).add(entry, column);
            for (Value table :
                 llvm::concat<const Value>(tables.sums, tables.chains)) {
              auto type = VectorType::get({lanes}, getElementTypeOrSelf(table));
              Value zeros =
                  arith::ConstantOp::create(nested, loc, b.getZeroAttr(type));
              vector::StoreOp::create(nested, loc, zeros, table, position);
            }
          });
}

void VectorLoops::emitColumns(
    OpBuilder &b, Value columns,
    function_ref<void(OpBuilder &, const Piece &)> body) const {
  Index index = at(b);
  Value rest = index.rem(columns, index.constant(wide));
  Value end = index.sub(columns, rest);
  emitFor(b, index.constant(0), end, index.constant(wide),
          [&](OpBuilder &nested, Value column) {
            body(nested, {column, wide, Value()});
          });
  if (!matchPattern(rest, m_Zero()))
    emitMasked(b, end, columns, lanes, body);
}

void VectorLoops::emitColumnSums(OpBuilder &b, const SumTables &tables,
                                 Value entry, Value columns,
                                 function_ref<Run(OpBuilder &, Value)> getRun,
                                 Value from, Value to) {
  Index index = at(b);
  Value one = index.constant(1);
  Value rowBytes = index.max(
      index.div(index.mul(bytes, columns), index.max(count, one)), one);
  Value visit = index.select(
      index.compare(arith::CmpIPredicate::ule, rowBytes,
                    index.constant(kNarrowBytes)),
      index.max(
          index.min(index.div(index.constant(kVisitBytes), rowBytes), rowChain),
          one),
      one);
  auto loadTables = [&](OpBuilder &nested, ArrayRef<Value> from,
                        const Piece &piece) {
    SmallVector<Value> entries;
    for (Value table : from)
      entries.push_back(load(nested, table, piece.position, piece));
    return entries;
  };
  auto storeTables = [&](OpBuilder &nested, ArrayRef<Value> entries,
                         ArrayRef<Value> to, const Piece &piece) {
    for (auto [table, value] : llvm::zip_equal(to, entries))
      store(nested, value, table, piece.position, piece, /*isStreaming=*/false);
  };
  // Tables are padded, and need no mask.
  auto inTables = [&](OpBuilder &nested, const Piece &piece) -> Piece {
    return {at(nested).add(entry, piece.position), piece.lanes, Value()};
  };

  emitFor(b, from, to, rowChain, [&](OpBuilder &chain, Value firstRow) {
    Value endOfChain = at(chain).min(at(chain).add(firstRow, rowChain), to);
    emitFor(
        chain, firstRow, endOfChain, visit, [&](OpBuilder &nested, Value row) {
          Value endOfVisit =
              at(nested).min(at(nested).add(row, visit), endOfChain);
          emitColumns(
              nested, columns, [&](OpBuilder &column, const Piece &piece) {
                Piece entries = inTables(column, piece);
                auto rows = createFor(
                    column, loc, row, endOfVisit, constant(column, 1),
                    loadTables(column, tables.chains, entries),
                    [&](OpBuilder &inRow, Location, Value iv, ValueRange sums) {
                      Run run = getRun(inRow, iv);
                      readCommon(inRow, group.reduction, run);
                      prefetch(inRow, group.reduction, run, piece);
                      scf::YieldOp::create(inRow, loc,
                                           addTerms(inRow, run, piece, sums));
                    });
                storeTables(column, SmallVector<Value>(rows.getResults()),
                            tables.chains, entries);
              });
        });
    // The chains join the sums and start again at 0.
    emitColumns(chain, columns, [&](OpBuilder &column, const Piece &piece) {
      Piece entries = inTables(column, piece);
      SmallVector<Value> sums =
          addCompensated(column, loc, loadTables(column, tables.sums, entries),
                         loadTables(column, tables.chains, entries));
      storeTables(column, sums, tables.sums, entries);
      SmallVector<Value> zeros;
      for (unsigned i : llvm::seq(numSums()))
        zeros.push_back(zero(column, i, piece.lanes));
      storeTables(column, zeros, tables.chains, entries);
    });
  });
}

//===----------------------------------------------------------------------===//
// tiles
//===----------------------------------------------------------------------===//

void VectorLoops::emitTiles(OpBuilder &b) {
  Index index = at(b);
  unsigned inner = group.numLoops - 1, feature = group.numLoops - 2;
  Value zeroIndex = index.constant(0), one = index.constant(1);
  Value rowSize = sizes[inner], channels = sizes[feature];
  Value rows = feature == 0 ? one : sizes[0];
  // Channels of a tile; those whose rows fill whole lines, if that many fit.
  Value perTile = index.max(
      index.div(index.constant(schedule.getColumns()), index.max(rowSize, one)),
      one);
  Value repeats = getRepeats(b, rowSize, getLineElements());
  perTile =
      index.select(index.compare(arith::CmpIPredicate::uge, perTile, repeats),
                   index.sub(perTile, index.rem(perTile, repeats)), perTile);
  perTile = index.max(index.min(perTile, channels), one);
  Value entries = index.mul(perTile, rowSize);

  emitShares(
      b, index.ceilDiv(channels, perTile),
      [&](OpBuilder &share, Value, Value fromTile, Value toTile) {
        SmallVector<linalg::GenericOp> reductions;
        if (group.reduction)
          reductions.push_back(group.reduction);
        TableTypes types;
        requestSumTables(types, entries);
        requestTables(types, reductions, entries);
        requestTables(types, group.elementwise, entries);
        SmallVector<Value> allTables = createTables(share, types);
        ArrayRef<Value> left = allTables;
        SumTables sumTables = takeSumTables(left);
        Tables reductionTables = takeTables(left, reductions);
        Tables tables = takeTables(left, group.elementwise);

        emitFor(share, fromTile, toTile, [&](OpBuilder &tile, Value number) {
          Index inside = at(tile);
          Value first = inside.mul(number, perTile);
          Value width = inside.min(perTile, inside.sub(channels, first));
          Value columns = inside.mul(width, rowSize);
          auto emitEachChannel = [&](IndexBody body) {
            emitFor(tile, zeroIndex, width, body);
          };
          // Every element of a channel's row gets its value.
          auto spread = [&](ArrayRef<linalg::GenericOp> generics,
                            const Tables &into) {
            for (Value operand : getChannelOperands(generics))
              emitEachChannel([&](OpBuilder &nested, Value channel) {
                Index at = this->at(nested);
                Value value = memref::LoadOp::create(
                    nested, loc, operand, ValueRange{at.add(first, channel)});
                Value start = at.mul(channel, rowSize);
                emitFor(
                    nested, zeroIndex, rowSize, constant(nested, lanes),
                    [&](OpBuilder &entry, Value element) {
                      Piece all = {element, lanes, Value()};
                      Value table = into.lookup(operand);
                      Value spreadValue = broadcastTo(entry, loc, value, lanes);
                      store(entry, spreadValue, getStored(entry, table),
                            this->at(entry).add(start, element), all, false);
                    });
              });
          };
          auto getRun = [&](OpBuilder &nested, Value row, const Tables &with) {
            Index at = this->at(nested);
            Run run;
            run.ivs.resize(group.numLoops);
            if (feature > 0)
              run.ivs[0] = row;
            run.base = at.mul(at.add(at.mul(row, channels), first), rowSize);
            run.tables = &with;
            run.tableOffset = at.constant(0);
            return run;
          };

          if (group.reduction) {
            spread(reductions, reductionTables);
            emitZeroTables(tile, sumTables, zeroIndex, columns);
            emitColumnSums(
                tile, sumTables, zeroIndex, columns,
                [&](OpBuilder &nested, Value row) {
                  Run run = getRun(nested, row, reductionTables);
                  run.ahead = at(nested).mul(channels, rowSize);
                  return run;
                },
                zeroIndex, rows);
            emitEachChannel([&](OpBuilder &nested, Value channel) {
              Value start = at(nested).mul(channel, rowSize);
              auto loop = createFor(
                  nested, loc, zeroIndex, rowSize, constant(nested, wide),
                  zeroSums(nested, wide),
                  [&](OpBuilder &entry, Location, Value element,
                      ValueRange sums) {
                    Value mask = createMask(
                        entry, at(entry).sub(rowSize, element), wide);
                    Piece piece = {at(entry).add(start, element), wide, mask};
                    SmallVector<Value> addends;
                    for (unsigned i : llvm::seq(numSums()))
                      addends.push_back(addPair(entry, sumTables, i, piece));
                    scf::YieldOp::create(
                        entry, loc, addCompensated(entry, loc, sums, addends));
                  });
              SmallVector<Value> totals;
              for (unsigned i : llvm::seq(numSums()))
                totals.push_back(addLanes(nested, loop.getResult(2 * i),
                                          loop.getResult(2 * i + 1)));
              storeSums(nested, at(nested).add(first, channel), totals);
            });
          }
          emitEachChannel([&](OpBuilder &nested, Value channel) {
            emitChannelwise(nested, at(nested).add(first, channel));
          });
          spread(group.elementwise, tables);
          for (linalg::GenericOp generic : group.elementwise)
            emitFor(tile, zeroIndex, rows, [&](OpBuilder &nested, Value row) {
              // The next tile's row comes next in memory.
              Run run = getRun(nested, row, tables);
              run.ahead = columns;
              emitElementwiseRun(nested, generic, run, zeroIndex, columns);
            });
        });
        deallocate(share, allTables.front());
      });
}

//===----------------------------------------------------------------------===//
// rows
//===----------------------------------------------------------------------===//

void VectorLoops::emitRows(OpBuilder &b) {
  Index index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  Value height = sizes[0], channels = sizes[1];
  // How many rows are taken as one: whole units of elements, about `wanted` of
  // them, or one if that makes the row too long for tables.
  auto getFold = [&](int64_t unit, int64_t wanted) {
    Value repeats = getRepeats(b, channels, unit);
    Value most = index.max(
        index.div(index.constant(wanted), index.max(channels, one)), one);
    Value fold = index.mul(index.ceilDiv(most, repeats), repeats);
    Value isTooLong =
        index.compare(arith::CmpIPredicate::ugt, index.mul(fold, channels),
                      index.constant(4 * schedule.getColumns()));
    return index.min(index.select(isTooLong, one, fold),
                     index.max(height, one));
  };

  // Each share has tables of its own, which its thread fills: the value of a
  // channel for each column, and on for a vector more, from `first` on. Once,
  // then what is there already is copied behind itself.
  auto spread = [&](OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                    const Tables &tables, Value first, Value columns) {
    Index index = at(b);
    for (Value operand : getChannelOperands(generics)) {
      Value table = tables.lookup(operand);
      if (isMemRefWithIdentity(operand)) {
        emitColumns(b, channels, [&](OpBuilder &nested, const Piece &piece) {
          Piece all = {piece.position, piece.lanes, Value()};
          store(nested, load(nested, operand, piece.position, piece),
                getStored(nested, table), at(nested).add(first, piece.position),
                all, false);
        });
        continue;
      }
      emitFor(b, zeroIndex, channels, [&](OpBuilder &nested, Value channel) {
        Value value = memref::LoadOp::create(nested, loc, operand, channel);
        memref::StoreOp::create(nested, loc, value, table,
                                at(nested).add(first, channel));
      });
    }
    Value end = index.add(columns, index.constant(wide + kLineBytes));
    scf::WhileOp::create(
        b, loc, b.getIndexType(), index.max(channels, one),
        [&](OpBuilder &before, Location, ValueRange filled) {
          scf::ConditionOp::create(
              before, loc,
              at(before).compare(arith::CmpIPredicate::ult, filled[0], end),
              filled);
        },
        [&](OpBuilder &after, Location, ValueRange filled) {
          Value width = at(after).min(filled[0], at(after).sub(end, filled[0]));
          emitFor(after, zeroIndex, width, constant(after, lanes),
                  [&](OpBuilder &nested, Value entry) {
                    Piece all = {at(nested).add(first, entry), lanes, Value()};
                    for (Value operand : getChannelOperands(generics)) {
                      Value table = getStored(nested, tables.lookup(operand));
                      store(nested, load(nested, table, all.position, all),
                            table, at(nested).add(filled[0], all.position), all,
                            false);
                    }
                  });
          scf::YieldOp::create(after, loc,
                               at(after).mul(filled[0], constant(after, 2)));
        });
  };

  // Columns of the element-wise part: long rows, so that little is done for
  // each.
  Value longColumns = index.mul(
      getFold(std::max(getLineElements(), wide), schedule.getColumns() / 2),
      channels);
  SmallVector<Value> allTables;
  ArrayRef<Value> left;
  auto getTableStride = [&](Value columns) {
    return index.mul(
        index.ceilDiv(index.add(columns, index.constant(2 * wide + kLineBytes)),
                      index.constant(kLineBytes)),
        index.constant(kLineBytes));
  };
  auto getTableEntries = [&](Value columns) {
    return index.mul(getShares(b), getTableStride(columns));
  };
  auto create = [&](TableTypes types) {
    requestTables(types, group.elementwise, getTableEntries(longColumns));
    if (types.empty())
      return;
    allTables = createTables(b, types);
    left = allTables;
  };

  if (group.reduction) {
    // Short rows, so that those of a visit are one stream of memory; of whole
    // vectors, if that does not make them long.
    Value whole = getFold(wide, wide);
    Value fold = index.select(index.compare(arith::CmpIPredicate::ule,
                                            index.mul(whole, channels),
                                            index.constant(4 * wide)),
                              whole, getFold(lanes, wide));
    Value columns = index.mul(fold, channels);
    Value rows = index.div(height, fold);
    Value restColumns = index.sub(count, index.mul(rows, columns));
    Value blocks = one;
    for (auto [least, most] : kBlocks)
      blocks = index.select(
          index.compare(arith::CmpIPredicate::uge, bytes,
                        index.constant(least)),
          index.constant(std::min(most, schedule.getBlocks())), blocks);
    Value stride = index.add(columns, index.constant(wide));
    TableTypes types;
    requestTables(types, group.reduction, getTableEntries(columns));
    requestSumTables(types, index.mul(blocks, stride));
    create(types);
    Tables tables = takeTables(left, group.reduction);
    SumTables sumTables = takeSumTables(left);
    Value chains = index.div(rows, rowChain);
    emitShares(
        b, blocks, [&](OpBuilder &share, Value number, Value from, Value to) {
          Value first = at(share).mul(number, getTableStride(columns));
          spread(share, group.reduction, tables, first, columns);
          auto getRun = [&](OpBuilder &nested, Value row) {
            Run run;
            run.ivs.resize(group.numLoops);
            run.base = at(nested).mul(row, columns);
            run.tables = &tables;
            run.tableOffset = first;
            return run;
          };
          emitFor(share, from, to, [&](OpBuilder &nested, Value block) {
            Index inside = at(nested);
            Value entry = inside.mul(block, stride);
            Value next = inside.add(block, inside.constant(1));
            Value isLast =
                inside.compare(arith::CmpIPredicate::eq, next, blocks);
            auto startOf = [&](Value number) {
              return inside.mul(inside.div(inside.mul(number, chains), blocks),
                                rowChain);
            };
            Value end = inside.select(isLast, rows, startOf(next));
            emitZeroTables(nested, sumTables, entry, columns);
            emitColumnSums(nested, sumTables, entry, columns, getRun,
                           startOf(block), end);
            // What is left is less than a row.
            if (!matchPattern(restColumns, m_Zero()))
              emitColumnSums(
                  nested, sumTables, entry, restColumns, getRun, rows,
                  inside.select(isLast, inside.add(rows, one), rows));
          });
        });
    // The sums of a channel: over the blocks, and the rows taken as one.
    emitShares(
        b, index.ceilDiv(channels, index.constant(lanes)),
        [&](OpBuilder &share, Value, Value from, Value to) {
          emitFor(share, from, to, [&](OpBuilder &nested, Value piece) {
            Index inside = at(nested);
            Value first = inside.mul(piece, inside.constant(lanes));
            auto overBlocks = createFor(
                nested, loc, zeroIndex, blocks, constant(nested, 1),
                zeroSums(nested, lanes),
                [&](OpBuilder &inBlock, Location, Value block,
                    ValueRange carried) {
                  Value start =
                      at(inBlock).add(at(inBlock).mul(block, stride), first);
                  auto overRows = createFor(
                      inBlock, loc, zeroIndex, fold, constant(inBlock, 1),
                      carried,
                      [&](OpBuilder &inRow, Location, Value row,
                          ValueRange sums) {
                        Value position =
                            at(inRow).add(start, at(inRow).mul(row, channels));
                        Piece all = {position, lanes, Value()};
                        SmallVector<Value> addends;
                        for (unsigned i : llvm::seq(numSums()))
                          addends.push_back(addPair(inRow, sumTables, i, all));
                        scf::YieldOp::create(
                            inRow, loc,
                            addCompensated(inRow, loc, sums, addends));
                      });
                  scf::YieldOp::create(inBlock, loc, overRows.getResults());
                });
            SmallVector<Value> totals;
            for (unsigned i : llvm::seq(numSums()))
              totals.push_back(arith::AddFOp::create(
                  nested, loc, overBlocks.getResult(2 * i),
                  overBlocks.getResult(2 * i + 1)));
            Value width =
                inside.min(inside.constant(lanes), inside.sub(channels, first));
            if (hasChannelVectors()) {
              Piece all = {first, lanes, createMask(nested, width, lanes)};
              storeSums(nested, all, totals);
              emitChannelwise(nested, all);
              return;
            }
            emitFor(nested, zeroIndex, width, [&](OpBuilder &lane, Value iv) {
              SmallVector<Value> scalars;
              for (Value total : totals)
                scalars.push_back(vector::ExtractOp::create(
                    lane, loc, total, ArrayRef<OpFoldResult>{iv}));
              Value channel = at(lane).add(first, iv);
              storeSums(lane, channel, scalars);
              emitChannelwise(lane, channel);
            });
          });
        },
        index.compare(arith::CmpIPredicate::ule, channels,
                      index.constant(kSerialChannels)));
  } else {
    create({});
    if (hasChannelVectors())
      emitColumns(b, channels, [&](OpBuilder &nested, const Piece &piece) {
        emitChannelwise(nested, piece);
      });
    else
      emitFor(b, zeroIndex, channels, [&](OpBuilder &nested, Value channel) {
        emitChannelwise(nested, channel);
      });
  }
  if (group.elementwise.empty())
    return deallocate(b, allTables.front());

  Value columns = longColumns;
  Tables tables = takeTables(left, group.elementwise);
  // Where results are streamed and rows fill whole lines, rows are counted from
  // the first line of the result on; the elements before come first.
  Value result = getFlat(b, group.elementwise[0].getDpsInitOperand(0)->get());
  int64_t width =
      llvm::divideCeil(getElementTypeOrSelf(result).getIntOrFloatBitWidth(), 8);
  Value line = index.constant(kLineBytes);
  Value shift = zeroIndex;
  if (!matchPattern(isStreamed(b), m_Zero())) {
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, result);
    Value past = index.rem(address, line);
    Value toLine = index.div(index.rem(index.sub(line, past), line),
                             index.constant(width));
    Value fillsLines = index.compare(
        arith::CmpIPredicate::eq,
        index.rem(index.mul(columns, index.constant(width)), line), zeroIndex);
    shift = index.min(index.select(fillsLines, toLine, zeroIndex), count);
  }
  Value shiftedRows =
      index.ceilDiv(index.sub(count, shift), index.max(columns, one));
  Value rowBytes = index.div(index.mul(bytes, columns), index.max(count, one));
  Value step = index.max(
      index.div(index.constant(kStepBytes), index.max(rowBytes, one)), one);
  for (linalg::GenericOp generic : group.elementwise)
    emitShares(
        b, shiftedRows,
        [&](OpBuilder &share, Value number, Value from, Value to) {
          Value first = at(share).mul(number, getTableStride(columns));
          if (generic == group.elementwise.front())
            spread(share, group.elementwise, tables, first, columns);
          auto getRun = [&](OpBuilder &nested, Value row) {
            Run run;
            run.ivs.resize(group.numLoops);
            run.base = at(nested).add(shift, at(nested).mul(row, columns));
            run.tables = &tables;
            run.tableOffset = at(nested).add(first, shift);
            return run;
          };
          if (!matchPattern(shift, m_Zero())) {
            Run run = getRun(share, zeroIndex);
            run.base = zeroIndex;
            run.tableOffset = first;
            readCommon(share, generic, run);
            Value isFirst =
                at(share).compare(arith::CmpIPredicate::eq, number, zeroIndex);
            emitMasked(
                share, zeroIndex, at(share).select(isFirst, shift, zeroIndex),
                lanes, [&](OpBuilder &nested, const Piece &piece) {
                  IRMapping mapping = clonePiece(nested, generic, run, piece);
                  storePiece(nested, generic, run, piece, mapping, false);
                });
          }
          // Steps backwards: what was read last is still in a cache.
          Value steps = at(share).ceilDiv(at(share).sub(to, from), step);
          emitFor(share, zeroIndex, steps, [&](OpBuilder &nested, Value iv) {
            Index inside = at(nested);
            Value endRow = inside.sub(to, inside.mul(iv, step));
            Value firstRow = inside.max(inside.sub(endRow, step), from);
            emitFor(nested, firstRow, endRow, [&](OpBuilder &inRow, Value row) {
              Run run = getRun(inRow, row);
              Value end =
                  at(inRow).min(columns, at(inRow).sub(count, run.base));
              emitElementwiseRun(inRow, generic, run, zeroIndex, end);
            });
          });
        });
  if (!allTables.empty())
    deallocate(b, allTables.front());
}

//===----------------------------------------------------------------------===//
// The choice among them
//===----------------------------------------------------------------------===//

/// True if the loops of `group` are those of `kind`.
static bool fits(const ScheduledGroup &group, ScheduleKind kind) {
  unsigned numLoops = group.numLoops;
  bool endsInChannels = group.isFeature(numLoops - 1);
  // Operands that can be spread out, and no other that differs in a run.
  auto takesTables = [&](unsigned firstRunLoop) {
    return llvm::all_of(
        group.getDataGenerics(), [&](linalg::GenericOp generic) {
          if (generic.hasIndexSemantics())
            return false;
          return llvm::all_of(
              generic.getIndexingMapsArray(), [&](AffineMap map) {
                bool isChannel = map.getNumResults() == 1 &&
                                 map.isFunctionOfDim(group.features.front());
                return isDataMap(map) || isChannel ||
                       llvm::none_of(llvm::seq(firstRunLoop, numLoops),
                                     [&](unsigned loop) {
                                       return map.isFunctionOfDim(loop);
                                     });
              });
        });
  };
  switch (kind) {
  case ScheduleKind::Channels:
  case ScheduleKind::Split:
  case ScheduleKind::Sizes:
    return !endsInChannels;
  case ScheduleKind::Tiles:
    return !endsInChannels && numLoops <= 3 && group.features.size() == 1 &&
           group.isFeature(numLoops - 2) && takesTables(numLoops - 2);
  case ScheduleKind::Rows:
    return endsInChannels && numLoops == 2 && takesTables(0);
  case ScheduleKind::Loops:
    return true;
  }
  llvm_unreachable("unknown kind");
}

/// Where there is work for several threads, few channels are split and short
/// rows are tiled; all else is read by channel.
void VectorLoops::emitBySizes(OpBuilder &b) {
  Index index = at(b);
  SmallVector<Value> featureSizes;
  for (unsigned loop : group.features)
    featureSizes.push_back(sizes[loop]);
  auto both = [&](Value l, Value r) {
    return b.createOrFold<arith::AndIOp>(loc, l, r);
  };
  Value isLarge = index.compare(arith::CmpIPredicate::uge, count,
                                index.constant(limits::kSerialElements));
  Value hasFew =
      both(isLarge,
           index.compare(arith::CmpIPredicate::ult, index.product(featureSizes),
                         index.constant(limits::kFewChannels)));
  Value shortRow = index.select(
      index.compare(arith::CmpIPredicate::ult, count,
                    index.constant(limits::kFarElements)),
      index.constant(limits::kShortRowNear), index.constant(limits::kShortRow));
  Value isShort = fits(group, ScheduleKind::Tiles)
                      ? both(isLarge, index.compare(arith::CmpIPredicate::ult,
                                                    sizes.back(), shortRow))
                      : arith::ConstantIntOp::create(b, loc, 0, 1).getResult();
  emitIf(
      b, hasFew, [&](OpBuilder &nested) { emitSplit(nested); },
      [&](OpBuilder &many) {
        emitIf(
            many, isShort, [&](OpBuilder &nested) { emitTiles(nested); },
            [&](OpBuilder &nested) { emitChannels(nested); });
      });
}

/// Why `group` has no loops with vectors; empty: it has.
static std::string findObstacle(const ScheduledGroup &group) {
  if (group.reduction && !getReductionValues(group.reduction))
    return "expected every result of the reduction to be a sum with "
           "fastmath<reassoc>, indexed by the parallel loops";
  for (linalg::GenericOp generic : group.getMembers())
    if (!generic.hasPureBufferSemantics())
      return "expected memrefs";
  unsigned inner = group.numLoops - 1;
  for (linalg::GenericOp generic : group.getDataGenerics()) {
    if (!isVectorizable(generic))
      return "expected element-wise arithmetic in the body";
    for (OpOperand &operand : generic->getOpOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      if (!map.isProjectedPermutation())
        return "expected operands that are indexed by loops alone";
      if (!isa<MemRefType>(operand.get().getType()))
        continue;
      if (!isVectorElement(getElementTypeOrSelf(operand.get())))
        return "expected elements of 1, 8, 16, 32 or 64 bits";
      if (isDataMap(map) &&
          (!map.isIdentity() || !isMemRefWithIdentity(operand.get())))
        return "expected dense data in the order of the loops";
      // Read by vectors along the last loop.
      if (!group.isFeature(inner) && map.isFunctionOfDim(inner) &&
          (cast<AffineDimExpr>(map.getResults().back()).getPosition() !=
               inner ||
           !isMemRefWithIdentity(operand.get())))
        return "expected the last loop to index the last dim";
    }
  }
  // Loops replace the members where the last one stands. What is filled in
  // between must not be used before.
  SmallVector<linalg::GenericOp> members = group.getMembers();
  auto fillsForLater = [&](Operation *op) {
    auto fill = dyn_cast<linalg::FillOp>(op);
    return fill && llvm::none_of(members, [&](linalg::GenericOp member) {
             return member->isBeforeInBlock(fill) &&
                    llvm::is_contained(member->getOperands(),
                                       fill.getDpsInits()[0]);
           });
  };
  for (Operation *op = members.front(); op != members.back();
       op = op->getNextNode())
    if (!llvm::is_contained(members, dyn_cast<linalg::GenericOp>(op)) &&
        !isa<memref::AllocOp>(op) && !isMemoryEffectFree(op) &&
        !fillsForLater(op))
      return ("expected no '" + op->getName().getStringRef() +
              "' between the members")
          .str();
  return "";
}

LogicalResult mlir::bngrad::emitVectorLoops(RewriterBase &rewriter,
                                            const ScheduledGroup &group,
                                            ScheduleAttr schedule,
                                            std::string &reason) {
  reason = findObstacle(group);
  if (!reason.empty())
    return failure();
  // The layout may be another than the one the schedule was chosen for.
  ScheduleKind kind = schedule.getKind();
  if (!fits(group, kind))
    kind = fits(group, ScheduleKind::Rows) ? ScheduleKind::Rows
                                           : ScheduleKind::Sizes;
  if (!fits(group, kind)) {
    reason = "expected loops [N, C, S], [C, S] or [N, C] over dense data";
    return failure();
  }
  SmallVector<linalg::GenericOp> members = group.getMembers();
  rewriter.setInsertionPoint(members.back());
  VectorLoops loops(rewriter, group, schedule);
  switch (kind) {
  case ScheduleKind::Channels:
    loops.emitChannels(rewriter);
    break;
  case ScheduleKind::Tiles:
    loops.emitTiles(rewriter);
    break;
  case ScheduleKind::Rows:
    loops.emitRows(rewriter);
    break;
  case ScheduleKind::Split:
    loops.emitSplit(rewriter);
    break;
  case ScheduleKind::Sizes:
    loops.emitBySizes(rewriter);
    break;
  case ScheduleKind::Loops:
    llvm_unreachable("scalar loops");
  }
  for (linalg::GenericOp member : members)
    rewriter.eraseOp(member);
  return success();
}
