//===- ImportStableHlo.cpp - gradients of StableHLO and MHLO --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Import.h"

using namespace mlir;
using namespace mlir::bngrad;

/// stablehlo.batch_norm_grad(operand, scale, mean, variance, grad_output) with
/// epsilon and feature_index: training, biased variance (StableHLO
/// specification, batch_norm_grad). MHLO's op is the same.
LogicalResult mlir::bngrad::importBatchNormGrad(OpBuilder &b, Operation *op) {
  if (failed(verifyArity(op, 5, 3)))
    return failure();
  static constexpr StringLiteral kNames[] = {"operand", "scale", "mean",
                                             "variance", "grad_output"};
  for (auto [name, type] : llvm::zip_equal(kNames, op->getOperandTypes()))
    if (failed(verifyTensor(op, name, type)))
      return failure();
  static constexpr StringLiteral kResultNames[] = {"grad_operand", "grad_scale",
                                                   "grad_offset"};
  for (auto [name, type] : llvm::zip_equal(kResultNames, op->getResultTypes()))
    if (failed(verifyTensor(op, name, type)))
      return failure();
  auto epsilon = dyn_cast_or_null<FloatAttr>(getAttribute(op, "epsilon"));
  if (!epsilon)
    return op->emitOpError() << "expected a float attribute 'epsilon'";
  auto featureIndex =
      dyn_cast_or_null<IntegerAttr>(getAttribute(op, "feature_index"));
  if (!featureIndex)
    return op->emitOpError() << "expected an integer attribute 'feature_index'";
  const APInt &index = featureIndex.getValue();
  if (featureIndex.getType().isUnsignedInteger() ? !index.isIntN(63)
                                                 : !index.isSignedIntN(64))
    return op->emitOpError()
           << "expected feature_index to fit in an i64, got " << featureIndex;

  ForeignGradient gradient;
  gradient.input = op->getOperand(0);
  gradient.scale = op->getOperand(1);
  gradient.mean = op->getOperand(2);
  gradient.variance = op->getOperand(3);
  gradient.gradOutput = op->getOperand(4);
  gradient.featureDim = index.getSExtValue();
  gradient.epsilon = epsilon.getValueAsDouble();
  gradient.gradInput = op->getResult(0).getType();
  gradient.gradScale = op->getResult(1).getType();
  gradient.gradOffset = op->getResult(2).getType();
  FailureOr<BatchNormBackwardOp> result = buildGradient(b, op, gradient);
  if (failed(result))
    return failure();
  op->replaceAllUsesWith((*result)->getResults());
  op->erase();
  return success();
}
