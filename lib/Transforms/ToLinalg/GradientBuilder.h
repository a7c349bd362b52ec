//===- GradientBuilder.h - builds a gradient in linalg -------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_GRADIENTBUILDER_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_GRADIENTBUILDER_H

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace mlir::bngrad {

/// The two sums of each channel, per-channel tensors in the accumulator type;
/// null where they are not needed.
struct ChannelSums {
  Value sumDy, sumDyXmu;
};

/// Number of elements reduced per channel: static, or a value.
struct ElementCount {
  std::optional<int64_t> known;
  Value isZero;  // i1, null if known
  Value divisor; // accumulator type, max(count, 1); null if known
};

/// Which per-channel values are needed. A null type means not needed.
struct ChannelRequest {
  bool gradInput = false;
  bool isBatch = false; // grad_input differentiates through the statistics
  FloatType gradScale, gradOffset;
};

/// Per-channel tensors; null where they were not requested. The coefficients
/// of grad_input are in the accumulator type.
struct ChannelValues {
  Value factor, meanDy, slope;
  Value gradScale, gradOffset;
};

/// Builds the parts of a gradient as linalg on tensors.
///
/// Shapes: data tensors have the shape of input, with every size that any
///         operand knows; per-channel tensors have its sizes at the feature
///         dims.
/// Source: docs/mathematics.md.
class GradientBuilder {
public:
  GradientBuilder(OpBuilder &b, GradientOpInterface op);

  /// True if it is known that a channel has no elements.
  bool isCountZero();
  /// M of input.
  ElementCount countOfInput();
  /// M given as a tensor<i64>.
  ElementCount countOf(Value count);
  /// M of input as a tensor<i64>.
  Value buildCountTensor();

  /// Builds one reduction with the needed sums, each from 0 in its own tensor.
  ChannelSums buildSums(bool needsSumDy, bool needsSumDyXmu);
  /// Both sums as one tensor, [sum_dy, sum_dy_xmu] by channel.
  Value buildStackedSums();
  /// The sums of such a tensor.
  ChannelSums unstackSums(Value sums);

  /// One per-channel generic with the requested values.
  ChannelValues buildChannel(const ChannelRequest &request, ChannelSums sums,
                             const ElementCount &count);

  /// The element-wise generic of grad_input, for batch statistics if there is a
  /// mean of grad_output.
  Value buildGradInput(const ChannelValues &channel, FloatType elementType);

  /// An uninitialized data tensor, and a per-channel tensor of zeros.
  Value buildEmptyData(Type elementType);
  Value buildZeroChannel(FloatType elementType);

private:
  AffineMap dataMap();
  AffineMap featureMap();
  AffineMap channelMap();
  /// Null if absent.
  Value getOperand(Role role) { return op.getOperandOf(role); }
  /// True if it is known that there are no channels.
  bool hasNoChannels() const { return llvm::is_contained(channelShape, 0); }
  Value sizeOfInput(int64_t dim);
  Value buildCount();
  ElementCount countOfInteger(Value count);
  SmallVector<OpFoldResult> channelSizes();
  Value buildEmptyChannel(Type elementType);

  OpBuilder &b;
  GradientOpInterface op;
  Location loc;
  SmallVector<int64_t> dataShape, channelShape;
  FloatType type; // of arithmetic
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_GRADIENTBUILDER_H
