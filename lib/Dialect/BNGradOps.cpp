//===- BNGradOps.cpp - verification and type inference --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifier and type inference both call one function that checks the
// constraints and merges the known sizes of all operands. `// (C<n>)` marks the
// code of a constraint of BNGradOps.td.
//
//===----------------------------------------------------------------------===//

#include "BNGradOps.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

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
/// replaces a dynamic one, and two different static sizes are an error.
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

namespace {
/// The operands that the ops have in common; absent ones are null.
struct Operands {
  Value gradOutput, input, scale, mean, variance, invStd, mask;
  ArrayRef<int64_t> featureDims;
};

/// The known sizes, merged over all operands.
struct Shapes {
  SmallVector<int64_t> data;    // of input, grad_output, mask, grad_input
  SmallVector<int64_t> channel; // of the per-channel operands and results
};
} // namespace

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

/// (C2): the number of elements per channel is an i64.
static LogicalResult verifyCount(EmitErrorFn emitError,
                                 ArrayRef<int64_t> featureDims,
                                 ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool overflows = false;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (ShapedType::isDynamic(size) || llvm::is_contained(featureDims, dim))
      continue;
    if (size == 0)
      return success();
    overflows |= llvm::MulOverflow(count, size, count) != 0;
  }
  if (overflows)
    return emitError() << "expected fewer than 2^63 elements per channel, got "
                       << printShape(shape) << " with feature_dims "
                       << printShape(featureDims);
  return success();
}

/// (C1) to (C3); returns the merged shapes.
static FailureOr<Shapes> verifyShapes(EmitErrorFn emitError, Operands op) {
  auto shapeOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  Shapes shapes;
  shapes.data.assign(shapeOf(op.input).begin(), shapeOf(op.input).end());
  if (failed(verifyFeatureDims(emitError, op.featureDims, shapes.data.size())))
    return failure();

  // (C2)
  Type dataType = getElementTypeOrSelf(op.input);
  Type gradOutputType = getElementTypeOrSelf(op.gradOutput);
  if (gradOutputType != dataType)
    return emitError() << "expected element type of grad_output to be that of "
                          "input, "
                       << dataType << ", got " << gradOutputType;
  if (failed(mergeShape(emitError, "grad_output", shapeOf(op.gradOutput),
                        "that of input", shapes.data)))
    return failure();
  if ((op.mask && failed(mergeShape(emitError, "mask", shapeOf(op.mask),
                                    "that of input", shapes.data))) ||
      failed(verifyCount(emitError, op.featureDims, shapes.data)))
    return failure();

  // (C3)
  for (int64_t dim : op.featureDims)
    shapes.channel.push_back(shapes.data[dim]);
  Type parameterType = getElementTypeOrSelf(op.mean);
  std::pair<StringRef, Value> parameters[] = {{"scale", op.scale},
                                              {"mean", op.mean},
                                              {"variance", op.variance},
                                              {"inv_std", op.invStd}};
  for (auto [name, value] : parameters) {
    if (!value)
      continue;
    Type type = getElementTypeOrSelf(value);
    if (type != parameterType)
      return emitError() << "expected element type of " << name
                         << " to be that of mean, " << parameterType << ", got "
                         << type;
    if (failed(mergeShape(emitError, name, shapeOf(value),
                          "the sizes of input at feature_dims",
                          shapes.channel)))
      return failure();
  }
  for (auto [dim, size] : llvm::zip_equal(op.featureDims, shapes.channel))
    shapes.data[dim] = size;
  return shapes;
}

/// (C4)
static LogicalResult verifyStatistic(EmitErrorFn emitError, Operands op) {
  if (!op.variance == !op.invStd)
    return emitError() << "expected exactly one of variance and inv_std, got "
                       << (op.variance ? "both" : "neither");
  return success();
}

/// (C5)
static LogicalResult verifyEpsilon(EmitErrorFn emitError, Operands op,
                                   const APFloat &attribute) {
  double epsilon = attribute.convertToDouble();
  if (!std::isfinite(epsilon) || epsilon < 0)
    return emitError() << "expected epsilon to be finite and at least 0, got "
                       << epsilon;
  if (op.invStd && epsilon != 0)
    return emitError() << "expected epsilon to be 0 with inv_std, got "
                       << epsilon;
  return success();
}

/// (C1) to (C5) of an op that computes grad_input from all operands.
template <typename AdaptorT>
static FailureOr<Shapes> verifyGradientOperands(EmitErrorFn emitError,
                                                AdaptorT op) {
  Operands operands = {op.getGradOutput(), op.getInput(),      op.getScale(),
                       op.getMean(),       op.getVariance(),   op.getInvStd(),
                       op.getMask(),       op.getFeatureDims()};
  FailureOr<Shapes> shapes = verifyShapes(emitError, operands);
  if (failed(shapes) || failed(verifyStatistic(emitError, operands)) ||
      failed(verifyEpsilon(emitError, operands, op.getEpsilon())))
    return failure();
  return shapes;
}

