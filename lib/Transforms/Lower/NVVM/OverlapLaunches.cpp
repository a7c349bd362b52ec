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
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADOVERLAPLAUNCHESPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Whether all chips of `module` can launch a kernel before the preceding
/// kernel has ended.
static bool canOverlap(gpu::GPUModuleOp module) {
  ArrayAttr targets = module.getTargetsAttr();
  return targets && llvm::all_of(targets, [](Attribute target) {
           auto nvvm = dyn_cast<NVVM::NVVMTargetAttr>(target);
           const CudaChip *chip =
               nvvm ? CudaChip::find(nvvm.getChip()) : nullptr;
           return chip && chip->canOverlapLaunches();
         });
}

/// Whether `value` is shared or private memory.
static bool isOnChip(Value value) {
  auto type = value ? dyn_cast<MemRefType>(value.getType()) : MemRefType();
  auto space =
      type ? dyn_cast_if_present<gpu::AddressSpaceAttr>(type.getMemorySpace())
           : gpu::AddressSpaceAttr();
  return space && space.getValue() != gpu::AddressSpace::Global;
}

/// Whether `op` may access global memory, which the preceding kernel may still
/// read or write.
static bool mayAccessGlobal(Operation &op) {
  if (isa<gpu::BarrierOp, nvgpu::MBarrierCreateOp, nvgpu::MBarrierGetOp,
          nvgpu::MBarrierInitOp, nvgpu::MBarrierArriveExpectTxOp,
          NVVM::FenceProxyOp, NVVM::GriddepcontrolOp>(&op))
    return false;
  auto memory = dyn_cast<MemoryEffectOpInterface>(&op);
  bool isRecursive = op.hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  if (!memory && !isRecursive)
    return true;
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (memory)
    memory.getEffects(effects);
  if (llvm::any_of(effects, [](const MemoryEffects::EffectInstance &effect) {
        return !isOnChip(effect.getValue());
      }))
    return true;
  return isRecursive && llvm::any_of(op.getRegions(), [](Region &region) {
           return llvm::any_of(region.getOps(), mayAccessGlobal);
         });
}

/// Makes all threads of `kernel` wait for the preceding kernel before they
/// access global memory, and before they let the next kernel start.
static void waitForKernelAhead(OpBuilder &b, gpu::GPUFuncOp kernel) {
  // The wait is in the entry block, which dominates all others and is in no
  // loop.
  Block &first = kernel.getBody().front();
  auto access = llvm::find_if(first, [](Operation &op) {
    return op.hasTrait<OpTrait::IsTerminator>() || mayAccessGlobal(op);
  });
  b.setInsertionPoint(&first, access);
  auto wait = NVVM::GriddepcontrolOp::create(b, kernel.getLoc(),
                                             NVVM::GridDepActionKind::wait);
  for (Operation &op : llvm::make_early_inc_range(
           llvm::make_range(first.begin(), wait->getIterator())))
    if (isa<NVVM::GriddepcontrolOp>(op))
      op.moveAfter(wait);
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
      waitForKernelAhead(b, function);
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
