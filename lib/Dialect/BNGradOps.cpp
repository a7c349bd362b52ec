//===- BNGradOps.cpp - verification and type inference --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function checks the constraints and merges what is known of the shapes;
// the verifier and type inference both call it. `// (C<n>)` marks the code of a
// constraint of BNGradOps.td.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::bngrad;

#define GET_OP_CLASSES
#include "BNGrad/Dialect/BNGradOps.cpp.inc"

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Prints sizes as [2, ?, 3].
static std::string printShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(shape, os, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      os << "?";
    else
      os << size;
  });
  os << "]";
  return text;
}

/// Merges the shape of operand or result `name` into `shape`: a static size
/// replaces a dynamic one, two different static sizes are an error.
static LogicalResult mergeShape(EmitErrorFn emitError, StringRef name,
                                ArrayRef<int64_t> other, StringRef ofWhat,
                                SmallVectorImpl<int64_t> &shape) {
  if (failed(verifyCompatibleShape(shape, other)))
    return emitError() << "expected shape of " << name
                       << " to be compatible with " << ofWhat << " "
                       << printShape(shape) << ", got " << printShape(other);
  for (auto [size, otherSize] : llvm::zip_equal(shape, other))
    if (ShapedType::isDynamic(size))
      size = otherSize;
  return success();
}

/// What is known of the shapes of a gradient, merged over all its operands.
struct GradientShapes {
  SmallVector<int64_t> data;    // of input, grad_output, mask, grad_input
  SmallVector<int64_t> channel; // of the per-channel operands and results
};

/// (C1)
static LogicalResult verifyFeatureDims(EmitErrorFn emitError,
                                       ArrayRef<int64_t> featureDims,
                                       int64_t rank) {
  if (rank < 1)
    return emitError() << "expected rank of input to be at least 1, got 0";
  if (featureDims.empty())
    return emitError() << "expected feature_dims to be non-empty, got []";
  for (auto [i, dim] : llvm::enumerate(featureDims)) {
    if (dim < 0 || dim >= rank)
      return emitError() << "expected feature_dims[" << i << "] to be in [0, "
                         << rank << "), got " << dim;
    if (i > 0 && dim <= featureDims[i - 1])
      return emitError() << "expected feature_dims to be strictly ascending, "
                            "got "
                         << printShape(featureDims);
  }
  return success();
}

/// Checks (C1) to (C5) and returns the merged shapes.
static FailureOr<GradientShapes>
verifyOperands(EmitErrorFn emitError, BatchNormBackwardOp::Adaptor op) {
  auto inputType = cast<RankedTensorType>(op.getInput().getType());
  ArrayRef<int64_t> featureDims = op.getFeatureDims();
  if (failed(verifyFeatureDims(emitError, featureDims, inputType.getRank())))
    return failure();

  // (C2)
  GradientShapes shapes;
  shapes.data.assign(inputType.getShape().begin(), inputType.getShape().end());
  auto gradOutputType = cast<RankedTensorType>(op.getGradOutput().getType());
  if (gradOutputType.getElementType() != inputType.getElementType())
    return emitError() << "expected element type of grad_output to be that of "
                          "input, "
                       << inputType.getElementType() << ", got "
                       << gradOutputType.getElementType();
  if (failed(mergeShape(emitError, "grad_output", gradOutputType.getShape(),
                        "that of input", shapes.data)))
    return failure();
  if (Value mask = op.getMask())
    if (failed(mergeShape(emitError, "mask",
                          cast<RankedTensorType>(mask.getType()).getShape(),
                          "that of input", shapes.data)))
      return failure();

  // (C4)
  if (!op.getVariance() == !op.getInvStd())
    return emitError() << "expected exactly one of variance and inv_std, got "
                       << (op.getVariance() ? "both" : "neither");

  // (C3)
  for (int64_t dim : featureDims)
    shapes.channel.push_back(shapes.data[dim]);
  Type parameterType = getElementTypeOrSelf(op.getMean());
  std::pair<StringRef, Value> parameters[] = {{"scale", op.getScale()},
                                              {"mean", op.getMean()},
                                              {"variance", op.getVariance()},
                                              {"inv_std", op.getInvStd()}};
  for (auto [name, value] : parameters) {
    if (!value)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getElementType() != parameterType)
      return emitError() << "expected element type of " << name
                         << " to be that of mean, " << parameterType << ", got "
                         << type.getElementType();
    if (failed(mergeShape(emitError, name, type.getShape(),
                          "the sizes of input at feature_dims",
                          shapes.channel)))
      return failure();
  }
  for (auto [dim, size] : llvm::zip_equal(featureDims, shapes.channel))
    shapes.data[dim] = size;

  // (C5)
  double epsilon = op.getEpsilon().convertToDouble();
  if (!std::isfinite(epsilon) || epsilon < 0)
    return emitError() << "expected epsilon to be finite and at least 0, got "
                       << epsilon;
  if (op.getInvStd() && epsilon != 0)
    return emitError() << "expected epsilon to be 0 with inv_std, got "
                       << epsilon;
  return shapes;
}

