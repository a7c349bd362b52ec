//===- GroupTest.cpp - gradients of a batch that is spread ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The processes are threads of one program, over the fake back end.
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "Specs.h"

#include "../Distributed/FakeMpi.h"

#include "BNGrad/Runtime/Collectives.h"
#include "BNGrad/Runtime/Cuda.h"

#include "gtest/gtest.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

using namespace bngrad::test;
namespace fake = bngrad::fake;

namespace {
/// A process: its rank and its group.
struct Process {
  int64_t rank;
  bngradProcessGroup_t group;
};

/// The part of a gradient that a process has: sizes along `dim`.
struct Split {
  size_t dim = 0;
  std::vector<int64_t> sizes;
  bool isLocal = false;
  /// Whether the data are copied to memory of the emulator's device; along dim
  /// 0 alone.
  bool isOnDevice = false;
};
} // namespace

/// Runs `body` in `size` processes, and returns the first error.
static std::string
runProcesses(int64_t size,
             const std::function<std::string(const Process &)> &body) {
  // Apart from the numbers of other tests.
  static std::atomic<int64_t> numJobs{1 << 20};
  int64_t job = numJobs++;
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(size));
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      fake::Communicator communicator = {job, rank, size};
      Process process = {rank, nullptr};
      std::string &error = errors[static_cast<size_t>(rank)];
      if (bngradCreateProcessGroup(&process.group, BNGRAD_FAKE_MPI,
                                   &communicator) != BNGRAD_SUCCESS)
        error = bngradGetLastError();
      else
        error = body(process);
      if (bngradDestroyProcessGroup(process.group) != BNGRAD_SUCCESS)
        error += bngradGetLastError();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &error : errors)
    if (!error.empty())
      return error;
  return "";
}

namespace {
/// The part of `whole` in one process. Gradients of parameters are written to
/// memory of its own.
class Shard {
public:
  Shard(Gradient &whole, const Split &split, const Process &process)
      : whole(whole), split(split), process(process) {}
  ~Shard() {
    for (bngradTensorDescriptor_t tensor : tensors)
      bngradDestroyTensorDescriptor(tensor);
    bngradDestroyBatchNormBackwardDescriptor(descriptor);
  }
  Shard(const Shard &) = delete;
  Shard &operator=(const Shard &) = delete;

  /// Empty, or an error.
  std::string run(bngradHandle_t handle);

  std::vector<double> getResult(Operand operand) const {
    std::vector<char> bytes = parameters[operand].loadDense();
    std::vector<double> values(bytes.size() / sizeof(double));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = reinterpret_cast<const double *>(bytes.data())[i];
    return values;
  }

  Array parameters[kNumOperands];

private:
  bngradStatus_t add(Operand operand);
  void *toDevice(void *from, int64_t bytes);

  Gradient &whole;
  const Split &split;
  const Process &process;
  void *data[kNumOperands] = {};
  /// Of the host, where the data are on a device; and bytes.
  void *host[kNumOperands] = {};
  int64_t bytes[kNumOperands] = {};
  bngradTensorDescriptor_t tensors[kNumOperands] = {};
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
};
} // namespace

void *Shard::toDevice(void *from, int64_t bytes) {
  void *to = mgpuMemAlloc(static_cast<uint64_t>(bytes) + 1, nullptr, 0);
  if (bytes > 0)
    mgpuMemcpy(to, from, static_cast<uint64_t>(bytes), nullptr);
  return to;
}

