//===- ReferenceCase.h - problems for tests of the reference ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_REFERENCECASE_H
#define BNGRAD_UNITTESTS_REFERENCECASE_H

#include "BNGrad/Reference/Reference.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace bngrad {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Real = long double;
using Shape = std::vector<int64_t>;

/// `values` as elements of `type`.
std::vector<char> encode(ElementType type, const std::vector<double> &values);

/// A problem that owns its operands, as doubles.
struct Case {
  Shape shape;
  Shape featureDims = {1};
  std::vector<double> gradOutput, input, scale, mean, statistic;
  std::vector<uint8_t> mask;
  double epsilon = 0;
  bool globalStatistics = false;
  bool statisticIsInvStd = false;
  ElementType dataType = ElementType::F64;
  ElementType parameterType = ElementType::F64;
  ElementType resultType = ElementType::F64;

  ReferenceResults compute() const;

  /// Channel of every element of input, by division, unlike the reference.
  std::vector<int64_t> channels() const;

  /// The loss sum(dy * y) of the forward pass y = scale * (x - mean) * r +
  /// offset; the op computes its derivatives. Needs a variance rather than an
  /// inv_std.
  Real loss(const std::vector<Real> &x, const std::vector<Real> &gamma,
            const std::vector<Real> &beta) const;

  void computeStatistics(const std::vector<Real> &x, std::vector<Real> &m,
                         std::vector<Real> &variance) const;
};

/// A case whose channels differ in location, spread, scale and statistics.
Case makeCase(const Shape &shape, const Shape &featureDims,
              bool globalStatistics);

/// Mean and variance are not those of input, and are not recomputed.
Case makeLiteralCase();

} // namespace bngrad

#endif // BNGRAD_UNITTESTS_REFERENCECASE_H
