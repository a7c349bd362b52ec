//===- BNGradInterfaces.cpp - shapes, run-time checks, speculation --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Sizes that disagree at run time are undefined behaviour, so only an op whose
/// operands' shapes are all known may be moved to where it would not have run.
static Speculation::Speculatability speculatabilityOf(Operation *op) {
  auto isStatic = [](Type type) {
    return cast<ShapedType>(type).hasStaticShape();
  };
  return llvm::all_of(op->getOperandTypes(), isStatic)
             ? Speculation::Speculatable
             : Speculation::NotSpeculatable;
}

/// The sizes of a result of type `type`: attributes for static sizes, the
/// values of `getSize` for dynamic ones.
static SmallVector<OpFoldResult>
reifyShape(OpBuilder &builder, RankedTensorType type,
           function_ref<Value(int64_t)> getSize) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (ShapedType::isDynamic(size))
      sizes.push_back(getSize(dim));
    else
      sizes.push_back(builder.getIndexAttr(size));
  }
  return sizes;
}

namespace {
/// The run-time checks of one op: everything is compared with input.
class SizeChecks {
public:
  using GenerateErrorMessageFn =
      function_ref<std::string(Operation *, StringRef)>;

  SizeChecks(OpBuilder &builder, Location loc, Operation *op,
             TypedValue<RankedTensorType> input, ArrayRef<int64_t> featureDims,
             GenerateErrorMessageFn generateErrorMessage)
      : builder(builder), loc(loc), op(op), input(input),
        featureDims(featureDims), generateErrorMessage(generateErrorMessage) {}

  /// `value` has the shape of input; null: nothing to check.
  void checkData(StringRef name, Value value) {
    if (value)
      for (int64_t dim : llvm::seq(input.getType().getRank()))
        check(name, value, dim, dim);
  }

  /// `value` has the sizes of input at the feature dims, after `offset` dims of
  /// its own; null: nothing to check.
  void checkChannel(StringRef name, Value value, int64_t offset = 0) {
    if (value)
      for (auto [i, dim] : llvm::enumerate(featureDims))
        check(name, value, i + offset, dim);
  }

  /// Size `dim` of `value`, an operand or a result, is size `inputDim` of
  /// input. Of a result only the type is used.
  void check(StringRef name, Value value, int64_t dim, int64_t inputDim) {
    auto type = cast<RankedTensorType>(value.getType());
    bool isStatic = !type.isDynamicDim(dim);
    if (isStatic && !input.getType().isDynamicDim(inputDim))
      return; // the verifier knows
    if (!isStatic && value.getDefiningOp() == op)
      return; // a result has the size it gets
    Value expected = builder.createOrFold<tensor::DimOp>(loc, input, inputDim);
    Value actual =
        isStatic
            ? arith::ConstantIndexOp::create(builder, loc, type.getDimSize(dim))
                  .getResult()
            : builder.createOrFold<tensor::DimOp>(loc, value, dim);
    emit(actual, expected,
         llvm::formatv("expected size {0} of {1} to be size {2} of input", dim,
                       name, inputDim));
  }

  /// Size `dim` of `value`, if it is dynamic, is `expected`.
  void checkConstant(StringRef name, Value value, int64_t dim,
                     int64_t expected) {
    if (!value || value.getDefiningOp() == op ||
        !cast<RankedTensorType>(value.getType()).isDynamicDim(dim))
      return;
    emit(builder.createOrFold<tensor::DimOp>(loc, value, dim),
         arith::ConstantIndexOp::create(builder, loc, expected),
         llvm::formatv("expected size {0} of {1} to be {2}", dim, name,
                       expected));
  }

private:
  void emit(Value actual, Value expected, const std::string &message) {
    Value isEqual = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, actual, expected);
    cf::AssertOp::create(builder, loc, isEqual,
                         generateErrorMessage(op, message));
  }

  OpBuilder &builder;
  Location loc;
  Operation *op;
  TypedValue<RankedTensorType> input;
  ArrayRef<int64_t> featureDims;
  GenerateErrorMessageFn generateErrorMessage;
};
} // namespace

//===----------------------------------------------------------------------===//
// BatchNormBackwardOp
//===----------------------------------------------------------------------===//

Speculation::Speculatability BatchNormBackwardOp::getSpeculatability() {
  return speculatabilityOf(getOperation());
}

