// Synchronization and asynchronous copies of libcu++, and cooperative groups
// of clusters and grids.

#include "harness.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda/semaphore>

#include <algorithm>
#include <numeric>

using namespace testing;
namespace groups = cooperative_groups;
using BlockBarrier = cuda::barrier<cuda::thread_scope_block>;

//===----------------------------------------------------------------------===//
// Barriers, latches and semaphores
//===----------------------------------------------------------------------===//

/// Prefix sums by doubling, with a barrier between the steps.
__global__ void doublingScan(const int *in, int *out) {
  __shared__ BlockBarrier barrier;
  __shared__ int values[128];
  if (threadIdx.x == 0)
    init(&barrier, blockDim.x);
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    int other = threadIdx.x >= step ? values[threadIdx.x - step] : 0;
    barrier.arrive_and_wait();
    values[threadIdx.x] += other;
    auto token = barrier.arrive();
    barrier.wait(std::move(token));
  }
  out[threadIdx.x] = values[threadIdx.x];
}

CASE(barrier_scan) {
  std::vector<int> in = random<int>(128), expected(128);
  Buffer<int> deviceIn(in), out(128);
  doublingScan<<<1, 128>>>(deviceIn, out);
  std::partial_sum(in.begin(), in.end(), expected.begin());
  expectEqual(out.get(), expected);
}

/// Threads leave the barrier one by one.
__global__ void leaveBarrier(int *out) {
  __shared__ BlockBarrier barrier;
  __shared__ int turns;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    turns = 0;
  }
  __syncthreads();
  for (int turn = 0; turn <= threadIdx.x / 32; ++turn) {
    if (threadIdx.x == 96)
      ++turns;
    if (turn == threadIdx.x / 32)
      barrier.arrive_and_drop();
    else
      barrier.arrive_and_wait();
  }
  if (threadIdx.x == 96)
    *out = turns;
}

CASE(barrier_drop) {
  Buffer<int> out(1);
  leaveBarrier<<<1, 128>>>(out);
  expectEqual(out.get(), {4});
}

/// The last thread to arrive runs the completion function.
struct AddUp {
  int *total;
  const int *values;
  __device__ void operator()() const {
    for (int i = 0; i < 32; ++i)
      *total += values[i];
  }
};

__global__ void completeBarrier(int *out) {
  using Barrier = cuda::barrier<cuda::thread_scope_block, AddUp>;
  __shared__ cuda::std::aligned_storage_t<sizeof(Barrier), alignof(Barrier)>
      memory;
  __shared__ int total, values[32];
  Barrier *barrier = reinterpret_cast<Barrier *>(&memory);
  if (threadIdx.x == 0) {
    total = 0;
    new (barrier) Barrier(32, AddUp{&total, values});
  }
  __syncthreads();
  for (int turn = 1; turn <= 3; ++turn) {
    values[threadIdx.x] = threadIdx.x * turn;
    barrier->arrive_and_wait();
  }
  out[threadIdx.x] = total;
}

CASE(barrier_completion) {
  Buffer<int> out(32);
  completeBarrier<<<1, 32>>>(out);
  expectEqual(out.get(), std::vector<int>(32, 496 * 6));
}

