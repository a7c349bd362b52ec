//===- OpDescriptor.h - the descriptor of any op ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C library has types and functions for each kind of descriptor. Clients in
// this repository, which take the op as a value, use this class instead.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_OPDESCRIPTOR_H
#define BNGRAD_LIB_RUNTIME_OPDESCRIPTOR_H

#include "Operands.h"

namespace bngrad {

/// The options of all ops.
struct OpOptions : bngradBatchNormBackwardOptions_t {
  /// The momentum of running statistics.
  double momentum = 0;
  bool hasUnbiasedRunningVariance = false;
};

/// Owns the descriptor of an op, or none.
class OpDescriptor {
public:
  OpDescriptor() = default;
  OpDescriptor(OpDescriptor &&other) noexcept { swap(other); }
  OpDescriptor &operator=(OpDescriptor &&other) noexcept {
    swap(other);
    return *this;
  }
  ~OpDescriptor() { reset(); }

  explicit operator bool() const { return backward || training || inference; }

  bngradStatus_t create(OpKind kind, bngradHandle_t handle,
                        const OpOptions &options,
                        const TensorDescriptors &tensors) {
    reset();
    op = kind;
    if (getBase(op) == OpKind::Training) {
      auto own = convert<bngradBatchNormTrainingOptions_t>(options);
      own.momentum = options.momentum;
      own.unbiased_running_variance = options.hasUnbiasedRunningVariance;
      return createDescriptor(op, handle, &training, &own, tensors);
    }
    if (op == OpKind::Inference) {
      auto own = convert<bngradBatchNormInferenceOptions_t>(options);
      own.statistic = options.statistic;
      return createDescriptor(op, handle, &inference, &own, tensors);
    }
    const bngradBatchNormBackwardOptions_t &own = options;
    return createDescriptor(op, handle, &backward, &own, tensors);
  }

  bngradStatus_t getWorkspaceSize(size_t &size) const {
    return training ? bngradGetBatchNormTrainingWorkspaceSize(training, &size)
           : inference
               ? bngradGetBatchNormInferenceWorkspaceSize(inference, &size)
               : bngradGetBatchNormBackwardWorkspaceSize(backward, &size);
  }

  /// `data` also has the addresses of scalars. `stream` is for a GPU.
  bngradStatus_t compute(void *workspace, size_t size,
                         void *const (&data)[kNumOperands],
                         void *stream = nullptr) const {
    auto run = [&](auto descriptor) {
      return bngrad::compute(op, descriptor, workspace, size, data, stream);
    };
    return training    ? run(training)
           : inference ? run(inference)
                       : run(backward);
  }

  bngradStatus_t describe(char *text, size_t size) const {
    return training    ? bngradDescribeBatchNormTraining(training, text, size)
           : inference ? bngradDescribeBatchNormInference(inference, text, size)
                       : bngradDescribeBatchNormBackward(backward, text, size);
  }

  void reset() {
    bngradDestroyBatchNormBackwardDescriptor(backward);
    bngradDestroyBatchNormTrainingDescriptor(training);
    bngradDestroyBatchNormInferenceDescriptor(inference);
    backward = nullptr;
    training = nullptr;
    inference = nullptr;
  }

private:
  template <typename Options>
  static Options convert(const bngradBatchNormBackwardOptions_t &options) {
    Options own = {};
    own.struct_size = sizeof(own);
    own.epsilon = options.epsilon;
    own.num_feature_dims = options.num_feature_dims;
    std::copy_n(options.feature_dims, BNGRAD_MAX_FEATURE_DIMS,
                own.feature_dims);
    return own;
  }

  void swap(OpDescriptor &other) {
    std::swap(op, other.op);
    std::swap(backward, other.backward);
    std::swap(training, other.training);
    std::swap(inference, other.inference);
  }

  OpKind op = OpKind::Backward;
  /// At most one is not null.
  bngradBatchNormBackwardDescriptor_t backward = nullptr;
  bngradBatchNormTrainingDescriptor_t training = nullptr;
  bngradBatchNormInferenceDescriptor_t inference = nullptr;
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_OPDESCRIPTOR_H