void BatchNormBackwardOp::build(OpBuilder &builder, OperationState &state,
                                Value gradOutput, Value input, Value scale,
                                Value mean, Value variance, Value invStd,
                                Value mask, ArrayRef<int64_t> featureDims,
                                double epsilon, Statistics statistics) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setFeatureDims(builder.getDenseI64ArrayAttr(featureDims));
  properties.setEpsilon(builder.getF64FloatAttr(epsilon));
  properties.setStatistics(
      StatisticsAttr::get(builder.getContext(), statistics));
  Value given[] = {gradOutput, input, scale, mean, variance, invStd, mask};
  for (auto [i, operand] : llvm::enumerate(given)) {
    properties.operandSegmentSizes[i] = operand ? 1 : 0;
    if (operand)
      state.addOperands(operand);
  }
  SmallVector<Type> types;
  if (failed(inferReturnTypes(builder.getContext(), state.location,
                              state.operands, DictionaryAttr(), &properties,
                              state.regions, types)))
    llvm::report_fatal_error("cannot infer the result types of " +
                             Twine(getOperationName()));
  state.addTypes(types);
}

LogicalResult BatchNormBackwardOp::verify() {
  auto emitError = [&] { return emitOpError(); };
  FailureOr<GradientShapes> shapes = verifyOperands(emitError, Adaptor(*this));
  if (failed(shapes))
    return failure();

  // (C6)
  if (failed(mergeShape(emitError, "grad_input",
                        getGradInput().getType().getShape(), "that of input",
                        shapes->data)))
    return failure();
  for (auto [i, dim] : llvm::enumerate(getFeatureDims()))
    shapes->channel[i] = shapes->data[dim];
  if (failed(mergeShape(emitError, "grad_scale",
                        getGradScale().getType().getShape(), "that of mean",
                        shapes->channel)))
    return failure();
  return mergeShape(emitError, "grad_offset",
                    getGradOffset().getType().getShape(), "that of mean",
                    shapes->channel);
}

/// grad_input as input, the others as mean, every size that any operand knows.
LogicalResult BatchNormBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &inferredReturnTypes) {
  Adaptor op(operands, attributes, properties, regions);
  auto emitError = [&] {
    return location ? mlir::emitError(*location) : InFlightDiagnostic();
  };
  FailureOr<GradientShapes> shapes = verifyOperands(emitError, op);
  if (failed(shapes))
    return failure();
  Type channelType = RankedTensorType::get(shapes->channel,
                                           getElementTypeOrSelf(op.getMean()));
  inferredReturnTypes.assign(
      {RankedTensorType::get(shapes->data, getElementTypeOrSelf(op.getInput())),
       channelType, channelType});
  return success();
}

/// Adds to the given result types every size that any operand knows. Invalid
/// operands and results are left to the verifier, which names the constraint.
LogicalResult BatchNormBackwardOp::refineReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &returnTypes) {
  SmallVector<Type> inferred;
  if (failed(inferReturnTypes(context, std::nullopt, operands, attributes,
                              properties, regions, inferred)))
    return success();
  if (returnTypes.empty()) {
    returnTypes.assign(inferred.begin(), inferred.end());
    return success();
  }
  for (auto [given, type] : llvm::zip_equal(returnTypes, inferred)) {
    auto givenType = cast<RankedTensorType>(given);
    SmallVector<int64_t> shape(givenType.getShape());
    auto ignoreError = [] { return InFlightDiagnostic(); };
    if (succeeded(mergeShape(ignoreError, "", cast<ShapedType>(type).getShape(),
                             "", shape)))
      given = RankedTensorType::get(shape, givenType.getElementType(),
                                    givenType.getEncoding());
  }
  return success();
}

bool BatchNormBackwardOp::isCompatibleReturnTypes(TypeRange inferred,
                                                  TypeRange given) {
  return succeeded(verifyCompatibleShapes(inferred, given));
}
