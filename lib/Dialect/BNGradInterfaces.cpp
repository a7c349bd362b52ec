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

FloatType BatchNormBackwardOp::getAccumulatorType() {
  // The operands' types differ only in whether one is f64: f16, bf16 and f32
  // all compute in f32.
  bool hasF64 = getElementTypeOrSelf(getInput()).isF64() ||
                getElementTypeOrSelf(getMean()).isF64();
  return hasF64 ? FloatType(Float64Type::get(getContext()))
                : FloatType(Float32Type::get(getContext()));
}

/// Sizes that disagree at run time are undefined behaviour, so only an op whose
/// shapes are all known may be moved to where it would not have run.
Speculation::Speculatability BatchNormBackwardOp::getSpeculatability() {
  auto isStatic = [](Type type) {
    return cast<ShapedType>(type).hasStaticShape();
  };
  return llvm::all_of(getOperation()->getOperandTypes(), isStatic) &&
                 llvm::all_of(getOperation()->getResultTypes(), isStatic)
             ? Speculation::Speculatable
             : Speculation::NotSpeculatable;
}

/// The sizes of a result of type `type`: attributes where the type knows them,
/// else values taken from the given (operand, dim) pairs.
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

/// Checks what the verifier could not know: every size that is dynamic on one
/// side of (C2), (C3) or (C6).
void BatchNormBackwardOp::generateRuntimeVerification(
    OpBuilder &builder, Location loc,
    function_ref<std::string(Operation *, StringRef)> generateErrorMessage) {
  // Compares size `dim` of `value`, an operand or (by its type alone) a result,
  // with size `inputDim` of input.
  auto verifySize = [&](StringRef name, RankedTensorType type, Value value,
                        int64_t dim, int64_t inputDim) {
    bool isStatic = !type.isDynamicDim(dim);
    if (isStatic && !getInput().getType().isDynamicDim(inputDim))
      return;
    if (!isStatic && !value)
      return;
    Value expected =
        builder.createOrFold<tensor::DimOp>(loc, getInput(), inputDim);
    Value actual =
        isStatic
            ? arith::ConstantIndexOp::create(builder, loc, type.getDimSize(dim))
                  .getResult()
            : builder.createOrFold<tensor::DimOp>(loc, value, dim);
    Value isEqual = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, actual, expected);
    std::string what = llvm::formatv("expected size {0} of {1} to be size {2} "
                                     "of input",
                                     dim, name, inputDim);
    cf::AssertOp::create(builder, loc, isEqual,
                         generateErrorMessage(getOperation(), what));
  };
  auto verifyData = [&](StringRef name, RankedTensorType type, Value value) {
    for (int64_t dim : llvm::seq(type.getRank()))
      verifySize(name, type, value, dim, dim);
  };
  auto verifyChannel = [&](StringRef name, RankedTensorType type, Value value) {
    for (auto [i, dim] : llvm::enumerate(getFeatureDims()))
      verifySize(name, type, value, i, dim);
  };

  verifyData("grad_output", getGradOutput().getType(), getGradOutput());
  if (getMask())
    verifyData("mask", getMask().getType(), getMask());
  if (getScale())
    verifyChannel("scale", getScale().getType(), getScale());
  verifyChannel("mean", getMean().getType(), getMean());
  verifyChannel(getVariance() ? "variance" : "inv_std",
                cast<RankedTensorType>(getStatistic().getType()),
                getStatistic());
  verifyData("grad_input", getGradInput().getType(), Value());
  verifyChannel("grad_scale", getGradScale().getType(), Value());
  verifyChannel("grad_offset", getGradOffset().getType(), Value());
}
