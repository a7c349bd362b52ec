//===- FailuresTest.cpp - processes that differ or are lost ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeMpi.h"
#include "Processes.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace bngrad;

static constexpr double kTimeout = 0.5;

namespace {
class FailuresTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(bngradSetCollectiveTimeout(kTimeout), 0);
    start = std::chrono::steady_clock::now();
  }
  void TearDown() override {
    fake::behaviour.failing = nullptr;
    bngradSetCollectiveTimeout(0);
  }
  double getSeconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }
  std::chrono::steady_clock::time_point start;
};

/// What the processes of a test sum.
struct Variant {
  Collective collective;
  int64_t count = 4;
};
} // namespace

static Collective makeCollective(int64_t size) {
  Collective collective;
  collective.op = "bngrad.op epsilon=1e-05 statistics=batch";
  collective.grid = {size};
  collective.axes = {0};
  return collective;
}

static std::string sum(const Process &process, const Variant &variant) {
  std::vector<int64_t> data(variant.count, 1);
  std::string error = process.sum(variant.collective, data);
  for (int64_t element : data)
    if (!error.empty() && element != 1)
      return "data after an error";
  return error;
}

/// Three processes, of which `rank` differs after `numBefore` sums that do not.
static void expectDifference(const std::function<void(Variant &)> &change,
                             int64_t rank, int64_t numBefore,
                             const std::string &expected) {
  auto body = [&](const Process &process) -> std::string {
    Variant variant = {makeCollective(3)};
    for (int64_t i = 0; i < numBefore; ++i)
      if (std::string error = sum(process, variant); !error.empty())
        return error;
    if (process.rank == rank)
      change(variant);
    return sum(process, variant);
  };
  for (const std::string &error : runProcesses(3, body)) {
    EXPECT_NE(error.find("all-reduce of bngrad.op"), std::string::npos);
    EXPECT_NE(error.find(" at f.mlir:1:2: "), std::string::npos) << error;
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  }
}

TEST_F(FailuresTest, Difference) {
  expectDifference([](Variant &variant) { variant.count = 6; }, 1, 0,
                   ": expected the same number of elements on all processes, "
                   "got 4 on ranks 0, 2 and 6 on rank 1");
  expectDifference(
      [](Variant &variant) {
        variant.collective.dtype = BNGRAD_COLLECTIVE_F64;
      },
      0, 0,
      ": expected the same element type on all processes, got f64 on rank 0 "
      "and i64 on ranks 1, 2");
  expectDifference(
      [](Variant &variant) {
        variant.collective.op = "bngrad.op epsilon=0.001 statistics=batch";
      },
      2, 0,
      ": expected the same op on all processes, got epsilon=1e-05 on ranks 0, "
      "1 and epsilon=0.001 on rank 2");
  expectDifference(
      [](Variant &variant) { variant.collective.op = "bngrad.op"; }, 2, 0,
      ": expected the same op on all processes, got epsilon=1e-05 "
      "statistics=batch on ranks 0, 1 and nothing on rank 2");
  expectDifference(
      [](Variant &variant) { variant.collective.op += std::string(2000, 'x'); },
      1, 0,
      ": expected the same op on all processes, got statistics=batch on ranks "
      "0, 2 and statistics=batchxxx");
  expectDifference([](Variant &variant) { variant.collective.grid = {4}; }, 1,
                   0,
                   ": expected the same grid on all processes, got 3 on ranks "
                   "0, 2 and 4 on rank 1");
  expectDifference(
      [](Variant &variant) {
        variant.collective.grid = {3, 1};
        variant.collective.axes = {0};
      },
      1, 0,
      ": expected the same grid on all processes, got 3 on ranks 0, 2 and 3x1 "
      "on rank 1");
}

/// All three differ.
TEST_F(FailuresTest, ThreeValues) {
  auto body = [](const Process &process) {
    Variant variant = {makeCollective(3)};
    variant.count = 5 - process.rank;
    return sum(process, variant);
  };
  for (const std::string &error : runProcesses(3, body))
    EXPECT_NE(error.find("got 5 on rank 0, 4 on rank 1 and 3 on rank 2"),
              std::string::npos)
        << error;
}

/// Cut texts that differ only in their ends.
TEST_F(FailuresTest, LongTexts) {
  auto body = [](const Process &process) {
    Variant variant = {makeCollective(2)};
    variant.collective.op = "bngrad.op " + std::string(3000, 'x') +
                            (process.rank == 0 ? " end" : "");
    return sum(process, variant);
  };
  for (const std::string &error : runProcesses(2, body))
    EXPECT_NE(error.find("another end of a long text on rank 0 and"),
              std::string::npos)
        << error;
}

/// After sums that agreed, a process changes: the others have begun theirs.
TEST_F(FailuresTest, LateDifference) {
  for (int64_t rank : {0, 1, 2})
    expectDifference([](Variant &variant) { variant.count = 6; }, rank, 3,
                     ": expected the same number of elements on all "
                     "processes, got ");
}

