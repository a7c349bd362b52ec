//===- BNGradInterfaces.cpp - roles, shapes, run-time checks --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGradOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::bngrad;

#include "BNGrad/Dialect/BNGradInterfaces.cpp.inc"

/// sum_dy and sum_dy_xmu.
static constexpr int64_t kNumSums = 2;

//===----------------------------------------------------------------------===//
// BatchNormOpInterface
//===----------------------------------------------------------------------===//

Role BatchNormOpInterface::getOperandRole(OpOperand &operand) {
  unsigned end = 0;
  for (auto [i, role] : llvm::enumerate(getOperandRoles())) {
    end += getODSOperands(i).size();
    if (operand.getOperandNumber() < end)
      return role;
  }
  llvm_unreachable("expected an operand of this op");
}

Value BatchNormOpInterface::getOperandOf(Role role) {
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (getOperandRole(operand) == role)
      return operand.get();
  return Value();
}

Value BatchNormOpInterface::getStatistic() {
  Value variance = getOperandOf(Role::Variance);
  return variance ? variance : getOperandOf(Role::InvStd);
}

std::optional<int64_t> BatchNormOpInterface::getInputDim(Role role,
                                                         int64_t dim) {
  switch (getInfo(role).shape) {
  case RoleShape::Data:
    return dim;
  case RoleShape::Channel:
    return getFeatureDims()[dim];
  case RoleShape::Sums:
    if (dim == 0)
      return std::nullopt;
    return getFeatureDims()[dim - 1];
  case RoleShape::Scalar:
    break;
  }
  llvm_unreachable("expected a role whose tensors have dims");
}

SmallVector<int64_t> BatchNormOpInterface::getDataShape() {
  auto shapeOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  SmallVector<int64_t> shape(shapeOf(getOperandOf(Role::Input)));
  auto merge = [&](Role role, Value value) {
    for (auto [dim, size] : llvm::enumerate(shapeOf(value)))
      if (std::optional<int64_t> inputDim = getInputDim(role, dim);
          inputDim && !ShapedType::isDynamic(size))
        shape[*inputDim] = size;
  };
  for (OpOperand &operand : getOperation()->getOpOperands())
    merge(getOperandRole(operand), operand.get());
  // Per-channel results are finally cast to their types.
  for (auto [role, result] :
       llvm::zip_equal(getResultRoles(), getOperation()->getResults()))
    if (getInfo(role).shape != RoleShape::Channel)
      merge(role, result);
  return shape;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Speculation::Speculatability
mlir::bngrad::detail::getSpeculatability(BatchNormOpInterface op) {
  auto isStatic = [](Type type) {
    return cast<ShapedType>(type).hasStaticShape();
  };
  return llvm::all_of(op->getOperandTypes(), isStatic)
             ? Speculation::Speculatable
             : Speculation::NotSpeculatable;
}

LogicalResult
mlir::bngrad::detail::reifyResultShapes(BatchNormOpInterface op,
                                        OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  Location loc = op.getLoc();
  auto buildSize = [&](Role role, int64_t dim) -> Value {
    if (std::optional<int64_t> inputDim = op.getInputDim(role, dim))
      return builder.createOrFold<tensor::DimOp>(
          loc, op.getOperandOf(Role::Input), *inputDim);
    return arith::ConstantIndexOp::create(builder, loc, kNumSums);
  };
  for (auto [role, type] :
       llvm::zip_equal(op.getResultRoles(), op->getResultTypes())) {
    SmallVector<OpFoldResult> &sizes = shapes.emplace_back();
    for (auto [dim, size] :
         llvm::enumerate(cast<RankedTensorType>(type).getShape()))
      sizes.push_back(ShapedType::isDynamic(size)
                          ? OpFoldResult(buildSize(role, dim))
                          : OpFoldResult(builder.getIndexAttr(size)));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Run-time checks
//===----------------------------------------------------------------------===//

namespace {
/// Emits the run-time checks of one op, which compare everything with input.
class SizeChecks {
public:
  using GenerateErrorMessageFn =
      function_ref<std::string(Operation *, StringRef)>;

  SizeChecks(BatchNormOpInterface op, OpBuilder &builder, Location loc,
             GenerateErrorMessageFn generateErrorMessage)
      : op(op), builder(builder), loc(loc),
        input(cast<TypedValue<RankedTensorType>>(op.getOperandOf(Role::Input))),
        generateErrorMessage(generateErrorMessage) {}

  /// Checks `value`, an operand or a result. Uses only the type of a result.
  void check(Role role, Value value) {
    for (int64_t dim :
         llvm::seq(cast<RankedTensorType>(value.getType()).getRank())) {
      if (std::optional<int64_t> inputDim = op.getInputDim(role, dim))
        check(stringifyRole(role), value, dim, *inputDim);
      else
        checkConstant(stringifyRole(role), value, dim, kNumSums);
    }
  }

private:
  /// Checks that size `dim` of `value` is size `inputDim` of input.
  void check(StringRef name, Value value, int64_t dim, int64_t inputDim) {
    auto type = cast<RankedTensorType>(value.getType());
    bool isStatic = !type.isDynamicDim(dim);
    if (isStatic && !input.getType().isDynamicDim(inputDim))
      return; // the verifier has checked it
    if (!isStatic && value.getDefiningOp() == op)
      return; // a result gets its size from the op
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

  /// Checks that size `dim` of `value`, if dynamic, is `expected`.
  void checkConstant(StringRef name, Value value, int64_t dim,
                     int64_t expected) {
    if (value.getDefiningOp() == op ||
        !cast<RankedTensorType>(value.getType()).isDynamicDim(dim))
      return;
    emit(builder.createOrFold<tensor::DimOp>(loc, value, dim),
         arith::ConstantIndexOp::create(builder, loc, expected),
         llvm::formatv("expected size {0} of {1} to be {2}", dim, name,
                       expected));
  }

  void emit(Value actual, Value expected, const std::string &message) {
    Value isEqual = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, actual, expected);
    cf::AssertOp::create(builder, loc, isEqual,
                         generateErrorMessage(op, message));
  }

  BatchNormOpInterface op;
  OpBuilder &builder;
  Location loc;
  TypedValue<RankedTensorType> input;
  GenerateErrorMessageFn generateErrorMessage;
};
} // namespace

void mlir::bngrad::detail::generateSizeChecks(
    BatchNormOpInterface op, OpBuilder &builder, Location loc,
    function_ref<std::string(Operation *, StringRef)> generateErrorMessage) {
  SizeChecks checks(op, builder, loc, generateErrorMessage);
  // Data first.
  for (RoleShape shape : {RoleShape::Data, RoleShape::Channel, RoleShape::Sums})
    for (OpOperand &operand : op->getOpOperands())
      if (Role role = op.getOperandRole(operand);
          getInfo(role).shape == shape && role != Role::Input)
        checks.check(role, operand.get());
  for (auto [role, result] :
       llvm::zip_equal(op.getResultRoles(), op->getResults()))
    checks.check(role, result);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void BatchNormInferenceOp::getAsmResultNames(
    function_ref<void(Value, StringRef)> setName) {
  setName(getOutput(), "output");
}

void BatchNormBackwardElemtOp::getAsmResultNames(
    function_ref<void(Value, StringRef)> setName) {
  setName(getGradInput(), "grad_input");
}
