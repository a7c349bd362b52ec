//===- Options.cpp - options of the descriptors of ops --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Problem.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

using namespace bngrad;

/// Copies options of this version, or of an older one with at least `least`
/// bytes.
template <typename Options>
static bngradStatus_t copyOptions(const Options &options, size_t least,
                                  Options &copy) {
  if (options.struct_size < least)
    return fail(BNGRAD_BAD_PARAM,
                "options: expected struct_size to be at least %zu, got %zu",
                least, options.struct_size);
  copy = {};
  std::memcpy(&copy, &options, std::min(options.struct_size, sizeof(copy)));
  return BNGRAD_SUCCESS;
}

static bngradStatus_t verifyChoice(const char *name, int value) {
  if (value == 0 || value == 1)
    return BNGRAD_SUCCESS;
  return fail(BNGRAD_BAD_PARAM, "options: expected %s to be 0 or 1, got %d",
              name, value);
}

static void setDefaults(Problem &problem) {
  problem.isBatch = true;
  problem.numFeatureDims = 1;
  problem.featureDims[0] = 1;
}

/// The options that all ops share.
template <typename Options>
static bngradStatus_t setShared(const Options &options, Problem &problem) {
  problem.epsilon = options.epsilon;
  if (!std::isfinite(problem.epsilon) || problem.epsilon < 0)
    return fail(BNGRAD_BAD_PARAM,
                "options: expected epsilon to be finite and at least 0, got %g",
                problem.epsilon);
  if (problem.isInvStd && problem.epsilon != 0)
    return fail(BNGRAD_BAD_PARAM,
                "options: expected epsilon to be 0 with an inv_std, which "
                "contains it, got %g",
                problem.epsilon);
  int count = options.num_feature_dims;
  if (count < 0 || count > BNGRAD_MAX_FEATURE_DIMS)
    return fail(BNGRAD_BAD_PARAM,
                "options: expected num_feature_dims to be 0 to %d, got %d",
                BNGRAD_MAX_FEATURE_DIMS, count);
  if (count > 0) {
    problem.numFeatureDims = count;
    std::copy_n(options.feature_dims, count, problem.featureDims);
  }
  return BNGRAD_SUCCESS;
}

static bngradStatus_t setGroup(const bngradBatchNormBackwardOptions_t &options,
                               Problem &problem) {
  if (bngradStatus_t status = verifyChoice("local_parameter_gradients",
                                           options.local_parameter_gradients))
    return status;
  problem.group = options.process_group;
  problem.hasLocalParameters = options.local_parameter_gradients != 0;
  if (problem.group && problem.op != OpKind::Backward)
    return fail(BNGRAD_BAD_PARAM,
                "options: expected process_group to be null for %s%s, got one",
                getName(problem.op),
                hasRelu(problem.op) ? "" : ", whose sums the caller adds");
  return BNGRAD_SUCCESS;
}

bngradStatus_t
bngrad::setOptions(const bngradBatchNormBackwardOptions_t *options,
                   Problem &problem) {
  setDefaults(problem);
  if (!options)
    return BNGRAD_SUCCESS;
  bngradBatchNormBackwardOptions_t copy;
  constexpr size_t kLeast =
      offsetof(bngradBatchNormBackwardOptions_t, asynchronous);
  if (bngradStatus_t status = copyOptions(*options, kLeast, copy))
    return status;
  if (bngradStatus_t status = setGroup(copy, problem))
    return status;
  const std::pair<const char *, int> choices[] = {
      {"statistics", copy.statistics},
      {"statistic", copy.statistic},
      {"asynchronous", copy.asynchronous}};
  for (auto [name, value] : choices)
    if (bngradStatus_t status = verifyChoice(name, value))
      return status;
  problem.isAsynchronous = copy.asynchronous == 1;
  problem.isBatch = copy.statistics == BNGRAD_STATISTICS_BATCH;
  if (!problem.isBatch && getBase(problem.op) != OpKind::Backward)
    return fail(BNGRAD_BAD_PARAM,
                "options: expected statistics to be 0 for %s, got 1",
                getName(problem.op));
  problem.isInvStd = copy.statistic == BNGRAD_STATISTIC_INV_STD;
  return setShared(copy, problem);
}

bngradStatus_t
bngrad::setOptions(const bngradBatchNormTrainingOptions_t *options,
                   Problem &problem) {
  setDefaults(problem);
  if (!options)
    return BNGRAD_SUCCESS;
  bngradBatchNormTrainingOptions_t copy;
  if (bngradStatus_t status = copyOptions(*options, sizeof(copy), copy))
    return status;
  if (bngradStatus_t status = verifyChoice("unbiased_running_variance",
                                           copy.unbiased_running_variance))
    return status;
  if (!std::isfinite(copy.momentum))
    return fail(BNGRAD_BAD_PARAM,
                "options: expected momentum to be finite, got %g",
                copy.momentum);
  problem.momentum = copy.momentum;
  problem.isUnbiased = copy.unbiased_running_variance == 1;
  return setShared(copy, problem);
}

bngradStatus_t
bngrad::setOptions(const bngradBatchNormInferenceOptions_t *options,
                   Problem &problem) {
  setDefaults(problem);
  if (!options)
    return BNGRAD_SUCCESS;
  bngradBatchNormInferenceOptions_t copy;
  if (bngradStatus_t status = copyOptions(*options, sizeof(copy), copy))
    return status;
  if (bngradStatus_t status = verifyChoice("statistic", copy.statistic))
    return status;
  problem.isInvStd = copy.statistic == BNGRAD_STATISTIC_INV_STD;
  return setShared(copy, problem);
}