bngradStatus_t Shard::add(Operand operand) {
  data[operand] = whole.data(operand);
  if (!data[operand])
    return BNGRAD_SUCCESS;
  bool isInPlace = operand == GradInput && whole.spec.inPlaceOf != GradInput;
  const Array &array = whole.arrays[isInPlace ? whole.spec.inPlaceOf : operand];
  std::vector<int64_t> shape = array.shape;
  if (operand == GradScale || operand == GradOffset) {
    parameters[operand].create(array.dtype, array.shape, array.strides);
    data[operand] = parameters[operand].memory.data();
  } else if (operand == GradInput || operand == GradOutput ||
             operand == Input || operand == Mask) {
    auto rank = static_cast<size_t>(process.rank);
    int64_t first = 0;
    for (size_t i = 0; i < rank; ++i)
      first += split.sizes[i];
    shape[split.dim] = split.sizes[rank];
    static constexpr int64_t kBytes[] = {2, 2, 4, 8, 1};
    data[operand] = static_cast<char *>(data[operand]) +
                    first * array.strides[split.dim] * kBytes[array.dtype];
    bytes[operand] =
        shape[split.dim] * array.strides[split.dim] * kBytes[array.dtype];
  } else {
    bytes[operand] = static_cast<int64_t>(array.memory.size());
  }
  if (operand == GradScale || operand == GradOffset)
    bytes[operand] = static_cast<int64_t>(array.memory.size());
  if (split.isOnDevice) {
    host[operand] = data[operand];
    data[operand] = toDevice(data[operand], bytes[operand]);
  }
  return bngradCreateTensorDescriptor(&tensors[operand], array.dtype,
                                      static_cast<int>(shape.size()),
                                      shape.data(), array.strides.data());
}

std::string Shard::run(bngradHandle_t handle) {
  for (int i = 0; i < kNumOperands; ++i)
    if (add(static_cast<Operand>(i)) != BNGRAD_SUCCESS)
      return bngradGetLastError();
  bngradBatchNormBackwardOptions_t options = whole.options;
  options.process_group = process.group;
  options.local_parameter_gradients = split.isLocal;
  auto &t = tensors;
  size_t size = 0;
  if (bngradCreateBatchNormBackwardDescriptor(
          handle, &descriptor, &options, t[GradInput], t[GradScale],
          t[GradOffset], t[GradOutput], t[Input], t[Scale], t[Mean],
          t[Statistic], t[Mask]) != BNGRAD_SUCCESS ||
      bngradGetBatchNormBackwardWorkspaceSize(descriptor, &size) !=
          BNGRAD_SUCCESS)
    return bngradGetLastError();
  Memory workspace(size);
  void *start = workspace.data();
  if (split.isOnDevice)
    start = toDevice(start, static_cast<int64_t>(size));
  if (bngradBatchNormBackward(
          descriptor, start, size, data[GradInput], data[GradScale],
          data[GradOffset], data[GradOutput], data[Input], data[Scale],
          data[Mean], data[Statistic], data[Mask], nullptr) != BNGRAD_SUCCESS)
    return bngradGetLastError();
  for (Operand operand : {GradInput, GradScale, GradOffset})
    if (host[operand] && bytes[operand] > 0)
      mgpuMemcpy(host[operand], data[operand],
                 static_cast<uint64_t>(bytes[operand]), nullptr);
  if (split.isOnDevice) {
    mgpuStreamSynchronize(nullptr);
    mgpuMemFree(start, nullptr);
    for (int i = 0; i < kNumOperands; ++i)
      if (host[i])
        mgpuMemFree(data[i], nullptr);
  }
  return workspace.isGuarded() ? "" : "a write beside the workspace";
}

