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

/// The type of a single result that is a tuple of three, as MHLO had before
/// 2022; null for any other op.
static TupleType getTuple(Operation *op) {
  if (op->getNumResults() != 1)
    return {};
  auto tuple = dyn_cast<TupleType>(op->getResult(0).getType());
  return tuple && tuple.size() == 3 ? tuple : TupleType();
}

/// Replaces the results of `op` or, if it returns a tuple, the elements that
/// are extracted from it.
static LogicalResult replaceUses(Operation *op, ValueRange values) {
  if (!getTuple(op)) {
    op->replaceAllUsesWith(values);
    return success();
  }
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    StringRef name = user->getName().getStringRef();
    auto index = dyn_cast_or_null<IntegerAttr>(getAttribute(user, "index"));
    if (!(name == "mhlo.get_tuple_element" ||
          name == "stablehlo.get_tuple_element") ||
        !index || index.getValue().uge(values.size()) ||
        user->getNumResults() != 1 ||
        user->getResult(0).getType() !=
            values[index.getValue().getZExtValue()].getType())
      return op->emitOpError() << "expected users of a tuple of results to be "
                                  "get_tuple_element, got '"
                               << name << "'";
    user->getResult(0).replaceAllUsesWith(
        values[index.getValue().getZExtValue()]);
    user->erase();
  }
  return success();
}

/// stablehlo.batch_norm_grad(operand, scale, mean, variance, grad_output) with
/// epsilon and feature_index: training, biased variance (StableHLO
/// specification, batch_norm_grad). MHLO's op is the same.
LogicalResult mlir::bngrad::importBatchNormGrad(OpBuilder &b, Operation *op) {
  TupleType tuple = getTuple(op);
  if (failed(verifyArity(op, 5, tuple ? 1 : 3)))
    return failure();
  TypeRange types =
      tuple ? TypeRange(tuple.getTypes()) : TypeRange(op->getResultTypes());
  static constexpr StringLiteral kNames[] = {"operand", "scale", "mean",
                                             "variance", "grad_output"};
  for (auto [name, type] : llvm::zip_equal(kNames, op->getOperandTypes()))
    if (failed(verifyTensor(op, name, type)))
      return failure();
  static constexpr StringLiteral kResultNames[] = {"grad_operand", "grad_scale",
                                                   "grad_offset"};
  for (auto [name, type] : llvm::zip_equal(kResultNames, types))
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
  gradient.gradInput = types[0];
  gradient.gradScale = types[1];
  gradient.gradOffset = types[2];
  FailureOr<BatchNormBackwardOp> result = buildGradient(b, op, gradient);
  if (failed(result))
    return failure();
  if (failed(replaceUses(op, (*result)->getResults())))
    return failure();
  op->erase();
  return success();
}
