//===- ReferenceParts.h - shared by the references ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_REFERENCE_REFERENCEPARTS_H
#define BNGRAD_LIB_REFERENCE_REFERENCEPARTS_H

#include "BNGrad/Reference/Reference.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace bngrad {

using Real = long double;

//===----------------------------------------------------------------------===//
// Iteration
//===----------------------------------------------------------------------===//

/// Adjacent dims that are all reduced or all features, as one.
struct Loop {
  int64_t extent;
  /// How far one step moves in the row-major list of channels; 0 if reduced.
  int64_t channelStride;
};

inline bool isFeatureDim(const std::vector<int64_t> &featureDims, size_t dim) {
  return std::binary_search(featureDims.begin(), featureDims.end(),
                            static_cast<int64_t>(dim));
}

/// The loops over `shape`, innermost first; at least one. Extents are > 0.
inline std::vector<Loop> collapse(const std::vector<int64_t> &shape,
                                  const std::vector<int64_t> &featureDims) {
  std::vector<Loop> loops;
  int64_t numChannels = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] == 1)
      continue;
    bool isFeature = isFeatureDim(featureDims, dim);
    if (!loops.empty() && (loops.back().channelStride != 0) == isFeature)
      loops.back().extent *= shape[dim];
    else
      loops.push_back({shape[dim], isFeature ? numChannels : 0});
    if (isFeature)
      numChannels *= shape[dim];
  }
  if (loops.empty())
    loops.push_back({1, 0});
  return loops;
}

/// Calls `body(begin, channel)` for every run of the innermost loop, row-major.
template <typename Body>
void forEachRun(const std::vector<Loop> &loops, Body body) {
  std::vector<int64_t> position(loops.size(), 0);
  int64_t begin = 0, channel = 0;
  while (true) {
    body(begin, channel);
    begin += loops[0].extent;
    size_t i = 1;
    for (; i < loops.size(); ++i) {
      channel += loops[i].channelStride;
      if (++position[i] != loops[i].extent)
        break;
      position[i] = 0;
      channel -= loops[i].extent * loops[i].channelStride;
    }
    if (i == loops.size())
      return;
  }
}

/// Calls `body(index, channel)` for every element, row-major.
template <typename Body>
void forEachElement(const std::vector<Loop> &loops, Body body) {
  forEachRun(loops, [&](int64_t begin, int64_t channel) {
    for (int64_t i = begin; i < begin + loops[0].extent;
         ++i, channel += loops[0].channelStride)
      body(i, channel);
  });
}

//===----------------------------------------------------------------------===//
// Sums and operands
//===----------------------------------------------------------------------===//

/// A sum that keeps its rounding errors separately (D. Knuth, TAOCP 2, 4.2.2,
/// theorem B): its own error does not grow with the number of terms.
struct CompensatedSum {
  Real sum = 0;
  Real errors = 0;

  void add(Real term) {
    Real total = sum + term;
    Real added = total - sum;
    errors += (sum - (total - added)) + (term - added);
    sum = total;
  }
  /// After an infinity or a NaN the errors are NaN and mean nothing.
  Real get() const { return std::isfinite(sum) ? sum + errors : sum; }
};

/// Terms of one run are first added up plainly in blocks of this many. The
/// error is at most 2^10 * 2^-64 relative to A; the bound of f64 allows 2^-51.
inline constexpr int64_t kBlock = 1024;

/// An element of the tensor of `role`.
inline double load(const ReferenceProblem &problem, Role role, int64_t index) {
  return loadAsDouble(problem[role].type, problem[role].data, index);
}

/// A per-channel operand, and how far a computed one may be from it.
struct Parameter {
  Real value = 0;
  Real error = 0;
};

/// The operand of `role`, or `absent` if there is none.
inline Parameter loadParameter(const ReferenceProblem &problem, Role role,
                               int64_t channel, Real absent = 0) {
  const ReferenceTensor &tensor = problem[role];
  if (!tensor.data)
    return {absent, 0};
  return {load(problem, role, channel),
          tensor.error ? tensor.error[channel] : 0};
}

