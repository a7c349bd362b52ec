// Algorithms of CUB for a device, each of one or several kernels.

#include "harness.h"

#include <cub/device/device_adjacent_difference.cuh>
#include <cub/device/device_for.cuh>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_memcpy.cuh>
#include <cub/device/device_merge.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cub/device/device_select.cuh>
#include <cub/device/device_transform.cuh>

#include <algorithm>
#include <numeric>

using namespace testing;

/// Calls an algorithm for the size of its storage, and then with the storage.
template <typename Fn> static void run(Fn algorithm) {
  size_t bytes = 0;
  if (algorithm(nullptr, bytes) != cudaSuccess)
    return;
  Buffer<char> storage(std::max<size_t>(bytes, 1));
  algorithm(storage, bytes);
}

namespace {
struct Maximum {
  template <typename T> __host__ __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct IsEven {
  template <typename T> __host__ __device__ bool operator()(T a) const {
    return a % 2 == 0;
  }
};
struct Less {
  template <typename T> __host__ __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Triple {
  __host__ __device__ int operator()(int a) const { return 3 * a; }
};
struct AddInPlace {
  int *values;
  __device__ void operator()(int i) const { values[i] += i; }
};
} // namespace

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static constexpr int kCount = 10000;

CASE(reduce_sum_int) {
  for (int count : {kCount, 100, 1}) {
    std::vector<int> in = random<int>(count);
    Buffer<int> deviceIn(in), out(1);
    run([&](void *storage, size_t &bytes) {
      return cub::DeviceReduce::Sum(storage, bytes, (int *)deviceIn, (int *)out,
                                    count);
    });
    expectEqual(out.get(), {std::accumulate(in.begin(), in.end(), 0)});
  }
}

CASE(reduce_sum_double) {
  std::vector<double> in = random<double>(kCount);
  Buffer<double> deviceIn(in), out(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::Sum(storage, bytes, (double *)deviceIn,
                                  (double *)out, kCount);
  });
  expectNear(out.get(), {std::accumulate(in.begin(), in.end(), 0.0)}, 1e-10);
}

CASE(reduce_max_long) {
  std::vector<int64_t> in = random<int64_t>(kCount);
  Buffer<int64_t> deviceIn(in), out(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::Reduce(storage, bytes, (int64_t *)deviceIn,
                                     (int64_t *)out, kCount, Maximum(),
                                     INT64_MIN);
  });
  expectEqual(out.get(), {*std::max_element(in.begin(), in.end())});
}

CASE(reduce_argmin) {
  std::vector<float> in = random<float>(kCount);
  Buffer<float> deviceIn(in), out(1);
  Buffer<int64_t> index(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::ArgMin(storage, bytes, (float *)deviceIn,
                                     (float *)out, (int64_t *)index, kCount);
  });
  auto least = std::min_element(in.begin(), in.end());
  expectEqual(out.get(), {*least});
  expectEqual(index.get(), {int64_t(least - in.begin())});
}

CASE(reduce_by_key) {
  std::vector<int> keys = random<int>(kCount, 0, 3), in = random<int>(kCount);
  std::vector<int> runs, sums;
  for (int i = 0; i < kCount; ++i) {
    if (i == 0 || keys[i] != keys[i - 1]) {
      runs.push_back(keys[i]);
      sums.push_back(0);
    }
    sums.back() += in[i];
  }
  Buffer<int> deviceKeys(keys), deviceIn(in), unique(kCount), out(kCount),
      number(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::ReduceByKey(
        storage, bytes, (int *)deviceKeys, (int *)unique, (int *)deviceIn,
        (int *)out, (int *)number, cuda::std::plus<>(), kCount);
  });
  expectEqual(number.get(), {int(runs.size())});
  expectEqual(unique.get(), runs);
  expectEqual(out.get(), sums);
}