/// The shape of sums: the two sums of each channel.
static SmallVector<int64_t> getShapeOfSums(const Shapes &shapes) {
  SmallVector<int64_t> shape = {2};
  llvm::append_range(shape, shapes.channel);
  return shape;
}

void mlir::bngrad::detail::refineTypes(ArrayRef<Type> inferred,
                                       SmallVectorImpl<Type> &returnTypes) {
  if (returnTypes.empty()) {
    returnTypes.assign(inferred.begin(), inferred.end());
    return;
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
}

/// The emitter of inferReturnTypes, which may have no location to report at.
static auto emitErrorAt(std::optional<Location> location) {
  return [location] {
    return location ? mlir::emitError(*location) : InFlightDiagnostic();
  };
}

FloatType mlir::bngrad::getAccumulatorType(ValueRange operands) {
  // f16, bf16 and f32 all compute in f32.
  MLIRContext *context = operands.front().getContext();
  for (Type type : operands.getTypes())
    if (getElementTypeOrSelf(type).isF64())
      return Float64Type::get(context);
  return Float32Type::get(context);
}

//===----------------------------------------------------------------------===//
// BatchNormBackwardOp
//===----------------------------------------------------------------------===//

static FailureOr<Shapes> verifyOperands(EmitErrorFn emitError,
                                        BatchNormBackwardOp::Adaptor op) {
  return verifyGradientOperands(emitError, op);
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
  FailureOr<Shapes> shapes = verifyOperands(emitError, Adaptor(*this));
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

/// Infers grad_input from input and the others from mean, with all known sizes.
LogicalResult BatchNormBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &inferredReturnTypes) {
  Adaptor op(operands, attributes, properties, regions);
  FailureOr<Shapes> shapes = verifyOperands(emitErrorAt(location), op);
  if (failed(shapes))
    return failure();
  Type channelType = RankedTensorType::get(shapes->channel,
                                           getElementTypeOrSelf(op.getMean()));
  inferredReturnTypes.assign(
      {RankedTensorType::get(shapes->data, getElementTypeOrSelf(op.getInput())),
       channelType, channelType});
  return success();
}

bool BatchNormBackwardOp::isCompatibleReturnTypes(TypeRange inferred,
                                                  TypeRange given) {
  return succeeded(verifyCompatibleShapes(inferred, given));
}

//===----------------------------------------------------------------------===//
// BatchNormBackwardReduceOp
//===----------------------------------------------------------------------===//

/// (C1) to (C3)
static FailureOr<Shapes> verifyOperands(EmitErrorFn emitError,
                                        BatchNormBackwardReduceOp::Adaptor op) {
  return verifyShapes(emitError,
                      {op.getGradOutput(), op.getInput(), Value(), op.getMean(),
                       Value(), Value(), op.getMask(), op.getFeatureDims()});
}

LogicalResult BatchNormBackwardReduceOp::verify() {
  auto emitError = [&] { return emitOpError(); };
  FailureOr<Shapes> shapes = verifyOperands(emitError, Adaptor(*this));
  if (failed(shapes))
    return failure();

  // (C4)
  Type sumsType = getElementTypeOrSelf(getSums());
  FloatType accumulatorType = getAccumulatorType();
  if (sumsType != accumulatorType)
    return emitOpError() << "expected element type of sums to be "
                         << accumulatorType << ", got " << sumsType;

  // (C5)
  SmallVector<int64_t> shapeOfSums = getShapeOfSums(*shapes);
  return mergeShape(emitError, "sums", getSums().getType().getShape(),
                    "2 and that of mean", shapeOfSums);
}

LogicalResult BatchNormBackwardReduceOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &inferredReturnTypes) {
  Adaptor op(operands, attributes, properties, regions);
  FailureOr<Shapes> shapes = verifyOperands(emitErrorAt(location), op);
  if (failed(shapes))
    return failure();
  inferredReturnTypes.assign(
      {RankedTensorType::get(getShapeOfSums(*shapes),
                             bngrad::getAccumulatorType(operands)),
       RankedTensorType::get({}, IntegerType::get(context, 64))});
  return success();
}

//===----------------------------------------------------------------------===//
// BatchNormBackwardElemtOp
//===----------------------------------------------------------------------===//

/// (C1) to (C7)
static FailureOr<Shapes> verifyOperands(EmitErrorFn emitError,
                                        BatchNormBackwardElemtOp::Adaptor op) {
  FailureOr<Shapes> shapes = verifyGradientOperands(emitError, op);
  if (failed(shapes))
    return failure();

  // (C6)
  if (Value sums = op.getSums()) {
    SmallVector<int64_t> shape = getShapeOfSums(*shapes);
    if (failed(mergeShape(emitError, "sums",
                          cast<RankedTensorType>(sums.getType()).getShape(),
                          "2 and that of mean", shape)))
      return failure();
    for (auto [i, dim] : llvm::enumerate(op.getFeatureDims()))
      shapes->data[dim] = shapes->channel[i] = shape[i + 1];
  }

  // (C7)
  if (op.getCount() && !op.getSums())
    return emitError() << "expected count only with sums, got it without";
  return shapes;
}

