//===- LayOutSharedMemory.cpp - bngrad-lay-out-shared-memory --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADLAYOUTSHAREDMEMORYPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

namespace {
struct BNGradLayOutSharedMemoryPass
    : bngrad::impl::BNGradLayOutSharedMemoryPassBase<
          BNGradLayOutSharedMemoryPass> {
  void runOnOperation() override {
    getOperation().walk([](LLVM::GlobalOp global) {
      if (global.getAddrSpace() !=
          static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared))
        return;
      // Of the longest access, which upstream takes a vector's alignment to be.
      global.setAlignment(
          std::max<uint64_t>(global.getAlignment().value_or(1), 16));
      auto type = dyn_cast<LLVM::LLVMArrayType>(global.getType());
      if (!type || type.getNumElements() != 0)
        return;
      global.setLinkage(LLVM::Linkage::External);
      // The preferred alignment of bulk copies.
      global.setAlignment(128);
    });
  }
};
} // namespace