CASE(segmented_reduce) {
  std::vector<int> in = random<int>(kCount),
                   offsets = {0, 3, 3, 700, 701, 9000, kCount}, expected;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    expected.push_back(std::accumulate(in.begin() + offsets[i],
                                       in.begin() + offsets[i + 1], 0));
  Buffer<int> deviceIn(in), begins(offsets), out(expected.size());
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSegmentedReduce::Sum(
        storage, bytes, (int *)deviceIn, (int *)out, int(expected.size()),
        (int *)begins, (int *)begins + 1);
  });
  expectEqual(out.get(), expected);
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

CASE(scan_inclusive_int) {
  std::vector<int> in = random<int>(kCount), expected(kCount);
  Buffer<int> deviceIn(in), out(kCount);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, (int *)deviceIn,
                                         (int *)out, kCount);
  });
  std::partial_sum(in.begin(), in.end(), expected.begin());
  expectEqual(out.get(), expected);
}

CASE(scan_exclusive_double) {
  std::vector<double> in = random<double>(kCount), expected;
  Buffer<double> deviceIn(in), out(kCount);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, (double *)deviceIn,
                                         (double *)out, kCount);
  });
  double sum = 0;
  for (double value : in) {
    expected.push_back(sum);
    sum += value;
  }
  expectNear(out.get(), expected, 1e-10);
}

CASE(scan_maximum_char) {
  std::vector<signed char> in = random<signed char>(kCount), expected;
  Buffer<signed char> deviceIn(in), out(kCount);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::InclusiveScan(storage, bytes,
                                          (signed char *)deviceIn,
                                          (signed char *)out, Maximum(), kCount);
  });
  for (signed char value : in)
    expected.push_back(expected.empty() ? value
                                        : std::max(expected.back(), value));
  expectEqual(out.get(), expected);
}

CASE(scan_by_key) {
  std::vector<int> keys = random<int>(kCount, 0, 1), in = random<int>(kCount),
                   expected;
  Buffer<int> deviceKeys(keys), deviceIn(in), out(kCount);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSumByKey(
        storage, bytes, (int *)deviceKeys, (int *)deviceIn, (int *)out, kCount);
  });
  for (int i = 0; i < kCount; ++i)
    expected.push_back(i == 0 || keys[i] != keys[i - 1]
                           ? 0
                           : expected.back() + in[i - 1]);
  expectEqual(out.get(), expected);
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

CASE(select_flagged) {
  std::vector<int> in = random<int>(kCount), expected;
  std::vector<char> flags = random<char>(kCount, 0, 1);
  for (int i = 0; i < kCount; ++i)
    if (flags[i])
      expected.push_back(in[i]);
  Buffer<int> deviceIn(in), out(kCount), number(1);
  Buffer<char> deviceFlags(flags);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSelect::Flagged(storage, bytes, (int *)deviceIn,
                                      (char *)deviceFlags, (int *)out,
                                      (int *)number, kCount);
  });
  expectEqual(number.get(), {int(expected.size())});
  expectEqual(out.get(), expected);
}

CASE(select_if_long) {
  std::vector<int64_t> in = random<int64_t>(kCount), expected;
  for (int64_t value : in)
    if (IsEven()(value))
      expected.push_back(value);
  Buffer<int64_t> deviceIn(in), out(kCount);
  Buffer<int> number(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSelect::If(storage, bytes, (int64_t *)deviceIn,
                                 (int64_t *)out, (int *)number, kCount,
                                 IsEven());
  });
  expectEqual(number.get(), {int(expected.size())});
  expectEqual(out.get(), expected);
}

CASE(select_unique) {
  std::vector<short> in = random<short>(kCount, 0, 4), expected = in;
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  Buffer<short> deviceIn(in), out(kCount);
  Buffer<int> number(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSelect::Unique(storage, bytes, (short *)deviceIn,
                                     (short *)out, (int *)number, kCount);
  });
  expectEqual(number.get(), {int(expected.size())});
  expectEqual(out.get(), expected);
}

