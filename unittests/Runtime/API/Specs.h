//===- Specs.h - random problems for tests of the C library -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_SPECS_H
#define BNGRAD_UNITTESTS_SPECS_H

#include "Forward.h"
#include "Gradient.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>

namespace bngrad::test {

/// Whether scripts/test.sh --all runs the tests; the quick suite takes a part.
inline bool isLongTest() {
  const char *value = std::getenv("BNGRAD_LONG_TESTS");
  return value && std::string_view(value) == "1";
}

/// BNGRAD_ISA has another value in a scope.
class ScopedIsa {
public:
  explicit ScopedIsa(const char *isa) {
    if (const char *value = std::getenv("BNGRAD_ISA"))
      old = value;
    setenv("BNGRAD_ISA", isa, 1);
  }
  ~ScopedIsa() {
    if (old)
      setenv("BNGRAD_ISA", old->c_str(), 1);
    else
      unsetenv("BNGRAD_ISA");
  }
  ScopedIsa(const ScopedIsa &) = delete;
  ScopedIsa &operator=(const ScopedIsa &) = delete;

private:
  std::optional<std::string> old;
};

/// A handle of the CPU; null: with the instruction set of the test's run.
class Handle {
public:
  explicit Handle(const char *isa = nullptr) {
    std::optional<ScopedIsa> scope;
    if (isa)
      scope.emplace(isa);
    status = bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0);
  }
  ~Handle() { bngradDestroyHandle(handle); }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  operator bngradHandle_t() const { return handle; }

  bngradStatus_t status;

private:
  bngradHandle_t handle = nullptr;
};

/// Gradients that no ready kernel covers: feature dims apart, in another order
/// than in memory, data with gaps, mixtures with f64.
inline std::vector<Spec> makeUncoveredSpecs() {
  Spec apart;
  apart.shape = {3, 4, 2, 5};
  apart.featureDims = {0, 2};
  Spec transposed = apart;
  transposed.featureDims = {1, 2};
  transposed.order = {0, 2, 1, 3};
  transposed.hasMask = true;
  Spec gaps;
  gaps.shape = {4, 3, 40};
  gaps.dataStride = 2;
  gaps.isInvStd = true;
  Spec wide;
  wide.shape = {2, 1, 9};
  wide.dataType = BNGRAD_DTYPE_BF16;
  wide.parameterType = BNGRAD_DTYPE_F64;
  wide.hasScale = false;
  Spec none = wide;
  none.shape = {2, 3, 0, 4};
  return {apart, transposed, gaps, wide, none};
}

/// A random forward pass.
inline ForwardSpec makeForwardSpec(std::mt19937 &random) {
  auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % sizeof...(values)];
  };
  auto chance = [&] { return random() % 2 == 0; };
  const bngradDtype_t f32 = BNGRAD_DTYPE_F32;
  const ForwardLayout layouts[] = {{{4, 3, 5, 2}, {1}, {}},
                                   {{4, 5, 2, 3}, {3}, {}},
                                   {{37, 6}, {1}, {}},
                                   {{9, 3, 4}, {1}, {0, 2, 1}},
                                   {{3, 4, 2, 5}, {0, 2}, {}},
                                   {{2, 3, 4}, {1, 2}, {0, 2, 1}},
                                   {{7}, {0}, {}},
                                   {{1, 5}, {1}, {}},
                                   {{0, 5}, {1}, {}},
                                   {{3, 0, 2}, {1}, {}},
                                   {{2, 3, 700}, {1}, {}},
                                   {{300, 20}, {1}, {}}};
  ForwardSpec spec;
  spec.layout = layouts[random() % std::size(layouts)];
  spec.isInference = random() % 3 == 0;
  spec.isInvStd = spec.isInference && chance();
  spec.dataType =
      pick(f32, f32, BNGRAD_DTYPE_BF16, BNGRAD_DTYPE_F16, BNGRAD_DTYPE_F64);
  spec.parameterType = pick(f32, f32, spec.dataType);
  spec.outputType = pick(spec.dataType, spec.dataType, f32);
  spec.statisticType = pick(f32, spec.dataType, BNGRAD_DTYPE_F64);
  spec.runningType = pick(f32, BNGRAD_DTYPE_F64, BNGRAD_DTYPE_BF16);
  spec.dataStride = pick(1, 1, 2);
  spec.parameterStride = pick(1, 2);
  spec.hasScale = chance();
  spec.hasOffset = chance();
  spec.isUnbiased = chance();
  for (bool &isWanted : spec.wants)
    isWanted = chance();
  spec.wants[0] |= random() % 4 != 0;
  spec.isInPlace =
      spec.wants[0] && spec.outputType == spec.dataType && chance();
  spec.epsilon = pick(1e-5, 1e-3, 0.5);
  spec.momentum = pick(0.1, 0.3, 1.0);
  spec.location = pick(0.0, 3.0, 1000.0);
  spec.seed = random();
  return spec;
}

