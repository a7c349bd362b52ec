//===- Passes.cpp - the passes of group -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addGroupPasses(OpPassManager &pm, StringRef schedule,
                                  const Target &target) {
  BNGradGroupPassOptions options;
  options.schedule = schedule.str();
  options.vectorBits = target.vectorBits;
  options.threads = target.threads;
  options.l1Bytes = target.l1Bytes;
  options.lastLevelBytes = target.lastLevelBytes;
  options.fma = target.fma;
  pm.addNestedPass<func::FuncOp>(createBNGradGroupPass(options));
}

void mlir::bngrad::addCudaGroupPasses(OpPassManager &pm, StringRef schedule,
                                      StringRef chip,
                                      StringRef activeClusters) {
  BNGradGroupPassOptions options;
  options.schedule = schedule.str();
  options.chip = chip.str();
  options.activeClusters = activeClusters.str();
  pm.addNestedPass<func::FuncOp>(createBNGradGroupPass(options));
}
