//===- CallsTest.cpp - asynchronous and concurrent calls ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <atomic>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace bngrad::test;

namespace {
class CallsTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0),
              BNGRAD_SUCCESS);
  }
  void TearDown() override { bngradDestroyHandle(handle); }

  bngradHandle_t handle = nullptr;
};

/// The completions of one call.
struct Log {
  Gradient *gradient;
  std::vector<Operand> order;
  /// The results when each was completed.
  std::vector<char> results[3];
};

struct Completion {
  Log *log;
  Operand operand;
};
} // namespace

static void complete(void *context, bngradStatus_t status,
                     const char *message) {
  auto &completion = *static_cast<Completion *>(context);
  EXPECT_EQ(status, BNGRAD_SUCCESS) << message;
  completion.log->order.push_back(completion.operand);
  Gradient &gradient = *completion.log->gradient;
  for (int i = 0; i < 3; ++i)
    if (gradient.spec.wants[i])
      completion.log->results[completion.operand] = gradient.results();
}

/// Specs in which a gradient is completed before another.
static std::vector<Spec> makeCallSpecs() {
  std::vector<Spec> specs;
  for (int wanted = 1; wanted < 8; ++wanted)
    for (bool isGlobal : {false, true})
      for (int64_t inner : {1, 5}) {
        Spec spec;
        spec.shape = {4, 3, inner};
        spec.isGlobal = isGlobal;
        spec.dataType = inner == 1 ? BNGRAD_DTYPE_F16 : BNGRAD_DTYPE_F32;
        for (int i = 0; i < 3; ++i)
          spec.wants[i] = (wanted >> i & 1) != 0;
        specs.push_back(spec);
      }
  return specs;
}

/// The same for compiled kernels.
static std::vector<Spec> makeUncoveredSteps() {
  std::vector<Spec> specs = makeUncoveredSpecs();
  specs[1].wants[GradOffset] = specs[2].wants[GradScale] = false;
  specs.push_back(specs[0]);
  specs.back().isGlobal = true;
  for (Spec &spec : specs)
    spec.isAsynchronous = true;
  if (!isLongTest())
    specs.erase(specs.begin() + 2, specs.begin() + 5);
  return specs;
}

TEST_F(CallsTest, Completions) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  std::vector<Spec> specs = makeCallSpecs();
  for (const Spec &spec : makeUncoveredSteps())
    specs.push_back(spec);
  for (const Spec &spec : specs) {
    SCOPED_TRACE(spec.print());
    Gradient gradient(spec);
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
    Log log = {&gradient, {}, {}};
    Completion completions[] = {
        {&log, GradInput}, {&log, GradScale}, {&log, GradOffset}};
    bngradCompletion_t done[3];
    for (int i = 0; i < 3; ++i)
      done[i] = {complete, &completions[i]};
    ASSERT_EQ(gradient.runAsync(nullptr, done), BNGRAD_SUCCESS);
    EXPECT_EQ(gradient.check(), "");
    std::vector<Operand> expected;
    for (Operand operand : {GradOffset, GradScale, GradInput})
      if (spec.wants[operand])
        expected.push_back(operand);
    EXPECT_EQ(log.order, expected);
    if (!spec.wants[GradInput] || gradient.arrays[GradInput].isEmpty())
      continue;
    // When the others are final, grad_input is still as it was.
    std::vector<char> last = log.results[GradInput];
    EXPECT_EQ(last, gradient.results());
    size_t bytes = gradient.arrays[GradInput].loadDense().size();
    for (Operand operand : {GradScale, GradOffset}) {
      if (!spec.wants[operand])
        continue;
      const std::vector<char> &then = log.results[operand];
      EXPECT_TRUE(
          std::equal(then.begin() + bytes, then.end(), last.begin() + bytes));
      EXPECT_FALSE(
          std::equal(then.begin(), then.begin() + bytes, last.begin()));
    }
  }
  unsetenv("BNGRAD_CACHE_DIR");
}

