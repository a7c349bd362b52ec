//===- Passes.cpp - passes before calls are checked -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CAbi/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addInlinePasses(OpPassManager &pm) {
  pm.addPass(createBNGradDropPromisesPass());
  // Without upstream's canonicalization: a function is run, and checked, as it
  // was written.
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
}
