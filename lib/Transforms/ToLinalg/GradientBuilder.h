//===- GradientBuilder.h - builds a gradient in linalg -------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_GRADIENTBUILDER_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_GRADIENTBUILDER_H

#include "BatchNormBuilder.h"

namespace mlir::bngrad {

/// The two sums of each channel, per-channel tensors in the accumulator type;
/// null where they are not needed.
struct ChannelSums {
  Value sumDy, sumDyXmu;
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
/// Source: docs/mathematics.md.
class GradientBuilder : public BatchNormBuilder {
public:
  using BatchNormBuilder::BatchNormBuilder;

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
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_GRADIENTBUILDER_H