CASE(partition_if) {
  std::vector<int> in = random<int>(kCount), expected, rest;
  for (int value : in)
    (IsEven()(value) ? expected : rest).push_back(value);
  int selected = expected.size();
  // Those that are not selected are at the end, in reverse order.
  expected.insert(expected.end(), rest.rbegin(), rest.rend());
  Buffer<int> deviceIn(in), out(kCount), number(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DevicePartition::If(storage, bytes, (int *)deviceIn, (int *)out,
                                    (int *)number, kCount, IsEven());
  });
  expectEqual(number.get(), {selected});
  expectEqual(out.get(), expected);
}

CASE(run_length_encode) {
  std::vector<int> in = random<int>(kCount, 0, 2), values, lengths;
  for (int i = 0; i < kCount; ++i) {
    if (i == 0 || in[i] != in[i - 1]) {
      values.push_back(in[i]);
      lengths.push_back(0);
    }
    ++lengths.back();
  }
  Buffer<int> deviceIn(in), unique(kCount), counts(kCount), number(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceRunLengthEncode::Encode(
        storage, bytes, (int *)deviceIn, (int *)unique, (int *)counts,
        (int *)number, kCount);
  });
  expectEqual(number.get(), {int(values.size())});
  expectEqual(unique.get(), values);
  expectEqual(counts.get(), lengths);
}

//===----------------------------------------------------------------------===//
// Sorting
//===----------------------------------------------------------------------===//

CASE(radix_sort_keys) {
  for (int count : {kCount, 200}) {
    std::vector<uint32_t> keys = random<uint32_t>(count);
    Buffer<uint32_t> in(keys), out(count);
    run([&](void *storage, size_t &bytes) {
      return cub::DeviceRadixSort::SortKeys(storage, bytes, (uint32_t *)in,
                                            (uint32_t *)out, count);
    });
    std::sort(keys.begin(), keys.end());
    expectEqual(out.get(), keys);
  }
}

CASE(radix_sort_pairs_descending) {
  std::vector<float> keys = random<float>(3000), sorted;
  std::vector<int> values(keys.size());
  std::iota(values.begin(), values.end(), 0);
  Buffer<float> in(keys), out(keys.size());
  Buffer<int> valuesIn(values), valuesOut(values.size());
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceRadixSort::SortPairsDescending(
        storage, bytes, (float *)in, (float *)out, (int *)valuesIn,
        (int *)valuesOut, int(keys.size()));
  });
  std::stable_sort(values.begin(), values.end(),
                   [&](int a, int b) { return keys[a] > keys[b]; });
  for (int value : values)
    sorted.push_back(keys[value]);
  expectEqual(out.get(), sorted);
  expectEqual(valuesOut.get(), values);
}

CASE(merge_sort_keys) {
  std::vector<int> keys = random<int>(kCount);
  Buffer<int> device(keys);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceMergeSort::SortKeys(storage, bytes, (int *)device, kCount,
                                          Less());
  });
  std::sort(keys.begin(), keys.end());
  expectEqual(device.get(), keys);
}

CASE(segmented_radix_sort) {
  // Prefix sums of counts: threads without a bin add a value that was never
  // written, which others subtract again.
  Allowed allowed("PTX_EMULATOR_UNINITIALISED");
  std::vector<uint16_t> keys = random<uint16_t>(3000);
  std::vector<int> offsets = {0, 1, 1, 40, 2000, 3000};
  Buffer<uint16_t> in(keys), out(keys.size());
  Buffer<int> begins(offsets);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSegmentedRadixSort::SortKeys(
        storage, bytes, (uint16_t *)in, (uint16_t *)out, int(keys.size()),
        int(offsets.size() - 1), (int *)begins, (int *)begins + 1);
  });
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    std::sort(keys.begin() + offsets[i], keys.begin() + offsets[i + 1]);
  expectEqual(out.get(), keys);
}

CASE(segmented_sort) {
  std::vector<int> keys = random<int>(3000), offsets = {0, 2, 2, 30, 90, 3000};
  Buffer<int> in(keys), out(keys.size()), begins(offsets);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSegmentedSort::SortKeys(
        storage, bytes, (int *)in, (int *)out, int(keys.size()),
        int(offsets.size() - 1), (int *)begins, (int *)begins + 1);
  });
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    std::sort(keys.begin() + offsets[i], keys.begin() + offsets[i + 1]);
  expectEqual(out.get(), keys);
}

