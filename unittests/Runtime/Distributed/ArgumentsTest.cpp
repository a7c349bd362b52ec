//===- ArgumentsTest.cpp - wrong calls, and settings ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeMpi.h"
#include "Processes.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace bngrad;

/// The error of a collective that is wrong.
static std::string getError(const bngradCollective_t *collective, void *data,
                            int64_t count) {
  int64_t request = bngradAllReduceStart(collective, data, count);
  EXPECT_NE(request, 0);
  EXPECT_NE(bngradAllReduceWait(request), 0);
  return bngradGetCollectiveError();
}

static std::string
getError(const std::function<void(bngradCollective_t &)> &change,
         int64_t count = 1) {
  Collective collective;
  collective.grid = {1, 1};
  collective.axes = {0, 1};
  bngradCollective_t described = collective.get();
  change(described);
  float data = 0;
  return getError(&described, &data, count);
}

TEST(ArgumentsTest, WrongCollectives) {
  float data = 0;
  EXPECT_EQ(getError(nullptr, &data, 1), "collective: expected one, got null");
  EXPECT_EQ(getError([](auto &c) { c.struct_size = 8; }),
            "collective: expected struct_size to be at least 64, got 8");
  EXPECT_EQ(getError([](auto &c) { c.op = nullptr; }),
            "collective: expected op, got null");
  EXPECT_EQ(getError([](auto &c) { c.location = nullptr; }),
            "collective: expected location, got null");
  EXPECT_EQ(getError([](auto &c) { c.dtype = 3; }),
            "collective: expected dtype to be 0 to 2, got 3");
  EXPECT_EQ(getError([](auto &c) { c.grid_rank = 9; }),
            "collective: expected grid_rank to be 0 to 8, got 9");
  EXPECT_EQ(getError([](auto &c) { c.grid_shape = nullptr; }),
            "collective: expected grid_shape, got null");
  static const int64_t kSizes[] = {2, 0}, kHuge[] = {1 << 20, 1 << 20};
  EXPECT_EQ(getError([](auto &c) { c.grid_shape = kSizes; }),
            "collective: expected sizes of grid_shape to be at least 1 and "
            "their product at most 2147483647, got 0 for axis 1");
  EXPECT_EQ(getError([](auto &c) { c.grid_shape = kHuge; }),
            "collective: expected sizes of grid_shape to be at least 1 and "
            "their product at most 2147483647, got 1048576 for axis 1");
  EXPECT_EQ(getError([](auto &c) { c.num_axes = 3; }),
            "collective: expected num_axes to be 0 to grid_rank, 2, got 3");
  EXPECT_EQ(getError([](auto &c) { c.axes = nullptr; }),
            "collective: expected axes, got null");
  static const int64_t kTwice[] = {0, 0}, kBeyond[] = {0, 2};
  EXPECT_EQ(getError([](auto &c) { c.axes = kTwice; }),
            "collective: expected axes to be ascending axes of the grid, got "
            "0");
  EXPECT_EQ(getError([](auto &c) { c.axes = kBeyond; }),
            "collective: expected axes to be ascending axes of the grid, got "
            "2");
  EXPECT_EQ(getError([](auto &) {}, -1),
            "count: expected 0 to 2147483647, got -1");
  EXPECT_EQ(getError([](auto &) {}, int64_t(1) << 31),
            "count: expected 0 to 2147483647, got 2147483648");
  Collective collective;
  bngradCollective_t described = collective.get();
  EXPECT_EQ(getError(&described, nullptr, 1),
            "data: expected elements, got null");
}

TEST(ArgumentsTest, WrongRequests) {
  EXPECT_NE(bngradAllReduceWait(123456789), 0);
  EXPECT_STREQ(bngradGetCollectiveError(),
               "request: expected one that was started and not waited for, "
               "got 123456789");
  Collective collective;
  bngradCollective_t described = collective.get();
  int64_t request = bngradAllReduceStart(&described, nullptr, 0);
  EXPECT_EQ(bngradAllReduceWait(request), 0);
  EXPECT_NE(bngradAllReduceWait(request), 0);
}

TEST(ArgumentsTest, WrongGroups) {
  EXPECT_NE(bngradCreateCollectiveGroup(nullptr, nullptr, nullptr), 0);
  EXPECT_STREQ(bngradGetCollectiveError(),
               "group: expected a place for one, got null");
  EXPECT_EQ(bngradDestroyCollectiveGroup(nullptr), 0);
  bngradCollectiveCounts_t counts = {};
  EXPECT_NE(bngradGetCollectiveCounts(nullptr, &counts), 0);
  EXPECT_STREQ(bngradGetCollectiveError(), "group: expected one, got null");
  runProcesses(1, [&](const Process &process) {
    EXPECT_NE(bngradGetCollectiveCounts(process.group, &counts), 0);
    EXPECT_STREQ(bngradGetCollectiveError(),
                 "counts: expected struct_size to be at least 48, got 0");
    EXPECT_EQ(bngradGetCollectiveGroupSize(process.group), 1);
    EXPECT_EQ(bngradGetCollectiveGroupRank(process.group), 0);
    return "";
  });
}