/// 1/sqrt(variance + epsilon). Infinite errors mean that there is no bound.
///
/// With z the relative error of the sum, |1/sqrt(1 + z) - 1| <= |z| while
/// |z| <= 1/2.
inline Parameter computeInvStd(Parameter variance, Real epsilon) {
  Real sum = variance.value + epsilon;
  Real invStd = 1 / std::sqrt(sum);
  if (variance.error == 0)
    return {invStd, 0};
  if (!(variance.error <= sum / 2))
    return {invStd, std::numeric_limits<Real>::infinity()};
  return {invStd, invStd * (variance.error / sum)};
}

/// The accumulator type: the type of the widest operand, at least f32.
inline ElementType accumulatorType(const ReferenceProblem &problem) {
  for (const ReferenceTensor &tensor : problem.tensors)
    if (tensor.data && tensor.type == ElementType::F64)
      return ElementType::F64;
  return ElementType::F32;
}

/// Epsilon in the accumulator type, in which a very small one is 0.
inline Real roundedEpsilon(const ReferenceProblem &problem) {
  return roundTo(accumulatorType(problem), problem.epsilon);
}

/// r.
inline Parameter loadInvStd(const ReferenceProblem &problem, int64_t channel) {
  if (problem[Role::InvStd].data)
    return loadParameter(problem, Role::InvStd, channel);
  return computeInvStd(loadParameter(problem, Role::Variance, channel),
                       roundedEpsilon(problem));
}

/// The effect of an error that a factor multiplies. Without an error there is
/// none, even if the factor is infinite; without a bound on the error there is
/// no bound, even if the factor is 0.
inline Real effect(Real factor, Real error) {
  return error == 0 || std::isinf(error) ? error : std::fabs(factor) * error;
}

/// A product; an error may enlarge the other factor as well.
inline Parameter multiply(Parameter l, Parameter r) {
  return {l.value * r.value, effect(l.value, r.error) +
                                 effect(r.value, l.error) +
                                 effect(l.error, r.error)};
}

//===----------------------------------------------------------------------===//
// Bounds and results
//===----------------------------------------------------------------------===//

/// u_acc.
inline Real accumulatorRoundoff(const ReferenceProblem &problem) {
  return unitRoundoff(accumulatorType(problem));
}

/// The bound of one result as a function of its exact value and of A.
struct Bound {
  Real resultRoundoff;
  /// 4 * u_acc * (4 + log2(M + 1)).
  Real accumulated;
  Real smallest;

  Bound(const ReferenceProblem &problem, Role result, int64_t count)
      : resultRoundoff(unitRoundoff(problem[result].type)),
        accumulated(4 * accumulatorRoundoff(problem) *
                    (4 + std::log2(static_cast<Real>(count) + 1))),
        smallest(smallestSubnormal(problem[result].type)) {}

  /// `error`: the effect of the operands' errors, which may enlarge the result
  /// and A by as much.
  double operator()(Real exact, Real absolute, Real error) const {
    return static_cast<double>(resultRoundoff * (std::fabs(exact) + error) +
                               accumulated * (absolute + error) + smallest +
                               error);
  }
};

inline void resize(ReferenceResult &result, int64_t size) {
  result.value.resize(static_cast<size_t>(size));
  result.bound.resize(static_cast<size_t>(size));
}

struct Sizes {
  int64_t numChannels = 1;
  /// Elements per channel of input. Not a quotient of sizes, as it is needed
  /// even without channels.
  int64_t perChannel = 1;

  explicit Sizes(const ReferenceProblem &problem) {
    assert(!problem.featureDims.empty() &&
           problem.featureDims.back() <
               static_cast<int64_t>(problem.shape.size()) &&
           "expected a verified problem");
    for (size_t dim = 0; dim < problem.shape.size(); ++dim) {
      bool isFeature = isFeatureDim(problem.featureDims, dim);
      (isFeature ? numChannels : perChannel) *= problem.shape[dim];
    }
  }
};

} // namespace bngrad

#endif // BNGRAD_LIB_REFERENCE_REFERENCEPARTS_H
