//===- SumsTest.cpp - sums of the fake back end ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeMpi.h"
#include "Processes.h"

#include <gtest/gtest.h>
#include <thread>

using namespace bngrad;

static bngradCollectiveCounts_t getCounts(bngradCollectiveGroup_t group) {
  bngradCollectiveCounts_t counts = {};
  counts.struct_size = sizeof(counts);
  EXPECT_EQ(bngradGetCollectiveCounts(group, &counts), 0);
  return counts;
}

static void expectAll(const std::vector<std::string> &results,
                      const std::string &expected) {
  for (const std::string &result : results)
    EXPECT_EQ(result, expected);
}

/// Coordinates of a rank, row-major.
static std::vector<int64_t> getCoordinates(const std::vector<int64_t> &grid,
                                           int64_t rank) {
  std::vector<int64_t> coordinates(grid.size());
  for (size_t axis = grid.size(); axis-- > 0; rank /= grid[axis])
    coordinates[axis] = rank % grid[axis];
  return coordinates;
}

/// The sum of 2^rank over the processes that agree with `rank` but for `axes`.
static int64_t getExpected(const std::vector<int64_t> &grid,
                           const std::vector<int64_t> &axes, int64_t size,
                           int64_t rank) {
  int64_t sum = 0;
  std::vector<int64_t> own = getCoordinates(grid, rank);
  for (int64_t other = 0; other < size; ++other) {
    std::vector<int64_t> coordinates = getCoordinates(grid, other);
    for (int64_t axis : axes)
      coordinates[axis] = own[axis];
    if (coordinates == own)
      sum += int64_t(1) << other;
  }
  return sum;
}

TEST(SumsTest, GroupsOfEveryGridAndAxes) {
  for (const std::vector<int64_t> &grid : std::vector<std::vector<int64_t>>{
           {1}, {2}, {5}, {2, 2}, {2, 3}, {3, 1}, {2, 2, 2}, {1, 2, 3}}) {
    int64_t size = 1;
    for (int64_t extent : grid)
      size *= extent;
    auto body = [&](const Process &process) -> std::string {
      for (unsigned subset = 0; subset < 1u << grid.size(); ++subset) {
        Collective collective;
        collective.grid = grid;
        for (size_t axis = 0; axis < grid.size(); ++axis)
          if (subset >> axis & 1)
            collective.axes.push_back(int64_t(axis));
        std::vector<int64_t> data = {int64_t(1) << process.rank, 0, 1};
        std::string error = process.sum(collective, data);
        int64_t sum = getExpected(grid, collective.axes, size, process.rank);
        int64_t count = getExpected(grid, collective.axes, size, process.rank);
        if (!error.empty() || data[0] != sum || data[1] != 0 ||
            data[2] != __builtin_popcountll(uint64_t(count)))
          return "axes " + std::to_string(subset) + ": " + error;
      }
      return "";
    };
    expectAll(runProcesses(size, body), "");
  }
}

TEST(SumsTest, FloatingPoint) {
  auto body = [](const Process &process) -> std::string {
    Collective collective;
    collective.grid = {3};
    collective.axes = {0};
    collective.dtype = BNGRAD_COLLECTIVE_F32;
    std::vector<float> single = {0.5f * float(process.rank + 1), 1e-30f};
    if (std::string error = process.sum(collective, single); !error.empty())
      return error;
    collective.dtype = BNGRAD_COLLECTIVE_F64;
    std::vector<double> wide = {0.5 * double(process.rank + 1), 1e-300};
    if (std::string error = process.sum(collective, wide); !error.empty())
      return error;
    return single[0] == 3 && wide[0] == 3 && wide[1] > 0 ? "" : "wrong sum";
  };
  expectAll(runProcesses(3, body), "");
}

TEST(SumsTest, OfNoElements) {
  auto body = [](const Process &process) {
    Collective collective;
    collective.grid = {2};
    collective.axes = {0};
    std::vector<int64_t> data;
    return process.sum(collective, data);
  };
  expectAll(runProcesses(2, body), "");
}

