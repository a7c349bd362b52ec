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

  static TrainingRequest get(BatchNormTrainingOp op,
                             function_ref<bool(Value)> isUsed);

  bool needsVariance() const { return output || variance || invStd; }
  bool isEmpty() const { return !mean && !needsVariance(); }
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

  /// The first element of each channel; 0 if there is none or if it is infinite
  /// or NaN.
  Value buildFirst(const ElementCount &count);
  /// The mean, from the sum about `first`.
  Value buildCenter(Value first, Value sum, const ElementCount &count);
  /// What is requested, from the sums about `center`, a number near the mean.
  TrainingValues buildChannel(const TrainingRequest &request, Value center,
                              const ChannelMoments &moments,
                              const ElementCount &count);

  /// center * count of a part of a batch, in f64. Its sum over the parts gives
  /// the center of the whole batch, from the count for f64.
  Value buildWeightedCenter(Value partCenter);
  Value buildWholeCenter(Value sum, const ElementCount &count);
  /// The sums of a part about the center of the whole batch, from the sums
  /// about its own center.
  ChannelMoments buildMovedMoments(Value center, Value partCenter,
                                   const ChannelMoments &moments);

  /// The values of training, for an input that may have elements.
  TrainingValues buildTraining(const TrainingRequest &request);
  /// The values of training for an input that has no elements.
  TrainingValues buildTrainingOfNothing(const TrainingRequest &request);
  /// scale * r, for given statistics.
  Value buildFactor();

  /// The element-wise generic of output.
  Value buildOutput(const TrainingValues &channel, FloatType elementType);
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_FORWARDBUILDER_H