TEST(ArgumentsTest, GroupInUse) {
  auto body = [](const Process &process) -> std::string {
    Collective collective;
    collective.grid = {2};
    collective.axes = {0};
    bngradCollective_t described = collective.get();
    int64_t data = 1;
    int64_t request =
        bngradGroupAllReduceStart(process.group, &described, &data, 1);
    EXPECT_NE(bngradDestroyCollectiveGroup(process.group), 0);
    EXPECT_STREQ(bngradGetCollectiveError(),
                 "group: expected one whose requests were waited for, got 1 "
                 "in flight");
    return bngradAllReduceWait(request) == 0 ? "" : "failed";
  };
  for (const std::string &error : runProcesses(2, body))
    EXPECT_EQ(error, "");
}

TEST(ArgumentsTest, GroupTwice) {
  fake::Communicator alone = {-2, 0, 1};
  bngradCollectiveGroup_t group;
  ASSERT_EQ(bngradCreateCollectiveGroup(&group, BNGRAD_FAKE_MPI, &alone), 0);
  EXPECT_EQ(bngradDestroyCollectiveGroup(group), 0);
  EXPECT_NE(bngradDestroyCollectiveGroup(group), 0);
  EXPECT_STREQ(bngradGetCollectiveError(),
               "group: expected one that was created and not destroyed, got "
               "another");
}

TEST(ArgumentsTest, Timeout) {
  for (double seconds : {-1.0, 1e9, double(NAN)}) {
    EXPECT_NE(bngradSetCollectiveTimeout(seconds), 0);
    EXPECT_NE(std::string(bngradGetCollectiveError())
                  .find("seconds: expected at least 0 and at most 31536000, "
                        "got "),
              std::string::npos);
  }
  auto body = [](const Process &process) -> std::string {
    Collective collective;
    collective.grid = {2};
    collective.axes = {0};
    std::vector<int64_t> data = {1};
    return process.sum(collective, data);
  };
  for (const char *text : {"0", "-1", "5s", "nan"}) {
    setenv("BNGRAD_TIMEOUT", text, 1);
    for (const std::string &error : runProcesses(2, body))
      EXPECT_EQ(error, "BNGRAD_TIMEOUT: expected seconds, more than 0 and at "
                       "most 31536000, got '" +
                           std::string(text) + "'");
  }
  setenv("BNGRAD_TIMEOUT", "20.5", 1);
  for (const std::string &error : runProcesses(2, body))
    EXPECT_EQ(error, "");
  unsetenv("BNGRAD_TIMEOUT");
}

/// The error of a grid of two processes in this one.
static std::string getErrorOfTwo() {
  Collective collective;
  collective.grid = {2};
  collective.axes = {0};
  bngradCollective_t described = collective.get();
  EXPECT_EQ(bngradProcessIndex(&described), -1);
  float data = 0;
  return getError(&described, &data, 1);
}

TEST(ArgumentsTest, BackEnd) {
  std::string start = "all-reduce of bngrad.op at f.mlir:1:2: ";
  EXPECT_EQ(getErrorOfTwo(),
            start + "expected an MPI: load one before, or choose one with "
                    "BNGRAD_MPI=openmpi|mpich|PATH; got none");
  setenv("BNGRAD_MPI", "lam", 1);
  EXPECT_EQ(getErrorOfTwo(), start + "expected the MPI to be openmpi, mpich or "
                                     "the path of a back end, got 'lam'");
  EXPECT_EQ(bngradSetCollectiveBackend("/none.so"), 0);
  EXPECT_EQ(getErrorOfTwo(),
            start + "cannot load the back end: /none.so: cannot open shared "
                    "object file: No such file or directory");
  EXPECT_EQ(bngradSetCollectiveBackend(nullptr), 0);
  unsetenv("BNGRAD_MPI");
  setenv("BNGRAD_MPI", "libc.so.6/", 1);
  EXPECT_NE(getErrorOfTwo(), "");
  setenv("BNGRAD_MPI", BNGRAD_FAKE_MPI, 1);
  EXPECT_EQ(getErrorOfTwo(),
            start + "expected 2 processes for the grid 2, got 1");
  unsetenv("BNGRAD_MPI");
}