/// A difference that was found before anything began leaves the group usable.
TEST_F(FailuresTest, GoesOnAfterDifference) {
  auto body = [](const Process &process) {
    Variant variant = {makeCollective(2)};
    variant.count = 1 + process.rank;
    EXPECT_NE(sum(process, variant), "");
    variant.count = 3;
    return sum(process, variant);
  };
  for (const std::string &error : runProcesses(2, body))
    EXPECT_EQ(error, "");
}

// No process waits for others.
TEST_F(FailuresTest, WrongNumberOfProcesses) {
  ASSERT_EQ(bngradSetCollectiveTimeout(60), 0);
  auto body = [](const Process &process) {
    return sum(process, {makeCollective(2)});
  };
  for (const std::string &error : runProcesses(3, body))
    EXPECT_NE(error.find(": expected 2 processes for the grid 2, got 3"),
              std::string::npos)
        << error;
  for (const std::string &error : runProcesses(1, body))
    EXPECT_NE(error.find(": expected 2 processes for the grid 2, got 1"),
              std::string::npos)
        << error;
  EXPECT_LT(getSeconds(), 60);
}

/// A process that never starts is named by all others.
TEST_F(FailuresTest, MissingProcess) {
  for (int64_t missing : {2, 0}) {
    auto body = [&](const Process &process) -> std::string {
      if (process.rank == missing)
        return "";
      return sum(process, {makeCollective(4)});
    };
    std::vector<std::string> errors = runProcesses(4, body);
    std::string expected =
        missing == 0
            ? ": expected rank 0 to answer within 0.5 s, got no answer"
            : ": expected all processes to start it within 0.5 s, got nothing "
              "from rank 2";
    for (int64_t rank = 0; rank < 4; ++rank) {
      if (rank != missing) {
        EXPECT_NE(errors[rank].find(expected), std::string::npos)
            << errors[rank];
      }
    }
  }
  EXPECT_LT(getSeconds(), 3 * kTimeout);
}

/// A process that is lost after sums that agreed.
TEST_F(FailuresTest, LostProcess) {
  for (int64_t lost : {1, 0}) {
    auto body = [&](const Process &process) -> std::string {
      for (int64_t step = 0; step < 3; ++step)
        if (std::string error = sum(process, {makeCollective(3)});
            !error.empty())
          return error;
      if (process.rank == lost)
        return "";
      std::string error = sum(process, {makeCollective(3)});
      // What follows fails at once.
      std::string next = sum(process, {makeCollective(3)});
      EXPECT_NE(next.find("expected a group without an earlier error, "
                          "got: " +
                          error),
                std::string::npos)
          << next;
      return error;
    };
    std::vector<std::string> errors = runProcesses(3, body);
    std::string expected =
        lost == 0 ? ": expected rank 0 to answer within 0.5 s, got no answer"
                  : ": expected all processes to start it within 0.5 s, got "
                    "nothing from rank 1";
    for (int64_t rank = 0; rank < 3; ++rank)
      if (rank != lost) {
        EXPECT_NE(errors[rank].find(expected), std::string::npos)
            << errors[rank];
      }
  }
  EXPECT_LT(getSeconds(), 3 * kTimeout);
}

/// A group that never has all processes.
TEST_F(FailuresTest, GroupIsNotMade) {
  fake::Communicator communicator = {1000000, 0, 2};
  bngradCollectiveGroup_t group;
  EXPECT_NE(bngradCreateCollectiveGroup(&group, BNGRAD_FAKE_MPI, &communicator),
            0);
  EXPECT_STREQ(bngradGetCollectiveError(),
               "expected all processes of the communicator to make a group "
               "within 0.5 s, got fewer");
  // MPI ends the copy of the first once the other is there, too.
  communicator.rank = 1;
  EXPECT_EQ(bngradCreateCollectiveGroup(&group, BNGRAD_FAKE_MPI, &communicator),
            0);
  EXPECT_EQ(bngradDestroyCollectiveGroup(group), 0);
}

/// Errors of the back end are errors of the collective, in all processes.
TEST_F(FailuresTest, ErrorsOfMpi) {
  for (const char *call :
       {"MPI_Iallreduce", "MPI_Test", "MPI_Iprobe", "MPI_Comm_create_group",
        "MPI_Is_thread_main", "MPI_Comm_idup"}) {
    std::atomic<int64_t> numReady{0};
    auto body = [&](const Process &process) -> std::string {
      ++numReady;
      while (numReady < 4)
        std::this_thread::yield();
      fake::behaviour.failing = call;
      Collective collective = makeCollective(2);
      collective.grid = {2, 2};
      std::string error = sum(process, {collective});
      ++numReady;
      while (numReady < 8)
        std::this_thread::yield();
      fake::behaviour.failing = nullptr;
      return error;
    };
    if (std::string(call) == "MPI_Comm_idup")
      fake::behaviour.failing = call;
    for (const std::string &error : runProcesses(4, body))
      EXPECT_NE(error.find("fake: " + std::string(call) + ": planted"),
                std::string::npos)
          << call << ": " << error;
    fake::behaviour.failing = nullptr;
  }
}
