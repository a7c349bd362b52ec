//===- AttachChips.cpp - bngrad-attach-chips ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADATTACHCHIPSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

namespace {
struct BNGradAttachChipsPass
    : bngrad::impl::BNGradAttachChipsPassBase<BNGradAttachChipsPass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    Location loc = UnknownLoc::get(context);
    std::string reason;
    auto parsed = CudaChip::parse(chip, reason);
    if (failed(parsed))
      return emitError(loc) << reason;
    chips = *parsed;
    if (!features.empty() &&
        failed(CudaChip::verifyFeatures(features, chips, reason)))
      return emitError(loc) << reason;
    if (optLevel > 3)
      return emitError(loc) << "expected opt-level to be in [0, 3], got "
                            << optLevel.getValue();
    return success();
  }

  void runOnOperation() override {
    SmallVector<Attribute> targets;
    for (const CudaChip *chip : chips) {
      std::string version = "+ptx" + std::to_string(chip->ptxVersion);
      targets.push_back(NVVM::NVVMTargetAttr::get(
          &getContext(), optLevel, "nvptx64-nvidia-cuda", chip->name,
          features.empty() ? version : features.getValue()));
    }
    gpu::GPUModuleOp module = getOperation();
    module.setTargetsAttr(ArrayAttr::get(&getContext(), targets));
    if (targets.size() > 1)
      module.setOffloadingHandlerAttr(SelectByDeviceAttr::get(&getContext()));
  }

private:
  SmallVector<const CudaChip *> chips;
};
} // namespace