/// Computes `spec` in as many processes as `split` has sizes, and compares with
/// the reference of the whole batch.
static void runSplit(bngradHandle_t handle, const Spec &spec,
                     const Split &split) {
  SCOPED_TRACE(spec.print() + " dim " + std::to_string(split.dim));
  Gradient whole(spec);
  ASSERT_EQ(whole.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
  std::vector<std::vector<double>> locals[2];
  std::mutex mutex;
  whole.reset();
  auto body = [&](const Process &process) -> std::string {
    Shard shard(whole, split, process);
    std::string error = shard.run(handle);
    if (!error.empty())
      return error;
    std::lock_guard<std::mutex> lock(mutex);
    for (Operand operand : {GradScale, GradOffset}) {
      Array &result = whole.arrays[operand];
      if (!result.isPresent)
        continue;
      if (split.isLocal)
        locals[operand - GradScale].push_back(shard.getResult(operand));
      else if (process.rank == 0)
        result.memory = shard.parameters[operand].memory;
    }
    return "";
  };
  ASSERT_EQ(runProcesses(static_cast<int64_t>(split.sizes.size()), body), "");
  for (Operand operand : {GradScale, GradOffset}) {
    auto &parts = locals[operand - GradScale];
    if (parts.empty())
      continue;
    std::vector<double> sum(parts.front().size());
    for (const std::vector<double> &part : parts)
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += part[i];
    whole.arrays[operand].store(sum);
  }
  EXPECT_EQ(whole.check(), "");
}

/// Sizes of `count` parts, some of which may be empty.
static std::vector<int64_t> splitSize(Specs &specs, int64_t size, int count) {
  std::vector<int64_t> sizes;
  for (int i = 0; i + 1 < count; ++i) {
    sizes.push_back(specs.pick(static_cast<int>(size) + 1));
    size -= sizes.back();
  }
  sizes.push_back(size);
  return sizes;
}

TEST(Group, Random) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  Specs specs(11);
  for (int i = 0; i < 120 && !testing::Test::HasFailure(); ++i) {
    Spec spec = specs.next();
    Split split;
    split.isLocal = specs.pick(3) == 0;
    // Their sum must be near the sum of all.
    if (split.isLocal)
      spec.resultType = BNGRAD_DTYPE_F64;
    std::vector<size_t> dims;
    for (size_t dim = 0; dim < spec.shape.size(); ++dim)
      if (std::find(spec.featureDims.begin(), spec.featureDims.end(),
                    static_cast<int>(dim)) == spec.featureDims.end())
        dims.push_back(dim);
    // All dims are of the channels: one process has all.
    if (dims.empty())
      continue;
    split.dim = dims[static_cast<size_t>(specs.pick(int(dims.size())))];
    // A part of an inner dim has gaps, and no ready kernel.
    if (spec.order.front() != static_cast<int>(split.dim) && i % 20 != 0)
      continue;
    split.sizes = splitSize(specs, spec.shape[split.dim], 1 + specs.pick(4));
    runSplit(handle, spec, split);
  }
}

TEST(Group, UnevenAndEmpty) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  Spec spec;
  spec.shape = {6, 5, 33};
  for (const std::vector<int64_t> &sizes :
       std::vector<std::vector<int64_t>>{{3, 1, 2}, {0, 6}, {6, 0, 0, 0}})
    for (bngradDtype_t type : {BNGRAD_DTYPE_F16, BNGRAD_DTYPE_BF16,
                               BNGRAD_DTYPE_F32, BNGRAD_DTYPE_F64})
      for (bool isGlobal : {false, true})
        for (bool isLocal : {false, true}) {
          spec.dataType = type;
          spec.isGlobal = isGlobal;
          spec.hasMask = isLocal;
          spec.resultType = isLocal ? BNGRAD_DTYPE_F64 : BNGRAD_DTYPE_F32;
          ++spec.seed;
          Split split = {0, sizes, isLocal};
          runSplit(handle, spec, split);
        }
}

/// The sums go through memory of the host.
TEST(Group, Emulator) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  bngradHandle_t handle = nullptr;
  ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  Spec spec;
  spec.shape = {3, 4, 9};
  Split split;
  split.isOnDevice = true;
  split.sizes = {2, 0, 1};
  runSplit(handle, spec, split);
  spec.isGlobal = spec.isInvStd = true;
  runSplit(handle, spec, split);
  spec.isGlobal = spec.isInvStd = false;
  spec.resultType = BNGRAD_DTYPE_F64;
  spec.dataType = BNGRAD_DTYPE_F16;
  spec.hasMask = split.isLocal = true;
  runSplit(handle, spec, split);

  // Parameters with gaps cannot be written from the host.
  spec.parameterStride = 2;
  Gradient gaps(spec);
  auto body = [&](const Process &process) -> std::string {
    gaps.options.process_group = process.group;
    EXPECT_EQ(gaps.create(handle), BNGRAD_BAD_STRIDES);
    EXPECT_STREQ(bngradGetLastError(),
                 "grad_scale: expected elements without gaps on a GPU with a "
                 "process group, got gaps");
    return "";
  };
  EXPECT_EQ(runProcesses(1, body), "");
  EXPECT_EQ(bngradCudaTakeStatus(), 0);
  bngradDestroyHandle(handle);
  unsetenv("BNGRAD_CACHE_DIR");
}