// The last completion frees all that the call has used.
TEST_F(CallsTest, ExecutorOnAnotherThread) {
  struct State {
    std::unique_ptr<Gradient> gradient;
    std::thread thread;
    std::vector<char> results;
    std::atomic<bool> isDone{false};
  } state;
  Spec spec;
  spec.shape = {4, 3, 50};
  state.gradient = std::make_unique<Gradient>(spec);
  ASSERT_EQ(state.gradient->create(handle), BNGRAD_SUCCESS);
  ASSERT_EQ(state.gradient->run(), BNGRAD_SUCCESS);
  ASSERT_EQ(state.gradient->check(), "");
  bngradExecutor_t executor = {
      sizeof(executor), &state,
      [](void *context, void (*task)(void *), void *argument) {
        static_cast<State *>(context)->thread = std::thread(task, argument);
        return 0;
      }};
  bngradCompletion_t done[3] = {};
  done[GradInput] = {[](void *context, bngradStatus_t status, const char *) {
                       EXPECT_EQ(status, BNGRAD_SUCCESS);
                       auto &state = *static_cast<State *>(context);
                       EXPECT_EQ(state.gradient->check(), "");
                       state.gradient.reset();
                       state.isDone = true;
                     },
                     &state};
  ASSERT_EQ(state.gradient->runAsync(&executor, done), BNGRAD_SUCCESS);
  state.thread.join();
  EXPECT_TRUE(state.isDone);
}

/// Calls that differ in all that a call depends on.
static std::vector<std::unique_ptr<Gradient>> makeMixed(bngradHandle_t handle) {
  std::vector<std::unique_ptr<Gradient>> mixed;
  unsigned seed = 1;
  for (const Spec &some : makeCallSpecs()) {
    Spec spec = some;
    spec.seed = seed++;
    spec.hasMask = seed % 3 == 0;
    spec.hasScale = seed % 4 != 0;
    mixed.push_back(std::make_unique<Gradient>(spec));
    EXPECT_EQ(mixed.back()->create(handle), BNGRAD_SUCCESS);
  }
  return mixed;
}

TEST_F(CallsTest, ManyThreads) {
  constexpr int kThreads = 8, kCalls = 10000;
  std::vector<std::vector<char>> expected;
  for (auto &gradient : makeMixed(handle)) {
    ASSERT_EQ(gradient->run(), BNGRAD_SUCCESS);
    expected.push_back(gradient->results());
  }
  std::atomic<int> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      std::vector<std::unique_ptr<Gradient>> mixed = makeMixed(handle);
      for (int i = 0; i < kCalls; ++i) {
        size_t which = static_cast<size_t>(i * 7 + number) % mixed.size();
        failed += mixed[which]->run() != BNGRAD_SUCCESS;
        if (i % 10 == 0)
          wrong += mixed[which]->results() != expected[which];
        // A handle is made and given up meanwhile.
        if (i % 100 == 0) {
          bngradHandle_t other = nullptr;
          failed += bngradCreateHandle(&other, BNGRAD_DEVICE_CPU, 0) !=
                    BNGRAD_SUCCESS;
          bngradDestroyHandle(other);
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
}

// Errors of one thread are not those of another.
TEST_F(CallsTest, LastErrorOfEachThread) {
  EXPECT_EQ(bngradCreateHandle(nullptr, BNGRAD_DEVICE_CPU, 0),
            BNGRAD_NULL_POINTER);
  std::string error = bngradGetLastError();
  std::thread([] { EXPECT_STREQ(bngradGetLastError(), ""); }).join();
  EXPECT_EQ(bngradGetLastError(), error);
}

// A child may call after its parent has used threads.
TEST_F(CallsTest, Fork) {
  Spec spec;
  spec.shape = {8, 16, 1000};
  Gradient gradient(spec);
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
  ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS);
  std::vector<char> results = gradient.results();
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    bool isRight =
        gradient.run() == BNGRAD_SUCCESS && gradient.results() == results;
    _exit(isRight ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
