//===- ApplySchedule.cpp - bngrad-apply-schedule: the loops ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A generic is checked before the first op is created, so that a refusal leaves
// it whole.
//
//===----------------------------------------------------------------------===//

#include "Apply/CPU/CpuSchedules.h"
#include "Apply/GPU/DeviceBuffers.h"
#include "Apply/GPU/DeviceScalars.h"
#include "Apply/GPU/GpuLoops.h"
#include "CopyTargets.h"
#include "DenseForms.h"
#include "ElementCloner.h"
#include "Schedule/GpuSchedule.h"
#include "Schedule/ScheduledGroup.h"
#include "Sums.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Apply/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADAPPLYSCHEDULEPASS
#include "BNGrad/Transforms/Apply/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Terms that are added one by one. The error bound allows a term about
/// 16 + 4*log2(M + 1) roundings on its way into a result, of which up to 20 are
/// not the sum's: 7 additions in a block and 2 outside fit for every M
/// (docs/numerics.md, section 4).
static constexpr int64_t kSumBlock = 8;

namespace {
/// `#bngrad.schedule<loops>` for one generic: parallel loops outside, scalar
/// loops inside.
class Loops {
public:
  explicit Loops(linalg::GenericOp generic)
      : generic(generic), loc(generic.getLoc()), cloner(generic),
        ivs(generic.getNumLoops()) {}