/// The blocks wait for each other at a latch in global memory.
__global__ void latchBlocks(cuda::latch<cuda::thread_scope_device> *latch,
                            const int *in, int *sums, int *out) {
  __shared__ int total;
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = in[2 * blockIdx.x] + in[2 * blockIdx.x + 1];
    latch->arrive_and_wait();
    total = 0;
    for (int i = 0; i < gridDim.x; ++i)
      total += sums[i];
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

__global__ void initLatch(cuda::latch<cuda::thread_scope_device> *latch,
                          int count) {
  new (latch) cuda::latch<cuda::thread_scope_device>(count);
}

CASE(latch_of_grid) {
  std::vector<int> in = random<int>(16);
  Buffer<int> deviceIn(in), sums(8), out(32);
  Buffer<cuda::latch<cuda::thread_scope_device>> latch(1);
  initLatch<<<1, 1>>>(latch, 8);
  latchBlocks<<<8, 4>>>(latch, deviceIn, sums, out);
  expectEqual(out.get(),
              std::vector<int>(32, std::accumulate(in.begin(), in.end(), 0)));
}

using Semaphore = cuda::counting_semaphore<cuda::thread_scope_device, 8>;
using Mutex = cuda::binary_semaphore<cuda::thread_scope_device>;

__global__ void initSemaphores(Semaphore *semaphore, Mutex *mutex) {
  new (semaphore) Semaphore(2);
  new (mutex) Mutex(1);
}

/// At most two blocks are inside, and one at a time adds.
__global__ void enterSemaphores(Semaphore *semaphore, Mutex *mutex, int *inside,
                                int *most, int *sum) {
  if (threadIdx.x != 0)
    return;
  semaphore->acquire();
  cuda::atomic_ref<int, cuda::thread_scope_device> count(*inside), high(*most);
  high.fetch_max(count.fetch_add(1) + 1);
  mutex->acquire();
  *sum += blockIdx.x;
  mutex->release();
  count.fetch_sub(1);
  semaphore->release();
}

CASE(semaphores) {
  Buffer<Semaphore> semaphore(1);
  Buffer<Mutex> mutex(1);
  Buffer<int> inside(std::vector<int>{0}), most(std::vector<int>{0}),
      sum(std::vector<int>{0});
  initSemaphores<<<1, 1>>>(semaphore, mutex);
  enterSemaphores<<<12, 32>>>(semaphore, mutex, inside, most, sum);
  expectEqual(sum.get(), {66});
  if (most.get()[0] > 2)
    failure() = "more than two blocks were inside";
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

template <typename T> __global__ void integerAtomics(T *values, const T *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto at = [&](int k) {
    return cuda::atomic_ref<T, cuda::thread_scope_device>(values[k]);
  };
  at(0).fetch_add(in[i], cuda::memory_order_relaxed);
  at(1).fetch_sub(in[i], cuda::memory_order_acq_rel);
  at(2).fetch_and(in[i] | 1);
  at(3).fetch_or(in[i]);
  at(4).fetch_xor(in[i]);
  at(5).fetch_min(in[i]);
  at(6).fetch_max(in[i]);
  T old = at(7).load(cuda::memory_order_acquire);
  while (!at(7).compare_exchange_weak(old, T(3 * old + 1)))
    ;
  at(8)++;
  at(9).store(T(5), cuda::memory_order_release);
  at(10).exchange(T(6));
}

template <typename T> static void checkAtomics() {
  constexpr int kCount = 96;
  std::vector<T> in = random<T>(kCount);
  // Atomics of less than 32 bits read whole words.
  std::vector<T> values = {1, 2, T(-1), 0, 3, 0, 0, 1, 7, 0, 0, 0};
  Buffer<T> device(values), deviceIn(in);
  integerAtomics<T><<<3, kCount / 3>>>(device, deviceIn);
  for (T value : in) {
    values[0] += value;
    values[1] -= value;
    values[2] &= value | 1;
    values[3] |= value;
    values[4] ^= value;
    values[5] = std::min(values[5], value);
    values[6] = std::max(values[6], value);
    values[7] = 3 * values[7] + 1;
    ++values[8];
  }
  values[9] = 5;
  values[10] = 6;
  expectEqual(device.get(), values);
}

CASE(atomics_int) { checkAtomics<int>(); }
CASE(atomics_unsigned_long) { checkAtomics<unsigned long long>(); }
CASE(atomics_short) { checkAtomics<short>(); }
CASE(atomics_char) { checkAtomics<unsigned char>(); }

template <typename T> __global__ void realAtomics(T *values, const T *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cuda::atomic_ref<T, cuda::thread_scope_device>(values[0]).fetch_add(in[i]);
  cuda::atomic_ref<T, cuda::thread_scope_device>(values[1]).fetch_min(in[i]);
  cuda::atomic_ref<T, cuda::thread_scope_system>(values[2]).fetch_max(in[i]);
}

template <typename T> static void checkRealAtomics(double bound) {
  std::vector<T> in = random<T>(96);
  Buffer<T> device(std::vector<T>{0, 0, 0}), deviceIn(in);
  realAtomics<T><<<3, 32>>>(device, deviceIn);
  expectNear(device.get(),
             {std::accumulate(in.begin(), in.end(), 0.0),
              *std::min_element(in.begin(), in.end()),
              *std::max_element(in.begin(), in.end())},
             bound);
}

CASE(atomics_float) { checkRealAtomics<float>(1e-4); }
CASE(atomics_double) { checkRealAtomics<double>(1e-13); }

/// Each block waits for the message of the one before.
__global__ void passMessages(int *flags, int *data) {
  if (threadIdx.x != 0)
    return;
  int sum = 0;
  if (blockIdx.x != 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[blockIdx.x - 1]);
    flag.wait(0, cuda::memory_order_acquire);
    sum = data[blockIdx.x - 1];
  }
  data[blockIdx.x] = sum + blockIdx.x;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[blockIdx.x]);
  flag.store(1, cuda::memory_order_release);
  flag.notify_all();
}

