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

/// Pads an array to whole vectors, because LLVM may load three elements as a
/// vector of four if the alignment allows it.
static void padToVectors(LLVM::GlobalOp global, LLVM::LLVMArrayType type) {
  Type element = type.getElementType();
  if (!element.isIntOrFloat() || global.getValueAttr() ||
      !global.getInitializerRegion().empty())
    return;
  int64_t bits = element.getIntOrFloatBitWidth();
  if (bits < 8 || !llvm::isPowerOf2_64(bits) || bits > 64)
    return;
  global.setGlobalType(LLVM::LLVMArrayType::get(
      element, llvm::alignTo(type.getNumElements(), 128 / bits)));
}

namespace {
struct BNGradLayOutSharedMemoryPass
    : bngrad::impl::BNGradLayOutSharedMemoryPassBase<
          BNGradLayOutSharedMemoryPass> {
  void runOnOperation() override {
    getOperation().walk([](LLVM::GlobalOp global) {
      if (global.getAddrSpace() !=
          static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared))
        return;
      // Align to the longest access: upstream assumes that vectors are
      // naturally aligned.
      global.setAlignment(
          std::max<uint64_t>(global.getAlignment().value_or(1), 16));
      auto type = dyn_cast<LLVM::LLVMArrayType>(global.getType());
      if (!type)
        return;
      if (type.getNumElements() != 0) {
        padToVectors(global, type);
        return;
      }
      global.setLinkage(LLVM::Linkage::External);
      // The preferred alignment of bulk copies.
      global.setAlignment(128);
    });
  }
};
} // namespace
