//===- Processes.cpp - processes of the fake back end ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Processes.h"

#include "FakeMpi.h"

#include <atomic>
#include <thread>

using namespace bngrad;

std::vector<std::string>
bngrad::runProcesses(int64_t size,
                     const std::function<std::string(const Process &)> &body) {
  static std::atomic<int64_t> numJobs{0};
  int64_t job = numJobs++;
  std::vector<std::string> results(size);
  std::vector<std::thread> threads;
  threads.reserve(size);
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      fake::Communicator communicator = {job, rank, size};
      Process process = {rank, nullptr};
      if (bngradCreateCollectiveGroup(&process.group, BNGRAD_FAKE_MPI,
                                      &communicator) != 0) {
        results[rank] = bngradGetCollectiveError();
        return;
      }
      results[rank] = body(process);
      if (bngradDestroyCollectiveGroup(process.group) != 0)
        results[rank] += bngradGetCollectiveError();
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}
