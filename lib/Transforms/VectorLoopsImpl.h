//===- VectorLoopsImpl.h - what vector schedules share ----------*- C++ -*-===//
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

#ifndef BNGRAD_LIB_TRANSFORMS_VECTORLOOPSIMPL_H
#define BNGRAD_LIB_TRANSFORMS_VECTORLOOPSIMPL_H

#include "Arithmetic.h"
#include "ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::bngrad {

/// A cache line; streaming stores start at one.
inline constexpr int64_t kLineBytes = 64;

/// By per-channel memref, in the order in which they were made.
using Tables = llvm::MapVector<Value, Value>;
/// Entries and element types of tables.
using TableTypes = SmallVector<std::pair<Value, Type>>;

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
  /// Cuts [0, count) into shares for the threads. Where `isLittle` the first
  /// has all of it, so that what is before and behind can stay in one region.
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
  /// Reads what the elements of `run` have in common, but for what it has.
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
  using PieceBody = function_ref<void(OpBuilder &, const Piece &)>;
  /// Pieces of at most `lanes` elements, masked, for [from, to).
  void emitMasked(OpBuilder &b, Value from, Value to, PieceBody body) const;
  /// Pieces for [from, to): of `most` elements, a multiple of `wide`, of half
  /// of that, and so on down to `wide`; of `lanes`; one masked.
  void emitPieces(OpBuilder &b, Value from, Value to, int64_t most,
                  PieceBody body) const;
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
  /// `sums`, of `wide` lanes, and the terms of the `rest` elements from
  /// `position` on, fewer than that, lane by lane.
  SmallVector<Value> addRest(OpBuilder &b, const Run &run, Value position,
                             Value rest, ValueRange sums);
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
  /// on, one for each of `columns` columns. `rowsAreAlike`: behind each row is
  /// another of the same channels.
  void emitColumnSums(OpBuilder &b, const SumTables &tables, Value entry,
                      Value columns,
                      function_ref<Run(OpBuilder &, Value)> getRun, Value from,
                      Value to, bool rowsAreAlike);
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

inline bool isMemRefWithIdentity(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && type.getLayout().isIdentity();
}

/// True if vectors of `type` can be loaded and stored.
inline bool isVectorElement(Type type) {
  return type.isIntOrFloat() &&
         (type.isInteger(1) ||
          (type.getIntOrFloatBitWidth() >= 8 &&
           llvm::isPowerOf2_64(type.getIntOrFloatBitWidth())));
}

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_VECTORLOOPSIMPL_H
