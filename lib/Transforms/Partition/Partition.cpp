//===- Partition.cpp - bngrad-partition -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Annotations.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Partition/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-partition"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADPARTITIONPASS
#include "BNGrad/Transforms/Partition/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Records on the function how its arguments and results are sharded.
static void setShardingAttributes(func::FuncOp function,
                                  FunctionShardings &shardings) {
  MLIRContext *context = function.getContext();
  if (shardings.grid)
    function->setAttr(
        kGridShapeAttrName,
        DenseI64ArrayAttr::get(context, shardings.grid.getShape()));
  auto getAttr = [&](const shard::Sharding &sharding) -> Attribute {
    if (!sharding || shard::isFullReplication(sharding))
      return {};
    return shard::GridAxesArrayAttr::get(context, sharding.getSplitAxes());
  };
  for (auto [i, sharding] : llvm::enumerate(shardings.arguments))
    if (Attribute attr = getAttr(sharding))
      function.setArgAttr(i, kSplitAxesAttrName, attr);
  for (auto [i, sharding] : llvm::enumerate(shardings.results))
    if (Attribute attr = getAttr(sharding))
      function.setResultAttr(i, kSplitAxesAttrName, attr);
}

/// Keeps annotations: an argument may have no other use.
static void eraseDeadOps(func::FuncOp function) {
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (!isa<shard::ShardOp, shard::ShardingOp>(op) && isOpTriviallyDead(&op))
        op.erase();
}

namespace {
struct BNGradPartitionPass
    : bngrad::impl::BNGradPartitionPassBase<BNGradPartitionPass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (hasAnnotations(function))
        functions.push_back(function);
    for (func::FuncOp function : functions) {
      // Upstream does not annotate unused results, but needs the annotation.
      eraseDeadOps(function);
      if (failed(verifyAnnotations(function)) || failed(partition(function)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult partition(func::FuncOp function) {
    LDBG() << "partitions @" << function.getSymName();
    OpPassManager propagation(func::FuncOp::getOperationName());
    propagation.addPass(shard::createShardingPropagation());
    if (failed(runPipeline(propagation, function)))
      return failure();
    FailureOr<FunctionShardings> shardings = completeAnnotations(function);
    if (failed(shardings))
      return failure();
    OpPassManager partition(func::FuncOp::getOperationName());
    partition.addPass(shard::createPartition());
    if (failed(runPipeline(partition, function)))
      return failure();
    setShardingAttributes(function, *shardings);
    eraseDeadOps(function);
    return success();
  }
};
} // namespace