  void emitElementwise(OpBuilder &b);
  void emitReduction(OpBuilder &b, ReductionValues reduction);

private:
  Value constantIndex(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value constantZero(OpBuilder &b, unsigned i) {
    return arith::ConstantOp::create(
        b, loc, b.getZeroAttr(values.terms[i].second.getType()));
  }
  void createRanges(OpBuilder &b);
  /// Emits `body` in scf.parallel over `dims`, or directly where there are
  /// none.
  void emitParallel(OpBuilder &b, ArrayRef<unsigned> dims,
                    function_ref<void(OpBuilder &)> body);
  void emitElement(OpBuilder &b);
  /// Emits loops over `dims`, outermost first, that carry (sum, error) pairs.
  SmallVector<Value> emitSumLoops(OpBuilder &b, ArrayRef<unsigned> dims,
                                  ValueRange carried);
  /// Adds the terms of `dim` in [from, to), at most kSumBlock, to `carried`.
  SmallVector<Value> emitSumBlock(OpBuilder &b, unsigned dim, Value from,
                                  Value to, ValueRange carried);

  linalg::GenericOp generic;
  Location loc;
  ElementCloner cloner;
  SmallVector<Value> ivs;   // by loop, null until its loop is there
  SmallVector<Value> sizes; // by loop
  ReductionValues values;   // of a reduction
};
} // namespace

void Loops::createRanges(OpBuilder &b) {
  auto op = cast<linalg::LinalgOp>(generic.getOperation());
  for (Range range : op.createLoopRanges(b, loc))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
}

void Loops::emitParallel(OpBuilder &b, ArrayRef<unsigned> dims,
                         function_ref<void(OpBuilder &)> body) {
  if (dims.empty())
    return body(b);
  Value zero = constantIndex(b, 0), one = constantIndex(b, 1);
  SmallVector<Value> lower(dims.size(), zero), upper, steps(dims.size(), one);
  for (unsigned dim : dims)
    upper.push_back(sizes[dim]);
  scf::ParallelOp::create(
      b, loc, lower, upper, steps,
      [&](OpBuilder &nested, Location, ValueRange parallelIvs) {
        for (auto [dim, iv] : llvm::zip_equal(dims, parallelIvs))
          ivs[dim] = iv;
        cloner.load(nested, ivs);
        body(nested);
      });
}

void Loops::emitElement(OpBuilder &b) {
  IRMapping mapping = cloner.clone(b, ivs);
  Operation *yield = generic.getBody()->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    cloner.store(b, ivs, i, mapping.lookupOrDefault(value));
}

/// The innermost loop is a plain one, for LLVM to vectorize. A generic with one
/// loop is per channel: too small to be worth threads.
void Loops::emitElementwise(OpBuilder &b) {
  createRanges(b);
  unsigned inner = generic.getNumLoops() - 1;
  emitParallel(b, llvm::to_vector(llvm::seq<unsigned>(inner)),
               [&](OpBuilder &nested) {
                 Value zero = constantIndex(nested, 0);
                 Value one = constantIndex(nested, 1);
                 scf::ForOp::create(
                     nested, loc, zero, sizes[inner], one, ValueRange(),
                     [&](OpBuilder &innermost, Location, Value iv, ValueRange) {
                       ivs[inner] = iv;
                       emitElement(innermost);
                       scf::YieldOp::create(innermost, loc);
                     });
               });
}

SmallVector<Value> Loops::emitSumBlock(OpBuilder &b, unsigned dim, Value from,
                                       Value to, ValueRange carried) {
  SmallVector<Value> zeros;
  for (unsigned i : llvm::seq<unsigned>(values.terms.size()))
    zeros.push_back(constantZero(b, i));
  auto block = scf::ForOp::create(
      b, loc, from, to, constantIndex(b, 1), zeros,
      [&](OpBuilder &nested, Location, Value iv, ValueRange partials) {
        ivs[dim] = iv;
        IRMapping mapping = cloner.clone(nested, ivs);
        SmallVector<Value> sums;
        for (auto [partial, term] : llvm::zip_equal(partials, values.terms))
          sums.push_back(arith::AddFOp::create(
              nested, loc, partial, mapping.lookupOrDefault(term.second)));
        for (auto [i, value] : values.stores)
          cloner.store(nested, ivs, i, mapping.lookupOrDefault(value));
        scf::YieldOp::create(nested, loc, sums);
      });
  ivs[dim] = Value();
  return addCompensated(b, loc, carried, block.getResults());
}

SmallVector<Value> Loops::emitSumLoops(OpBuilder &b, ArrayRef<unsigned> dims,
                                       ValueRange carried) {
  unsigned dim = dims.front();
  Value zero = constantIndex(b, 0), one = constantIndex(b, 1);
  if (dims.size() > 1) {
    auto loop = scf::ForOp::create(
        b, loc, zero, sizes[dim], one, carried,
        [&](OpBuilder &nested, Location, Value iv, ValueRange sums) {
          ivs[dim] = iv;
          scf::YieldOp::create(nested, loc,
                               emitSumLoops(nested, dims.drop_front(), sums));
        });
    return loop.getResults();
  }
  Value blockSize = constantIndex(b, kSumBlock);
  Value rest = arith::RemUIOp::create(b, loc, sizes[dim], blockSize);
  Value blocksEnd = arith::SubIOp::create(b, loc, sizes[dim], rest);
  auto blocks = scf::ForOp::create(
      b, loc, zero, blocksEnd, blockSize, carried,
      [&](OpBuilder &nested, Location, Value iv, ValueRange sums) {
        Value to = arith::AddIOp::create(nested, loc, iv, blockSize);
        scf::YieldOp::create(nested, loc,
                             emitSumBlock(nested, dim, iv, to, sums));
      });
  return emitSumBlock(b, dim, blocksEnd, sizes[dim], blocks.getResults());
}

void Loops::emitReduction(OpBuilder &b, ReductionValues reduction) {
  values = std::move(reduction);
  createRanges(b);
  SmallVector<unsigned> parallelDims, reductionDims;
  generic.getParallelDims(parallelDims);
  generic.getReductionDims(reductionDims);
  emitParallel(b, parallelDims, [&](OpBuilder &nested) {
    // The loops carry the sums, whose initial values are those of the outputs.
    SmallVector<Value> carried;
    for (auto [i, term] : llvm::enumerate(values.terms)) {
      carried.push_back(cloner.loadOutput(nested, ivs, term.first));
      carried.push_back(constantZero(nested, i));
      cloner.leaveOutOutput(term.first);
    }
    SmallVector<Value> sums = emitSumLoops(nested, reductionDims, carried);
    for (auto [i, term] : llvm::enumerate(values.terms)) {
      Value total =
          arith::AddFOp::create(nested, loc, sums[2 * i], sums[2 * i + 1]);
      cloner.store(nested, ivs, term.first, total);
    }
  });
}

static void emitMissed(linalg::GenericOp generic, const Twine &text) {
  emitMissed(generic, "bngrad-apply-schedule", text);
}

/// Replaces `generic` by loops, or says why not.
static void applyLoops(linalg::GenericOp generic) {
  if (!generic.hasPureBufferSemantics())
    return emitMissed(generic, "left to upstream's loops: expected memrefs");
  if (generic.getNumLoops() == 0)
    return emitMissed(generic,
                      "left to upstream's loops: expected at least one loop");
  OpBuilder b(generic);
  if (generic.getNumReductionLoops() == 0) {
    Loops(generic).emitElementwise(b);
    generic.erase();
    return;
  }
  std::optional<ReductionValues> values = getReductionValues(generic);
  if (!values)
    return emitMissed(
        generic, "left to upstream's loops: expected every result of the "
                 "reduction to be a sum with fastmath<reassoc>, indexed by "
                 "the parallel loops");
  Loops(generic).emitReduction(b, std::move(*values));
  generic.erase();
}

/// Replaces the members of a group, or of a version of one, by loops.
static void applySchedule(RewriterBase &rewriter, GroupMembers members,
                          bool deviceArguments) {
  auto schedule =
      members.front()->getAttrOfType<ScheduleAttr>(ScheduleAttr::kAttrName);
  std::string reason;
  bool isGpu = isGpuKind(schedule.getKind());
  if (isGpu) {
    if (succeeded(
            emitGpuLoops(rewriter, members, schedule, deviceArguments, reason)))
      return;
    emitMissed(members.front(),
               "loops of the host instead of kernels: " + reason);
  }
  mergeLoops(rewriter, members);
  if (!isGpu && schedule.getKind() != ScheduleKind::Loops) {
    std::optional<ScheduledGroup> group = ScheduledGroup::get(members, reason);
    if (group && succeeded(emitVectorLoops(rewriter, *group, schedule, reason)))
      return;
    emitMissed(members.front(), "scalar loops instead of vectors: " + reason);
  }
  for (linalg::GenericOp generic : members)
    applyLoops(generic);
}

/// The attribute of a generic that has one.
static FailureOr<ScheduleAttr> getSchedule(linalg::GenericOp generic) {
  Attribute attr = generic->getAttr(ScheduleAttr::kAttrName);
  if (auto schedule = dyn_cast<ScheduleAttr>(attr))
    return schedule;
  return generic.emitOpError()
         << "expected attribute '" << ScheduleAttr::kAttrName
         << "' to be a #bngrad.schedule, got " << attr;
}

namespace {
struct BNGradApplySchedulePass
    : bngrad::impl::BNGradApplySchedulePassBase<BNGradApplySchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    // The generics of a region are a group; a generic outside of any is its
    // own.
    llvm::MapVector<Operation *, GroupMembers> groups;
    WalkResult walk = getOperation().walk([&](linalg::GenericOp generic) {
      if (!generic->hasAttr(ScheduleAttr::kAttrName))
        return WalkResult::advance();
      if (failed(getSchedule(generic)))
        return WalkResult::interrupt();
      auto region = dyn_cast<scf::ExecuteRegionOp>(generic->getParentOp());
      bool isMember = region && region.getRegion().hasOneBlock();
      GroupMembers &members = groups[isMember ? region : generic];
      members.push_back(generic);
      if (*getSchedule(members.front()) == *getSchedule(generic))
        return WalkResult::advance();
      generic.emitOpError()
          << "expected the schedule of its group, "
          << *getSchedule(members.front()) << ", got " << *getSchedule(generic);
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    if (deviceArguments)
      for (auto &[op, members] : groups)
        for (linalg::GenericOp &member : members)
          member = readScalarsAsOperands(rewriter, member);
    for (auto &[op, members] : groups)
      writeToCopyTargets(rewriter, members);
    for (auto &[op, members] : groups)
      for (GroupMembers &version : versionByStrides(rewriter, members)) {
        if (auto region =
                dyn_cast<scf::ExecuteRegionOp>(version.front()->getParentOp()))
          region.setNoInline(false);
        applySchedule(rewriter, version, deviceArguments);
      }
    if (!deviceArguments)
      return;
    copyDeviceArguments(rewriter, getOperation());
    if (failed(verifyDeviceArguments(getOperation())))
      signalPassFailure();
  }
};
} // namespace
