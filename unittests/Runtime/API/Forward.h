//===- Forward.h - forward passes for tests of the C library ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_FORWARD_H
#define BNGRAD_UNITTESTS_FORWARD_H

#include "Gradient.h"

namespace bngrad::test {

/// The tensors of a forward pass. Those that are written come first, in the
/// order of training; `Mean` and `Statistic` are operands of inference.
enum Place {
  Output,
  BatchMean,
  BatchVariance,
  BatchInvStd,
  RunningMean,
  RunningVariance,
  kNumWritten,
  Data = kNumWritten,
  Offset,
  GivenScale,
  GivenMean,
  GivenStatistic,
  kNumPlaces
};

struct ForwardLayout {
  std::vector<int64_t> shape;
  std::vector<int> featureDims;
  /// Dims in the order of memory, outermost first; empty: as they are.
  std::vector<int> order;
};

struct ForwardSpec {
  ForwardLayout layout = {{4, 3, 5}, {1}, {}};
  bool isInference = false, isInvStd = false;
  bngradDtype_t dataType = BNGRAD_DTYPE_F32, outputType = BNGRAD_DTYPE_F32;
  bngradDtype_t parameterType = BNGRAD_DTYPE_F32;
  bngradDtype_t statisticType = BNGRAD_DTYPE_F32;
  bngradDtype_t runningType = BNGRAD_DTYPE_F32;
  int64_t dataStride = 1, parameterStride = 1;
  bool hasScale = true, hasOffset = true, hasRunning = true;
  bool isUnbiased = false, isInPlace = false;
  /// Output, mean, variance, inv_std.
  bool wants[4] = {true, false, false, false};
  double epsilon = 1e-3, momentum = 0.25;
  /// The distance of the channels from 0.
  double location = 1;
  unsigned seed = 1;

  std::string print() const;
};

/// A forward pass with data and descriptors.
class Forward {
public:
  explicit Forward(const ForwardSpec &spec);
  ~Forward();
  Forward(const Forward &) = delete;
  Forward &operator=(const Forward &) = delete;

  bngradStatus_t create(bngradHandle_t handle);
  /// Computes from the initial data, in a workspace of its own.
  bngradStatus_t run();
  bngradStatus_t runAsync(const bngradExecutor_t *executor,
                          const bngradCompletion_t *done);
  /// Restores the initial data.
  void reset();
  /// Computes in `stream`, with a workspace of workspaceSize() bytes.
  bngradStatus_t call(void *workspace, void *stream);
  bngradStatus_t callAsync(void *workspace, void *stream,
                           const bngradExecutor_t *executor,
                           const bngradCompletion_t *done);
  size_t workspaceSize() const;

  /// Empty, or the first error.
  std::string check() const;
  /// The bytes of all tensors.
  std::vector<char> results() const;
  /// Null if absent.
  char *data(Place place);

  ForwardSpec spec;
  bngradBatchNormTrainingOptions_t trainingOptions = {};
  bngradBatchNormInferenceOptions_t inferenceOptions = {};
  Array arrays[kNumPlaces];
  /// Other addresses than those of the arrays, if not null.
  void *addresses[kNumPlaces] = {};
  bngradBatchNormTrainingDescriptor_t training = nullptr;
  bngradBatchNormInferenceDescriptor_t inference = nullptr;

private:
  struct Channel;
  struct Expected;
  /// An element of a parameter as it was stored at the start.
  double get(Place place, int64_t channel, double absent) const;
  /// Of arithmetic.
  long double roundoff() const;
  std::vector<Channel> computeChannels() const;
  void setStatistics(Channel &channel) const;
  std::vector<Expected>
  expectChannel(Place place, const std::vector<Channel> &channels) const;
  std::vector<Expected>
  expectOutput(const std::vector<Channel> &channels) const;
  static std::string compare(const char *name, const Array &array,
                             const std::vector<Expected> &expected);

  Memory workspace;
  bngradTensorDescriptor_t tensors[kNumPlaces] = {};
  /// The elements of each tensor as stored at the start.
  std::vector<double> initial[kNumPlaces];
  std::vector<int64_t> channelOf;
};

} // namespace bngrad::test

#endif // BNGRAD_UNITTESTS_FORWARD_H
