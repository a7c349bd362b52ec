//===- Benchmark.h - --benchmark ------------------------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_BENCHMARK_H
#define BNGRAD_RUNNER_BENCHMARK_H

#include "Program.h"

namespace mlir::bngrad {

/// The help text for the fields of --benchmark.
inline constexpr StringLiteral kBenchmarkHelp = R"(--benchmark prints one line:
  median_us       median time of a run, in microseconds
  min_us          shortest time of a run, in microseconds
  bytes           size of all arguments and results, in bytes
  gbps            bytes per median time, in 10^9 bytes per second
  bandwidth_gbps  bandwidth of the CPU's memory, in 10^9 bytes per second: two
                  arrays of 64 MiB are read and one is written, between the runs
  ratio           median time by the time of `bytes` at that bandwidth
  schedule        kinds of the groups' schedules, comma-separated
  compile_ms      time of compilation without parsing, in milliseconds
)";

/// Runs the program `repetitions` times, each time followed by a pass over
/// memory that reads two arrays and streams a third, and prints one line
///
///   median_us=.. min_us=.. bytes=.. gbps=.. bandwidth_gbps=.. ratio=..
///   schedule=.. compile_ms=..
///
/// Units: bytes = all arguments and results once; gbps = 1e9 bytes per second;
///        ratio = median time * bandwidth / bytes, 1 at the speed of memory.
/// `isPrinted` is false if another process prints the line.
LogicalResult benchmark(Program &program,
                        MutableArrayRef<::bngrad::Array> arguments,
                        MutableArrayRef<::bngrad::Array> results,
                        unsigned repetitions, bool isPrinted = true);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_BENCHMARK_H
