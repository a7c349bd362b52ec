//===- ApplySchedule.cpp - bngrad-apply-schedule --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All checks precede the first op that is created, so that a refusal leaves the
// generics unchanged.
//
//===----------------------------------------------------------------------===//

#include "Apply/CPU/CpuScalarLoops.h"
#include "Apply/CPU/CpuSchedules.h"
#include "Apply/GPU/DeviceBuffers.h"
#include "Apply/GPU/DeviceScalars.h"
#include "Apply/GPU/EmitKernels.h"
#include "Layout/CopyTargets.h"
#include "Layout/DenseForms.h"
#include "Layout/MergeLoops.h"
#include "Schedule/ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Apply/Passes.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

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

static void emitMissed(linalg::GenericOp generic, const Twine &text) {
  emitMissed(generic, "bngrad-apply-schedule", text);
}

/// The schedule of a generic, or null.
static ScheduleAttr getSchedule(linalg::GenericOp generic) {
  return generic->getAttrOfType<ScheduleAttr>(ScheduleAttr::kAttrName);
}

/// Replaces the members of a group by the kernels or vector loops of
/// `schedule`.
///
/// Returns false, and a `reason`, if they are left to scalar loops.
static FailureOr<bool> applyToGroup(RewriterBase &rewriter,
                                    ScheduledGroup &group,
                                    ScheduleAttr schedule,
                                    const DeviceOptions &device,
                                    std::string &reason) {
  if (isGpuKind(schedule.getKind())) {
    FailureOr<bool> emitted =
        emitKernels(rewriter, group, schedule, device, reason);
    if (failed(emitted) || *emitted)
      return emitted;
    mergeLoops(rewriter, group);
    return false;
  }
  mergeLoops(rewriter, group);
  if (!isCpuKind(schedule.getKind()))
    return false;
  return succeeded(emitVectorLoops(rewriter, group, schedule, reason));
}

/// Replaces `members`, a group or a version of one, by loops.
static LogicalResult applySchedule(RewriterBase &rewriter, GroupMembers members,
                                   const DeviceOptions &device) {
  ScheduleAttr schedule = getSchedule(members.front());
  std::string reason;
  if (std::optional<ScheduledGroup> group =
          ScheduledGroup::get(members, reason)) {
    FailureOr<bool> applied =
        applyToGroup(rewriter, *group, schedule, device, reason);
    if (failed(applied))
      return failure();
    if (*applied)
      return success();
    members = group->getMembers();
  }
  if (getInfo(schedule.getKind()).target != ScheduleTarget::Any)
    emitMissed(members.front(), (isGpuKind(schedule.getKind())
                                     ? "loops of the host instead of kernels: "
                                     : "scalar loops instead of vectors: ") +
                                    reason);
  for (linalg::GenericOp generic : members)
    if (failed(emitScalarLoops(generic, reason)))
      emitMissed(generic, "left to upstream's loops: " + reason);
  return success();
}

namespace {
struct BNGradApplySchedulePass
    : bngrad::impl::BNGradApplySchedulePassBase<BNGradApplySchedulePass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    std::string reason;
    FailureOr<SmallVector<const CudaChip *>> chips =
        CudaChip::parse(chip, reason);
    if (failed(chips))
      return emitError(UnknownLoc::get(context)) << reason;
    commonChip = CudaChip::getCommon(*chips);
    return success();
  }

  void runOnOperation() override {
    // The generics of a region form a group; one outside is its own group.
    llvm::MapVector<Operation *, GroupMembers> groups;
    WalkResult walk = getOperation().walk([&](linalg::GenericOp generic) {
      if (!getSchedule(generic))
        return WalkResult::advance();
      std::string reason;
      if (failed(commonChip.verifySupport(getSchedule(generic), reason))) {
        generic.emitOpError() << reason;
        return WalkResult::interrupt();
      }
      auto region = dyn_cast<scf::ExecuteRegionOp>(generic->getParentOp());
      bool isMember = region && region.getRegion().hasOneBlock();
      GroupMembers &members = groups[isMember ? region : generic];
      members.push_back(generic);
      if (getSchedule(members.front()) == getSchedule(generic))
        return WalkResult::advance();
      generic.emitOpError()
          << "expected the schedule of its group, "
          << getSchedule(members.front()) << ", got " << getSchedule(generic);
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
    for (auto &[op, members] : groups) {
      FailureOr<SmallVector<GroupMembers>> versions =
          versionByStrides(rewriter, members);
      if (failed(versions))
        return signalPassFailure();
      for (GroupMembers &version : *versions) {
        if (auto region =
                dyn_cast<scf::ExecuteRegionOp>(version.front()->getParentOp()))
          region.setNoInline(false);
        if (failed(applySchedule(rewriter, version,
                                 {deviceArguments, commonChip})))
          return signalPassFailure();
      }
    }
    if (!deviceArguments)
      return;
    copyDeviceArguments(rewriter, getOperation());
    if (failed(verifyDeviceArguments(getOperation())))
      signalPassFailure();
  }

private:
  CudaChip commonChip; // shared by the given chips
};
} // namespace
