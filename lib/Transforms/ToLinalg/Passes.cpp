//===- Passes.cpp - the passes of import, decompose and fuse --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addImportPasses(OpPassManager &pm) {
  pm.addPass(createBNGradDropAnnotationsPass());
  // Expands the user's slices, as canonicalization already inspects them.
  pm.addPass(createBNGradExpandViewsPass({/*reshapes=*/false}));
  pm.addNestedPass<func::FuncOp>(createBNGradImportPass());
  pm.addPass(createBNGradTorchToBuiltinPass());
}

void mlir::bngrad::addDecomposePasses(OpPassManager &pm) {
  // Runs first, so that the decomposition sees every known size.
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createBNGradFoldTransposePass());
  pm.addNestedPass<func::FuncOp>(createBNGradDecomposePass());
}

void mlir::bngrad::addFusePasses(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  // No later pass lowers this op.
  math::MathExpandOpsPassOptions expand;
  expand.opMnemonics = {"clampf"};
  pm.addNestedPass<func::FuncOp>(math::createMathExpandOpsPass(expand));
  pm.addNestedPass<func::FuncOp>(createBNGradFusePass());
  pm.addPass(createCanonicalizerPass());
}