LogicalResult BatchNormBackwardElemtOp::verify() {
  auto emitError = [&] { return emitOpError(); };
  FailureOr<Shapes> shapes = verifyOperands(emitError, Adaptor(*this));
  if (failed(shapes))
    return failure();

  // (C8)
  return mergeShape(emitError, "grad_input",
                    getGradInput().getType().getShape(), "that of input",
                    shapes->data);
}

LogicalResult BatchNormBackwardElemtOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &inferredReturnTypes) {
  Adaptor op(operands, attributes, properties, regions);
  FailureOr<Shapes> shapes = verifyOperands(emitErrorAt(location), op);
  if (failed(shapes))
    return failure();
  inferredReturnTypes.assign({RankedTensorType::get(
      shapes->data, getElementTypeOrSelf(op.getInput()))});
  return success();
}

bool BatchNormBackwardElemtOp::isCompatibleReturnTypes(TypeRange inferred,
                                                       TypeRange given) {
  return succeeded(verifyCompatibleShapes(inferred, given));
}

//===----------------------------------------------------------------------===//
// ElementCastOp
//===----------------------------------------------------------------------===//

int64_t mlir::bngrad::getStorageBytes(Type type) {
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() % 8 == 0)
    return type.getIntOrFloatBitWidth() / 8;
  for (unsigned width : {1, 8, 16, 32, 64})
    if (type.isInteger(width))
      return llvm::divideCeil(width, 8);
  return 0;
}

LogicalResult ElementCastOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  auto result = cast<MemRefType>(getResult().getType());
  // (C1)
  for (Type type : {source.getElementType(), result.getElementType()})
    if (getStorageBytes(type) == 0)
      return emitOpError()
             << "expected elements to be floats, or integers of 1, "
                "8, 16, 32 or 64 bits, got "
             << type;
  // (C2)
  if (source.getMemorySpace() != result.getMemorySpace())
    return emitOpError() << "expected result to have the memory space of "
                            "source, "
                         << source << ", got " << result;
  int64_t sourceBytes = getStorageBytes(source.getElementType());
  int64_t resultBytes = getStorageBytes(result.getElementType());
  if (sourceBytes == resultBytes) {
    if (source.getShape() == result.getShape() &&
        source.getLayout() == result.getLayout())
      return success();
    return emitOpError() << "expected result to have the shape and layout of "
                            "source, "
                         << source << ", got " << result;
  }
  for (MemRefType type : {source, result})
    if (type.getRank() != 1 || !type.getLayout().isIdentity())
      return emitOpError() << "expected rank 1 and the identity layout for "
                              "elements of different sizes, got "
                           << type;
  // Products of unsigned numbers, which fit into 128 bits.
  auto getBytes = [](MemRefType type, uint64_t bytes) {
    return llvm::APInt(128, type.getDimSize(0)) * bytes;
  };
  if (source.hasStaticShape() && result.hasStaticShape() &&
      getBytes(source, sourceBytes) != getBytes(result, resultBytes))
    return emitOpError() << "expected result to have the bytes of source, "
                         << source << ", got " << result;
  return success();
}

OpFoldResult ElementCastOp::fold(FoldAdaptor) {
  if (auto producer = getSource().getDefiningOp<ElementCastOp>();
      producer && producer.getSource().getType() == getType())
    return producer.getSource();
  return getSource().getType() == getType() ? getSource() : OpFoldResult();
}

Value ElementCastOp::getViewSource() { return getSource(); }

//===----------------------------------------------------------------------===//
// ParallelOp
//===----------------------------------------------------------------------===//

LogicalResult ParallelOp::fold(FoldAdaptor adaptor,
                               SmallVectorImpl<OpFoldResult> &results) {
  auto condition = dyn_cast_if_present<BoolAttr>(adaptor.getCondition());
  if (!condition || !condition.getValue())
    return failure();
  getConditionMutable().clear();
  return success();
}

LogicalResult NumThreadsOp::verify() {
  // (C1)
  if (getMax() >= 1 && getMax() <= kMostThreads)
    return success();
  return emitOpError("expected max to be in [1, ")
         << kMostThreads << "], got " << static_cast<int32_t>(getMax());
}

LogicalResult ParallelOp::verify() {
  // (C1)
  if (getPhases().empty())
    return emitOpError("expected at least one phase, got none");
  for (auto [i, phase] : llvm::enumerate(getPhases())) {
    TypeRange types = phase.getArgumentTypes();
    if (types.size() != 2 ||
        !llvm::all_of(types, [](Type type) { return type.isInteger(32); })) {
      InFlightDiagnostic error = emitOpError()
                                 << "expected arguments of phase " << i
                                 << " of types 'i32', 'i32', got ";
      llvm::interleaveComma(types, error);
      if (types.empty())
        error << "none";
      return error;
    }
  }
  return success();
}
