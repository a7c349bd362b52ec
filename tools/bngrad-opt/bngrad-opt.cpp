//===- bngrad-opt.cpp - runs passes on IR files ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/InitAll.h"
#include "common/Diagnostics.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::bngrad::setToolName("bngrad-opt");
  mlir::bngrad::reportOutOfMemory();
  mlir::DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  mlir::bngrad::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "BNGrad optimizer: gradients of batch normalization\n",
      registry));
}
