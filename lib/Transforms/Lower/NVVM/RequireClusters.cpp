//===- RequireClusters.cpp - bngrad-require-clusters ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADREQUIRECLUSTERSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The constant cluster size of `launch`, or null if it has none.
static DenseI32ArrayAttr getClusterSize(gpu::LaunchFuncOp launch) {
  if (!launch.hasClusterSize())
    return {};
  gpu::KernelDim3 size = launch.getClusterSizeOperandValues();
  SmallVector<int32_t> extents;
  for (Value extent : {size.x, size.y, size.z}) {
    std::optional<int64_t> value = getConstantIntValue(extent);
    if (!value || *value < 1 || *value > INT32_MAX)
      return {};
    extents.push_back(*value);
  }
  return DenseI32ArrayAttr::get(launch.getContext(), extents);
}

namespace {
struct BNGradRequireClustersPass
    : bngrad::impl::BNGradRequireClustersPassBase<BNGradRequireClustersPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    // The cluster size of each kernel, or null if its launches differ.
    llvm::MapVector<gpu::GPUFuncOp, DenseI32ArrayAttr> sizes;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernel());
      if (!kernel || kernel.getKnownClusterSizeAttr())
        return;
      DenseI32ArrayAttr size = getClusterSize(launch);
      auto [it, isFirst] = sizes.insert({kernel, size});
      if (!isFirst && it->second != size)
        it->second = {};
    });
    for (auto [kernel, size] : sizes)
      if (size)
        kernel.setKnownClusterSizeAttr(size);
  }
};
} // namespace