CASE(merge_keys) {
  std::vector<int> a = random<int>(2500), b = random<int>(1800), expected;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::merge(a.begin(), a.end(), b.begin(), b.end(),
             std::back_inserter(expected));
  Buffer<int> first(a), second(b), out(expected.size());
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceMerge::MergeKeys(storage, bytes, (int *)first,
                                       int(a.size()), (int *)second,
                                       int(b.size()), (int *)out, Less());
  });
  expectEqual(out.get(), expected);
}

//===----------------------------------------------------------------------===//
// Histograms, copies and loops
//===----------------------------------------------------------------------===//

CASE(histogram_even) {
  std::vector<unsigned char> in = random<unsigned char>(kCount);
  std::vector<int> expected(16);
  for (unsigned char value : in)
    ++expected[value / 16];
  Buffer<unsigned char> deviceIn(in);
  Buffer<int> bins(16);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceHistogram::HistogramEven(
        storage, bytes, (unsigned char *)deviceIn, (int *)bins, 17, 0, 256,
        kCount);
  });
  expectEqual(bins.get(), expected);
}

CASE(histogram_range) {
  std::vector<float> in = random<float>(kCount),
                     levels = {-0.5f, -0.25f, 0, 0.1f, 0.9f};
  std::vector<int> expected(4);
  for (float value : in)
    for (int bin = 0; bin < 4; ++bin)
      expected[bin] += value >= levels[bin] && value < levels[bin + 1];
  Buffer<float> deviceIn(in), deviceLevels(levels);
  Buffer<int> bins(4);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceHistogram::HistogramRange(storage, bytes,
                                                (float *)deviceIn, (int *)bins,
                                                5, (float *)deviceLevels,
                                                kCount);
  });
  expectEqual(bins.get(), expected);
}

CASE(batched_copies) {
  std::vector<unsigned char> in = random<unsigned char>(9000);
  std::vector<size_t> offsets = {0, 5, 300, 4000}, sizes = {3, 200, 3600, 5000};
  Buffer<unsigned char> deviceIn(in), out(in.size());
  std::vector<void *> from, to;
  for (size_t offset : offsets) {
    from.push_back((unsigned char *)deviceIn + offset);
    to.push_back((unsigned char *)out + offset);
  }
  Buffer<void *> deviceFrom(from), deviceTo(to);
  Buffer<size_t> deviceSizes(sizes);
  cudaMemsetAsync(out, 7, in.size(), nullptr);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceMemcpy::Batched(storage, bytes, (void **)deviceFrom,
                                      (void **)deviceTo, (size_t *)deviceSizes,
                                      4u);
  });
  std::vector<unsigned char> expected(in.size(), 7);
  for (int i = 0; i < 4; ++i)
    std::copy_n(in.begin() + offsets[i], sizes[i],
                expected.begin() + offsets[i]);
  expectEqual(out.get(), expected);
}

CASE(adjacent_difference) {
  std::vector<int> in = random<int>(kCount), expected(kCount);
  Buffer<int> deviceIn(in), out(kCount);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceAdjacentDifference::SubtractLeftCopy(
        storage, bytes, (int *)deviceIn, (int *)out, kCount,
        cuda::std::minus<>());
  });
  std::adjacent_difference(in.begin(), in.end(), expected.begin());
  expectEqual(out.get(), expected);
}

CASE(transform) {
  std::vector<int> in = random<int>(kCount), expected;
  Buffer<int> deviceIn(in), out(kCount);
  cub::DeviceTransform::Transform((int *)deviceIn, (int *)out, kCount,
                                  Triple());
  for (int value : in)
    expected.push_back(3 * value);
  expectEqual(out.get(), expected);
}

CASE(for_each_index) {
  std::vector<int> values = random<int>(kCount);
  Buffer<int> device(values);
  cub::DeviceFor::Bulk(kCount, AddInPlace{device});
  for (int i = 0; i < kCount; ++i)
    values[i] += i;
  expectEqual(device.get(), values);
}