/// One op: its sums and its count are under way at once.
TEST(SumsTest, TwoInFlight) {
  auto body = [](const Process &process) -> std::string {
    Collective sums, count;
    sums.grid = count.grid = {2};
    sums.axes = count.axes = {0};
    sums.dtype = BNGRAD_COLLECTIVE_F32;
    bngradCollective_t first = sums.get(), second = count.get();
    std::vector<float> data(6, 1);
    int64_t elements = 10 + process.rank;
    constexpr int64_t kSteps = 100;
    for (int64_t step = 0; step < kSteps; ++step) {
      std::vector<float> summed = data;
      int64_t total = elements;
      int64_t requests[] = {
          bngradGroupAllReduceStart(process.group, &first, summed.data(), 6),
          bngradGroupAllReduceStart(process.group, &second, &total, 1)};
      // In any order.
      if (bngradAllReduceWait(requests[(step + 1) % 2]) != 0 ||
          bngradAllReduceWait(requests[step % 2]) != 0)
        return bngradGetCollectiveError();
      if (summed[5] != 2 || total != 21)
        return "wrong sum";
    }
    bngradCollectiveCounts_t counts = getCounts(process.group);
    EXPECT_EQ(counts.all_reduces, 2 * kSteps);
    EXPECT_EQ(counts.bytes, (6 * 4 + 8) * kSteps);
    EXPECT_EQ(counts.in_flight, 2);
    EXPECT_EQ(counts.headers, 2);
    EXPECT_EQ(counts.communicators, 1);
    return "";
  };
  expectAll(runProcesses(2, body), "");
}

TEST(SumsTest, CommunicatorsAreKept) {
  int64_t before = fake::numCommunicators;
  auto body = [](const Process &process) -> std::string {
    Collective collective;
    collective.grid = {2, 2};
    for (int64_t step = 0; step < 300; ++step) {
      collective.axes = {step % 2};
      std::vector<int64_t> data = {1};
      if (std::string error = process.sum(collective, data); !error.empty())
        return error;
    }
    EXPECT_EQ(getCounts(process.group).communicators, 3);
    EXPECT_EQ(getCounts(process.group).headers, 2);
    return "";
  };
  expectAll(runProcesses(4, body), "");
  EXPECT_EQ(fake::numCommunicators, before);
}

TEST(SumsTest, UnchangedUntilTheWait) {
  auto body = [](const Process &process) -> std::string {
    Collective collective;
    collective.grid = {2};
    collective.axes = {0};
    bngradCollective_t described = collective.get();
    int64_t data = 7;
    int64_t request =
        bngradGroupAllReduceStart(process.group, &described, &data, 1);
    std::string error = data == 7 ? "" : "written before the wait";
    if (bngradAllReduceWait(request) != 0)
      error += bngradGetCollectiveError();
    return data == 14 ? error : error + "wrong sum";
  };
  expectAll(runProcesses(2, body), "");
}

/// Each thread of a process has a group of its own.
TEST(SumsTest, ThreadsWithGroups) {
  for (bool isConcurrent : {true, false}) {
    fake::behaviour.isConcurrent = isConcurrent;
    std::vector<std::string> errors(3);
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int64_t number = 0; number < 3; ++number)
      threads.emplace_back([&, number] {
        auto body = [&](const Process &process) -> std::string {
          Collective collective;
          collective.grid = {2};
          collective.axes = {0};
          for (int64_t step = 0; step < 300; ++step) {
            std::vector<int64_t> data = {number * 1000 + step};
            if (std::string error = process.sum(collective, data);
                !error.empty() || data[0] != 2 * (number * 1000 + step))
              return error + " wrong";
          }
          return "";
        };
        for (const std::string &error : runProcesses(2, body))
          errors[number] += error;
      });
    for (std::thread &thread : threads)
      thread.join();
    expectAll(errors, "");
  }
  fake::behaviour.isConcurrent = true;
}

/// A wait may be in another thread than its start.
TEST(SumsTest, WaitInAnotherThread) {
  auto body = [](const Process &process) -> std::string {
    Collective collective;
    collective.grid = {2};
    collective.axes = {0};
    bngradCollective_t described = collective.get();
    std::vector<int64_t> data(64, 1);
    std::vector<int64_t> requests;
    requests.reserve(data.size());
    for (int64_t &element : data)
      requests.push_back(
          bngradGroupAllReduceStart(process.group, &described, &element, 1));
    std::vector<std::thread> threads;
    std::atomic<int64_t> numFailed{0};
    for (size_t first : {0, 1})
      threads.emplace_back([&, first] {
        for (size_t i = first; i < requests.size(); i += 2)
          numFailed += bngradAllReduceWait(requests[i]) != 0;
      });
    for (std::thread &thread : threads)
      thread.join();
    for (int64_t element : data)
      numFailed += element != 2;
    return numFailed == 0 ? "" : "failed";
  };
  expectAll(runProcesses(2, body), "");
}

/// A grid of one process needs no back end and no group.
TEST(SumsTest, OneProcess) {
  Collective collective;
  collective.grid = {1, 1};
  collective.axes = {0, 1};
  bngradCollective_t described = collective.get();
  float data = 3;
  EXPECT_EQ(bngradAllReduceWait(bngradAllReduceStart(&described, &data, 1)), 0);
  EXPECT_EQ(data, 3);
  EXPECT_EQ(bngradProcessIndex(&described), 0);
}
