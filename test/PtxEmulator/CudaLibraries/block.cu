// Algorithms of CUB for the threads of a block.

#include "harness.h"

#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>

#include <algorithm>
#include <functional>
#include <numeric>

using namespace testing;

namespace {
struct Maximum {
  template <typename T> __host__ __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Sum {
  template <typename T> __host__ __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Less {
  template <typename T> __host__ __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Differ {
  template <typename T> __host__ __device__ bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Difference {
  template <typename T> __host__ __device__ T operator()(T a, T b) const {
    return a - b;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

template <typename T, int Threads, int Items, cub::BlockReduceAlgorithm Algorithm>
__global__ void reduceBlocks(const T *in, T *out) {
  using Reduce = cub::BlockReduce<T, Threads, Algorithm>;
  __shared__ typename Reduce::TempStorage storage;
  T items[Items];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * Threads * Items, items);
  T sum = Reduce(storage).Sum(items);
  __syncthreads();
  T most = Reduce(storage).Reduce(items[0], Maximum(), Threads - 5);
  if (threadIdx.x == 0) {
    out[2 * blockIdx.x] = sum;
    out[2 * blockIdx.x + 1] = most;
  }
}

template <typename T, int Threads, int Items, cub::BlockReduceAlgorithm Algorithm>
static void checkReduce() {
  constexpr int kBlocks = 2, kTile = Threads * Items;
  std::vector<T> in = random<T>(kBlocks * kTile);
  Buffer<T> deviceIn(in), deviceOut(2 * kBlocks);
  reduceBlocks<T, Threads, Items, Algorithm>
      <<<kBlocks, Threads>>>(deviceIn, deviceOut);
  std::vector<Exact<T>> expected;
  for (int block = 0; block < kBlocks; ++block) {
    const T *tile = in.data() + block * kTile;
    T most = tile[0];
    for (int thread = 1; thread < Threads - 5; ++thread)
      most = std::max(most, tile[thread * Items]);
    expected.push_back(std::accumulate(tile, tile + kTile, Exact<T>()));
    expected.push_back(most);
  }
  expectSums(deviceOut.get(), expected);
}

CASE(reduce_warps_int) {
  checkReduce<int, 128, 3, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
}
CASE(reduce_warps_float) {
  checkReduce<float, 256, 2, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
}
CASE(reduce_warps_partial) {
  checkReduce<uint64_t, 80, 1, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
}
CASE(reduce_raking_double) {
  checkReduce<double, 128, 4, cub::BLOCK_REDUCE_RAKING>();
}
CASE(reduce_raking_short) {
  checkReduce<short, 96, 1, cub::BLOCK_REDUCE_RAKING>();
}
CASE(reduce_commutative_int) {
  checkReduce<int, 224, 2, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>();
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

namespace {
template <typename T> struct Carry {
  T sum;
  __device__ T operator()(T tile) {
    T old = sum;
    sum += tile;
    return old;
  }
};
} // namespace

/// Prefix sums of two tiles, with the sum of the first as a prefix.
template <typename T, int Threads, int Items, cub::BlockScanAlgorithm Algorithm,
          bool IsInclusive>
__global__ void scanBlock(const T *in, T *out) {
  using Scan = cub::BlockScan<T, Threads, Algorithm>;
  __shared__ typename Scan::TempStorage storage;
  Carry<T> carry{0};
  for (int tile = 0; tile < 2; ++tile) {
    T items[Items];
    int offset = tile * Threads * Items;
    cub::LoadDirectBlocked(threadIdx.x, in + offset, items);
    if constexpr (IsInclusive)
      Scan(storage).InclusiveSum(items, items, carry);
    else
      Scan(storage).ExclusiveSum(items, items, carry);
    __syncthreads();
    cub::StoreDirectBlocked(threadIdx.x, out + offset, items);
  }
}

template <typename T, int Threads, int Items, cub::BlockScanAlgorithm Algorithm,
          bool IsInclusive>
static void checkScan() {
  std::vector<T> in = random<T>(2 * Threads * Items);
  std::vector<Exact<T>> expected;
  Buffer<T> deviceIn(in), deviceOut(in.size());
  scanBlock<T, Threads, Items, Algorithm, IsInclusive>
      <<<1, Threads>>>(deviceIn, deviceOut);
  Exact<T> sum = 0;
  for (T value : in) {
    expected.push_back(IsInclusive ? Exact<T>(sum + value) : sum);
    sum += value;
  }
  expectSums(deviceOut.get(), expected);
}

CASE(scan_raking_int) { checkScan<int, 128, 4, cub::BLOCK_SCAN_RAKING, false>(); }
CASE(scan_raking_memoize) {
  checkScan<uint64_t, 64, 3, cub::BLOCK_SCAN_RAKING_MEMOIZE, true>();
}
CASE(scan_warps_float) {
  checkScan<float, 128, 2, cub::BLOCK_SCAN_WARP_SCANS, true>();
}
CASE(scan_warps_double) {
  checkScan<double, 256, 1, cub::BLOCK_SCAN_WARP_SCANS, false>();
}
CASE(scan_warps_char) {
  checkScan<signed char, 96, 5, cub::BLOCK_SCAN_WARP_SCANS, false>();
}

//===----------------------------------------------------------------------===//
// Sorting
//===----------------------------------------------------------------------===//

template <typename Key, typename Value, int Threads, int Items, bool Descends>
__global__ void sortBlock(Key *keys, Value *values) {
  using Sort = cub::BlockRadixSort<Key, Threads, Items, Value>;
  __shared__ typename Sort::TempStorage storage;
  Key myKeys[Items];
  Value myValues[Items];
  cub::LoadDirectBlocked(threadIdx.x, keys, myKeys);
  cub::LoadDirectBlocked(threadIdx.x, values, myValues);
  if constexpr (Descends)
    Sort(storage).SortDescending(myKeys, myValues);
  else
    Sort(storage).Sort(myKeys, myValues);
  cub::StoreDirectBlocked(threadIdx.x, keys, myKeys);
  cub::StoreDirectBlocked(threadIdx.x, values, myValues);
}

template <typename Key, int Threads, int Items, bool Descends>
static void checkSort(std::vector<Key> keys) {
  int count = Threads * Items;
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  Buffer<Key> deviceKeys(keys);
  Buffer<uint32_t> deviceValues(values);
  sortBlock<Key, uint32_t, Threads, Items, Descends>
      <<<1, Threads>>>(deviceKeys, deviceValues);
  std::stable_sort(values.begin(), values.end(), [&](uint32_t a, uint32_t b) {
    return Descends ? keys[a] > keys[b] : keys[a] < keys[b];
  });
  std::vector<Key> sorted;
  for (uint32_t value : values)
    sorted.push_back(keys[value]);
  expectEqual(deviceKeys.get(), sorted);
  expectEqual(deviceValues.get(), values);
}

CASE(radix_sort_int) { checkSort<int, 128, 2, false>(random<int>(256)); }
CASE(radix_sort_few_keys) {
  checkSort<uint16_t, 64, 4, false>(random<uint16_t>(256, 0, 7));
}
CASE(radix_sort_descending_long) {
  checkSort<int64_t, 32, 5, true>(random<int64_t>(160));
}
CASE(radix_sort_float) { checkSort<float, 96, 3, false>(random<float>(288)); }
CASE(radix_sort_descending_double) {
  checkSort<double, 128, 1, true>(random<double>(128));
}

template <typename Key, int Threads, int Items>
__global__ void sortStriped(Key *keys) {
  using Sort = cub::BlockRadixSort<Key, Threads, Items, cub::NullType, 4, true,
                                   cub::BLOCK_SCAN_RAKING>;
  __shared__ typename Sort::TempStorage storage;
  Key mine[Items];
  cub::LoadDirectStriped<Threads>(threadIdx.x, keys, mine);
  Sort(storage).SortBlockedToStriped(mine);
  cub::StoreDirectStriped<Threads>(threadIdx.x, keys, mine);
}

CASE(radix_sort_to_striped) {
  std::vector<uint32_t> keys = random<uint32_t>(384);
  Buffer<uint32_t> device(keys);
  sortStriped<uint32_t, 128, 3><<<1, 128>>>(device);
  std::sort(keys.begin(), keys.end());
  expectEqual(device.get(), keys);
}

template <typename Key, int Threads, int Items>
__global__ void mergeSortBlock(Key *keys, int count) {
  using Sort = cub::BlockMergeSort<Key, Threads, Items>;
  __shared__ typename Sort::TempStorage storage;
  Key mine[Items];
  Key last = Key(1 << 30);
  cub::LoadDirectBlocked(threadIdx.x, keys, mine, count, last);
  Sort(storage).StableSort(mine, Less(), count, last);
  cub::StoreDirectBlocked(threadIdx.x, keys, mine, count);
}

template <typename Key, int Threads, int Items>
static void checkMergeSort(std::vector<Key> keys) {
  Buffer<Key> device(keys);
  mergeSortBlock<Key, Threads, Items><<<1, Threads>>>(device, keys.size());
  std::stable_sort(keys.begin(), keys.end());
  expectEqual(device.get(), keys);
}

CASE(merge_sort_int) {
  checkMergeSort<int, 128, 3>(random<int>(384, -50, 50));
}
CASE(merge_sort_partial) { checkMergeSort<float, 64, 5>(random<float>(301)); }

//===----------------------------------------------------------------------===//
// Loads, stores and exchanges
//===----------------------------------------------------------------------===//

template <typename T, int Threads, int Items, cub::BlockLoadAlgorithm Load,
          cub::BlockStoreAlgorithm Store>
__global__ void copyBlocks(const T *in, T *out, int count) {
  using Loads = cub::BlockLoad<T, Threads, Items, Load>;
  using Stores = cub::BlockStore<T, Threads, Items, Store>;
  __shared__ union {
    typename Loads::TempStorage loads;
    typename Stores::TempStorage stores;
  } storage;
  int offset = blockIdx.x * Threads * Items, left = count - offset;
  T items[Items];
  if (left >= Threads * Items)
    Loads(storage.loads).Load(in + offset, items);
  else
    Loads(storage.loads).Load(in + offset, items, left, T(0));
  __syncthreads();
  for (int i = 0; i < Items; ++i)
    items[i] += T(i);
  if (left >= Threads * Items)
    Stores(storage.stores).Store(out + offset, items);
  else
    Stores(storage.stores).Store(out + offset, items, left);
}

template <typename T, int Threads, int Items, cub::BlockLoadAlgorithm Load,
          cub::BlockStoreAlgorithm Store>
static void checkCopy() {
  int count = 2 * Threads * Items + 37;
  std::vector<T> in = random<T>(count);
  Buffer<T> deviceIn(in), deviceOut(count);
  copyBlocks<T, Threads, Items, Load, Store>
      <<<3, Threads>>>(deviceIn, deviceOut, count);
  constexpr bool kIsStriped = Load == cub::BLOCK_LOAD_STRIPED;
  for (int i = 0; i < count; ++i)
    in[i] += T(kIsStriped ? i / Threads % Items : i % Items);
  expectEqual(deviceOut.get(), in);
}

CASE(copy_warp_transpose) {
  checkCopy<int, 64, 3, cub::BLOCK_LOAD_WARP_TRANSPOSE,
            cub::BLOCK_STORE_WARP_TRANSPOSE>();
}
CASE(copy_direct) {
  checkCopy<short, 128, 2, cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>();
}
CASE(copy_striped) {
  checkCopy<double, 64, 3, cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>();
}
CASE(copy_vectorized) {
  checkCopy<int, 64, 4, cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>();
}
CASE(copy_transposed) {
  checkCopy<uint64_t, 96, 3, cub::BLOCK_LOAD_TRANSPOSE,
            cub::BLOCK_STORE_TRANSPOSE>();
}
CASE(copy_timesliced) {
  checkCopy<int, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
            cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED>();
}

/// Blocked to striped, scattered in reverse, and back.
template <typename T, int Threads, int Items, bool IsTimesliced>
__global__ void exchangeBlock(const T *in, T *out) {
  using Exchange = cub::BlockExchange<T, Threads, Items, IsTimesliced>;
  __shared__ typename Exchange::TempStorage storage;
  T items[Items];
  int ranks[Items];
  cub::LoadDirectBlocked(threadIdx.x, in, items);
  Exchange(storage).BlockedToStriped(items, items);
  for (int i = 0; i < Items; ++i)
    ranks[i] = Threads * Items - 1 - (i * Threads + int(threadIdx.x));
  __syncthreads();
  Exchange(storage).ScatterToStriped(items, items, ranks);
  __syncthreads();
  Exchange(storage).StripedToBlocked(items, items);
  __syncthreads();
  Exchange(storage).BlockedToWarpStriped(items, items);
  __syncthreads();
  Exchange(storage).WarpStripedToBlocked(items, items);
  cub::StoreDirectBlocked(threadIdx.x, out, items);
}

template <typename T, int Threads, int Items, bool IsTimesliced>
static void checkExchange() {
  std::vector<T> in = random<T>(Threads * Items);
  Buffer<T> deviceIn(in), deviceOut(in.size());
  exchangeBlock<T, Threads, Items, IsTimesliced>
      <<<1, Threads>>>(deviceIn, deviceOut);
  std::reverse(in.begin(), in.end());
  expectEqual(deviceOut.get(), in);
}

CASE(exchange_int) { checkExchange<int, 128, 3, false>(); }
CASE(exchange_char) { checkExchange<signed char, 64, 4, false>(); }
CASE(exchange_timesliced) { checkExchange<uint64_t, 96, 2, true>(); }

//===----------------------------------------------------------------------===//
// Neighbours, histograms and runs
//===----------------------------------------------------------------------===//

template <int Threads, int Items>
__global__ void findNeighbours(const int *in, int *heads, int *tails,
                               int *differences, int *shifted) {
  using Heads = cub::BlockDiscontinuity<int, Threads>;
  using Adjacent = cub::BlockAdjacentDifference<int, Threads>;
  using Shuffle = cub::BlockShuffle<int, Threads>;
  __shared__ union {
    typename Heads::TempStorage heads;
    typename Adjacent::TempStorage adjacent;
    typename Shuffle::TempStorage shuffle;
  } storage;
  int items[Items], results[Items], others[Items];
  cub::LoadDirectBlocked(threadIdx.x, in, items);
  Heads(storage.heads).FlagHeadsAndTails(results, others, items, Differ());
  cub::StoreDirectBlocked(threadIdx.x, heads, results);
  cub::StoreDirectBlocked(threadIdx.x, tails, others);
  __syncthreads();
  Adjacent(storage.adjacent).SubtractLeft(items, results, Difference());
  cub::StoreDirectBlocked(threadIdx.x, differences, results);
  __syncthreads();
  int first = threadIdx.x == 0 ? 77 : 0;
  Shuffle(storage.shuffle).Up(items, results);
  if (threadIdx.x == 0)
    results[0] = first;
  cub::StoreDirectBlocked(threadIdx.x, shifted, results);
}

CASE(neighbours) {
  constexpr int kThreads = 128, kItems = 3, kCount = kThreads * kItems;
  std::vector<int> in = random<int>(kCount, 0, 2), heads, tails, differences,
                   shifted;
  Buffer<int> deviceIn(in), a(kCount), b(kCount), c(kCount), d(kCount);
  findNeighbours<kThreads, kItems><<<1, kThreads>>>(deviceIn, a, b, c, d);
  for (int i = 0; i < kCount; ++i) {
    heads.push_back(i == 0 || in[i] != in[i - 1]);
    tails.push_back(i + 1 == kCount || in[i] != in[i + 1]);
    differences.push_back(i == 0 ? in[0] : in[i] - in[i - 1]);
    shifted.push_back(i == 0 ? 77 : in[i - 1]);
  }
  expectEqual(a.get(), heads);
  expectEqual(b.get(), tails);
  expectEqual(c.get(), differences);
  expectEqual(d.get(), shifted);
}

template <int Threads, int Items, cub::BlockHistogramAlgorithm Algorithm>
__global__ void countBlock(const unsigned char *in, unsigned *bins) {
  using Histogram =
      cub::BlockHistogram<unsigned char, Threads, Items, 256, Algorithm>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ unsigned counts[256];
  unsigned char items[Items];
  cub::LoadDirectBlocked(threadIdx.x, in, items);
  Histogram(storage).Histogram(items, counts);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += Threads)
    bins[i] = counts[i];
}

template <cub::BlockHistogramAlgorithm Algorithm> static void checkHistogram() {
  std::vector<unsigned char> in = random<unsigned char>(128 * 4);
  std::vector<unsigned> expected(256);
  Buffer<unsigned char> deviceIn(in);
  Buffer<unsigned> bins(256);
  countBlock<128, 4, Algorithm><<<1, 128>>>(deviceIn, bins);
  for (unsigned char value : in)
    ++expected[value];
  expectEqual(bins.get(), expected);
}

CASE(histogram_atomic) { checkHistogram<cub::BLOCK_HISTO_ATOMIC>(); }
CASE(histogram_sort) { checkHistogram<cub::BLOCK_HISTO_SORT>(); }

template <int Threads>
__global__ void decodeRuns(const int *values, const unsigned *lengths, int *out,
                           unsigned *total) {
  constexpr int kRuns = 2, kDecoded = 4;
  using Decode = cub::BlockRunLengthDecode<int, Threads, kRuns, kDecoded>;
  __shared__ typename Decode::TempStorage storage;
  int myValues[kRuns];
  unsigned myLengths[kRuns], size = 0;
  cub::LoadDirectBlocked(threadIdx.x, values, myValues);
  cub::LoadDirectBlocked(threadIdx.x, lengths, myLengths);
  Decode decode(storage, myValues, myLengths, size);
  for (unsigned done = 0; done < size; done += Threads * kDecoded) {
    int items[kDecoded];
    decode.RunLengthDecode(items, done);
    cub::StoreDirectBlocked(threadIdx.x, out + done, items, size - done);
  }
  if (threadIdx.x == 0)
    *total = size;
}

CASE(run_length_decode) {
  constexpr int kThreads = 64, kRuns = 2 * kThreads;
  std::vector<int> values = random<int>(kRuns), expected;
  std::vector<unsigned> lengths = random<unsigned>(kRuns, 1, 6);
  for (int i = 0; i < kRuns; ++i)
    expected.insert(expected.end(), lengths[i], values[i]);
  Buffer<int> deviceValues(values), out(expected.size());
  Buffer<unsigned> deviceLengths(lengths), total(1);
  decodeRuns<kThreads><<<1, kThreads>>>(deviceValues, deviceLengths, out, total);
  expectEqual(out.get(), expected);
  expectEqual(total.get(), {unsigned(expected.size())});
}

//===----------------------------------------------------------------------===//
// Mistakes that the emulator must report
//===----------------------------------------------------------------------===//

/// The storage is used again without a barrier.
__global__ void reuseStorage(const int *in, int *out) {
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int first = Reduce(storage).Sum(in[threadIdx.x]);
  int second = Reduce(storage).Sum(2 * in[threadIdx.x]);
  if (threadIdx.x == 0)
    *out = first + second;
}

CASE(reused_storage) {
  Buffer<int> in(random<int>(64)), out(1);
  reuseStorage<<<1, 64>>>(in, out);
  expectReport("race");
}

/// A load of a whole tile that is not there.
CASE(past_the_end) {
  Buffer<int> in(random<int>(64 * 3 - 1)), out(64 * 3);
  copyBlocks<int, 64, 3, cub::BLOCK_LOAD_WARP_TRANSPOSE,
             cub::BLOCK_STORE_WARP_TRANSPOSE><<<1, 64>>>(in, out, 64 * 3);
  expectReport("out-of-bounds");
}

/// Half of the block takes part; the other threads have not exited.
__global__ void reduceHalf(const int *in, int *out) {
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int sum = 0;
  if (threadIdx.x % 2 == 0)
    sum = Reduce(storage).Sum(in[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0)
    *out = sum;
}

CASE(half_of_the_block) {
  Buffer<int> in(random<int>(64)), out(1);
  reduceHalf<<<1, 64>>>(in, out);
  expectReport("divergent-shuffle");
}
