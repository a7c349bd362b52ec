//===- harness.h - test cases of kernels ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program of the tests is a list of cases:
//
//   CASE(block_sum) { ... expectEqual(device.get(), reference); }
//
// and `main` of this file, which runs all of them or those whose names the
// command line has. A failure is one line, and the exit status 1.
//
//===----------------------------------------------------------------------===//

#ifndef HARNESS_H
#define HARNESS_H

#include "runtime.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace testing {

/// A buffer of the device with `count` elements.
template <typename T> class Buffer {
public:
  explicit Buffer(size_t count) : count(count) {
    cudaMalloc(reinterpret_cast<void **>(&pointer), count * sizeof(T));
  }
  explicit Buffer(const std::vector<T> &values) : Buffer(values.size()) {
    cudaMemcpyAsync(pointer, values.data(), count * sizeof(T),
                    cudaMemcpyDefault, nullptr);
  }
  ~Buffer() { cudaFree(pointer); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  operator T *() const { return pointer; }
  std::vector<T> get() const {
    std::vector<T> values(count);
    if (cudaPeekAtLastError() == cudaSuccess)
      cudaMemcpyAsync(values.data(), pointer, count * sizeof(T),
                      cudaMemcpyDefault, nullptr);
    return values;
  }

private:
  T *pointer = nullptr;
  size_t count;
};

/// Allows, in its scope, a finding of the emulator that `variable` controls.
class Allowed {
public:
  explicit Allowed(const char *variable) : variable(variable) {
    const char *value = std::getenv(variable);
    old = value ? value : "";
    setenv(variable, "allow", 1);
  }
  ~Allowed() { setenv(variable, old.c_str(), 1); }
  Allowed(const Allowed &) = delete;
  Allowed &operator=(const Allowed &) = delete;

private:
  const char *variable;
  std::string old;
};

struct Case {
  const char *name;
  void (*run)();
  /// The capability that it needs.
  int capability;
};

inline std::vector<Case> &cases() {
  static std::vector<Case> list;
  return list;
}

struct Registration {
  Registration(const char *name, void (*run)(), int capability) {
    cases().push_back({name, run, capability});
  }
};

inline std::string &failure() {
  static std::string text;
  return text;
}

#define CASE_FOR(name, capability)                                             \
  static void name();                                                          \
  static testing::Registration register_##name(#name, name, capability);       \
  static void name()
#define CASE(name) CASE_FOR(name, 0)

/// `got` and `expected` have the same elements.
template <typename T>
void expectEqual(const std::vector<T> &got, const std::vector<T> &expected) {
  for (size_t i = 0; i < expected.size() && failure().empty(); ++i)
    if (std::memcmp(&got[i], &expected[i], sizeof(T)) != 0)
      failure() = "element " + std::to_string(i) + ": expected " +
                  std::to_string(expected[i]) + ", got " +
                  std::to_string(got[i]);
  if (got.size() < expected.size())
    failure() = "too few elements";
}

/// Each element is within `bound` of the expected one; NaN is not.
template <typename T>
void expectNear(const std::vector<T> &got, const std::vector<double> &expected,
                double bound) {
  for (size_t i = 0; i < expected.size() && failure().empty(); ++i)
    if (!(std::abs(double(got[i]) - expected[i]) <= bound))
      failure() = "element " + std::to_string(i) + ": expected " +
                  std::to_string(expected[i]) + ", got " +
                  std::to_string(double(got[i]));
}

/// Sums of a reference. Those of integers wrap around.
template <typename T>
using Exact = std::conditional_t<std::is_floating_point_v<T>, double, T>;

/// Sums of at most 1000 values below 1. Integers are equal; the kernels add no
/// real number more than 32 times, each time with a relative error of half an
/// ulp.
template <typename T>
void expectSums(const std::vector<T> &got,
                const std::vector<Exact<T>> &expected) {
  if constexpr (std::is_floating_point_v<T>)
    expectNear(got, expected,
               32 * 1000 * std::numeric_limits<T>::epsilon() / 2);
  else
    expectEqual(got, expected);
}

/// The emulator has reported an error of this kind.
inline void expectReport(const std::string &kind) {
  takeError();
  std::string message = takeMessage();
  if (message.find(" error: " + kind + ": ") == std::string::npos)
    failure() = "expected the report of " + kind + ", got '" + message + "'";
}

/// `count` random values: integers of all bits, reals in [-1, 1).
template <typename T>
std::vector<T> random(size_t count, T least = T(), T most = T()) {
  static std::mt19937_64 engine(1);
  std::vector<T> values(count);
  for (T &value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = T(std::uniform_real_distribution<double>(-1, 1)(engine));
    else if (least == most)
      value = T(engine());
    else
      value = T(least + T(engine() % uint64_t(most - least + 1)));
  }
  return values;
}

inline int runCases(const std::vector<std::string> &names) {
  size_t passed = 0, failed = 0;
  for (const Case &test : cases()) {
    bool isChosen = names.empty();
    for (const std::string &name : names)
      isChosen |= name == test.name;
    if (!isChosen || capability() < test.capability)
      continue;
    failure().clear();
    test.run();
    std::string message = takeMessage();
    if (takeError() != cudaSuccess || !message.empty())
      failure() = message.empty() ? "a call failed" : message;
    bool isGood = failure().empty();
    ++(isGood ? passed : failed);
    std::printf("%s %s%s%s\n", isGood ? "passed" : "FAILED", test.name,
                isGood ? "" : ": ", failure().c_str());
    std::fflush(stdout);
  }
  std::printf("%zu passed, %zu failed, %zu kernels\n", passed, failed,
              numLaunchedKernels());
  return failed != 0 || passed == 0;
}

} // namespace testing

#endif // HARNESS_H
