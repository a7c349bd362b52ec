//===- Plan.cpp - problems described to the C library ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "../ProcessHandle.h"
#include "Runtime/ForkLock.h"
#include "Threads.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

using namespace bngrad;
using namespace bngrad::jax;

static bngrad::StaticSharedMutex cacheMutex;

namespace {
/// A problem as numbers.
class Key {
public:
  explicit Key(const Problem &problem) {
    const OpOptions &options = problem.options;
    int64_t epsilon;
    static_assert(sizeof(epsilon) == sizeof(options.epsilon));
    std::memcpy(&epsilon, &options.epsilon, sizeof(epsilon));
    add(static_cast<int64_t>(problem.op));
    add(problem.isCuda);
    add(problem.device);
    add(epsilon);
    add(options.statistics);
    add(options.statistic);
    add(options.num_feature_dims);
    for (int i = 0; i < options.num_feature_dims; ++i)
      add(options.feature_dims[i]);
    for (int i = 0; i < kNumOperands; ++i) {
      add(problem.has[i]);
      if (!problem.has[i])
        continue;
      const Shape &shape = problem.shapes[i];
      add(shape.dtype);
      add(shape.rank);
      for (int dim = 0; dim < shape.rank; ++dim)
        add(shape.sizes[dim]);
    }
  }

  bool operator==(const Key &other) const {
    return count == other.count &&
           std::equal(numbers, numbers + count, other.numbers);
  }

  /// FNV-1a on numbers instead of bytes.
  size_t hash() const {
    uint64_t value = 0xcbf29ce484222325;
    for (int i = 0; i < count; ++i)
      value = (value ^ static_cast<uint64_t>(numbers[i])) * 0x100000001b3;
    return value ^ (value >> 32);
  }

private:
  void add(int64_t number) { numbers[count++] = number; }

  static constexpr int kMost =
      7 + BNGRAD_MAX_FEATURE_DIMS + kNumOperands * (3 + BNGRAD_MAX_RANK);
  int count = 0;
  int64_t numbers[kMost];
};

struct HashKey {
  size_t operator()(const Key &key) const { return key.hash(); }
};

/// The plans of earlier calls.
class Cache {
public:
  std::shared_ptr<const Plan> find(const Key &key) const {
    std::shared_lock lock(cacheMutex);
    auto found = plans.find(key);
    return found == plans.end() ? nullptr : found->second;
  }

  void add(const Key &key, const std::shared_ptr<const Plan> &plan) {
    std::unique_lock lock(cacheMutex);
    if (plans.size() >= kMostPlans)
      plans.clear();
    plans.emplace(key, plan);
  }

private:
  /// A plan takes some 3 KB. Programs with more shapes recreate plans.
  static constexpr size_t kMostPlans = 1024;

  std::unordered_map<Key, std::shared_ptr<const Plan>, HashKey> plans;
};
} // namespace

static bngradStatus_t createDescriptors(const Problem &problem,
                                        TensorDescriptors &tensors) {
  for (int i = 0; i < kNumOperands; ++i) {
    const Shape &shape = problem.shapes[i];
    if (!problem.has[i])
      continue;
    if (bngradStatus_t status = bngradCreateTensorDescriptor(
            &tensors.of[i], shape.dtype, shape.rank, shape.sizes, nullptr))
      return status;
  }
  return BNGRAD_SUCCESS;
}

/// Created when the library is loaded and never destroyed: threads may still
/// call it while the process ends.
static Cache *cache;

[[gnu::constructor]] static void makeCache() {
  cache = new Cache;
  bngrad::holdDuringFork<cacheMutex>();
}

bngradStatus_t Plan::create(const Problem &problem) {
  bngradHandle_t handle;
  bngradStatus_t status =
      problem.isCuda ? python::getCudaHandle(problem.device, handle)
                     : python::getProcessHandle(getPoolThreads(), handle);
  if (status != BNGRAD_SUCCESS)
    return status;
  TensorDescriptors tensors;
  status = createDescriptors(problem, tensors);
  if (status != BNGRAD_SUCCESS)
    return status;
  status = descriptor.create(problem.op, handle, problem.options, tensors);
  if (status != BNGRAD_SUCCESS)
    return status;
  return descriptor.getWorkspaceSize(workspaceSize);
}

bngradStatus_t Plan::find(const Problem &problem,
                          std::shared_ptr<const Plan> &plan) {
  Key key(problem);
  if (std::shared_ptr<const Plan> found = cache->find(key)) {
    plan = std::move(found);
    return BNGRAD_SUCCESS;
  }
  auto created = std::make_shared<Plan>();
  if (bngradStatus_t status = created->create(problem))
    return status;
  cache->add(key, created);
  plan = std::move(created);
  return BNGRAD_SUCCESS;
}

bngradStatus_t Plan::run(void *workspace, void *const (&data)[kNumOperands],
                         void *stream) const {
  return descriptor.compute(workspace, workspaceSize, data, stream);
}
