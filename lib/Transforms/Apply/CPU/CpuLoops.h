//===- CpuLoops.h - base of the schedules with vectors ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Data are accessed through flat views. The position of an element is its
// number in the order of the loops. Rows of the data, their last dim, are
// contiguous. If all data are dense, positions are positions in memory. A *run*
// is a stretch of consecutive elements, a *piece* a vector of a run, a *share*
// the iterations of one thread. Per-channel operands of a run are either
// uniform (`channels`, `split`: the run lies in one channel) or loaded from a
// *table* with an entry per element (`tiles`, `rows`).
//
// All sizes are index values that fold if they are static, so the same code
// emits loops for static and for dynamic shapes.
//
// Sums: a *chain* is a few terms that are added one by one, in each lane of a
// vector. TwoSum adds chains up, and its error is added to the next chain; the
// lanes are added at the end (docs/numerics.md, section 4).
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPULOOPS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPULOOPS_H

#include "Apply/GroupEmitter.h"
#include "CpuMoments.h"
#include "Schedule/Moments.h"

#include "BNGrad/Dialect/Alignment.h"
#include "BNGrad/Dialect/Schedule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::bngrad {

/// Bytes of the smallest memory page of any target.
inline constexpr int64_t kPageBytes = 4096;

/// The half-open interval [from, to).
struct Interval {
  Value from, to;
};

/// The iterations of a parallel loop that one thread executes.
struct Share {
  Value number; // of the thread
  Value count;  // of shares in the loop
  Interval iterations;
};

/// The table of each per-channel memref, in order of creation.
using ChannelTables = llvm::MapVector<Value, Value>;

/// The operands of a generic that are scalars in some loops.
using Scalars = DenseMap<OpOperand *, Value>;

/// Consecutive elements of the data.
struct Run {
  Value base; // position of its first element in the data
  /// By loop; null if it differs within the run. If data have strides, a run is
  /// part of a row, and only the last one differs.
  SmallVector<Value> ivs;
  const ChannelTables *tables = nullptr; // null if none
  Value tableOffset;                     // entry of the first element
  /// `tables` in the order of pairs, for pieces of `wide` elements from the
  /// first one on; null if the run does not read them.
  const ChannelTables *pairs = nullptr;
  Scalars uniform; // operands with one value in the run
  /// Whether the entries in `tables` or `uniform` are in the order of pairs.
  bool hasOrderedEntries = false;
  /// Elements between a piece and the data that are fetched while it is
  /// computed; null or 0 to leave prefetching to the hardware.
  Value prefetchDistance;
  /// Position of the results that are stored after this run. Their pages are
  /// prefetched; null if they are not.
  Value next;
};

/// A vector of consecutive elements.
struct Piece {
  Value position; // of its first element in a run or table
  int64_t lanes;
  Value mask = {}; // null for all lanes
};

/// Runs whose terms are added up.
struct RunsToSum {
  Value count;
  function_ref<Run(OpBuilder &, Value)> getRun; // by number
  Interval elements;                            // of each run
};

/// Arrays of any number of elements, in one allocation.
struct TableMemory {
  Value memory; // null if there are no tables
  SmallVector<Value> tables;
};
/// Entries and element type of a table.
struct TableType {
  Value entries;
  Type element;
};

/// An scf.for that LLVM does not unroll, as unrolling gains nothing for bodies
/// of this length.
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

