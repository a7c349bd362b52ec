//===- ImportStableHlo.cpp - ops of StableHLO and MHLO --------------------===//
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

namespace {
/// The attributes that the three ops share.
struct Options {
  double epsilon = 0;
  int64_t featureDim = 0;
};
} // namespace

/// Checks the operands and results of `op`, which are tensors, and reads its
/// attributes.
static FailureOr<Options> readOptions(Operation *op,
                                      ArrayRef<StringLiteral> operands,
                                      ArrayRef<StringLiteral> results,
                                      TypeRange resultTypes) {
  for (auto [name, type] : llvm::zip_equal(operands, op->getOperandTypes()))
    if (failed(verifyTensor(op, name, type)))
      return failure();
  for (auto [name, type] : llvm::zip_equal(results, resultTypes))
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
  return Options{epsilon.getValueAsDouble(), index.getSExtValue()};
}

/// batch_norm_grad(operand, scale, mean, variance, grad_output) with epsilon
/// and feature_index: training, biased variance (StableHLO specification,
/// batch_norm_grad). MHLO's ops are the same, here and below.
static LogicalResult importGrad(OpBuilder &b, Operation *op) {
  TupleType tuple = getTuple(op);
  if (failed(verifyArity(op, 5, tuple ? 1 : 3)))
    return failure();
  TypeRange types =
      tuple ? TypeRange(tuple.getTypes()) : TypeRange(op->getResultTypes());
  FailureOr<Options> options =
      readOptions(op, {"operand", "scale", "mean", "variance", "grad_output"},
                  {"grad_operand", "grad_scale", "grad_offset"}, types);
  if (failed(options))
    return failure();

  ForeignGradient gradient;
  gradient.input = op->getOperand(0);
  gradient.scale = op->getOperand(1);
  gradient.mean = op->getOperand(2);
  gradient.variance = op->getOperand(3);
  gradient.gradOutput = op->getOperand(4);
  gradient.featureDim = options->featureDim;
  gradient.epsilon = options->epsilon;
  gradient.gradInput = types[0];
  gradient.gradScale = types[1];
  gradient.gradOffset = types[2];
  FailureOr<BatchNormBackwardOp> result = buildGradient(b, op, gradient);
  if (failed(result))
    return failure();
  return replaceUses(op, (*result)->getResults());
}

/// batch_norm_training(operand, scale, offset): output, batch_mean and
/// batch_var, which is biased.
static LogicalResult importTraining(OpBuilder &b, Operation *op) {
  TupleType tuple = getTuple(op);
  if (failed(verifyArity(op, 3, tuple ? 1 : 3)))
    return failure();
  TypeRange types =
      tuple ? TypeRange(tuple.getTypes()) : TypeRange(op->getResultTypes());
  FailureOr<Options> options =
      readOptions(op, {"operand", "scale", "offset"},
                  {"output", "batch_mean", "batch_var"}, types);
  if (failed(options))
    return failure();
  ForeignForward forward;
  forward.input = op->getOperand(0);
  forward.scale = op->getOperand(1);
  forward.offset = op->getOperand(2);
  forward.featureDim = options->featureDim;
  forward.epsilon = options->epsilon;
  forward.output = types[0];
  FailureOr<BatchNormTrainingOp> training =
      buildTraining(b, op, forward, types[1], types[2]);
  if (failed(training))
    return failure();
  return replaceUses(op, training->getResults().take_front(3));
}

/// batch_norm_inference(operand, scale, offset, mean, variance).
static LogicalResult importInference(OpBuilder &b, Operation *op) {
  if (failed(verifyArity(op, 5, 1)))
    return failure();
  FailureOr<Options> options =
      readOptions(op, {"operand", "scale", "offset", "mean", "variance"},
                  {"result"}, op->getResultTypes());
  if (failed(options))
    return failure();
  ForeignForward forward;
  forward.input = op->getOperand(0);
  forward.scale = op->getOperand(1);
  forward.offset = op->getOperand(2);
  forward.mean = op->getOperand(3);
  forward.variance = op->getOperand(4);
  forward.featureDim = options->featureDim;
  forward.epsilon = options->epsilon;
  forward.output = op->getResult(0).getType();
  FailureOr<Value> output = buildInference(b, op, forward);
  if (failed(output))
    return failure();
  op->replaceAllUsesWith(ValueRange(*output));
  return success();
}

std::optional<LogicalResult> mlir::bngrad::importStableHloOp(OpBuilder &b,
                                                             Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("stablehlo.") && !name.consume_front("mhlo."))
    return std::nullopt;
  LogicalResult imported = failure();
  if (name == "batch_norm_grad")
    imported = importGrad(b, op);
  else if (name == "batch_norm_training")
    imported = importTraining(b, op);
  else if (name == "batch_norm_inference")
    imported = importInference(b, op);
  else
    return std::nullopt;
  if (succeeded(imported))
    op->erase();
  return imported;
}
