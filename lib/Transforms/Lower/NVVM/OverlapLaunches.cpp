//===- OverlapLaunches.cpp - bngrad-overlap-launches ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Runtime/Cuda.h"
#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADOVERLAPLAUNCHESPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Whether all chips of `module` can launch a kernel before the one ahead of it
/// ends.
static bool canOverlap(gpu::GPUModuleOp module) {
  ArrayAttr targets = module.getTargetsAttr();
  return targets && llvm::all_of(targets, [](Attribute target) {
           auto nvvm = dyn_cast<NVVM::NVVMTargetAttr>(target);
           const CudaChip *chip =
               nvvm ? CudaChip::find(nvvm.getChip()) : nullptr;
           return chip && chip->canOverlapLaunches();
         });
}

/// `kernel` waits before all else.
static void waitFirst(OpBuilder &b, gpu::GPUFuncOp kernel) {
  b.setInsertionPointToStart(&kernel.getBody().front());
  NVVM::GriddepcontrolOp::create(b, kernel.getLoc(),
                                 NVVM::GridDepActionKind::wait);
}

namespace {
struct BNGradOverlapLaunchesPass
    : bngrad::impl::BNGradOverlapLaunchesPassBase<BNGradOverlapLaunchesPass> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    if (!canOverlap(module) ||
        module.lookupSymbol(BNGRAD_CUDA_KERNELS_WAIT_SYMBOL))
      return;
    OpBuilder b(&getContext());
    bool hasKernels = false;
    for (auto function : module.getOps<gpu::GPUFuncOp>()) {
      if (!function.isKernel())
        continue;
      waitFirst(b, function);
      hasKernels = true;
    }
    if (!hasKernels)
      return;
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(
        b, module.getLoc(), b.getI8Type(), /*isConstant=*/false,
        LLVM::Linkage::External, BNGRAD_CUDA_KERNELS_WAIT_SYMBOL,
        b.getI8IntegerAttr(1), /*alignment=*/1,
        static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  }
};
} // namespace