/// Emits loops, memory accesses, elements and sums for one group, whose data
/// are dense or have contiguous rows. Each schedule is a subclass in a file of
/// its name.
///
/// Shapes: `sizes` in elements, by loop over the data, static or dynamic.
/// Units:  positions and prefetch distances in elements, `bytes` in bytes,
///         `lanes` and `wide` in lanes of the widest type computed with.
class CpuLoops : public GroupEmitter {
public:
  /// Emits sizes and flat views at the insertion point of `b`, which must
  /// dominate all that is emitted later.
  CpuLoops(OpBuilder &b, const ScheduledGroup &group,
           const CpuSchedule &schedule);

protected:
  using IndexBody = function_ref<void(OpBuilder &, Value)>;
  using IntervalBody = function_ref<void(OpBuilder &, Interval)>;
  using IvsBody = function_ref<void(OpBuilder &, ArrayRef<Value>)>;
  using ShareBody = function_ref<void(OpBuilder &, const Share &)>;
  using PieceBody = function_ref<void(OpBuilder &, const Piece &)>;
  using SumsBody =
      function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)>;
  using AccumulatorsBody =
      function_ref<Accumulators(OpBuilder &, Value, ArrayRef<Accumulator>)>;

  /// Emits the stages in their order: by `emitMoments` the two that are
  /// computed in one pass, and each other one by `emitStage` as the current
  /// stage.
  void emitStages(function_ref<void()> emitMoments,
                  function_ref<void()> emitStage);

  // Loops (CpuLoops.cpp).
  void emitFor(OpBuilder &b, Interval range, Value step, IndexBody body) const;
  void emitFor(OpBuilder &b, Interval range, IndexBody body) const {
    emitFor(b, range, constant(b, 1), body);
  }
  /// Intervals of `step` iterations, the last one first, as the data read last
  /// are still in a cache. The first interval may be shorter.
  void emitStepsBack(OpBuilder &b, Interval range, Value step,
                     IntervalBody body) const;
  /// The number of iterations, of `elements` each, before stepping back.
  Value getStep(OpBuilder &b, Value elements) const;
  /// A loop that carries `sums`.
  SmallVector<Value> emitSumLoop(OpBuilder &b, Interval range, Value step,
                                 ValueRange sums, SumsBody body) const;
  SmallVector<Value> emitSumLoop(OpBuilder &b, Interval range, ValueRange sums,
                                 SumsBody body) const {
    return emitSumLoop(b, range, constant(b, 1), sums, body);
  }
  /// The same with sums and their errors.
  Accumulators emitAccumulatorLoop(OpBuilder &b, Interval range, Value step,
                                   ArrayRef<Accumulator> sums,
                                   AccumulatorsBody body) const;
  Accumulators emitAccumulatorLoop(OpBuilder &b, Interval range,
                                   ArrayRef<Accumulator> sums,
                                   AccumulatorsBody body) const {
    return emitAccumulatorLoop(b, range, constant(b, 1), sums, body);
  }
  /// Emits the `loops` over the data, outermost first, and sets their `ivs`.
  void emitLoops(OpBuilder &b, ArrayRef<unsigned> loops, SmallVector<Value> ivs,
                 IvsBody body) const;
  /// The number of shares: 1 if the problem is small.
  Value getShares(OpBuilder &b) const;
  /// A parallel loop over `iterations`. If `isSerial` holds, the first thread
  /// executes all of them, so that the loop can share a region with its
  /// neighbours.
  void emitShares(OpBuilder &b, Value iterations, ShareBody body,
                  Value isSerial = {}) const;

  // Memory (CpuMemory.cpp).
  /// The one-dimensional view of `memref`, a data operand.
  Value getFlat(Value memref) const { return flats.at(memref); }
  /// The index in the view of `memref` of the element at `position` of `run`.
  Value getIndex(OpBuilder &b, Value memref, const Run &run,
                 Value position) const;
  /// The view of the first result of an element-wise generic.
  Value getFlatResult(linalg::GenericOp generic) const {
    return getFlat(generic.getDpsInitOperand(0)->get());
  }
  Value load(OpBuilder &b, Value memref, ValueRange indices,
             const Piece &piece) const;
  void store(OpBuilder &b, Value value, Value memref, ValueRange indices,
             const Piece &piece) const;
  /// Stores past the caches; `piece` has no mask and starts at a line or at a
  /// multiple of its own length.
  void storeStreaming(OpBuilder &b, Value value, Value memref,
                      ValueRange indices, const Piece &piece) const;
  TableMemory createTables(OpBuilder &b, ArrayRef<TableType> types) const;
  void deallocate(OpBuilder &b, const TableMemory &tables) const;
  /// An i1: whether the results of `generic` are stored past the caches.
  Value isStoredPast(OpBuilder &b, linalg::GenericOp generic) const;
  /// An i1: whether the rows of the strided result of `generic` are whole cache
  /// lines.
  Value hasWholeLines(OpBuilder &b, linalg::GenericOp generic) const;
  /// The number of elements of `width` bytes from byte `address` to the next
  /// line.
  Value getElementsToLine(OpBuilder &b, Value address, int64_t width) const;

  // Elements (CpuElements.cpp).
  SmallVector<Value> getIndices(linalg::GenericOp generic, OpOperand &operand,
                                ArrayRef<Value> ivs) const;
  /// Adds the uniform operands of `generic` to those of `run`.
  void loadUniform(OpBuilder &b, linalg::GenericOp generic, Run &run) const;
  /// A piece of `operand` in the accumulator type.
  Value readOperand(OpBuilder &b, linalg::GenericOp generic, OpOperand &operand,
                    const Run &run, const Piece &piece) const;
  /// Clones the body of `generic` for a piece. `sums` are the values of a
  /// reduction's accumulators; if empty, additions to them are left out.
  IRMapping clonePiece(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                       const Piece &piece, ValueRange sums = {}) const;
  /// Stores the results of a clone that have one element per iteration.
  void storePiece(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                  const Piece &piece, const IRMapping &mapping,
                  bool isStreaming) const;
  /// A mask of the first `count` of `maskLanes` lanes.
  Value createMask(OpBuilder &b, Value count, int64_t maskLanes) const;
  /// The positions of the elements of a piece, as a vector.
  Value createSteps(OpBuilder &b, const Piece &piece) const;
  /// Elements of a page of the widest data that `generic` reads.
  int64_t getPageElements(linalg::GenericOp generic) const;
  /// Prefetches data at the prefetch distance of `run` from a piece.
  void prefetch(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                const Piece &piece) const;
  /// Reads a line of the page that contains `position` of `flat`, or of each
  /// page of the `length` elements from there, so that they are in the TLB.
  void prefetchPages(OpBuilder &b, Value flat, Value position,
                     Value length = {}) const;
  /// Masked pieces of `lanes` elements.
  void emitMasked(OpBuilder &b, Interval elements, PieceBody body) const;
  /// Emits pieces of `most` elements, a multiple of `wide`, then of half as
  /// many, and so on down to `wide`; then of `lanes`; then one masked piece.
  void emitPieces(OpBuilder &b, Interval elements, int64_t most,
                  PieceBody body) const;
  /// Whether a dynamic mask would become a branch for each element of the data
  /// of `generic`; of i1 only if `isForBooleans`.
  bool branchesOnMasks(linalg::GenericOp generic, bool isForBooleans) const;
  /// Whether `generic` has a result with an element per iteration.
  bool hasDataResults(linalg::GenericOp generic) const;
  /// Emits the element-wise `generic` for `elements` of `run`, streamed or not.
  void emitElements(OpBuilder &b, linalg::GenericOp generic, Run run,
                    Interval elements) const;

  // Pairs of bf16 (CpuPairs.cpp). In the *order of pairs*, the lower lanes of a
  // piece hold its elements with even numbers, and the upper lanes the others.
  /// Whether the body of `generic` allows the order of pairs for `piece`.
  bool allowsPairs(linalg::GenericOp generic, const Piece &piece) const;
  /// Whether `generic` computes `piece` of `run` in the order of pairs.
  bool takesPairs(linalg::GenericOp generic, const Run &run,
                  const Piece &piece) const;
  /// `run`, with tables in the order of pairs if `generic` computes `piece` in
  /// that order.
  Run withPairs(linalg::GenericOp generic, Run run, const Piece &piece) const;
  /// Converts a vector from the order of memory to the order of pairs.
  Value toPairs(OpBuilder &b, Value value) const;
  /// Converts a vector from the order of pairs to the order of memory.
  Value fromPairs(OpBuilder &b, Value value) const;
  /// `count` elements of `memref` in the order of pairs, as f32.
  Value loadPairs(OpBuilder &b, Value memref, Value position,
                  int64_t count) const;
  /// Result `i` of `generic` in the order of memory, rounded.
  Value roundToPairs(OpBuilder &b, linalg::GenericOp generic, unsigned i,
                     const IRMapping &mapping, int64_t count) const;

  // Sums and per-channel generics (CpuSums.cpp).
  /// A zero for each sum.
  SmallVector<Value> zeroTerms(OpBuilder &b, int64_t termLanes) const;
  /// The sums of `runs` in each of `wide` lanes.
  Accumulators emitRunSums(OpBuilder &b, const RunsToSum &runs) const;
  /// Adds the terms of a piece to `sums`, lane by lane.
  SmallVector<Value> addTerms(OpBuilder &b, const Run &run, const Piece &piece,
                              ValueRange sums) const;
  /// The sum of all lanes, of each of `sums`.
  SmallVector<Value> addLanes(OpBuilder &b, ArrayRef<Accumulator> sums) const;
  /// Adds `totals` to the outputs of the reduction for a channel.
  void storeSums(OpBuilder &b, ArrayRef<Value> features,
                 ValueRange totals) const;
  /// True if the channels are one loop with all per-channel values contiguous.
  bool hasChannelVectors() const;
  /// Like storeSums and emitChannelwise, for a piece of the channels.
  void storeSums(OpBuilder &b, const Piece &piece, ValueRange totals) const;
  using GroupEmitter::emitChannelwise;
  void emitChannelwise(OpBuilder &b, const Piece &piece) const;

  // Mean and squares in one pass (CpuMoments.cpp). They need `moments`.
  MomentsBuilder momentsAt(OpBuilder &b) const { return {{b, loc}}; }
  using MomentsBody =
      function_ref<CountedMoments(OpBuilder &, Value, const CountedMoments &)>;
  /// A loop that carries moments, starting from `first`.
  CountedMoments emitMomentLoop(OpBuilder &b, Interval range, Value step,
                                const CountedMoments &first,
                                MomentsBody body) const;
  /// Adds the uniform operands of both reductions to those of `run`, except for
  /// the center. Returns the value about which the first one sums.
  Value loadMomentOperands(OpBuilder &b, Run &run) const;
  /// The moments of `runs`; `first` is the first element of the channel.
  Moments emitRunMoments(OpBuilder &b, const RunsToSum &runs, Value first);
  BlockSums emitBlockSums(OpBuilder &b, const RunsToSum &block, Value first);
  /// Stores the sums of both stages for a channel, and computes its per-channel
  /// values.
  void finishMoments(OpBuilder &b, ArrayRef<Value> features,
                     const Moments &channel);
  /// The same for a piece of the channels, which needs `haveMomentsVectors`.
  void finishMoments(OpBuilder &b, const Piece &piece, const Moments &all);
  /// Whether `hasChannelVectors` holds in both stages of the moments.
  bool haveMomentsVectors();

  /// Whether the schedule is for AArch64's NEON: except for a few old x86-64
  /// CPUs, no other CPU has a fused multiply-add with 128-bit vectors.
  bool isForNeon() const { return schedule.vectorBits == 128 && schedule.fma; }

  Value count;      // elements of the data
  Value bytes;      // of all data operands
  Value isStreamed; // an i1: whether the caches are too small for these bytes
  Value chainRows;  // rows of a chain in a column
  CpuSchedule schedule;
  /// The two stages that are computed in one pass, if the group has them.
  std::optional<MomentStages> moments;
  int64_t lanes = 0; // of a register
  int64_t wide = 0;  // of four registers, the unit of unrolling
  /// Whether data are not dense but have contiguous rows.
  bool hasRowStrides = false;

