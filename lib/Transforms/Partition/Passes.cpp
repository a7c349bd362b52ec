//===- Passes.cpp - the passes of partition -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Partition/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addPartitionPasses(OpPassManager &pm) {
  pm.addPass(createBNGradPartitionPass());
  // Always run it: one message of all sums takes as long as one of few, and few
  // libraries transfer one message while waiting for another.
  pm.addNestedPass<func::FuncOp>(createBNGradCombineCollectivesPass());
}
