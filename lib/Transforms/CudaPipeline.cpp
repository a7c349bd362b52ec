//===- CudaPipeline.cpp - the CUDA pipeline -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addCudaGroupPasses(OpPassManager &pm, StringRef schedule,
                                      StringRef chip) {
  BNGradGroupPassOptions options;
  options.schedule = schedule.str();
  options.chip = chip.str();
  pm.addNestedPass<func::FuncOp>(createBNGradGroupPass(options));
}

void mlir::bngrad::addCudaApplyPasses(OpPassManager &pm, bool deviceArguments) {
  BNGradApplySchedulePassOptions options;
  options.deviceArguments = deviceArguments;
  pm.addNestedPass<func::FuncOp>(createBNGradApplySchedulePass(options));
  // Strided copies on the host would be calls of MLIR's library.
  pm.addNestedPass<func::FuncOp>(createBNGradExpandCopiesPass());
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

static void addKernelPasses(OpPassManager &pm,
                            const CudaPipelineOptions &options) {
  BNGradAttachChipsPassOptions chips;
  chips.chip = options.chip;
  chips.features = options.features;
  chips.optLevel = options.optLevel;
  pm.addPass(createBNGradAttachChipsPass(chips));
  pm.addPass(createBNGradLowerKernelMathPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  // expand-strided-metadata makes affine.apply again.
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertNVGPUToNVVMPass());
  pm.addPass(createConvertGpuOpsToNVVMOps());
  pm.addPass(createBNGradLayOutSharedMemoryPass());
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  // Once arguments are the parameters of PTX.
  pm.addPass(createBNGradVerifyKernelsPass());
}

void mlir::bngrad::addCudaLowerPasses(OpPassManager &pm,
                                      const CudaPipelineOptions &options) {
  pm.addPass(createBNGradExpandMathPass());
  addRoundingPasses(pm.nest<func::FuncOp>(), /*bf16Conversion=*/false);
  // Those in kernels as well.
  pm.addPass(createBNGradExpandViewsPass());
  // Constants are parts of a kernel, not its parameters.
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
  pm.addPass(createCanonicalizerPass());
  addKernelPasses(pm.nest<gpu::GPUModuleOp>(), options);

  pm.addPass(createLowerAffinePass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createBNGradLowerAllocationsPass());
  pm.addPass(createConvertComplexToStandardPass());
  pm.addPass(createConvertComplexToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  // Functions without an intrinsic become calls.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createGpuToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  GpuModuleToBinaryPassOptions binary;
  binary.compilationTarget = options.format == CudaFormat::Isa   ? "isa"
                             : options.format == CudaFormat::Bin ? "bin"
                                                                 : "fatbin";
  pm.addPass(createGpuModuleToBinaryPass(binary));
}

void mlir::bngrad::buildCudaPipeline(OpPassManager &pm,
                                     const CudaPipelineOptions &options) {
  auto runs = [&](Stage stage) { return stage <= options.stopAfter; };
  addImportPasses(pm);
  if (runs(Stage::Decompose))
    addDecomposePasses(pm);
  if (runs(Stage::Fuse))
    addFusePasses(pm);
  if (runs(Stage::Group))
    addCudaGroupPasses(pm, options.schedule, options.chip);
  if (runs(Stage::Bufferize))
    addBufferizePasses(pm);
  if (runs(Stage::Apply))
    addCudaApplyPasses(pm, options.deviceArguments);
  if (runs(Stage::Lower)) {
    // While there are buffers, whose types say how C passes them.
    if (options.exportC) {
      BNGradExportCPassOptions exported;
      exported.statusFunction = "bngradCudaTakeStatus";
      pm.addPass(createBNGradExportCPass(exported));
    }
    addCudaLowerPasses(pm, options);
  }
}