private:
  using LoadOperand = function_ref<Value(OpOperand &)>;
  /// finishMoments for one channel or a piece of them, whose operands `load`
  /// reads.
  template <typename Channels>
  void finishMomentsOf(OpBuilder &b, const Channels &channels,
                       const Moments &all, LoadOperand load);

  /// How the elements of a run are divided into chains.
  struct ChainPlan {
    Interval elements; // without the rest: whole vectors of `wide`
    Value rest;        // elements that follow, fewer than `wide`
    Value chain;       // elements of a run in one chain
    Value runsOfChain; // short runs share chains
    SmallVector<Value> zeros;
  };

  void setLanes();
  void emitSizes(OpBuilder &b);
  /// Only a group of neither small nor large data needs the number of threads.
  void emitIsStreamed(OpBuilder &b);
  void emitChainRows(OpBuilder &b);
  void emitFlats(OpBuilder &b);
  void emitElementPieces(OpBuilder &b, linalg::GenericOp generic,
                         const Run &run, Interval elements,
                         bool isStreaming) const;
  /// Computes pieces of `elements` by `body`. If a mask would branch, a vector
  /// that overlaps them computes the rest.
  void emitOverlapping(OpBuilder &b, linalg::GenericOp generic, const Run &run,
                       Interval elements, PieceBody body) const;
  ChainPlan planChains(OpBuilder &b, Interval elements) const;
  /// Adds a chain of `run` to `sums`: the elements of `chain`, and to the first
  /// chain also the rest.
  SmallVector<Value> addChain(OpBuilder &b, const Run &run,
                              const ChainPlan &plan, Interval chain,
                              ValueRange sums) const;
  /// Adds to `sums` the chains that the runs of `numbers` share.
  Accumulators addChains(OpBuilder &b, const RunsToSum &runs,
                         const ChainPlan &plan, Interval numbers,
                         ArrayRef<Accumulator> sums) const;
  /// Adds the terms of the rest of `run` to `sums`, of `wide` lanes.
  SmallVector<Value> addRest(OpBuilder &b, const Run &run,
                             const ChainPlan &plan, ValueRange sums) const;
  /// Adds one register of terms to the lanes of `sums` from `first` on. If it
  /// `overlaps`, the last register ends where the run ends, and its lanes that
  /// were added before are not added again; otherwise a mask limits it.
  SmallVector<Value> addRestPiece(OpBuilder &b, const Run &run,
                                  const ChainPlan &plan, int64_t first,
                                  bool overlaps, ValueRange sums) const;

  llvm::SetVector<Value> dataOperands;
  DenseMap<Value, Value> flats; // by data operand
  /// By data operand and dim, in elements, if data have strides.
  DenseMap<Value, SmallVector<Value>> rowStrides;
};