/// One all-reduce of the sums and one of the count, or none.
TEST(Group, Counts) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  auto count = [&](bool isGlobal, bool isLocal, bool wantsInput) {
    Spec spec;
    spec.isGlobal = isGlobal;
    spec.resultType = isLocal ? BNGRAD_DTYPE_F64 : BNGRAD_DTYPE_F32;
    spec.wants[GradInput] = wantsInput;
    int64_t before = fake::numAllReduces;
    runSplit(handle, spec, {0, {1, 1}, isLocal});
    return fake::numAllReduces - before;
  };
  // Of two processes.
  EXPECT_EQ(count(false, false, true), 4);
  EXPECT_EQ(count(false, true, true), 4);
  EXPECT_EQ(count(false, false, false), 2);
  EXPECT_EQ(count(false, true, false), 0);
  EXPECT_EQ(count(true, false, true), 2);
  EXPECT_EQ(count(true, true, true), 0);
}

TEST(Group, Differences) {
  ASSERT_EQ(bngradSetCollectiveTimeout(5), 0);
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  Gradient whole{Spec()};
  ASSERT_EQ(whole.create(handle), BNGRAD_SUCCESS);
  auto body = [&](const Process &process) -> std::string {
    Split split = {0, {1, 1}, false};
    Gradient mine{Spec()};
    if (mine.create(handle) != BNGRAD_SUCCESS)
      return "not created";
    mine.options.epsilon = process.rank == 0 ? 1e-3 : 0.5;
    Shard shard(mine, split, process);
    std::string error = shard.run(handle);
    EXPECT_NE(error.find("expected the same op on all processes, got "
                         "epsilon=0.001"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find(" on rank 0 and epsilon=0.5 on rank 1"),
              std::string::npos)
        << error;
    return "";
  };
  EXPECT_EQ(runProcesses(2, body), "");
  bngradSetCollectiveTimeout(0);
}

TEST(Group, Misuse) {
  EXPECT_EQ(bngradCreateProcessGroup(nullptr, nullptr, nullptr),
            BNGRAD_NULL_POINTER);
  EXPECT_STREQ(bngradGetLastError(), "group: expected a place for one, got "
                                     "null");
  bngradProcessGroup_t group = nullptr;
  EXPECT_EQ(bngradCreateProcessGroup(&group, "lam", nullptr),
            BNGRAD_PROCESS_ERROR);
  EXPECT_STREQ(bngradGetLastError(),
               "expected the MPI to be openmpi, mpich or the path of a back "
               "end, got 'lam'");
  EXPECT_STREQ(bngradGetStatusName(BNGRAD_PROCESS_ERROR),
               "BNGRAD_PROCESS_ERROR");
  EXPECT_EQ(bngradDestroyProcessGroup(nullptr), BNGRAD_SUCCESS);
  // Halves have their sums added by the caller.
  Handle handle;
  auto body = [&](const Process &process) -> std::string {
    Gradient gradient{Spec()};
    gradient.options.process_group = process.group;
    EXPECT_EQ(gradient.createHalves(handle), BNGRAD_BAD_PARAM);
    EXPECT_STREQ(bngradGetLastError(),
                 "options: expected process_group to be null for "
                 "batch_norm_backward_reduce, whose sums the caller adds, got "
                 "one");
    return "";
  };
  EXPECT_EQ(runProcesses(1, body), "");
}

/// Options of a program that knows no process groups.
TEST(Group, OlderOptions) {
  Handle handle;
  Gradient gradient{Spec()};
  gradient.options.struct_size =
      offsetof(bngradBatchNormBackwardOptions_t, process_group);
  gradient.options.process_group =
      reinterpret_cast<bngradProcessGroup_t>(0x1234);
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
  EXPECT_EQ(gradient.run(), BNGRAD_SUCCESS);
  EXPECT_EQ(gradient.check(), "");
}
