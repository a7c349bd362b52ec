//===- Passes.cpp - the passes of bufferize -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Bufferize/Passes.h"

#include "BNGrad/Transforms/Partition/Passes.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addBufferizePasses(OpPassManager &pm) {
  // Runs after fusion and grouping, so that the calls are between the groups.
  pm.addPass(createBNGradCollectivesToRuntimePass());
  pm.addNestedPass<func::FuncOp>(createBNGradPrepareBufferizePass());
  // Writes results directly to the caller's buffer if they end up there.
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  {
    bufferization::OneShotBufferizePassOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.allowReturnAllocsFromLoops = true;
    options.functionBoundaryTypeConversion =
        bufferization::LayoutMapOption::IdentityLayoutMap;
    pm.addPass(bufferization::createOneShotBufferizePass(options));
  }
  // Expands what used to be slices of tensors.
  pm.addPass(createBNGradExpandViewsPass({/*reshapes=*/false}));
  // Forwards the buffers that leave a group's region; otherwise full-size
  // copies would fill the out-parameters below.
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createBNGradReturnAllocsPass());
  {
    bufferization::BufferResultsToOutParamsPassOptions options;
    options.modifyPublicFunctions = true;
    options.hoistStaticAllocs = true;
    options.hoistDynamicAllocs = true;
    pm.addPass(bufferization::createBufferResultsToOutParamsPass(options));
  }
  // Runs before our loops exist, as it fails on ops of unknown effect.
  bufferization::buildBufferDeallocationPipeline(
      pm, bufferization::BufferDeallocationPipelineOptions());
  pm.addPass(createConvertBufferizationToMemRefPass());
  pm.addPass(createCanonicalizerPass());
}
