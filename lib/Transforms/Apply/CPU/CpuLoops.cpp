//===- CpuLoops.cpp - base of the schedules with vectors ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuLoops.h"
#include "Layout/StridedData.h"
#include "Schedule/ChooseCpuSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The total bytes that the second pass reads forward before it steps back.
static constexpr int64_t kStepBytes = 3 << 20;

/// Rows of a chain: the default, and by the least number of terms of a sum. The
/// more terms a sum has, the longer the chains that the error bound allows
/// (docs/numerics.md, section 4).
static constexpr int64_t kChainRows = 8;
static constexpr std::pair<int64_t, int64_t> kLongChainRows[] = {{256, 16},
                                                                 {4096, 32}};

//===----------------------------------------------------------------------===//
// The values that dominate all loops
//===----------------------------------------------------------------------===//

CpuLoops::CpuLoops(OpBuilder &b, const ScheduledGroup &group,
                   const CpuSchedule &schedule)
    : GroupEmitter(b, group), schedule(schedule),
      moments(MomentStages::get(group)),
      hasRowStrides(hasDataWithStrides(group)) {
  setLanes();
  emitSizes(b);
  emitIsStreamed(b);
  emitChainRows(b);
  emitFlats(b);
}

void CpuLoops::setLanes() {
  bool hasF64 = false;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (Operation &op : *generic.getBody())
      for (Value operand : op.getOperands())
        hasF64 |= operand.getType().isF64();
  lanes = schedule.vectorBits / (hasF64 ? 64 : 32);
  wide = 4 * lanes;
}

void CpuLoops::emitSizes(OpBuilder &b) {
  count = at(b).product(sizes);
  int64_t width = 0;
  // Members may use different views of the same data.
  llvm::SetVector<Value> viewed;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          dataOperands.insert(operand.get()) &&
          viewed.insert(getViewed(operand.get())))
        width += getElementBytes(operand.get());
  bytes = at(b).mul(count, constant(b, width));
}

void CpuLoops::emitIsStreamed(OpBuilder &b) {
  int64_t cache = schedule.streamingBytes;
  int64_t least = getStreamingLimit(SizeArithmetic(), cache, int64_t(1));
  std::optional<int64_t> size = getConstantIntValue(bytes);
  if (cache == 0 || (size && (*size <= least || *size > cache))) {
    isStreamed =
        arith::ConstantIntOp::create(b, loc, cache != 0 && *size > cache, 1);
    return;
  }
  IndexBuilder index = at(b);
  Value limit = index.constant(cache);
  if (least < cache)
    limit = getStreamingLimit(index, limit, getShares(b));
  isStreamed = index.compare(arith::CmpIPredicate::ugt, bytes, limit);
}

void CpuLoops::emitStages(function_ref<void()> emitMoments,
                          function_ref<void()> emitStage) {
  for (unsigned stage = 0; stage < group.stages.size(); ++stage) {
    if (moments && moments->sum == stage) {
      emitMoments();
      ++stage; // the next one, too
      continue;
    }
    enterStage(stage);
    emitStage();
  }
}

void CpuLoops::emitChainRows(OpBuilder &b) {
  IndexBuilder index = at(b);
  Value terms = index.product(pick(sizes, reduced));
  chainRows = index.constant(kChainRows);
  for (auto [leastTerms, rows] : kLongChainRows)
    chainRows = index.select(index.compare(arith::CmpIPredicate::uge, terms,
                                           index.constant(leastTerms)),
                             index.constant(rows), chainRows);
}

bool mlir::bngrad::hasDataWithStrides(const ScheduledGroup &group) {
  return llvm::any_of(group.getDataGenerics(), [](linalg::GenericOp generic) {
    return llvm::any_of(generic->getOpOperands(), [&](OpOperand &operand) {
      return isDataMap(generic.getMatchingIndexingMap(&operand)) &&
             hasContiguousRows(operand.get());
    });
  });
}