/// The same with fences and relaxed accesses.
__global__ void passFencedMessages(int *flags, int *data) {
  if (threadIdx.x != 0)
    return;
  int sum = 0;
  if (blockIdx.x != 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[blockIdx.x - 1]);
    while (flag.load(cuda::memory_order_relaxed) == 0)
      ;
    cuda::atomic_thread_fence(cuda::memory_order_acquire,
                              cuda::thread_scope_device);
    sum = data[blockIdx.x - 1];
  }
  data[blockIdx.x] = sum + blockIdx.x;
  __threadfence();
  cuda::atomic_ref<int, cuda::thread_scope_device>(flags[blockIdx.x])
      .store(1, cuda::memory_order_relaxed);
}

template <typename Fn> static void checkMessages(Fn kernel) {
  std::vector<int> zeros(10), expected;
  Buffer<int> flags(zeros), data(10);
  kernel(flags, data);
  for (int i = 0; i < 10; ++i)
    expected.push_back(i * (i + 1) / 2);
  expectEqual(data.get(), expected);
}

CASE(messages) {
  checkMessages([](int *flags, int *data) {
    passMessages<<<10, 32>>>(flags, data);
  });
}
CASE(fenced_messages) {
  checkMessages([](int *flags, int *data) {
    passFencedMessages<<<10, 32>>>(flags, data);
  });
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

#define ON_SM_90(...) NV_IF_TARGET(NV_PROVIDES_SM_90, (__VA_ARGS__))

static constexpr int kTile = 256;

/// Sums of tiles that are copied to shared memory, and waited for by a barrier.
template <typename T> __global__ void copyWithBarrier(const T *in, T *out) {
  auto block = groups::this_thread_block();
  __shared__ BlockBarrier barrier;
  __shared__ alignas(16) T tile[kTile];
  if (block.thread_rank() == 0)
    init(&barrier, block.size());
  block.sync();
  T sum = 0;
  for (int i = 0; i < 3; ++i) {
    cuda::memcpy_async(block, tile, in + i * kTile, sizeof(T) * kTile, barrier);
    barrier.arrive_and_wait();
    for (int k = 0; k < kTile; k += block.size())
      sum += tile[kTile - 1 - k - block.thread_rank()];
    barrier.arrive_and_wait();
  }
  out[block.thread_rank()] = sum;
}

/// As above, with 16 bytes that are known to be aligned.
template <typename T> __global__ void copyAligned(const T *in, T *out) {
  auto block = groups::this_thread_block();
  __shared__ BlockBarrier barrier;
  __shared__ alignas(16) T tile[kTile];
  if (block.thread_rank() == 0) {
    init(&barrier, block.size());
    // The copy is a bulk copy.
    ON_SM_90(cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release,
                                            cuda::ptx::scope_cluster);)
  }
  block.sync();
  T sum = 0;
  for (int i = 0; i < 3; ++i) {
    cuda::memcpy_async(block, tile, in + i * kTile,
                       cuda::aligned_size_t<16>(sizeof(T) * kTile), barrier);
    barrier.arrive_and_wait();
    for (int k = 0; k < kTile; k += block.size())
      sum += tile[kTile - 1 - k - block.thread_rank()];
    barrier.arrive_and_wait();
  }
  out[block.thread_rank()] = sum;
}

