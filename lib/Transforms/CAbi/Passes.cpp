//===- Passes.cpp - passes that prepare the checks of functions -----------===//
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
  // Inline without upstream's canonicalization, so that functions are checked
  // and run as they were written.
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
}