/// Random gradients that the ready kernels cover.
class Specs {
public:
  explicit Specs(unsigned seed) : random(seed) {}

  Spec next() {
    Spec spec;
    spec.seed = static_cast<unsigned>(random());
    chooseShape(spec);
    spec.dataType = static_cast<bngradDtype_t>(pick(4));
    bool isF64 = spec.dataType == BNGRAD_DTYPE_F64;
    spec.parameterType = static_cast<bngradDtype_t>(pick(isF64 ? 4 : 3));
    spec.resultType = static_cast<bngradDtype_t>(pick(4));
    spec.parameterStride = pick(3) == 0 ? 2 : 1;
    spec.isGlobal = pick(3) == 0;
    spec.isInvStd = pick(2) == 0;
    spec.hasScale = pick(4) != 0;
    spec.hasMask = pick(3) == 0;
    int wanted = 1 + pick(7);
    if (pick(2) == 0)
      wanted = 7;
    for (int i = 0; i < 3; ++i)
      spec.wants[i] = (wanted >> i & 1) != 0;
    if (spec.wants[0] && pick(3) == 0)
      spec.inPlaceOf = pick(2) == 0 ? GradOutput : Input;
    return spec;
  }

  int pick(int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  }

private:
  static constexpr int64_t kMostElements = 20000;

  /// Any rank and order of dims in which the feature dims are one run.
  void chooseShape(Spec &spec) {
    int numOuter = pick(3), numFeatures = 1 + pick(2), numInner = pick(3);
    std::vector<bool> isFeature;
    std::vector<int64_t> sizes;
    auto add = [&](int count, bool feature) {
      for (int i = 0; i < count; ++i) {
        isFeature.push_back(feature);
        // Some beyond a vector, some 1, few 0.
        int64_t size = pick(4) == 0 ? 1 + pick(40) : 1 + pick(6);
        sizes.push_back(pick(60) == 0 ? 0 : size);
      }
    };
    add(numOuter, false);
    add(numFeatures, true);
    add(numInner, false);
    // Tests named Large have many elements.
    int64_t total = 1;
    for (int64_t &size : sizes) {
      if (total * size > kMostElements)
        size = std::min<int64_t>(size, 6);
      total *= std::max<int64_t>(size, 1);
    }
    // Logical dims in any order, feature dims ascending as in memory.
    size_t rank = sizes.size();
    std::vector<int> logical(rank);
    std::iota(logical.begin(), logical.end(), 0);
    std::shuffle(logical.begin(), logical.end(), random);
    std::vector<int> features;
    for (size_t i = 0; i < rank; ++i)
      if (isFeature[i])
        features.push_back(logical[i]);
    std::sort(features.begin(), features.end());
    for (size_t i = 0, next = 0; i < rank; ++i)
      if (isFeature[i])
        logical[i] = features[next++];
    spec.order = logical;
    spec.featureDims = features;
    spec.shape.assign(rank, 0);
    for (size_t i = 0; i < rank; ++i)
      spec.shape[static_cast<size_t>(logical[i])] = sizes[i];
  }

  std::mt19937 random;
};

} // namespace bngrad::test

#endif // BNGRAD_UNITTESTS_SPECS_H