/// Two stages of a pipeline of the block.
template <typename T> __global__ void copyWithPipeline(const T *in, T *out) {
  constexpr int kStages = 2;
  auto block = groups::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages>
      state;
  __shared__ alignas(16) T tiles[kStages][kTile];
  auto pipeline = cuda::make_pipeline(block, &state);
  T sum = 0;
  for (int i = 0, next = 0; i < 3; ++i) {
    for (; next < 3 && next < i + kStages; ++next) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, tiles[next % kStages], in + next * kTile,
                         sizeof(T) * kTile, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    for (int k = 0; k < kTile; k += block.size())
      sum += tiles[i % kStages][kTile - 1 - k - block.thread_rank()];
    pipeline.consumer_release();
  }
  out[block.thread_rank()] = sum;
}

/// The first warp copies, the others add.
template <typename T> __global__ void copyWithRoles(const T *in, T *out) {
  constexpr int kStages = 2;
  auto block = groups::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages>
      state;
  __shared__ alignas(16) T tiles[kStages][kTile];
  auto role = block.thread_rank() < 32 ? cuda::pipeline_role::producer
                                       : cuda::pipeline_role::consumer;
  auto pipeline = cuda::make_pipeline(block, &state, role);
  int me = block.thread_rank() - 32, numConsumers = block.size() - 32;
  T sum = 0;
  for (int i = 0; i < 3; ++i) {
    T *tile = tiles[i % kStages];
    if (role == cuda::pipeline_role::producer) {
      pipeline.producer_acquire();
      for (int k = block.thread_rank(); k < kTile; k += 32)
        cuda::memcpy_async(tile + k, in + i * kTile + k, sizeof(T), pipeline);
      pipeline.producer_commit();
    } else {
      pipeline.consumer_wait();
      for (int k = 0; k < kTile; k += numConsumers)
        sum += tile[kTile - 1 - k - me];
      pipeline.consumer_release();
    }
  }
  if (role == cuda::pipeline_role::consumer)
    out[me] = sum;
}

/// A pipeline of each thread.
template <typename T> __global__ void copyOfThreads(const T *in, T *out) {
  __shared__ T tile[64];
  auto pipeline = cuda::make_pipeline();
  T sum = 0;
  for (int i = threadIdx.x; i < 3 * kTile; i += blockDim.x) {
    pipeline.producer_acquire();
    cuda::memcpy_async(&tile[threadIdx.x], in + i, sizeof(T), pipeline);
    pipeline.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(pipeline);
    sum += tile[threadIdx.x];
    pipeline.consumer_release();
  }
  // The order of the elements in a tile is reversed in the other kernels.
  out[blockDim.x - 1 - threadIdx.x] = sum;
}

/// The copy of a cooperative group.
template <typename T> __global__ void copyOfGroup(const T *in, T *out) {
  auto block = groups::this_thread_block();
  __shared__ alignas(16) T tiles[2][kTile];
  T sum = 0;
  groups::memcpy_async(block, tiles[0], in, sizeof(T) * kTile);
  for (int i = 0; i < 3; ++i) {
    if (i + 1 < 3) {
      groups::memcpy_async(block, tiles[(i + 1) % 2], in + (i + 1) * kTile,
                           sizeof(T) * kTile);
      groups::wait_prior<1>(block);
    } else {
      groups::wait(block);
    }
    for (int k = 0; k < kTile; k += block.size())
      sum += tiles[i % 2][kTile - 1 - k - block.thread_rank()];
    block.sync();
  }
  out[block.thread_rank()] = sum;
}

template <typename T, typename Fn> static void checkCopies(Fn kernel) {
  // The destructor of a pipeline orders the lanes of a warp by a vote only.
  Allowed shuffles("PTX_EMULATOR_SHUFFLE_ORDER");
  constexpr int kSums = 64;
  std::vector<T> in = random<T>(3 * kTile), expected(kSums);
  for (int i = 0; i < 3 * kTile; ++i)
    expected[(kTile - 1 - i % kTile) % kSums] += in[i];
  Buffer<T> deviceIn(in), out(kSums);
  kernel(deviceIn, out);
  expectEqual(out.get(), expected);
}

