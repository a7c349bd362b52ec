//===- Measure.cpp - times of ops and of memory ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measure.h"

#include "Errors.h"
#include "Gradient.h"
#include "Threads.h"
#include "Unlocked.h"

#include "BNGrad/Dialect/Alignment.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace bngrad;
using namespace bngrad::python;
using mlir::bngrad::alignUp, mlir::bngrad::kBufferAlignment,
    mlir::bngrad::kLineBytes;
using nb::literals::operator""_a;

namespace {
struct Free {
  void operator()(void *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Free>;

/// An op with its own data.
class Problem {
public:
  /// Types are Dtype; `order` has the dims in the order of memory, and `names`
  /// names the optional operands that are given and the results that are
  /// wanted.
  Problem(const std::string &op, const std::vector<int64_t> &shape,
          const std::vector<int> &order, int dtype, int parameterDtype,
          nb::handle featureDims, const std::string &statistics,
          const std::vector<std::string> &names);
  Problem(const Problem &) = delete;
  Problem &operator=(const Problem &) = delete;

  std::string describe() const { return python::explain(call).description; }
  std::string getReason() const { return python::explain(call).reason; }
  /// The operands that are copied.
  std::vector<std::string> getCopied() const;
  /// Seconds per call, measured over `calls` successive calls.
  double measure(int calls);

private:
  void addArray(int operand, Dtype dtype, const std::vector<int64_t> &shape,
                const std::vector<int> &order);
  void allocate();

  Call call;
  std::vector<Memory> memory;
};

/// Two arrays that are read and one that is written.
class Traffic {
public:
  explicit Traffic(int64_t bytes);

  /// Seconds of a pass over all three, on the threads of calls.
  double measure();

private:
  static constexpr int64_t kLineFloats = kLineBytes / sizeof(float);

  static void pass(void *data, int thread, int n);

  int64_t lines; // of each array
  Memory memory[3];
};
} // namespace

static Memory allocateLines(int64_t bytes) {
  size_t size = alignUp(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  Memory memory(
      static_cast<char *>(std::aligned_alloc(kBufferAlignment, size)));
  if (!memory)
    throw std::bad_alloc();
  return memory;
}

static double getSeconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The op of a name in Roles.def, which must exist.
static OpKind findOp(const std::string &name) {
  const mlir::bngrad::OpInfo *found = std::find_if(
      std::begin(mlir::bngrad::kOps), std::end(mlir::bngrad::kOps),
      [&](const mlir::bngrad::OpInfo &info) { return info.name == name; });
  return static_cast<OpKind>(found - mlir::bngrad::kOps);
}

Problem::Problem(const std::string &op, const std::vector<int64_t> &shape,
                 const std::vector<int> &order, int dtype, int parameterDtype,
                 nb::handle featureDims, const std::string &statistics,
                 const std::vector<std::string> &names)
    : call(findOp(op)) {
  auto type = static_cast<Dtype>(dtype);
  auto parameterType = static_cast<Dtype>(parameterDtype);
  call.options.epsilon = 1e-5;
  if (statistics == "global")
    call.options.statistics = BNGRAD_STATISTICS_GLOBAL;
  std::vector<int64_t> vector;
  for (nb::handle item : featureDims) {
    auto dim = nb::cast<int>(item);
    call.options.feature_dims[call.options.num_feature_dims++] = dim;
    vector.push_back(shape[static_cast<size_t>(dim)]);
  }
  std::vector<int> vectorOrder(vector.size());
  for (size_t i = 0; i < vector.size(); ++i)
    vectorOrder[i] = static_cast<int>(i);
  for (int i = 0; i < kNumOperands; ++i) {
    bool isNamed =
        std::find(names.begin(), names.end(), getInfo(i).name) != names.end();
    if (getUse(call.op, i) != OperandUse::Required && !isNamed)
      continue;
    // Training computes statistics in the type of arithmetic by default.
    bool isStatistic = call.op == OpKind::Training && isResult(call.op, i);
    if (isData(i))
      addArray(i, i == Mask ? Dtype::Bool : type, shape, order);
    else
      addArray(i, isStatistic ? getSumType(type, parameterType) : parameterType,
               vector, vectorOrder);
  }
}

void Problem::addArray(int operand, Dtype dtype,
                       const std::vector<int64_t> &shape,
                       const std::vector<int> &order) {
  Array &array = call.arrays[operand];
  array = {};
  array.dtype = dtype;
  array.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), array.shape);
  setDenseStrides(array, order.data());
  call.has[operand] = true;
}

std::vector<std::string> Problem::getCopied() const {
  Explanation explanation = python::explain(call);
  std::vector<std::string> names;
  for (int i = 0; i < kNumOperands; ++i)
    if (explanation.isCopied[i])
      names.emplace_back(i == Statistic ? call.statistic : getInfo(i).name);
  return names;
}

/// Gives all arrays memory with ordinary numbers.
void Problem::allocate() {
  double value = 0.75;
  for (int i = 0; i < kNumOperands; ++i) {
    if (!call.has[i])
      continue;
    Array &array = call.arrays[i];
    int64_t bytes = getNumElements(array) * getBytes(array.dtype);
    array.data = memory.emplace_back(allocateLines(bytes)).get();
    if (array.dtype == Dtype::Bool) {
      std::memset(array.data, 1, static_cast<size_t>(bytes));
      continue;
    }
    Array constant = array;
    constant.dtype = Dtype::F64;
    constant.data = reinterpret_cast<char *>(&value);
    std::fill_n(constant.strides, constant.rank, 0);
    copy(constant, array);
  }
}

double Problem::measure(int calls) {
  if (memory.empty())
    allocate();
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i)
    execute(call);
  return getSeconds(start) / calls;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Traffic::Traffic(int64_t bytes) : lines((bytes + kLineBytes - 1) / kLineBytes) {
  for (Memory &array : memory) {
    array = allocateLines(lines * kLineBytes);
    std::memset(array.get(), 0, static_cast<size_t>(lines * kLineBytes));
  }
}

/// One thread's share: two reads and a store past the caches.
void Traffic::pass(void *data, int thread, int n) {
  auto &traffic = *static_cast<Traffic *>(data);
  auto get = [&](int i) {
    return reinterpret_cast<float *>(traffic.memory[i].get());
  };
  const float *first = get(0), *second = get(1);
  float *sum = get(2);
  int64_t from = traffic.lines * thread / n * kLineFloats;
  int64_t to = traffic.lines * (thread + 1) / n * kLineFloats;
#if defined(__x86_64__)
  for (int64_t i = from; i < to; i += 4)
    _mm_stream_ps(sum + i,
                  _mm_add_ps(_mm_load_ps(first + i), _mm_load_ps(second + i)));
  _mm_sfence();
#else
  for (int64_t i = from; i < to; ++i)
    sum[i] = first[i] + second[i];
#endif
}

double Traffic::measure() {
  int count = getNumThreads();
  Unlocked unlocked;
  auto start = std::chrono::steady_clock::now();
  runOnPool(count, pass, this);
  return getSeconds(start);
}

void python::addMeasurements(nb::module_ &module) {
  nb::class_<Problem>(module, "_Problem")
      .def(nb::init<const std::string &, const std::vector<int64_t> &,
                    const std::vector<int> &, int, int, nb::handle,
                    const std::string &, const std::vector<std::string> &>(),
           "op"_a, "shape"_a, "order"_a, "dtype"_a, "parameter_dtype"_a,
           "feature_dims"_a, "statistics"_a, "names"_a)
      .def("describe", &Problem::describe)
      .def("reason", &Problem::getReason)
      .def("copied", &Problem::getCopied)
      .def("measure", &Problem::measure, "calls"_a);
  nb::class_<Traffic>(module, "_Traffic")
      .def(nb::init<int64_t>(), "bytes"_a)
      .def("measure", &Traffic::measure);
}
