//===- bngrad-lsp-server.cpp - language server for editors ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/ForeignDialects.h"
#include "BNGrad/InitAll.h"
#include "common/Diagnostics.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;
using namespace mlir::bngrad;

int main(int argc, char **argv) {
  setToolName("bngrad-lsp-server");
  reportOutOfMemory();
  llvm::cl::SetVersionPrinter(printVersion);
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  registerForeignDialects(registry);
  return failed(MlirLspServerMain(argc, argv, registry)) ? 1 : 0;
}