#define COPY_CASE(name, kernel, type, threads)                                 \
  CASE(name) {                                                                 \
    checkCopies<type>(                                                         \
        [](const type *in, type *out) { kernel<type><<<1, threads>>>(in, out); }); \
  }
COPY_CASE(copy_barrier_int, copyWithBarrier, int, 64)
COPY_CASE(copy_barrier_long, copyWithBarrier, int64_t, 64)
COPY_CASE(copy_barrier_short, copyWithBarrier, short, 64)
COPY_CASE(copy_aligned, copyAligned, int, 64)
COPY_CASE(copy_pipeline, copyWithPipeline, int, 64)
COPY_CASE(copy_roles, copyWithRoles, int, 96)
COPY_CASE(copy_threads, copyOfThreads, int, 64)
COPY_CASE(copy_group, copyOfGroup, int, 64)

//===----------------------------------------------------------------------===//
// Grids and clusters
//===----------------------------------------------------------------------===//

/// Each step needs the values that other blocks wrote in the one before.
__global__ void syncGrid(int *values, int count) {
  auto grid = groups::this_grid();
  int i = int(grid.thread_rank());
  for (int step = 0; step < 3; ++step) {
    int other = values[(i + 37) % count];
    grid.sync();
    values[i] += other;
    grid.sync();
  }
}

CASE(grid_sync) {
  int count = 96;
  std::vector<int> values = random<int>(count);
  Buffer<int> device(values);
  int *pointer = device;
  void *arguments[] = {&pointer, &count};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(syncGrid), dim3(6),
                              dim3(16), arguments, 0, nullptr);
  for (int step = 0; step < 3; ++step) {
    std::vector<int> old = values;
    for (int i = 0; i < count; ++i)
      values[i] += old[(i + 37) % count];
  }
  expectEqual(device.get(), values);
}

template <typename Kernel, typename... Arguments>
static void launchClusters(Kernel *kernel, int clusters, int size, int threads,
                           Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(clusters * size);
  config.blockDim = dim3(threads);
  config.attrs = &attribute;
  config.numAttrs = 1;
  void *list[] = {&arguments...};
  cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), list);
}

/// The sum of a cluster, by atomics in the shared memory of its first block.
__global__ void sumClusters(const int *in, int *out) {
  ON_SM_90(
      auto cluster = groups::this_cluster(); __shared__ int sum;
      if (threadIdx.x == 0) sum = 0; cluster.sync();
      int *first = cluster.map_shared_rank(&sum, 0);
      cuda::atomic_ref<int, cuda::thread_scope_device>(*first).fetch_add(
          in[blockIdx.x * blockDim.x + threadIdx.x]);
      cluster.sync(); if (cluster.thread_rank() == 0)
          out[blockIdx.x / cluster.num_blocks()] = sum;)
}

CASE_FOR(cluster_sum, 90) {
  std::vector<int> in = random<int>(8 * 32), expected(2);
  for (int i = 0; i < 8 * 32; ++i)
    expected[i / 128] += in[i];
  Buffer<int> deviceIn(in), out(2);
  launchClusters(sumClusters, 2, 4, 32, (const int *)deviceIn, (int *)out);
  expectEqual(out.get(), expected);
}

/// Each block reads the values of the next one.
__global__ void rotateCluster(const int *in, int *out) {
  ON_SM_90(
      auto cluster = groups::this_cluster(); __shared__ int values[32];
      int i = blockIdx.x * 32 + threadIdx.x; values[threadIdx.x] = in[i];
      auto token = cluster.barrier_arrive();
      cluster.barrier_wait(cuda::std::move(token));
      unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
      out[i] = cluster.map_shared_rank(values, next)[31 - threadIdx.x];
      cluster.sync();)
}

