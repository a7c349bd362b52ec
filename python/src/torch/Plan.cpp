//===- Plan.cpp - descriptors of the C library, kept for later calls ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "../ErrorText.h"
#include "../ProcessHandle.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace bngrad;
using namespace bngrad::torch;

//===----------------------------------------------------------------------===//
// Calls run on PyTorch's threads. A call within a parallel region runs
// serially, as torch_parallel_for does there.
//===----------------------------------------------------------------------===//

namespace {
struct Loop {
  void (*body)(void *data, int thread, int n);
  void *data;
  int n;
};
} // namespace

static int countThreads(void *) {
  uint32_t count = 1;
  return torch_get_num_threads(&count) ? 1 : static_cast<int>(count);
}

static void runRange(int64_t begin, int64_t end, void *context) {
  auto *loop = static_cast<Loop *>(context);
  for (int64_t i = begin; i < end; ++i)
    loop->body(loop->data, static_cast<int>(i), loop->n);
}

static void runThreads(void *, int n, void (*body)(void *, int, int),
                       void *data) {
  Loop loop = {body, data, n};
  if (n == 1)
    return body(data, 0, 1);
  if (torch_parallel_for(0, n, /*grain_size=*/1, runRange, &loop))
    runRange(0, n, &loop);
}

bngradHandle_t bngrad::torch::getHandle(const Device &device) {
  bngrad_threads_t threads = {sizeof(threads), nullptr, countThreads,
                              runThreads};
  bngradHandle_t handle;
  bngradStatus_t status = device.isCuda()
                              ? python::getCudaHandle(device.index, handle)
                              : python::getProcessHandle(threads, handle);
  if (status == BNGRAD_SUCCESS)
    return handle;
  fail("%s", bngradGetLastError());
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

const char *Problem::getName(int operand) const {
  if (operand == Statistic)
    operand = options.statistic == BNGRAD_STATISTIC_INV_STD ? InvStd : Variance;
  return getInfo(operand).name;
}

static bool check(bngradStatus_t status, const Problem &problem) {
  if (status == BNGRAD_SUCCESS)
    return true;
  return fail("%s", bngrad::python::nameStatistic(bngradGetLastError(),
                                                  problem.getName(Statistic))
                        .c_str());
}

static const char *getTypeName(int32_t dtype) {
  const struct {
    int32_t dtype;
    const char *name;
  } types[] = {{aoti_torch_dtype_uint8(), "uint8"},
               {aoti_torch_dtype_int8(), "int8"},
               {aoti_torch_dtype_int16(), "int16"},
               {aoti_torch_dtype_int32(), "int32"},
               {aoti_torch_dtype_int64(), "int64"},
               {aoti_torch_dtype_complex64(), "complex64"},
               {aoti_torch_dtype_complex128(), "complex128"}};
  for (auto type : types)
    if (type.dtype == dtype)
      return type.name;
  return "another";
}

static bool createDescriptor(const Tensor &tensor, const char *name,
                             bngradTensorDescriptor_t &descriptor) {
  if (!tensor.verifyPlace(name))
    return false;
  if (!tensor.hasKnownType())
    return fail("%s: expected dtype float16, bfloat16, float32 or float64, "
                "got %s",
                name, getTypeName(tensor.dtype));
  if (bngradCreateTensorDescriptor(&descriptor, tensor.getType(), tensor.rank,
                                   tensor.sizes, tensor.strides))
    return fail("%s: %s", name, bngradGetLastError());
  return true;
}

static bool createDescriptors(const Problem &problem,
                              TensorDescriptors &tensors) {
  // Results come last, as the operands determine them.
  for (int n = 0; n < kNumOperands; ++n) {
    int i = getParameter(n);
    const Tensor &tensor = problem.tensors[i];
    if (tensor && !isScalar(i) &&
        !createDescriptor(tensor, problem.getName(i), tensors.of[i]))
      return false;
  }
  return true;
}

static bool makePlan(Problem &problem, Plan &plan) {
  TensorDescriptors tensors;
  bngradHandle_t handle = getHandle(problem.tensors[Input].device);
  if (!handle || !createDescriptors(problem, tensors))
    return false;
  bngradStatus_t status =
      plan.descriptor.create(problem.op, handle, problem.options, tensors);
  problem.lacksKernel =
      status == BNGRAD_COMPILER_NOT_FOUND || status == BNGRAD_INTERNAL_ERROR;
  if (status == BNGRAD_SUCCESS)
    status = plan.descriptor.getWorkspaceSize(plan.workspaceSize);
  return check(status, problem);
}

bool bngrad::torch::canCompute(const Device &device, bool hasRelu) {
  Problem problem(hasRelu ? OpKind::TrainingRelu : OpKind::Training);
  problem.options.num_feature_dims = 1;
  problem.options.feature_dims[0] = 1;
  problem.options.epsilon = 1e-5;
  const int64_t sizes[] = {2, 1}, strides[] = {1, 1};
  TensorDescriptors tensors;
  bngradHandle_t handle = getHandle(device);
  if (!handle)
    return false;
  for (Operand operand : {Input, Output})
    if (!check(bngradCreateTensorDescriptor(
                   &tensors.of[operand], BNGRAD_DTYPE_F32, 2, sizes, strides),
               problem))
      return false;
  return check(
      OpDescriptor().create(problem.op, handle, problem.options, tensors),
      problem);
}

//===----------------------------------------------------------------------===//
// Plans of a thread
//===----------------------------------------------------------------------===//

namespace {
/// Everything that a plan depends on, as numbers; no key if there are too many.
class Key {
public:
  void set(const Problem &problem) {
    size = 0;
    hash = 0xcbf29ce484222325;
    // All operands are on this device.
    add(problem.tensors[Input].device.type);
    add(problem.tensors[Input].device.index);
    add(static_cast<int64_t>(problem.op));
    const OpOptions &options = problem.options;
    add(options.statistics);
    add(options.statistic);
    add(static_cast<int64_t>(pack(options.epsilon)));
    add(static_cast<int64_t>(pack(options.momentum)));
    add(options.hasUnbiasedRunningVariance);
    add(options.num_feature_dims);
    for (int i = 0; i < options.num_feature_dims; ++i)
      add(options.feature_dims[i]);
    for (int i = 0; i < kNumOperands; ++i) {
      const Tensor &tensor = problem.tensors[i];
      if (!tensor || isScalar(i))
        continue;
      add(i);
      add(tensor.dtype);
      add(tensor.isStrided);
      if (!tensor.isStrided)
        continue;
      add(tensor.rank);
      for (int64_t dim = 0; dim < tensor.rank; ++dim) {
        add(tensor.sizes[dim]);
        add(tensor.strides[dim]);
      }
    }
  }

  bool isUsable() const { return size > 0 && size <= kMost; }

  bool operator==(const Key &other) const {
    return hash == other.hash && size == other.size &&
           std::memcmp(values, other.values, size * sizeof(int64_t)) == 0;
  }

private:
  void add(int64_t value) {
    if (size < kMost)
      values[size] = value;
    ++size;
    // FNV-1a, by words.
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
  }

  /// Suffices for any op on tensors with so many dims.
  static constexpr int kDims = 5;
  static constexpr int kOperands = detail::countMostArguments(/*ofCall=*/false);
  static constexpr int kMost = 9 + kDims + kOperands * (4 + 2 * kDims);
  int size = 0;
  uint64_t hash = 0;
  int64_t values[kMost];
};

/// The most recent plans of a thread.
class Cache {
public:
  /// Runs at the end of the thread. The main thread may call even later, while
  /// the process exits.
  ~Cache() {
    for (Entry &entry : entries)
      drop(entry);
  }

  const Plan *get(Problem &problem) {
    Key key;
    key.set(problem);
    Entry *oldest = entries;
    for (Entry &entry : entries) {
      if (entry.plan.descriptor && key.isUsable() && entry.key == key) {
        entry.lastUse = ++clock;
        return &entry.plan;
      }
      if (entry.lastUse < oldest->lastUse)
        oldest = &entry;
    }
    drop(*oldest);
    oldest->key = key;
    if (!makePlan(problem, oldest->plan)) {
      drop(*oldest);
      return nullptr;
    }
    oldest->lastUse = ++clock;
    return &oldest->plan;
  }

private:
  struct Entry {
    Key key;
    Plan plan;
    uint64_t lastUse = 0;
  };

  static void drop(Entry &entry) {
    entry.plan.descriptor.reset();
    entry.lastUse = 0;
  }

  /// More than a step of a network with 30 different batch norms has.
  static constexpr int kNumPlans = 64;
  Entry entries[kNumPlans];
  uint64_t clock = 0;
};
} // namespace

const Plan *bngrad::torch::getPlan(Problem &problem) {
  static thread_local Cache cache;
  return cache.get(problem);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// The data of the tensors.
static bool getData(const Problem &problem, void *(&data)[kNumOperands]) {
  // An empty tensor may have no data, but the C library expects an address.
  static double none;
  for (int i = 0; i < kNumOperands; ++i) {
    data[i] = nullptr;
    const Tensor &tensor = problem.tensors[i];
    if (!tensor)
      continue;
    bool isResult = isOutput(problem.op, i);
    const void *constant = nullptr;
    if (!(isResult ? tensor.getMutableData(data[i]) : tensor.getData(constant)))
      return false;
    if (!isResult)
      data[i] = const_cast<void *>(constant);
    if (!data[i] && tensor.isEmpty())
      data[i] = &none;
  }
  return true;
}

/// PyTorch's current stream of a CUDA device.
static bool getStream(const Device &device, void *&stream) {
  using Function = AOTITorchError(int32_t device, void **stream);
  // PyTorch's builds for CPUs lack it.
  static auto *const function = [] {
    void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<Function *>(
        library ? dlsym(library, "aoti_torch_get_current_cuda_stream")
                : nullptr);
  }();
  if (!function)
    return fail(
        "input: expected a device of PyTorch for CUDA, got another one");
  return !function(device.index, &stream) ||
         failByTorch("aoti_torch_get_current_cuda_stream");
}

/// Computes on a GPU, in PyTorch's current stream. The workspace is memory of
/// PyTorch's allocator, which only later work in this stream gets again.
static bool runOnCuda(const Plan &plan, const Problem &problem,
                      void *const (&data)[kNumOperands]) {
  const Device &device = problem.tensors[Input].device;
  Tensor workspace;
  void *stream = nullptr, *memory = nullptr;
  const auto size = static_cast<int64_t>(plan.workspaceSize), one = int64_t{1};
  return getStream(device, stream) &&
         workspace.makeEmpty(device, aoti_torch_dtype_uint8(), 1, &size,
                             &one) &&
         workspace.getMutableData(memory) &&
         check(
             plan.descriptor.compute(memory, plan.workspaceSize, data, stream),
             problem);
}

static bool runOnCpu(const Plan &plan, const Problem &problem,
                     void *const (&data)[kNumOperands]) {
  alignas(64) char small[4096];
  bool isSmall = plan.workspaceSize <= sizeof(small);
  void *workspace = isSmall ? small : malloc(plan.workspaceSize);
  if (!workspace)
    return fail("expected %zu bytes for a workspace, got no memory",
                plan.workspaceSize);
  bool isGood = check(
      plan.descriptor.compute(workspace, plan.workspaceSize, data), problem);
  if (!isSmall)
    free(workspace);
  return isGood;
}

bool bngrad::torch::run(Problem &problem) {
  const Plan *plan = getPlan(problem);
  void *data[kNumOperands];
  if (!plan || !getData(problem, data))
    return false;
  return problem.tensors[Input].device.isCuda()
             ? runOnCuda(*plan, problem, data)
             : runOnCpu(*plan, problem, data);
}
