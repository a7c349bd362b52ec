//===- bngrad-plugin.cpp - BNGrad in other MLIR tools ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two entry points of libBNGradPlugin.so, which the options
// --load-dialect-plugin and --load-pass-plugin of mlir-opt call. There are no
// stand-ins for other projects' dialects, as the tool may have these dialects
// itself.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/InitAll.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

extern "C" DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  // The pipelines need most of upstream's dialects and extensions. A dialect
  // that the tool has already registered is unchanged.
  return {MLIR_PLUGIN_API_VERSION, "BNGrad", BNGRAD_VERSION,
          [](DialectRegistry *registry) {
            mlir::bngrad::registerAllDialects(*registry);
          }};
}

extern "C" PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "BNGrad", BNGRAD_VERSION, []() {
            mlir::bngrad::registerBNGradPasses();
            mlir::bngrad::registerPipelines();
          }};
}
