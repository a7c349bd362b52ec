//===- CpuPipeline.cpp - stages and the CPU pipeline ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Slices, as canonicalization looks at them already.
static void addExpandSlicesPass(OpPassManager &pm) {
  BNGradExpandViewsPassOptions options;
  options.reshapes = false;
  pm.addPass(createBNGradExpandViewsPass(options));
}

void mlir::bngrad::addImportPasses(OpPassManager &pm) {
  // Those of the user, before anything else.
  addExpandSlicesPass(pm);
  pm.addNestedPass<func::FuncOp>(createBNGradImportPass());
}

void mlir::bngrad::addDecomposePasses(OpPassManager &pm) {
  // First, so that the decomposition sees every size that is known.
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createBNGradFoldTransposePass());
  pm.addNestedPass<func::FuncOp>(createBNGradDecomposePass());
}

void mlir::bngrad::addFusePasses(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  // Nothing lowers it later on.
  math::MathExpandOpsPassOptions expand;
  expand.opMnemonics = {"clampf"};
  pm.addNestedPass<func::FuncOp>(math::createMathExpandOpsPass(expand));
  pm.addNestedPass<func::FuncOp>(createBNGradFusePass());
  pm.addPass(createCanonicalizerPass());
}

Target CpuPipelineOptions::getTarget() const {
  Target target = Target::host();
  auto choose = [](int64_t &fact, int64_t given) {
    if (given != 0)
      fact = given;
  };
  choose(target.vectorBits, vectorBits);
  choose(target.threads, threads);
  choose(target.l1Bytes, l1Bytes);
  choose(target.lastLevelBytes, lastLevelBytes);
  if (fma != Feature::Host)
    target.fma = fma == Feature::Present;
  if (bf16Conversion != Feature::Host)
    target.bf16Conversion = bf16Conversion == Feature::Present;
  return target;
}

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

void mlir::bngrad::addBufferizePasses(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createBNGradPrepareBufferizePass());
  // Results that are materialized in a buffer of the caller are written there.
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  {
    bufferization::OneShotBufferizePassOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.allowReturnAllocsFromLoops = true;
    options.functionBoundaryTypeConversion =
        bufferization::LayoutMapOption::IdentityLayoutMap;
    pm.addPass(bufferization::createOneShotBufferizePass(options));
  }
  // Those that were slices of tensors.
  addExpandSlicesPass(pm);
  // Forwards the buffers that leave a group's region; without it the
  // out-parameters below would be filled by full-size copies.
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createBNGradReturnAllocsPass());
  {
    bufferization::BufferResultsToOutParamsPassOptions options;
    options.modifyPublicFunctions = true;
    options.hoistStaticAllocs = true;
    options.hoistDynamicAllocs = true;
    pm.addPass(bufferization::createBufferResultsToOutParamsPass(options));
  }
  // Before any loop of ours exists: it fails on ops of unknown effect.
  bufferization::buildBufferDeallocationPipeline(
      pm, bufferization::BufferDeallocationPipelineOptions());
  pm.addPass(createConvertBufferizationToMemRefPass());
  pm.addPass(createCanonicalizerPass());
}

void mlir::bngrad::addCpuApplyPasses(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createBNGradApplySchedulePass());
  pm.addNestedPass<func::FuncOp>(createBNGradExpandCopiesPass());
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void mlir::bngrad::addRoundingPasses(OpPassManager &pm, bool bf16Conversion) {
  // LLVM would round each result with the CPU's conversion to bf16, which makes
  // subnormals 0; a truncf is rounded right below.
  {
    arith::ArithEmulateUnsupportedFloatsOptions options;
    options.sourceTypeStrs = {"bf16"};
    pm.addPass(arith::createArithEmulateUnsupportedFloats(options));
  }
  {
    math::MathExtendToSupportedTypesOptions options;
    options.extraTypeStrs = {"f16"};
    pm.addPass(math::createMathExtendToSupportedTypes(options));
  }
  BNGradExpandTruncFPassOptions expand;
  expand.bf16Conversion = bf16Conversion;
  pm.addPass(createBNGradExpandTruncFPass(expand));
}

