//===- ReferenceCase.cpp - problems for tests of the reference ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceCase.h"

#include <cmath>
#include <random>

namespace bngrad {

std::vector<char> encode(ElementType type, const std::vector<double> &values) {
  std::vector<char> data(values.size() * byteSize(type));
  for (size_t i = 0; i < values.size(); ++i)
    storeRounded(type, data.data(), static_cast<int64_t>(i), values[i]);
  return data;
}

ReferenceResults Case::compute() const {
  std::vector<char> dy = encode(dataType, gradOutput);
  std::vector<char> x = encode(dataType, input);
  std::vector<char> s = encode(parameterType, scale);
  std::vector<char> m = encode(parameterType, mean);
  std::vector<char> v = encode(parameterType, statistic);
  ReferenceProblem problem;
  problem.shape = shape;
  problem.featureDims = featureDims;
  problem.epsilon = epsilon;
  problem.globalStatistics = globalStatistics;
  for (Role role : {Role::GradInput, Role::GradScale, Role::GradOffset})
    problem[role].type = resultType;
  problem[Role::GradOutput] = {dataType, dy.data()};
  problem[Role::Input] = {dataType, x.data()};
  if (!scale.empty())
    problem[Role::Scale] = {parameterType, s.data()};
  problem[Role::Mean] = {parameterType, m.data()};
  problem[statisticIsInvStd ? Role::InvStd : Role::Variance] = {parameterType,
                                                                v.data()};
  if (!mask.empty())
    problem[Role::Mask] = {ElementType::I1, mask.data()};
  return computeReference(problem);
}

std::vector<int64_t> Case::channels() const {
  std::vector<int64_t> result;
  for (size_t i = 0; i < input.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), channel = 0, stride = 1;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) {
      for (int64_t featureDim : featureDims) {
        if (featureDim == static_cast<int64_t>(dim)) {
          channel += rest % shape[dim] * stride;
          stride *= shape[dim];
        }
      }
    }
    result.push_back(channel);
  }
  return result;
}

Real Case::loss(const std::vector<Real> &x, const std::vector<Real> &gamma,
                const std::vector<Real> &beta) const {
  std::vector<int64_t> channelOf = channels();
  std::vector<Real> m(mean.begin(), mean.end());
  std::vector<Real> r(statistic.begin(), statistic.end());
  if (!globalStatistics)
    computeStatistics(x, m, r);
  for (Real &value : r)
    value = 1 / std::sqrt(value + epsilon);
  Real sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t c = channelOf[i];
    if (mask.empty() || mask[i])
      sum += gradOutput[i] * (gamma[c] * (x[i] - m[c]) * r[c] + beta[c]);
  }
  return sum;
}

void Case::computeStatistics(const std::vector<Real> &x, std::vector<Real> &m,
                             std::vector<Real> &variance) const {
  std::vector<int64_t> channelOf = channels();
  Real count = static_cast<Real>(x.size()) / static_cast<Real>(mean.size());
  m.assign(mean.size(), 0);
  variance.assign(mean.size(), 0);
  for (size_t i = 0; i < x.size(); ++i)
    m[channelOf[i]] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    Real centered = x[i] - m[channelOf[i]];
    variance[channelOf[i]] += centered * centered / count;
  }
}

Case makeCase(const Shape &shape, const Shape &featureDims,
              bool globalStatistics) {
  Case result;
  result.shape = shape;
  result.featureDims = featureDims;
  result.globalStatistics = globalStatistics;
  result.epsilon = 0.125;
  size_t size = 1, numChannels = 1;
  for (int64_t extent : shape)
    size *= static_cast<size_t>(extent);
  for (int64_t dim : featureDims)
    numChannels *= static_cast<size_t>(shape[static_cast<size_t>(dim)]);
  std::mt19937 random(static_cast<unsigned>(size + 31 * numChannels));
  auto uniform = [&] { return random() / 2147483648.0 - 1; };
  result.input.resize(size);
  result.gradOutput.resize(size);
  std::vector<int64_t> channelOf = result.channels();
  for (size_t i = 0; i < size; ++i) {
    double c = static_cast<double>(channelOf[i]);
    result.input[i] = 0.5 * c + (1 + 0.25 * c) * uniform();
    result.gradOutput[i] = uniform() + 0.125 * c + 0.5;
  }
  for (size_t c = 0; c < numChannels; ++c) {
    double odd = c % 2 == 0 ? 1 : -1;
    result.scale.push_back(odd * (0.75 + 0.5 * double(c)));
    result.mean.push_back(0.5 * double(c) + 0.0625);
    result.statistic.push_back(0.5 + 0.375 * double(c));
  }
  if (!globalStatistics) {
    std::vector<Real> m, variance;
    result.computeStatistics({result.input.begin(), result.input.end()}, m,
                             variance);
    result.mean.assign(m.begin(), m.end());
    result.statistic.assign(variance.begin(), variance.end());
  }
  return result;
}

Case makeLiteralCase() {
  Case result;
  result.shape = {3, 2};
  result.input = {1, 2, 3, -1, 8, 5};
  result.gradOutput = {1, 3, -2, 5, 4, -2};
  result.scale = {2, -8};
  result.mean = {4, 2};
  result.statistic = {3, 15};
  result.epsilon = 1;
  return result;
}

} // namespace bngrad
