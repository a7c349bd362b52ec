//===- Pause.h - polling ----------------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_PAUSE_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_PAUSE_H

#include <chrono>
#include <sched.h>
#include <thread>

namespace bngrad::distributed {

/// Measures the time since its creation, and pauses longer as it grows.
class Pause {
public:
  double getSeconds() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// Other processes may share the core, so it yields at first, and sleeps
  /// after the time that an all-reduce usually takes.
  void wait() const {
    double seconds = getSeconds();
    if (seconds < 0.01)
      sched_yield();
    else
      std::this_thread::sleep_for(
          std::chrono::microseconds(seconds < 1 ? 50 : 1000));
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_PAUSE_H
