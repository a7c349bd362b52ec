//===- VerifyKernels.cpp - bngrad-verify-kernels --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADVERIFYKERNELSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The size of the parameters of `kernel` in bytes. PTX aligns each scalar to
/// its size; the data layout of the module may not, as its default aligns i64
/// to 4 bytes.
static uint64_t countParameterBytes(LLVM::LLVMFuncOp kernel) {
  DataLayout layout = DataLayout::closest(kernel);
  uint64_t bytes = 0;
  for (Type type : kernel.getArgumentTypes()) {
    uint64_t size = layout.getTypeSize(type);
    bytes = llvm::alignTo(bytes, std::clamp<uint64_t>(size, 1, 8)) + size;
  }
  return bytes;
}

namespace {
struct BNGradVerifyKernelsPass
    : bngrad::impl::BNGradVerifyKernelsPassBase<BNGradVerifyKernelsPass> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    ArrayAttr targets = module.getTargetsAttr();
    if (!targets)
      return;
    for (auto kernel : module.getOps<LLVM::LLVMFuncOp>()) {
      if (!kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
        continue;
      uint64_t bytes = countParameterBytes(kernel);
      for (auto target : targets.getAsRange<NVVM::NVVMTargetAttr>()) {
        uint64_t most = getMostParameterBytes(target.getFeatures());
        if (bytes <= most)
          continue;
        // Do not print the op, which is long if it has this many parameters.
        emitError(kernel.getLoc())
            << "expected parameters of kernel @" << module.getName() << "::@"
            << kernel.getSymName() << " to take at most " << most
            << " bytes on " << target.getChip() << " (" << target.getFeatures()
            << "), got " << bytes;
        return signalPassFailure();
      }
    }
  }
};
} // namespace