CASE_FOR(cluster_rotation, 90) {
  std::vector<int> in = random<int>(6 * 32), expected(6 * 32);
  for (int i = 0; i < 6 * 32; ++i) {
    int block = i / 32;
    int next = block / 3 * 3 + (block + 1) % 3;
    expected[i] = in[next * 32 + 31 - i % 32];
  }
  Buffer<int> deviceIn(in), out(in.size());
  launchClusters(rotateCluster, 2, 3, 32, (const int *)deviceIn, (int *)out);
  expectEqual(out.get(), expected);
}

/// Bulk copies to shared memory and back.
__global__ void bulkCopies(const int *in, int *out) {
  ON_SM_90(
      __shared__ alignas(16) int tile[kTile]; __shared__ BlockBarrier barrier;
      if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
      } __syncthreads();
      BlockBarrier::arrival_token token; if (threadIdx.x == 0) {
        cuda::memcpy_async(tile, in + blockIdx.x * kTile,
                           cuda::aligned_size_t<16>(sizeof tile), barrier);
      } token = barrier.arrive();
      barrier.wait(std::move(token));
      for (int i = threadIdx.x; i < kTile; i += blockDim.x) tile[i] += i;
      cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); __syncthreads();
      if (threadIdx.x == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global,
                                 cuda::ptx::space_shared,
                                 out + blockIdx.x * kTile, tile, sizeof tile);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
        cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
      })
}

CASE_FOR(bulk_copies, 90) {
  std::vector<int> in = random<int>(2 * kTile);
  Buffer<int> deviceIn(in), out(in.size());
  bulkCopies<<<2, 64>>>(deviceIn, out);
  for (int i = 0; i < 2 * kTile; ++i)
    in[i] += i % kTile;
  expectEqual(out.get(), in);
}

/// A copy with an explicit count of bytes.
__global__ void countedCopies(const int *in, int *out) {
  ON_SM_90(
      __shared__ alignas(16) int tile[kTile]; __shared__ BlockBarrier barrier;
      if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release,
                                       cuda::ptx::scope_cluster);
      } __syncthreads();
      BlockBarrier::arrival_token token; if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(
            tile, in, cuda::aligned_size_t<16>(sizeof tile), barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof tile);
      } else { token = barrier.arrive(); } barrier.wait(std::move(token));
      for (int i = threadIdx.x; i < kTile; i += blockDim.x)
          out[i] = tile[kTile - 1 - i];)
}

CASE_FOR(counted_copies, 90) {
  std::vector<int> in = random<int>(kTile);
  Buffer<int> deviceIn(in), out(kTile);
  countedCopies<<<1, 64>>>(deviceIn, out);
  std::reverse(in.begin(), in.end());
  expectEqual(out.get(), in);
}

/// All blocks of a grid add their tiles to one, by reducing bulk copies.
__global__ void bulkReductions(const int *in, int *out) {
  ON_SM_90(
      __shared__ alignas(16) int tile[kTile];
      for (int i = threadIdx.x; i < kTile; i += blockDim.x)
          tile[i] = in[blockIdx.x * kTile + i];
      cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); __syncthreads();
      if (threadIdx.x == 0) {
        cuda::ptx::cp_reduce_async_bulk(
            cuda::ptx::space_global, cuda::ptx::space_shared,
            cuda::ptx::op_add, out, tile, sizeof tile);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
      })
}

CASE_FOR(bulk_reductions, 90) {
  std::vector<int> in = random<int>(3 * kTile), expected(kTile);
  for (int i = 0; i < 3 * kTile; ++i)
    expected[i % kTile] += in[i];
  Buffer<int> deviceIn(in), out(std::vector<int>(kTile, 0));
  bulkReductions<<<3, 64>>>(deviceIn, out);
  expectEqual(out.get(), expected);
}