inline bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

/// `memref` with its 16-bit elements as integers: for floats that the CPU
/// cannot compute with, LLVM turns a masked access into a branch per element
/// and drops the hint of a streaming store.
Value castToBits(OpBuilder &b, Location loc, Value memref);

inline bool isMemRefWithIdentity(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && type.getLayout().isIdentity();
}

/// True if `memref` has strides, the last of which is 1, and no offset.
inline bool hasContiguousRows(Value memref) {
  auto layout = dyn_cast<StridedLayoutAttr>(
      cast<MemRefType>(memref.getType()).getLayout());
  return layout && layout.getOffset() == 0 && layout.getStrides().back() == 1;
}

/// Whether an operand of `group` has strides but contiguous rows.
bool hasDataWithStrides(const ScheduledGroup &group);

/// The vector `value` of 16-bit floats as integers.
Value toBits(OpBuilder &b, Location loc, Value value);

/// True if vectors of `type` can be loaded and stored.
inline bool isVectorElement(Type type) {
  return type.isIntOrFloat() &&
         (type.isInteger(1) ||
          (type.getIntOrFloatBitWidth() >= 8 &&
           llvm::isPowerOf2_64(type.getIntOrFloatBitWidth())));
}

/// Bytes of an element of `memref`.
inline int64_t getElementBytes(Value memref) {
  return llvm::divideCeil(getElementTypeOrSelf(memref).getIntOrFloatBitWidth(),
                          8);
}

/// Extends f16 and bf16 in the body of `generic` before they are compared, and
/// before they are selected if only extensions use the result. The results have
/// the same bits. Otherwise LLVM would turn a selection of loaded data into a
/// masked load, and data that are not extended could not be pairs
/// (CpuPairs.cpp).
void extendBeforeChoices(OpBuilder &b, linalg::GenericOp generic);

/// Emit the loops of one schedule for the group of `shared`.
#define BNGRAD_SCHEDULE_Cpu(kind)                                              \
  void emit##kind(OpBuilder &b, const CpuLoops &shared);
#include "BNGrad/Dialect/Schedules.def"

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPULOOPS_H