void CpuLoops::emitFlats(OpBuilder &b) {
  for (Value memref : dataOperands) {
    Value flat = memref;
    if (hasRowStrides) {
      auto strided = StridedData::get(b, loc, memref);
      rowStrides[memref] = strided.strides;
      flat = strided.getFlatView(b, loc);
    } else if (cast<MemRefType>(memref.getType()).getRank() > 1) {
      SmallVector<ReassociationIndices> allDims(
          1, llvm::to_vector<2>(llvm::seq<int64_t>(0, group.numLoops)));
      flat = memref::CollapseShapeOp::create(b, loc, memref, allDims);
    }
    flats[memref] = castToStorage(b, loc, flat);
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void CpuLoops::emitFor(OpBuilder &b, Interval range, Value step,
                       IndexBody body) const {
  createFor(b, loc, range.from, range.to, step, ValueRange(),
            [&](OpBuilder &nested, Location, Value iv, ValueRange) {
              body(nested, iv);
              scf::YieldOp::create(nested, loc);
            });
}

void CpuLoops::emitStepsBack(OpBuilder &b, Interval range, Value step,
                             IntervalBody body) const {
  IndexBuilder index = at(b);
  Value steps = index.ceilDiv(index.sub(range.to, range.from), step);
  emitFor(b, {index.constant(0), steps}, [&](OpBuilder &nested, Value number) {
    IndexBuilder inside = at(nested);
    Value to = inside.sub(range.to, inside.mul(number, step));
    body(nested, {inside.max(inside.sub(to, step), range.from), to});
  });
}

Value CpuLoops::getStep(OpBuilder &b, Value elements) const {
  IndexBuilder index = at(b);
  Value one = index.constant(1);
  Value iterationBytes =
      index.div(index.mul(bytes, elements), index.max(count, one));
  return index.max(
      index.div(index.constant(kStepBytes), index.max(iterationBytes, one)),
      one);
}

SmallVector<Value> CpuLoops::emitSumLoop(OpBuilder &b, Interval range,
                                         Value step, ValueRange sums,
                                         SumsBody body) const {
  return createFor(
             b, loc, range.from, range.to, step, sums,
             [&](OpBuilder &nested, Location, Value iv, ValueRange carried) {
               scf::YieldOp::create(nested, loc, body(nested, iv, carried));
             })
      .getResults();
}

Accumulators CpuLoops::emitAccumulatorLoop(OpBuilder &b, Interval range,
                                           Value step,
                                           ArrayRef<Accumulator> sums,
                                           AccumulatorsBody body) const {
  return fromCarried(
      emitSumLoop(b, range, step, toCarried(sums),
                  [&](OpBuilder &nested, Value iv, ValueRange carried) {
                    return toCarried(body(nested, iv, fromCarried(carried)));
                  }));
}

void CpuLoops::emitLoops(OpBuilder &b, ArrayRef<unsigned> loops,
                         SmallVector<Value> ivs, IvsBody body) const {
  if (loops.empty())
    return body(b, ivs);
  emitFor(b, {constant(b, 0), sizes[loops.front()]},
          [&](OpBuilder &nested, Value iv) {
            ivs[loops.front()] = iv;
            emitLoops(nested, loops.drop_front(), ivs, body);
          });
}

Value CpuLoops::getShares(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value one = index.constant(1);
  Value isSmall = index.compare(arith::CmpIPredicate::ult, count,
                                index.constant(limits::kSerialElements));
  if (schedule.threads > 0)
    return index.select(isSmall, one, index.constant(schedule.threads));
  if (matchPattern(isSmall, m_One()))
    return one;
  // Query the number of threads only if it is needed.
  auto shares = scf::IfOp::create(
      b, loc, isSmall,
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, one);
      },
      [&](OpBuilder &nested, Location loc) {
        Value threads = NumThreadsOp::create(nested, loc, kMostPoolThreads);
        scf::YieldOp::create(nested, loc,
                             arith::IndexCastOp::create(
                                 nested, loc, nested.getIndexType(), threads)
                                 .getResult());
      });
  return shares.getResult(0);
}

void CpuLoops::emitShares(OpBuilder &b, Value iterations, ShareBody body,
                          Value isSerial) const {
  IndexBuilder index = at(b);
  Value zero = index.constant(0), one = index.constant(1);
  Value shares = getShares(b);
  if (matchPattern(shares, m_One()))
    return body(b, {zero, one, {zero, iterations}});
  scf::ParallelOp::create(
      b, loc, zero, shares, one,
      [&](OpBuilder &nested, Location, ValueRange iv) {
        IndexBuilder inside = at(nested);
        Value from = inside.div(inside.mul(iv[0], iterations), shares);
        Value next = inside.add(iv[0], inside.constant(1));
        Value to = inside.div(inside.mul(next, iterations), shares);
        if (isSerial) {
          Value isFirst = inside.compare(arith::CmpIPredicate::eq, iv[0], zero);
          from = inside.select(isSerial,
                               inside.select(isFirst, zero, iterations), from);
          to = inside.select(isSerial, iterations, to);
        }
        body(nested, {iv[0], shares, {from, to}});
        // Streaming stores are not ordered with the loads of other threads.
        LLVM::FenceOp::create(nested, loc, LLVM::AtomicOrdering::seq_cst);
      });
}