LogicalResult BatchNormBackwardOp::reifyResultShapes(
    OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  auto dimOfInput = [&](int64_t dim) -> Value {
    return builder.createOrFold<tensor::DimOp>(getLoc(), getInput(), dim);
  };
  auto dimOfChannel = [&](int64_t i) {
    return dimOfInput(getFeatureDims()[i]);
  };
  reifiedReturnShapes.push_back(
      reifyShape(builder, getGradInput().getType(), dimOfInput));
  reifiedReturnShapes.push_back(
      reifyShape(builder, getGradScale().getType(), dimOfChannel));
  reifiedReturnShapes.push_back(
      reifyShape(builder, getGradOffset().getType(), dimOfChannel));
  return success();
}

/// Checks (C2), (C3) and (C6) for dynamic sizes.
void BatchNormBackwardOp::generateRuntimeVerification(
    OpBuilder &builder, Location loc,
    function_ref<std::string(Operation *, StringRef)> generateErrorMessage) {
  SizeChecks checks(builder, loc, getOperation(), getInput(), getFeatureDims(),
                    generateErrorMessage);
  checks.checkData("grad_output", getGradOutput());
  checks.checkData("mask", getMask());
  checks.checkChannel("scale", getScale());
  checks.checkChannel("mean", getMean());
  checks.checkChannel("variance", getVariance());
  checks.checkChannel("inv_std", getInvStd());
  checks.checkData("grad_input", getGradInput());
  checks.checkChannel("grad_scale", getGradScale());
  checks.checkChannel("grad_offset", getGradOffset());
}

//===----------------------------------------------------------------------===//
// BatchNormBackwardReduceOp
//===----------------------------------------------------------------------===//

Speculation::Speculatability BatchNormBackwardReduceOp::getSpeculatability() {
  return speculatabilityOf(getOperation());
}

LogicalResult BatchNormBackwardReduceOp::reifyResultShapes(
    OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  reifiedReturnShapes.push_back(
      reifyShape(builder, getSums().getType(), [&](int64_t i) -> Value {
        if (i == 0)
          return arith::ConstantIndexOp::create(builder, getLoc(), 2);
        return builder.createOrFold<tensor::DimOp>(getLoc(), getInput(),
                                                   getFeatureDims()[i - 1]);
      }));
  reifiedReturnShapes.emplace_back();
  return success();
}

/// Checks (C2), (C3) and (C5) for dynamic sizes.
void BatchNormBackwardReduceOp::generateRuntimeVerification(
    OpBuilder &builder, Location loc,
    function_ref<std::string(Operation *, StringRef)> generateErrorMessage) {
  SizeChecks checks(builder, loc, getOperation(), getInput(), getFeatureDims(),
                    generateErrorMessage);
  checks.checkData("grad_output", getGradOutput());
  checks.checkData("mask", getMask());
  checks.checkChannel("mean", getMean());
  checks.checkChannel("sums", getSums(), /*offset=*/1);
}

//===----------------------------------------------------------------------===//
// BatchNormBackwardElemtOp
//===----------------------------------------------------------------------===//

void BatchNormBackwardElemtOp::getAsmResultNames(
    function_ref<void(Value, StringRef)> setName) {
  setName(getGradInput(), "grad_input");
}

Speculation::Speculatability BatchNormBackwardElemtOp::getSpeculatability() {
  return speculatabilityOf(getOperation());
}

LogicalResult BatchNormBackwardElemtOp::reifyResultShapes(
    OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  reifiedReturnShapes.push_back(
      reifyShape(builder, getGradInput().getType(), [&](int64_t dim) -> Value {
        return builder.createOrFold<tensor::DimOp>(getLoc(), getInput(), dim);
      }));
  return success();
}

/// Checks (C2), (C3), (C6) and (C8) for dynamic sizes.
void BatchNormBackwardElemtOp::generateRuntimeVerification(
    OpBuilder &builder, Location loc,
    function_ref<std::string(Operation *, StringRef)> generateErrorMessage) {
  SizeChecks checks(builder, loc, getOperation(), getInput(), getFeatureDims(),
                    generateErrorMessage);
  checks.checkData("grad_output", getGradOutput());
  checks.checkData("mask", getMask());
  checks.checkChannel("scale", getScale());
  checks.checkChannel("mean", getMean());
  checks.checkChannel("variance", getVariance());
  checks.checkChannel("inv_std", getInvStd());
  checks.checkConstant("sums", getSums(), 0, 2);
  checks.checkChannel("sums", getSums(), /*offset=*/1);
  checks.checkData("grad_input", getGradInput());
}
