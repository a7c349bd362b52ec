//===- InitAll.h - registers everything BNGrad needs ---------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_INITALL_H
#define BNGRAD_INITALL_H

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Lower/SelectByDevice.h"
#include "BNGrad/Transforms/Partition/ShardingInterface.h"
#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

namespace mlir::bngrad {

/// Adds every upstream dialect and extension, our dialect, the translations of
/// the pipelines' output and of kernels to LLVM IR, and the sharding of our
/// ops.
inline void registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registry.insert<BNGradDialect>();
  registerSelectByDeviceTranslation(registry);
  registerShardingInterfaceExternalModels(registry);
}

/// Registers every upstream pass, our passes and our pipelines.
inline void registerAllPasses() {
  mlir::registerAllPasses();
  registerBNGradPasses();
  registerPipelines();
}

} // namespace mlir::bngrad

#endif // BNGRAD_INITALL_H
