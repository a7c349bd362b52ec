//===- Processes.h - processes of the fake back end -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_RUNTIME_DISTRIBUTED_PROCESSES_H
#define BNGRAD_UNITTESTS_RUNTIME_DISTRIBUTED_PROCESSES_H

#include "BNGrad/Runtime/Collectives.h"

#include <functional>
#include <string>
#include <vector>

namespace bngrad {

/// A collective and the arrays that it points to.
struct Collective {
  std::string op = "bngrad.op";
  std::string location = "f.mlir:1:2";
  int64_t dtype = BNGRAD_COLLECTIVE_I64;
  std::vector<int64_t> grid, axes;

  bngradCollective_t get() const {
    return {int64_t(sizeof(bngradCollective_t)),
            op.c_str(),
            location.c_str(),
            dtype,
            int64_t(grid.size()),
            grid.data(),
            int64_t(axes.size()),
            axes.data()};
  }
};

/// A process of a test.
struct Process {
  int64_t rank;
  bngradCollectiveGroup_t group;

  /// Sums, and returns the error; empty: none.
  template <typename T>
  std::string sum(const Collective &collective, std::vector<T> &data) const {
    bngradCollective_t described = collective.get();
    int64_t request = bngradGroupAllReduceStart(group, &described, data.data(),
                                                int64_t(data.size()));
    return bngradAllReduceWait(request) == 0 ? "" : bngradGetCollectiveError();
  }
};

/// Runs `body` in `size` processes of the fake back end, each a thread, and
/// returns its results by rank. Groups are destroyed afterwards.
std::vector<std::string>
runProcesses(int64_t size,
             const std::function<std::string(const Process &)> &body);

} // namespace bngrad

#endif // BNGRAD_UNITTESTS_RUNTIME_DISTRIBUTED_PROCESSES_H
