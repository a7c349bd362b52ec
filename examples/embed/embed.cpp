//===- embed.cpp - BNGrad in another compiler -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds a gradient with the C++ API, decomposes it with BNGrad's patterns in a
// pass of its own, and prints the resulting linalg.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/ToLinalg/Patterns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {
/// A compiler adds patterns of its own here.
struct LowerToLinalgPass
    : PassWrapper<LowerToLinalgPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLinalgPass)

  // The patterns create ops of these dialects, which MLIR loads before a pass.
  void getDependentDialects(DialectRegistry &registry) const override {
    bngrad::registerDecomposeDependentDialects(registry);
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    bngrad::populateDecomposePatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

int main() {
  MLIRContext context;
  context.loadDialect<bngrad::BNGradDialect, func::FuncDialect>();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());

  auto data = RankedTensorType::get({8, 16, 16, 4}, b.getBF16Type());
  auto channel = RankedTensorType::get({4}, b.getF32Type());
  Type inputs[] = {data, data, channel, channel, channel};
  auto function = func::FuncOp::create(
      b, loc, "gradient", b.getFunctionType(inputs, {data, channel, channel}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  // The types of the results are inferred.
  auto gradient = bngrad::BatchNormBackwardOp::create(
      b, loc, /*grad_output=*/entry->getArgument(0),
      /*input=*/entry->getArgument(1), /*scale=*/entry->getArgument(2),
      /*mean=*/entry->getArgument(3), /*variance=*/entry->getArgument(4),
      /*inv_std=*/Value(), /*mask=*/Value(),
      /*feature_dims=*/ArrayRef<int64_t>{3}, /*epsilon=*/1e-5);
  func::ReturnOp::create(b, loc, gradient->getResults());

  PassManager pm(&context);
  pm.addNestedPass<func::FuncOp>(std::make_unique<LowerToLinalgPass>());
  pm.addPass(createCSEPass());
  if (failed(pm.run(*module)))
    return 1;
  module->print(llvm::outs());
  return 0;
}
