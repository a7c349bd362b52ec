//===- ConvertToLLVM.cpp - bngrad-convert-to-llvm -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream has one conversion pass per dialect. Each of them visits all ops,
// and passes that convert types leave casts behind. This pass converts most
// dialects together, which takes half the time, and runs the passes for rare
// dialects only if the module has such ops. Upstream's convert-to-llvm also
// converts dialects together, but only those for which the user's context has
// registered an interface.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Analysis/DataLayoutAnalysis.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADCONVERTTOLLVMPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

/// Whether the module has an op of the dialect.
template <typename Dialect> static bool hasOpsOf(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa_and_nonnull<Dialect>(op->getDialect())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Converts arith, cf, complex, func, index, memref and ub.
static LogicalResult convertTogether(ModuleOp module,
                                     const DataLayoutAnalysis &layouts) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(
      context, LowerToLLVMOptions(context, layouts.getAtOrAbove(module)),
      &layouts);
  SymbolTableCollection symbols;
  RewritePatternSet patterns(context);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateAssertToLLVMConversionPattern(converter, patterns,
                                            /*abortOnFailure=*/true, &symbols);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateComplexToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns, &symbols);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns, &symbols);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addIllegalDialect<cf::ControlFlowDialect, complex::ComplexDialect,
                           index::IndexDialect, ub::UBDialect>();
  // These ops call C library functions. If the module has a function of that
  // name with another type, the patterns emit an error but keep the op.
  target.addIllegalOp<memref::AllocOp, memref::DeallocOp, memref::CopyOp>();
  return applyPartialConversion(module, target, std::move(patterns));
}

namespace {
struct BNGradConvertToLLVMPass
    : bngrad::impl::BNGradConvertToLLVMPassBase<BNGradConvertToLLVMPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    OpPassManager pm(ModuleOp::getOperationName());
    pm.addPass(createConvertComplexToStandardPass());
    pm.addPass(createConvertMathToLLVMPass());
    pm.addPass(createConvertMathToLibmPass());
    pm.addPass(createConvertVectorToLLVMPass());
    pm.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto run = [&](std::unique_ptr<Pass> pass) {
      OpPassManager pm(ModuleOp::getOperationName());
      pm.addPass(std::move(pass));
      return runPipeline(pm, module);
    };
    if (hasOpsOf<complex::ComplexDialect>(module) &&
        failed(run(createConvertComplexToStandardPass())))
      return signalPassFailure();
    if (failed(run(createConvertMathToLLVMPass())))
      return signalPassFailure();
    // Functions without an LLVM intrinsic become calls, one per vector element.
    if (hasOpsOf<math::MathDialect>(module) &&
        failed(run(createConvertMathToLibmPass())))
      return signalPassFailure();
    if (failed(run(createConvertVectorToLLVMPass())) ||
        failed(convertTogether(module, getAnalysis<DataLayoutAnalysis>())) ||
        failed(run(createReconcileUnrealizedCastsPass())))
      return signalPassFailure();
  }
};
} // namespace
