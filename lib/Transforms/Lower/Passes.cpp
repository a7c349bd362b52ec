//===- Passes.cpp - the passes of the stage lower -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "BNGrad/Transforms/Lower/Patterns.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"
#include "Utils/Utils.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Adds passes that compute bf16 arithmetic in f32, and round only once to f16
/// and bf16.
static void addRoundingPasses(OpPassManager &pm,
                              const FloatInstructions &instructions) {
  // LLVM would round the results of bf16 arithmetic with the CPU's conversion,
  // which flushes subnormals. The emulation rounds them with truncf, which
  // bngrad-expand-truncf makes correct.
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
  expand.bf16Conversion = instructions.bf16;
  expand.kernelBF16Conversion = instructions.kernelBF16;
  expand.f16Conversion = instructions.f16;
  pm.addPass(createBNGradExpandTruncFPass(expand));
}

/// Whether all chips in `names` have an instruction that rounds to bf16. An
/// invalid name counts as false here; `--bngrad-attach-chips` reports it.
static bool canRoundToBF16(StringRef names) {
  std::string reason;
  FailureOr<SmallVector<const CudaChip *>> chips =
      CudaChip::parse(names, reason);
  return succeeded(chips) && CudaChip::getCommon(*chips).roundsToBF16();
}

void mlir::bngrad::addCpuLowerPasses(OpPassManager &pm, const Target &target) {
  pm.addPass(createBNGradLowerElementCastPass());
  pm.addPass(createBNGradExpandMathPass());
  addRoundingPasses(
      pm, {target.bf16Conversion, /*kernelBF16=*/false, target.f16Conversion});
  pm.addPass(createBNGradShareLoopsPass());
  pm.addPass(createOpCanonicalizerPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createBNGradExpandViewsPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  // expand-strided-metadata makes affine.apply again.
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  // Run this once functions consist of blocks, so that a failure is a branch,
  // but before buffers become descriptors.
  pm.addPass(createBNGradLowerAllocationsPass());
  pm.addPass(createBNGradConvertToLLVMPass());
  // Fold descriptors, so that phases capture single pointers and sizes instead.
  pm.addPass(createOpCanonicalizerPass());
  pm.addPass(createBNGradOutlineParallelPass());
  pm.addPass(createBNGradDefineValuesPass());
  pm.addPass(createBNGradGuardDivisionsPass());
  pm.addPass(createBNGradLoopAnnotationsPass());
}

static void addKernelPasses(OpPassManager &pm) {
  pm.addPass(createBNGradOverlapLaunchesPass());
  pm.addPass(createBNGradLowerKernelMathPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  // expand-strided-metadata makes affine.apply again.
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertNVGPUToNVVMPass());
  pm.addPass(createConvertGpuOpsToNVVMOps());
  pm.addPass(createBNGradLoopAnnotationsPass());
  pm.addPass(createBNGradLayOutSharedMemoryPass());
  pm.addPass(createBNGradLowerStreamingStoresPass());
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  // Run this once the arguments of kernels are the parameters of PTX.
  pm.addPass(createBNGradVerifyKernelsPass());
}

void mlir::bngrad::addCudaLowerPasses(OpPassManager &pm,
                                      const KernelOptions &options) {
  // These passes also lower the ops in gpu.launch.
  pm.addPass(createBNGradLowerElementCastPass());
  pm.addPass(createBNGradExpandMathPass());
  addRoundingPasses(pm.nest<func::FuncOp>(),
                    {/*bf16=*/false, canRoundToBF16(options.chip)});
  // This pass also expands views in gpu.launch.
  pm.addPass(createBNGradExpandViewsPass());
  // Move constants into kernels, so that they do not become parameters.
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
  pm.addPass(createCanonicalizerPass());
  BNGradAttachChipsPassOptions chips;
  chips.chip = options.chip;
  chips.features = options.features;
  chips.optLevel = options.optLevel;
  pm.addNestedPass<gpu::GPUModuleOp>(createBNGradAttachChipsPass(chips));
  // Run these while launches still have their sizes and kernels their shared
  // memory.
  pm.addPass(createBNGradBoundRegistersPass());
  pm.addPass(createBNGradRequireClustersPass());
  addKernelPasses(pm.nest<gpu::GPUModuleOp>());

  pm.addPass(createLowerAffinePass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createBNGradLowerAllocationsPass());
  pm.addPass(createConvertComplexToStandardPass());
  pm.addPass(createConvertComplexToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  // Functions without an LLVM intrinsic become calls.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createGpuToLLVMConversionPass());
  // This pass also defines the values in kernels.
  pm.addPass(createBNGradDefineValuesPass());
  pm.addPass(createBNGradGuardDivisionsPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  GpuModuleToBinaryPassOptions binary;
  binary.compilationTarget = options.format == CudaFormat::Isa   ? "isa"
                             : options.format == CudaFormat::Bin ? "bin"
                                                                 : "fatbin";
  pm.addPass(createGpuModuleToBinaryPass(binary));
}
