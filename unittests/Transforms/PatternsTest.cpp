//===- PatternsTest.cpp - patterns in a pass of another compiler ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/ToLinalg/Patterns.h"
#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <gtest/gtest.h>

using namespace mlir;

/// Every op, every operand, and sizes that are known at run time only.
static constexpr char kGradients[] = R"mlir(
func.func @whole(%dy: tensor<?x3x5xbf16>, %x: tensor<?x3x5xbf16>, %scale: tensor<3xf32>, %mean: tensor<3xf32>,
                 %variance: tensor<3xf32>, %mask: tensor<?x3x5xi1>)
    -> (tensor<?x3x5xbf16>, tensor<3xf32>, tensor<3xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3x5xbf16>)
      input(%x : tensor<?x3x5xbf16>) scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>)
      variance(%variance : tensor<3xf32>) mask(%mask : tensor<?x3x5xi1>) {epsilon = 1.0e-5 : f64}
      : tensor<?x3x5xbf16>, tensor<3xf32>, tensor<3xf32>
  return %dx, %dscale, %doffset : tensor<?x3x5xbf16>, tensor<3xf32>, tensor<3xf32>
}
func.func @halves(%dy: tensor<?x4xf32>, %x: tensor<?x4xf32>, %mean: tensor<4xf32>, %inv_std: tensor<4xf32>)
    -> tensor<?x4xf32> {
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<?x4xf32>) input(%x : tensor<?x4xf32>)
      mean(%mean : tensor<4xf32>) : tensor<2x4xf32>, tensor<i64>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<?x4xf32>) input(%x : tensor<?x4xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) sums(%sums : tensor<2x4xf32>)
      count(%count : tensor<i64>) : tensor<?x4xf32>
  return %dx : tensor<?x4xf32>
}
)mlir";

namespace {
using Populate = void (*)(RewritePatternSet &);

/// The pass of a compiler that has its own driver and its own order.
struct UserPass : PassWrapper<UserPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UserPass)

  explicit UserPass(Populate populate) : populate(populate) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    bngrad::registerDecomposeDependentDialects(registry);
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populate(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

  Populate populate;
};
} // namespace

/// A context with the dialects of the input alone.
static void load(MLIRContext &context) {
  context.loadDialect<bngrad::BNGradDialect, func::FuncDialect>();
}

template <typename Op> static unsigned count(ModuleOp module) {
  unsigned number = 0;
  module.walk([&](Op) { ++number; });
  return number;
}

static unsigned countGradients(ModuleOp module) {
  unsigned number = 0;
  module.walk([&](Operation *op) {
    number += isa_and_present<bngrad::BNGradDialect>(op->getDialect());
  });
  return number;
}

TEST(Patterns, DecomposeInPassOfUser) {
  MLIRContext context;
  load(context);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(kGradients, &context);
  ASSERT_TRUE(module);
  EXPECT_EQ(countGradients(*module), 3u);
  // MLIR ends the process where an op of a dialect that is not loaded is built.
  EXPECT_FALSE(context.getLoadedDialect("linalg"));
  PassManager pm(&context);
  pm.addPass(std::make_unique<UserPass>(bngrad::populateDecomposePatterns));
  ASSERT_TRUE(succeeded(pm.run(*module)));
  EXPECT_EQ(countGradients(*module), 0u);
  // Each function has at least a reduction and an element-wise op.
  EXPECT_GE(count<linalg::GenericOp>(*module), 4u);
  EXPECT_TRUE(succeeded(verify(*module)));
}

/// All patterns of the header, in the order of the pipeline.
TEST(Patterns, AllInPassesOfUser) {
  MLIRContext context;
  load(context);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(kGradients, &context);
  ASSERT_TRUE(module);
  for (Populate populate :
       {bngrad::populateSplitPatterns, bngrad::populateFoldTransposePatterns,
        bngrad::populateDecomposePatterns, bngrad::populateFusePatterns}) {
    PassManager pm(&context);
    pm.addPass(std::make_unique<UserPass>(populate));
    ASSERT_TRUE(succeeded(pm.run(*module)));
    if (populate == bngrad::populateSplitPatterns) {
      EXPECT_EQ(count<bngrad::BatchNormBackwardOp>(*module), 0u);
      EXPECT_EQ(count<bngrad::BatchNormBackwardReduceOp>(*module), 2u);
      EXPECT_EQ(count<bngrad::BatchNormBackwardElemtOp>(*module), 2u);
    }
  }
  EXPECT_EQ(countGradients(*module), 0u);
  EXPECT_TRUE(succeeded(verify(*module)));
}
