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
#include "llvm/ADT/MapVector.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADBOUNDREGISTERSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The number of 32-bit registers of a multiprocessor, which is the same on all
/// chips. Source: the tables of compute capabilities in the CUDA C++
/// programming guide.
static constexpr int64_t kRegisters = 64 << 10;
/// No kernel needs more registers per thread than this. A smaller bound could
/// cause spills.
static constexpr int64_t kEnoughRegisters = 128;

/// The known chips among the targets of `module`.
static SmallVector<const CudaChip *> getChips(gpu::GPUModuleOp module) {
  SmallVector<const CudaChip *> chips;
  if (ArrayAttr targets = module.getTargetsAttr())
    for (auto target : targets.getAsRange<NVVM::NVVMTargetAttr>())
      if (const CudaChip *chip = CudaChip::find(target.getChip()))
        chips.push_back(chip);
  return chips;
}

/// The static shared memory of `kernel` in bytes, or nothing if it is unknown
/// or more than any chip has.
static std::optional<int64_t> countStaticBytes(gpu::GPUFuncOp kernel) {
  int64_t bytes = 0;
  for (Value buffer : kernel.getWorkgroupAttributions()) {
    auto type = cast<MemRefType>(buffer.getType());
    if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
      return std::nullopt;
    int64_t added = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    for (int64_t size : type.getShape())
      if (llvm::MulOverflow(added, size, added))
        return std::nullopt;
    if (llvm::AddOverflow(bytes, added, bytes) || bytes > INT32_MAX)
      return std::nullopt;
  }
  return bytes;
}

/// Returns x * y * z, or nothing unless all of them are positive constants.
static std::optional<int64_t> multiply(gpu::KernelDim3 extents) {
  int64_t product = 1;
  for (Value extent : {extents.x, extents.y, extents.z}) {
    std::optional<int64_t> value = getConstantIntValue(extent);
    if (!value || *value < 1 || llvm::MulOverflow(product, *value, product))
      return std::nullopt;
  }
  return product;
}

/// The maximum number of blocks of `launch` that share a multiprocessor of
/// `chip`. It is limited by the shared memory of a block, `bytes`, and by the
/// size of the grid.
static int64_t countResident(gpu::LaunchFuncOp launch, int64_t bytes,
                             const CudaChip &chip) {
  int64_t resident = (chip.sharedBytes + CudaChip::kDriverSharedBytes) / bytes;
  if (std::optional<int64_t> blocks =
          multiply(launch.getGridSizeOperandValues()))
    resident = std::min<int64_t>(
        resident, llvm::divideCeil(*blocks, chip.multiprocessors));
  return std::max<int64_t>(resident, 1);
}

/// The number of blocks of `kernel` in `launch` that share a multiprocessor, or
/// nothing if registers are not to be bounded.
static std::optional<int64_t> getBound(gpu::LaunchFuncOp launch,
                                       gpu::GPUFuncOp kernel) {
  Value dynamicSize = launch.getDynamicSharedMemorySize();
  std::optional<int64_t> dynamicBytes;
  if (dynamicSize)
    dynamicBytes = getConstantIntValue(dynamicSize);
  std::optional<int64_t> staticBytes = countStaticBytes(kernel);
  std::optional<int64_t> threads = multiply(launch.getBlockSizeOperandValues());
  if (!dynamicBytes || *dynamicBytes < 0 || *dynamicBytes > INT32_MAX ||
      !staticBytes || !threads)
    return std::nullopt;
  int64_t bytes = *dynamicBytes + *staticBytes + CudaChip::kDriverSharedBytes;
  int64_t resident = 1;
  for (const CudaChip *chip :
       getChips(kernel->getParentOfType<gpu::GPUModuleOp>()))
    resident = std::max(resident, countResident(launch, bytes, *chip));
  if (*threads > kRegisters ||
      resident * *threads * kEnoughRegisters > kRegisters)
    return std::nullopt;
  return resident;
}

namespace {
struct BNGradBoundRegistersPass
    : bngrad::impl::BNGradBoundRegistersPassBase<BNGradBoundRegistersPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    // The smallest bound over all launches of each kernel; 0 if a launch has
    // none.
    llvm::MapVector<gpu::GPUFuncOp, int64_t> bounds;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernel());
      if (!kernel || kernel->hasAttr(NVVM::NVVMDialect::getMinctasmAttrName()))
        return;
      int64_t bound = getBound(launch, kernel).value_or(0);
      auto [it, isFirst] = bounds.insert({kernel, bound});
      if (!isFirst)
        it->second = std::min(it->second, bound);
    });
    Builder b(&getContext());
    for (auto [kernel, bound] : bounds)
      if (bound > 0)
        kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                        b.getI32IntegerAttr(bound));
  }
};
} // namespace
