//===- BoundRegisters.cpp - bngrad-bound-registers ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADBOUNDREGISTERSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Registers of a multiprocessor, of 32 bits: the same on all chips. Source:
/// the tables of compute capabilities in the CUDA C++ programming guide.
static constexpr int64_t kRegisters = 64 << 10;
/// Registers of a thread that no kernel needs more of. A bound below it could
/// cost spills.
static constexpr int64_t kEnoughRegisters = 128;

/// The chips of `module`, of those that are known.
static SmallVector<const CudaChip *> getChips(gpu::GPUModuleOp module) {
  SmallVector<const CudaChip *> chips;
  if (ArrayAttr targets = module.getTargetsAttr())
    for (auto target : targets.getAsRange<NVVM::NVVMTargetAttr>())
      if (const CudaChip *chip = CudaChip::find(target.getChip()))
        chips.push_back(chip);
  return chips;
}

/// Static shared memory of `kernel`, in bytes.
static int64_t countStaticBytes(gpu::GPUFuncOp kernel) {
  int64_t bytes = 0;
  for (Value buffer : kernel.getWorkgroupAttributions()) {
    auto type = cast<MemRefType>(buffer.getType());
    bytes += type.getNumElements() *
             llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return bytes;
}

/// The blocks of `launch` that share a multiprocessor of `chip`, at most, by
/// their shared memory and their number.
static int64_t countResident(gpu::LaunchFuncOp launch, gpu::GPUFuncOp kernel,
                             int64_t dynamicBytes, const CudaChip &chip) {
  int64_t bytes =
      dynamicBytes + countStaticBytes(kernel) + CudaChip::kDriverSharedBytes;
  int64_t resident = (chip.sharedBytes + CudaChip::kDriverSharedBytes) / bytes;
  if (std::optional<int64_t> blocks =
          getConstantIntValue(launch.getGridSizeX()))
    resident = std::min<int64_t>(
        resident, llvm::divideCeil(*blocks, chip.multiprocessors));
  return std::max<int64_t>(resident, 1);
}

namespace {
struct BNGradBoundRegistersPass
    : bngrad::impl::BNGradBoundRegistersPassBase<BNGradBoundRegistersPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    Builder b(&getContext());
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      Value dynamicSize = launch.getDynamicSharedMemorySize();
      std::optional<int64_t> bytes;
      if (dynamicSize)
        bytes = getConstantIntValue(dynamicSize);
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernel());
      std::optional<int64_t> threads =
          getConstantIntValue(launch.getBlockSizeX());
      if (!bytes || !threads || !kernel)
        return;
      int64_t resident = 1;
      for (const CudaChip *chip :
           getChips(kernel->getParentOfType<gpu::GPUModuleOp>()))
        resident =
            std::max(resident, countResident(launch, kernel, *bytes, *chip));
      if (resident * *threads * kEnoughRegisters <= kRegisters)
        kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                        b.getI32IntegerAttr(resident));
    });
  }
};
} // namespace