/// Each block sends a value to the other with st.async.
__global__ void sendRemotely(const int *in, int *out) {
  ON_SM_90(
      auto cluster = groups::this_cluster(); __shared__ int place[4];
      __shared__ uint64_t barrier; if (threadIdx.x == 0) {
        cuda::ptx::mbarrier_init(&barrier, 1);
        cuda::ptx::mbarrier_arrive_expect_tx(
            cuda::ptx::sem_release, cuda::ptx::scope_cluster,
            cuda::ptx::space_shared, &barrier, 16);
      } cluster.sync();
      unsigned other = cluster.block_rank() ^ 1; if (threadIdx.x < 4) {
        cuda::ptx::st_async(
            cluster.map_shared_rank(place, other) + threadIdx.x,
            in[blockIdx.x * 4 + threadIdx.x],
            cluster.map_shared_rank(&barrier, other));
      } while (!cuda::ptx::mbarrier_try_wait_parity(&barrier, 0));
      if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] =
          place[threadIdx.x];
      cluster.sync();)
}

CASE_FOR(remote_stores, 90) {
  std::vector<int> in = random<int>(8);
  Buffer<int> deviceIn(in), out(8);
  launchClusters(sendRemotely, 1, 2, 32, (const int *)deviceIn, (int *)out);
  std::rotate(in.begin(), in.begin() + 4, in.end());
  expectEqual(out.get(), in);
}

//===----------------------------------------------------------------------===//
// Mistakes that the emulator must report
//===----------------------------------------------------------------------===//

/// As copyAligned, without the fence of the mbarrier.
__global__ void copyWithoutFence(const int *in, int *out) {
  auto block = groups::this_thread_block();
  __shared__ BlockBarrier barrier;
  __shared__ alignas(16) int tile[kTile];
  if (block.thread_rank() == 0)
    init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(sizeof tile),
                     barrier);
  barrier.arrive_and_wait();
  out[threadIdx.x] = tile[threadIdx.x];
}

CASE_FOR(missing_fence, 90) {
  Buffer<int> in(random<int>(kTile)), out(64);
  copyWithoutFence<<<1, 64>>>(in, out);
  expectReport("missing-proxy-fence");
}

/// The wait comes after the read.
__global__ void copyWithoutWait(const int *in, int *out) {
  auto block = groups::this_thread_block();
  __shared__ alignas(16) int tile[kTile];
  groups::memcpy_async(block, tile, in, sizeof tile);
  out[threadIdx.x] = tile[kTile - 1 - threadIdx.x];
  groups::wait(block);
}

CASE_FOR(missing_wait, 80) {
  Buffer<int> in(random<int>(kTile)), out(32);
  copyWithoutWait<<<1, 32>>>(in, out);
  expectReport("missing-wait");
}

/// The scope of the flag does not include the other block.
__global__ void passInBlock(int *flag, int *data) {
  if (blockIdx.x == 0)
    *data = 1;
  cuda::atomic_ref<int, cuda::thread_scope_block> scoped(*flag);
  scoped.fetch_add(1, cuda::memory_order_acq_rel);
}

CASE(narrow_scope) {
  Buffer<int> flag(std::vector<int>{0}), data(1);
  passInBlock<<<2, 1>>>(flag, data);
  expectReport("race");
}

/// The store of the flag does not release the data.
__global__ void relaxMessage(int *flag, int *data) {
  cuda::atomic_ref<int, cuda::thread_scope_device> shared(*flag);
  if (blockIdx.x == 0) {
    *data = 1;
    shared.store(1, cuda::memory_order_relaxed);
    return;
  }
  while (shared.load(cuda::memory_order_acquire) == 0)
    ;
  flag[1] = *data;
}

CASE(relaxed_store) {
  Buffer<int> flag(std::vector<int>{0, 0}), data(1);
  relaxMessage<<<2, 1>>>(flag, data);
  expectReport("race");
}

__global__ void exitCluster(int *out) {
  ON_SM_90(
      auto cluster = groups::this_cluster(); __shared__ int value;
      value = 1; cluster.sync(); if (cluster.block_rank() == 0)
          *out = *cluster.map_shared_rank(&value, 1);)
}

/// The second block may exit before the first one has read from it.
CASE_FOR(early_exit, 90) {
  Allowed stores("PTX_EMULATOR_EQUAL_STORES");
  Buffer<int> out(1);
  launchClusters(exitCluster, 1, 2, 1, (int *)out);
  expectReport("out-of-bounds");
}
