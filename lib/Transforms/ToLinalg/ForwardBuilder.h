//===- ForwardBuilder.h - builds forward passes --------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_FORWARDBUILDER_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_FORWARDBUILDER_H

#include "BatchNormBuilder.h"

namespace mlir::bngrad {

/// Sums of each channel about a value per channel; null where they are not
/// needed.
struct ChannelMoments {
  Value sum, squareSum;
};

/// Which results of training are needed. A null type means not needed.
struct TrainingRequest {
  bool output = false;
  FloatType mean, variance, invStd;
};

/// Per-channel tensors; null where they were not requested. `offset` is null if
/// it is 0.
struct TrainingValues {
  /// output = (input - center) * factor + offset.
  Value center, factor, offset;
  Value mean, variance, invStd;
};

/// Builds the parts of a forward pass as linalg on tensors.
///
/// Source: docs/mathematics.md.
class ForwardBuilder : public BatchNormBuilder {
public:
  using BatchNormBuilder::BatchNormBuilder;

  /// Builds one reduction with the needed sums about `center`, per channel,
  /// which is 0 if null.
  ChannelMoments buildMoments(Value center, bool needsSum, bool needsSquareSum);

  /// The values of training, for an input that may have elements.
  TrainingValues buildTraining(const TrainingRequest &request);
  /// The values of training for an input that has no elements.
  TrainingValues buildTrainingOfNothing(const TrainingRequest &request);
  /// scale * r, for given statistics.
  Value buildFactor();

  /// The element-wise generic of output.
  Value buildOutput(const TrainingValues &channel, FloatType elementType);

private:
  Value buildFirst(const ElementCount &count);
  Value buildCenter(const ElementCount &count);
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_FORWARDBUILDER_H
