// Algorithms of CUB for the threads of a warp, and cooperative groups of the
// threads of a block.

#include "harness.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>

#include <algorithm>
#include <numeric>

using namespace testing;
namespace groups = cooperative_groups;

namespace {
struct Maximum {
  template <typename T> __host__ __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Less {
  template <typename T> __host__ __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// CUB
//===----------------------------------------------------------------------===//

static constexpr int kThreads = 64;

/// A warp may have several groups only if their size is a power of two.
static __host__ __device__ constexpr int numGroups(int width) {
  return (width & (width - 1)) == 0 ? kThreads / width : 1;
}

/// The sum of each group, and the maximum of its first three threads.
template <typename T, int Width> __global__ void reduceWarps(const T *in, T *out) {
  using Reduce = cub::WarpReduce<T, Width>;
  __shared__ typename Reduce::TempStorage storage[numGroups(Width)];
  int group = threadIdx.x / Width;
  T sum = Reduce(storage[group]).Sum(in[threadIdx.x]);
  __syncwarp();
  T most = Reduce(storage[group]).Reduce(in[threadIdx.x], Maximum(), 3);
  if (threadIdx.x % Width == 0) {
    out[2 * group] = sum;
    out[2 * group + 1] = most;
  }
}

template <typename T, int Width> static void checkReduce() {
  constexpr int kCount = numGroups(Width) * Width;
  std::vector<T> in = random<T>(kCount);
  std::vector<Exact<T>> expected;
  for (auto it = in.begin(); it != in.end(); it += Width) {
    expected.push_back(std::accumulate(it, it + Width, Exact<T>()));
    expected.push_back(*std::max_element(it, it + 3));
  }
  Buffer<T> deviceIn(in), out(expected.size());
  reduceWarps<T, Width><<<1, kCount>>>(deviceIn, out);
  expectSums(out.get(), expected);
}

CASE(reduce_int) { checkReduce<int, 32>(); }
CASE(reduce_double) { checkReduce<double, 32>(); }
CASE(reduce_groups_of_8) { checkReduce<float, 8>(); }
CASE(reduce_groups_of_6) { checkReduce<int, 6>(); }

template <typename T, int Width>
__global__ void scanWarps(const T *in, T *inclusive, T *exclusive, T *sums) {
  using Scan = cub::WarpScan<T, Width>;
  __shared__ typename Scan::TempStorage storage[numGroups(Width)];
  int group = threadIdx.x / Width;
  T a, b, sum;
  Scan(storage[group]).InclusiveSum(in[threadIdx.x], a, sum);
  __syncwarp();
  Scan(storage[group]).ExclusiveScan(in[threadIdx.x], b, T(0), Maximum());
  inclusive[threadIdx.x] = a;
  exclusive[threadIdx.x] = b;
  if (threadIdx.x % Width == 0)
    sums[group] = sum;
}

template <typename T, int Width> static void checkScan() {
  constexpr int kGroups = numGroups(Width), kCount = kGroups * Width;
  std::vector<T> in = random<T>(kCount);
  std::vector<Exact<T>> inclusive(kCount), exclusive(kCount), sums;
  for (int group = 0; group < kGroups; ++group) {
    Exact<T> sum = 0;
    T most = 0;
    for (int i = group * Width; i < (group + 1) * Width; ++i) {
      inclusive[i] = sum += in[i];
      exclusive[i] = most;
      most = std::max(most, in[i]);
    }
    sums.push_back(sum);
  }
  Buffer<T> deviceIn(in), a(kCount), b(kCount), c(kGroups);
  scanWarps<T, Width><<<1, kCount>>>(deviceIn, a, b, c);
  expectSums(a.get(), inclusive);
  expectSums(b.get(), exclusive);
  expectSums(c.get(), sums);
}

CASE(scan_long) { checkScan<int64_t, 32>(); }
CASE(scan_groups_of_16) { checkScan<float, 16>(); }
CASE(scan_groups_of_5) { checkScan<int, 5>(); }

/// Loads, exchanges, sorts and stores the elements of each warp.
template <typename T, int Items, int Width>
__global__ void sortWarps(const T *in, T *out) {
  using Load = cub::WarpLoad<T, Items, cub::WARP_LOAD_TRANSPOSE, Width>;
  using Sort = cub::WarpMergeSort<T, Items, Width>;
  using Exchange = cub::WarpExchange<T, Items, Width>;
  using Store = cub::WarpStore<T, Items, cub::WARP_STORE_STRIPED, Width>;
  __shared__ union Storage {
    typename Load::TempStorage load;
    typename Sort::TempStorage sort;
    typename Exchange::TempStorage exchange;
    typename Store::TempStorage store;
  } storage[kThreads / Width];
  Storage &mine = storage[threadIdx.x / Width];
  int offset = threadIdx.x / Width * Width * Items;
  T items[Items];
  Load(mine.load).Load(in + offset, items);
  __syncwarp();
  Sort(mine.sort).Sort(items, Less());
  __syncwarp();
  Exchange(mine.exchange).BlockedToStriped(items, items);
  __syncwarp();
  Store(mine.store).Store(out + offset, items);
}

template <typename T, int Items, int Width> static void checkSort() {
  std::vector<T> in = random<T>(kThreads * Items);
  Buffer<T> deviceIn(in), out(in.size());
  sortWarps<T, Items, Width><<<1, kThreads>>>(deviceIn, out);
  for (auto it = in.begin(); it != in.end(); it += Items * Width)
    std::sort(it, it + Items * Width);
  expectEqual(out.get(), in);
}

CASE(sort_int) { checkSort<int, 4, 32>(); }
CASE(sort_double_groups_of_8) { checkSort<double, 3, 8>(); }

//===----------------------------------------------------------------------===//
// Cooperative groups
//===----------------------------------------------------------------------===//

template <typename T, int Width>
__global__ void tileReduce(const T *in, T *sums, T *prefixes) {
  auto tile = groups::tiled_partition<Width>(groups::this_thread_block());
  T value = in[threadIdx.x];
  T sum = groups::reduce(tile, value, groups::plus<T>());
  prefixes[threadIdx.x] = groups::exclusive_scan(tile, value, groups::plus<T>());
  if (tile.thread_rank() == 0)
    sums[threadIdx.x / Width] = sum;
}

template <typename T, int Width> static void checkTile() {
  constexpr int kCount = 256;
  std::vector<T> in = random<T>(kCount);
  std::vector<Exact<T>> sums(kCount / Width), prefixes(kCount);
  for (int i = 0; i < kCount; ++i) {
    prefixes[i] = sums[i / Width];
    sums[i / Width] += in[i];
  }
  Buffer<T> deviceIn(in), a(sums.size()), b(kCount);
  tileReduce<T, Width><<<1, kCount>>>(deviceIn, a, b);
  expectSums(a.get(), sums);
  expectSums(b.get(), prefixes);
}

CASE(tiles_of_32_int) { checkTile<int, 32>(); }
CASE(tiles_of_32_double) { checkTile<double, 32>(); }
CASE(tiles_of_4_float) { checkTile<float, 4>(); }

/// Groups of several warps: memory that the system has reserved, from sm_80 on.
template <int Width> __global__ void wideTiles(const int *in, int *sums) {
  __shared__ groups::block_tile_memory<256> memory;
  auto block = groups::this_thread_block(memory);
  auto tile = groups::tiled_partition<Width>(block);
  int sum = groups::reduce(tile, in[threadIdx.x], groups::plus<int>());
  tile.sync();
  int most = groups::reduce(tile, in[threadIdx.x], groups::greater<int>());
  if (tile.thread_rank() == 0) {
    sums[2 * tile.meta_group_rank()] = sum;
    sums[2 * tile.meta_group_rank() + 1] = most;
  }
}

template <int Width> static void checkWideTiles() {
  // All lanes store the sum of their warp. Where the last warp arrives, one
  // lane acquires for all, and a shuffle tells the others.
  Allowed stores("PTX_EMULATOR_EQUAL_STORES");
  Allowed shuffles("PTX_EMULATOR_SHUFFLE_ORDER");
  constexpr int kCount = 256;
  std::vector<int> in = random<int>(kCount), expected;
  for (auto it = in.begin(); it != in.end(); it += Width) {
    expected.push_back(std::accumulate(it, it + Width, 0));
    expected.push_back(*std::max_element(it, it + Width));
  }
  Buffer<int> deviceIn(in), out(expected.size());
  wideTiles<Width><<<1, kCount>>>(deviceIn, out);
  expectEqual(out.get(), expected);
}

CASE(tiles_of_64) { checkWideTiles<64>(); }
CASE(tiles_of_128) { checkWideTiles<128>(); }

/// The threads with an odd value count with one atomic operation of each warp;
/// those with equal digits add their values.
__global__ void partitions(const int *in, int *count, int *digitSums,
                           int *halves) {
  auto block = groups::this_thread_block();
  auto warp = groups::tiled_partition<32>(block);
  int value = in[threadIdx.x];
  if (value % 2 == 1) {
    auto active = groups::coalesced_threads();
    if (active.thread_rank() == 0)
      atomicAdd(count, int(active.size()));
    active.sync();
  }
  auto same = groups::labeled_partition(warp, value % 4);
  int sum = groups::reduce(same, value, groups::plus<int>());
  if (same.thread_rank() == 0)
    atomicAdd(&digitSums[value % 4], sum);
  auto half = groups::binary_partition(warp, value < 50);
  halves[threadIdx.x] = half.shfl(value, 0);
}

CASE(partitions_of_warps) {
  std::vector<int> in = random<int>(96, 0, 99), sums(4), halves;
  int odd = 0;
  for (int i = 0; i < 96; ++i) {
    odd += in[i] % 2;
    sums[in[i] % 4] += in[i];
    int first = i / 32 * 32;
    while ((in[first] < 50) != (in[i] < 50))
      ++first;
    halves.push_back(in[first]);
  }
  Buffer<int> deviceIn(in), count(1), digits(4), out(96);
  cudaMemsetAsync(count, 0, 4, nullptr);
  cudaMemsetAsync(digits, 0, 16, nullptr);
  partitions<<<1, 96>>>(deviceIn, count, digits, out);
  expectEqual(count.get(), {odd});
  expectEqual(digits.get(), sums);
  expectEqual(out.get(), halves);
}

/// One thread of each tile runs a function; the others get its result.
__global__ void invoke(int *out) {
  auto tile = groups::tiled_partition<8>(groups::this_thread_block());
  int value = groups::invoke_one_broadcast(
      tile, [&] { return int(threadIdx.x) / 8 * 10; });
  out[threadIdx.x] = value + tile.any(threadIdx.x == 9) * 1000 +
                     int(tile.match_any(threadIdx.x % 2)) * 10000;
}

CASE(invoke_one) {
  std::vector<int> expected;
  for (int i = 0; i < 32; ++i)
    expected.push_back(i / 8 * 10 + (i / 8 == 1) * 1000 +
                       (i % 2 ? 0xAA : 0x55) * 10000);
  Buffer<int> out(32);
  invoke<<<1, 32>>>(out);
  expectEqual(out.get(), expected);
}
