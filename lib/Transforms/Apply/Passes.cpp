//===- Passes.cpp - the passes of apply -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Apply/Passes.h"

#include "Utils/Utils.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addCpuApplyPasses(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createBNGradApplySchedulePass());
  pm.addNestedPass<func::FuncOp>(createBNGradExpandCopiesPass());
  pm.addNestedPass<func::FuncOp>(createBNGradLinalgToLoopsPass());
  pm.addPass(createOpCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void mlir::bngrad::addCudaApplyPasses(OpPassManager &pm, StringRef chip,
                                      bool deviceArguments) {
  BNGradApplySchedulePassOptions options;
  options.chip = chip.str();
  options.deviceArguments = deviceArguments;
  pm.addNestedPass<func::FuncOp>(createBNGradApplySchedulePass(options));
  // Strided copies on the host would become calls of MLIR's library.
  pm.addNestedPass<func::FuncOp>(createBNGradExpandCopiesPass());
  pm.addNestedPass<func::FuncOp>(createBNGradLinalgToLoopsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
