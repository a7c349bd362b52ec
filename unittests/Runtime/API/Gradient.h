//===- Gradient.h - gradients for tests of the C library --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_GRADIENT_H
#define BNGRAD_UNITTESTS_GRADIENT_H

#include "BNGrad/Reference/Reference.h"
#include "BNGrad/Runtime/Runtime.h"

#include <string>
#include <vector>

namespace bngrad::test {

/// The tensors of a gradient, in the order of the functions in C.
enum Operand {
  GradInput,
  GradScale,
  GradOffset,
  GradOutput,
  Input,
  Scale,
  Mean,
  Statistic,
  Mask,
  kNumOperands
};

extern const char *const kOperandNames[kNumOperands];

/// A gradient: shapes, types and layouts.
struct Spec {
  std::vector<int64_t> shape = {2, 3, 4};
  std::vector<int> featureDims = {1};
  /// Dims of the data in the order of memory, outermost first; empty: as they
  /// are.
  std::vector<int> order;
  bngradDtype_t dataType = BNGRAD_DTYPE_F32;
  bngradDtype_t parameterType = BNGRAD_DTYPE_F32;
  bngradDtype_t resultType = BNGRAD_DTYPE_F32; // of grad_scale and grad_offset
  /// Elements from one of the data to the next.
  int64_t dataStride = 1;
  /// Elements from one of a parameter to the next.
  int64_t parameterStride = 1;
  bool isGlobal = false, isInvStd = false, isAsynchronous = false;
  bool hasScale = true, hasMask = false;
  bool wants[3] = {true, true, true};
  /// GradOutput or Input: grad_input is written over it; GradInput: over none.
  Operand inPlaceOf = GradInput;
  unsigned seed = 1;
  /// Not of an inv_std.
  double epsilon = 1e-3;

  std::string print() const;
};

/// Memory between guards.
class Memory {
public:
  explicit Memory(size_t size = 0);
  char *data() { return bytes.data() + kGuard; }
  const char *data() const { return bytes.data() + kGuard; }
  size_t size() const { return bytes.size() - 2 * kGuard; }
  /// Whether nobody wrote before or after it.
  bool isGuarded() const;

private:
  static constexpr size_t kGuard = 64;
  std::vector<char> bytes;
};

/// A tensor in memory, whose gaps are guarded.
struct Array {
  bool isPresent = false;
  bngradDtype_t dtype = BNGRAD_DTYPE_F32;
  std::vector<int64_t> shape, strides;
  Memory memory;

  void create(bngradDtype_t dtype, const std::vector<int64_t> &shape,
              const std::vector<int64_t> &strides);
  void store(const std::vector<double> &values);
  /// Its elements in row-major order.
  std::vector<char> loadDense() const;
  /// Whether guards and gaps are as `create` has filled them.
  bool isGuarded() const;
  std::vector<int64_t> offsets() const;
  bool isEmpty() const { return offsets().empty(); }
};

/// A gradient with data, its descriptors and its exact results.
class Gradient {
public:
  explicit Gradient(const Spec &spec);
  ~Gradient();
  Gradient(const Gradient &) = delete;
  Gradient &operator=(const Gradient &) = delete;

  bngradStatus_t create(bngradHandle_t handle);

  /// Computes into cleared outputs, with a workspace of its own.
  bngradStatus_t run();
  /// Restores inputs and clears outputs.
  void reset();
  bngradStatus_t runAsync(const bngradExecutor_t *executor,
                          const bngradCompletion_t *done);

  /// The same for the two halves: with `sums`, and grad_input as above.
  bngradStatus_t createHalves(bngradHandle_t handle);
  bngradStatus_t runHalves();
  std::string checkHalves();

  /// Empty, or the first error: a result beyond its bound, or a write where
  /// none may be.
  std::string check();

  /// The bytes of the results.
  std::vector<char> results() const;

  /// The data of an operand; null: absent.
  void *data(Operand operand);

  Spec spec;
  bngradBatchNormBackwardOptions_t options = {};
  Array arrays[kNumOperands];
  bngradTensorDescriptor_t tensors[kNumOperands] = {};
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  Memory workspace;
  Array sums;
  bngradTensorDescriptor_t sumsTensor = nullptr;
  bngradBatchNormBackwardDescriptor_t reduce = nullptr, elemt = nullptr;

private:
  ReferenceResults computeExpected(bool ofSums) const;
  bngradStatus_t createTensors();
  std::string checkMemory();

  ReferenceResults expected, expectedSums;
  std::vector<double> initial[kNumOperands];
};

/// Threads that run all parts on the calling thread, the last first.
bngrad_threads_t makeReversedThreads(int count);

} // namespace bngrad::test

#endif // BNGRAD_UNITTESTS_GRADIENT_H
