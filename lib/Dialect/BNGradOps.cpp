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
using mlir::bngrad::detail::Operands;

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
/// The known sizes, merged over all operands.
struct Shapes {
  SmallVector<int64_t> data;    // of input and all other data
  SmallVector<int64_t> channel; // of the per-channel operands and results
  StringRef ofChannel = "the sizes of input at feature_dims"; // for errors
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

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The role of the operand that determines the element type of operand `role`.
static Role getRoleWithType(const Operands &op, Role role) {
  RoleType type = getInfo(role).type;
  if (type == RoleType::AsInput)
    return Role::Input;
  if (type != RoleType::AsMean)
    return role;
  if (op[Role::Mean])
    return Role::Mean;
  return static_cast<Role>(*llvm::find_if(llvm::seq(kNumRoles), [&](auto i) {
    return kRoles[i].type == RoleType::AsMean && op[static_cast<Role>(i)];
  }));
}

/// Checks the types of the operands with `shape`, and merges their sizes into
/// `sizes`.
static LogicalResult verifyOperands(EmitErrorFn emitError, const Operands &op,
                                    RoleShape shape, StringRef ofWhat,
                                    SmallVectorImpl<int64_t> &sizes) {
  for (uint32_t i : llvm::seq(kNumRoles)) {
    auto role = static_cast<Role>(i);
    const RoleInfo &info = getInfo(role);
    if (!op[role] || info.shape != shape || role == Role::Input)
      continue;
    Role other = getRoleWithType(op, role);
    Type type = getElementTypeOrSelf(op[role]);
    Type expected = getElementTypeOrSelf(op[other]);
    if (type != expected)
      return emitError() << "expected " << info.name
                         << " to have the element type of "
                         << stringifyRole(other) << ", " << expected << ", got "
                         << type;
    if (failed(mergeShape(emitError, info.name, getShape(op[role]), ofWhat,
                          sizes)))
      return failure();
  }
  return success();
}

/// The shape of sums: the two sums of each channel.
static SmallVector<int64_t> getShapeOfSums(const Shapes &shapes) {
  SmallVector<int64_t> shape = {2};
  llvm::append_range(shape, shapes.channel);
  return shape;
}

/// Merges the shape of an operand or result into the known sizes.
static LogicalResult mergeShape(EmitErrorFn emitError, Role role, Value value,
                                ArrayRef<int64_t> featureDims, Shapes &shapes) {
  StringRef name = stringifyRole(role);
  switch (getInfo(role).shape) {
  case RoleShape::Data:
    if (failed(mergeShape(emitError, name, getShape(value), "that of input",
                          shapes.data)))
      return failure();
    for (auto [i, dim] : llvm::enumerate(featureDims))
      shapes.channel[i] = shapes.data[dim];
    return success();
  case RoleShape::Channel:
    return mergeShape(emitError, name, getShape(value), shapes.ofChannel,
                      shapes.channel);
  case RoleShape::Sums: {
    SmallVector<int64_t> shape = getShapeOfSums(shapes);
    if (failed(mergeShape(emitError, name, getShape(value),
                          "2 and that of mean", shape)))
      return failure();
    for (auto [i, dim] : llvm::enumerate(featureDims))
      shapes.data[dim] = shapes.channel[i] = shape[i + 1];
    return success();
  }
  case RoleShape::Scalar:
    return success();
  }
  llvm_unreachable("unknown shape");
}

/// (C4), of an op with a statistic.
static LogicalResult verifyStatistic(EmitErrorFn emitError,
                                     const Operands &op) {
  if (!op[Role::Variance] == !op[Role::InvStd])
    return emitError() << "expected exactly one of variance and inv_std, got "
                       << (op[Role::Variance] ? "both" : "neither");
  return success();
}

/// (C4) of training, (C5) of an op with a statistic.
static LogicalResult verifyEpsilon(EmitErrorFn emitError, const Operands &op) {
  if (!std::isfinite(op.epsilon) || op.epsilon < 0)
    return emitError() << "expected epsilon to be finite and at least 0, got "
                       << op.epsilon;
  if (op[Role::InvStd] && op.epsilon != 0)
    return emitError() << "expected epsilon to be 0 with inv_std, got "
                       << op.epsilon;
  return success();
}

/// The constraints on operands; returns the merged shapes.
static FailureOr<Shapes> verifyOperands(EmitErrorFn emitError,
                                        const Operands &op) {
  // (C1)
  Shapes shapes;
  llvm::append_range(shapes.data, getShape(op[Role::Input]));
  if (failed(verifyFeatureDims(emitError, op.featureDims, shapes.data.size())))
    return failure();
  // (C2)
  if (failed(verifyOperands(emitError, op, RoleShape::Data, "that of input",
                            shapes.data)) ||
      failed(verifyCount(emitError, op.featureDims, shapes.data)))
    return failure();
  // (C3)
  for (int64_t dim : op.featureDims)
    shapes.channel.push_back(shapes.data[dim]);
  if (failed(verifyOperands(emitError, op, RoleShape::Channel, shapes.ofChannel,
                            shapes.channel)))
    return failure();
  if (op[Role::Mean])
    shapes.ofChannel = "that of mean";
  for (auto [dim, size] : llvm::zip_equal(op.featureDims, shapes.channel))
    shapes.data[dim] = size;
  if ((op.hasStatistic && failed(verifyStatistic(emitError, op))) ||
      failed(verifyEpsilon(emitError, op)))
    return failure();
  // (C6) and (C7) of the elemt half
  if (Value sums = op[Role::Sums])
    if (failed(mergeShape(emitError, Role::Sums, sums, op.featureDims, shapes)))
      return failure();
  if (op[Role::Count] && !op[Role::Sums])
    return emitError() << "expected count only with sums, got it without";
  return shapes;
}

LogicalResult mlir::bngrad::detail::verify(BatchNormOpInterface op) {
  auto emitError = [&] { return op.emitOpError(); };
  FailureOr<Shapes> shapes =
      verifyOperands(emitError, Operands(op, op.getOperandRoles()));
  if (failed(shapes))
    return failure();
  // The types of results: (C4) of both reduce ops. The shapes of results: (C6)
  // of the gradient and of inference, (C5) of both reduce ops and of training,
  // (C8) of the elemt half.
  for (auto [role, result] :
       llvm::zip_equal(op.getResultRoles(), op->getResults())) {
    Type type = getElementTypeOrSelf(result);
    if (FloatType expected = op.getAccumulatorType();
        getInfo(role).type == RoleType::Arithmetic && type != expected)
      return emitError() << "expected element type of " << stringifyRole(role)
                         << " to be " << expected << ", got " << type;
    if (failed(
            mergeShape(emitError, role, result, op.getFeatureDims(), *shapes)))
      return failure();
  }
  // (C2), with the sizes that only results know.
  return verifyCount(emitError, op.getFeatureDims(), shapes->data);
}

/// The type of a result of `role` with all known sizes.
static Type inferType(const Operands &op, const Shapes &shapes, Role role) {
  SmallVector<int64_t> sizes;
  Type type = getElementTypeOrSelf(op[Role::Input]);
  switch (getInfo(role).shape) {
  case RoleShape::Data:
    sizes = shapes.data;
    break;
  case RoleShape::Channel:
    sizes = shapes.channel;
    break;
  case RoleShape::Sums:
    sizes = getShapeOfSums(shapes);
    break;
  case RoleShape::Scalar:
    break;
  }
  switch (getInfo(role).type) {
  case RoleType::AsInput:
    break;
  case RoleType::AsMean:
    type = op[Role::Mean] ? getElementTypeOrSelf(op[Role::Mean])
                          : Type(getAccumulatorType(op.values));
    break;
  case RoleType::Float:
  case RoleType::Arithmetic:
    type = getAccumulatorType(op.values);
    break;
  case RoleType::Bool:
    type = IntegerType::get(type.getContext(), 1);
    break;
  case RoleType::Integer:
    type = IntegerType::get(type.getContext(), 64);
    break;
  }
  return RankedTensorType::get(sizes, type);
}

LogicalResult mlir::bngrad::detail::inferTypes(std::optional<Location> location,
                                               const Operands &operands,
                                               ArrayRef<Role> roles,
                                               SmallVectorImpl<Type> &types) {
  // There may be no location to report at.
  auto emitError = [location] {
    return location ? mlir::emitError(*location) : InFlightDiagnostic();
  };
  FailureOr<Shapes> shapes = verifyOperands(emitError, operands);
  if (failed(shapes))
    return failure();
  types.clear();
  for (Role role : roles)
    types.push_back(inferType(operands, *shapes, role));
  return success();
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

//===----------------------------------------------------------------------===//
// ElementCastOp
//===----------------------------------------------------------------------===//

int64_t mlir::bngrad::getStorageBytes(Type type) {
  // LLVM aligns floats of 80 bits to 16 bytes.
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() % 8 == 0)
    return llvm::PowerOf2Ceil(type.getIntOrFloatBitWidth() / 8);
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
