//===- BatchNormBuilder.h - linalg of data and channels ------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the builders of the forward pass and of the gradient share: M, and the
// three kinds of generics. The builders supply the arithmetic of one element of
// each generic.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_BATCHNORMBUILDER_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_BATCHNORMBUILDER_H

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/FloatBuilder.h"

#include <array>
#include <optional>

namespace mlir::bngrad {

/// The attribute of an f64 argument of a function that replaces the epsilon of
/// the ops in the function.
inline constexpr llvm::StringLiteral kEpsilonArgAttrName = "bngrad.epsilon";

/// Number of elements reduced per channel: static, or a value.
struct ElementCount {
  std::optional<int64_t> known;
  Value isZero;  // i1, null if known
  Value divisor; // of a float type, max(count, 1); null if known
};

/// Float arithmetic on scalars of the accumulator type. A product may be
/// contracted with the sum that reads it, and the terms of a channel's sum may
/// be added in any order.
struct Arithmetic : FloatBuilder {
  FloatType type;

  Arithmetic(OpBuilder &b, Location loc, FloatType type)
      : FloatBuilder{b, loc, arith::FastMathFlags::contract}, type(type) {}

  Value extend(Value value) const { return convert(value, type); }
  Value constant(double value) const {
    return FloatBuilder::constant(value, type);
  }
  /// Adds `term` to `sum`, the accumulator of a reduction.
  Value accumulate(Value sum, Value term) const;
  /// `value`, but `otherwise` if `tested` is NaN.
  Value selectUnlessNaN(Value tested, Value value, Value otherwise) const;
  /// 1/sqrt(variance + epsilon).
  Value invStd(Value variance, Value epsilon) const;
  /// max(count, 1).
  Value divisor(const ElementCount &count) const;
  /// The count itself.
  Value number(const ElementCount &count) const;
};

/// Inputs of a generic, with their maps.
struct GenericInputs {
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;

  void add(Value value, AffineMap map) {
    values.push_back(value);
    maps.push_back(map);
  }
};

/// A per-channel result: its element type, and the field that receives it.
struct ChannelOutput {
  FloatType type;
  Value *field;
};

/// Builds linalg on tensors from the arithmetic of one element.
///
/// Shapes: data tensors have the shape of input, with every size that any
///         operand knows; per-channel tensors have its sizes at the feature
///         dims.
class BatchNormBuilder {
public:
  BatchNormBuilder(OpBuilder &b, BatchNormOpInterface op);

  /// True if it is known that a channel has no elements.
  bool isCountZero();
  /// M of input, for arithmetic in `floatType`; null: the accumulator type.
  ElementCount countOfInput(FloatType floatType = {});
  /// M given as a tensor<i64>.
  ElementCount countOf(Value count, FloatType floatType = {});
  /// M of input as a tensor<i64>.
  Value buildCountTensor();

  /// Two tensors of sums as one, row 0 and row 1 by channel, and back. Without
  /// sums they are 0.
  Value stack(ArrayRef<Value> sums);
  std::array<Value, 2> unstack(Value stacked);

  /// An uninitialized data tensor, and a per-channel tensor of equal values.
  Value buildEmptyData(Type elementType);
  Value buildUniformChannel(FloatType elementType, double value);
  Value buildZeroChannel(FloatType elementType) {
    return buildUniformChannel(elementType, 0.0);
  }

protected:
  /// Computes values from the elements of a generic's inputs.
  using ValuesFn =
      function_ref<SmallVector<Value>(const Arithmetic &, ValueRange)>;
  using ValueFn = function_ref<Value(const Arithmetic &, ValueRange)>;

  AffineMap dataMap();
  AffineMap featureMap();
  AffineMap channelMap();
  /// Null if absent.
  Value getOperand(Role role) { return op.getOperandOf(role); }
  /// True if it is known that there are no channels.
  bool hasNoChannels() const { return llvm::is_contained(channelShape, 0); }
  SmallVector<OpFoldResult> channelSizes();
  Value buildEmptyChannel(Type elementType);

  /// One reduction that adds up the `numSums` values of `terms`, each from 0 in
  /// its own tensor.
  SmallVector<Value> buildReduction(const GenericInputs &inputs,
                                    unsigned numSums, ValuesFn terms);
  /// One per-channel generic, whose results are rounded to `types`.
  SmallVector<Value> buildChannelwise(ValueRange inputs,
                                      ArrayRef<FloatType> types,
                                      ValuesFn values);
  void buildChannelwise(ValueRange inputs, ArrayRef<ChannelOutput> outputs,
                        ValuesFn values);
  /// The element-wise generic, whose result is rounded to `elementType`.
  Value buildElementwise(const GenericInputs &inputs, FloatType elementType,
                         ValueFn value);
  /// 1/sqrt(variance + epsilon), with the epsilon of the op or the argument of
  /// the function that replaces it.
  Value invStdOfVariance(const Arithmetic &math, Value variance);
  /// r, from the second statistic.
  Value invStdOf(const Arithmetic &math, Value statistic);

  OpBuilder &b;
  BatchNormOpInterface op;
  Location loc;
  SmallVector<int64_t> dataShape, channelShape;
  FloatType type; // of arithmetic

private:
  Value sizeOfInput(int64_t dim);
  Value buildCount();
  ElementCount countOfInteger(Value count, FloatType floatType);
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_BATCHNORMBUILDER_H