void mlir::bngrad::addCpuLowerPasses(OpPassManager &pm, const Target &target) {
  pm.addPass(createBNGradExpandMathPass());
  addRoundingPasses(pm, target.bf16Conversion);
  pm.addPass(createBNGradShareLoopsPass());
  // The loops of several dims.
  pm.addPass(createConvertSCFToOpenMPPass());
  // Removes the memref.alloca_scope around each parallel body, which
  // finalize-memref-to-llvm does not take.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createBNGradExpandViewsPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  // expand-strided-metadata makes affine.apply again.
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  // When a function ends by a branch, and sizes are still those of buffers.
  pm.addPass(createBNGradLowerAllocationsPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertComplexToStandardPass());
  pm.addPass(createConvertComplexToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  // Functions without an intrinsic become calls, one per element of a vector.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertOpenMPToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createBNGradLoopAnnotationsPass());
}

void mlir::bngrad::buildToLinalgPipeline(
    OpPassManager &pm, const ToLinalgPipelineOptions &options) {
  auto runs = [&](Stage stage) { return stage <= options.stopAfter; };
  addImportPasses(pm);
  if (runs(Stage::Decompose))
    addDecomposePasses(pm);
  if (runs(Stage::Fuse))
    addFusePasses(pm);
}

void mlir::bngrad::buildCpuPipeline(OpPassManager &pm,
                                    const CpuPipelineOptions &options) {
  auto runs = [&](Stage stage) { return stage <= options.stopAfter; };
  addImportPasses(pm);
  if (runs(Stage::Decompose))
    addDecomposePasses(pm);
  if (runs(Stage::Fuse))
    addFusePasses(pm);
  if (runs(Stage::Group))
    addGroupPasses(pm, options.schedule, options.getTarget());
  if (runs(Stage::Bufferize))
    addBufferizePasses(pm);
  if (runs(Stage::Apply))
    addCpuApplyPasses(pm);
  if (runs(Stage::Lower)) {
    // While there are buffers, whose types say how C passes them.
    if (options.exportC)
      pm.addPass(createBNGradExportCPass());
    addCpuLowerPasses(pm, options.getTarget());
  }
}

/// Registers a pipeline of passes on modules. Elsewhere upstream would end the
/// process when the first of them is added.
template <typename Options>
static void registerPipeline(StringRef name, StringRef description,
                             void (*build)(OpPassManager &, const Options &)) {
  auto add = [=](OpPassManager &pm, StringRef text,
                 function_ref<LogicalResult(const Twine &)> emitError) {
    std::optional<StringRef> anchor = pm.getOpName();
    if (anchor && *anchor != ModuleOp::getOperationName())
      return emitError("expected '" + name + "' to run on '" +
                       ModuleOp::getOperationName() + "', got '" + *anchor +
                       "'");
    Options options;
    if (failed(options.parseFromString(text)))
      return failure();
    build(pm, options);
    return success();
  };
  auto describe =
      [](function_ref<void(const detail::PassOptions &)> handleOptions) {
        handleOptions(Options());
      };
  registerPassPipeline(name, description, add, describe);
}

void mlir::bngrad::registerPipelines() {
  registerPipeline("bngrad-to-linalg",
                   "Decompose bngrad ops into linalg on tensors and fuse",
                   buildToLinalgPipeline);
  registerPipeline("bngrad-cpu-pipeline",
                   "Compile bngrad ops for the CPU, down to LLVM",
                   buildCpuPipeline);
  registerPipeline(
      "bngrad-cuda-pipeline",
      "Compile bngrad ops for NVIDIA GPUs, down to embedded kernels and LLVM",
      buildCudaPipeline);
}
