//===- Benchmark.cpp - --benchmark ----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Benchmark.h"
#include "Call.h"
#include "common/Diagnostics.h"

#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;

/// Two reads and one streaming write, like generated code does them, on the
/// same threads. Blocks of 16 KB per thread keep the pages in order.
static constexpr StringLiteral kBandwidthModule = R"mlir(
func.func @bngrad_runner_bandwidth(
    %a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %block = arith.constant 4096 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%block) {
    %end = arith.addi %i, %block : index
    scf.for %j = %i to %end step %c16 {
      %x = vector.load %a[%j] {alignment = 64}
          : memref<?xf32>, vector<16xf32>
      %y = vector.load %b[%j] {alignment = 64}
          : memref<?xf32>, vector<16xf32>
      %z = arith.addf %x, %y : vector<16xf32>
      vector.store %z, %c[%j] {nontemporal = true, alignment = 64}
          : memref<?xf32>, vector<16xf32>
    }
    scf.reduce
  }
  return
}
)mlir";
static constexpr StringLiteral kBandwidth = "bngrad_runner_bandwidth";

/// Elements of each array of the pass over memory: 64 MiB, beyond a core's
/// share of the last-level cache; a multiple of the block.
static constexpr int64_t kBandwidthElements = 16 << 20;

static FailureOr<CompiledProgram> compileBandwidth(MLIRContext *context) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(kBandwidthModule, context);
  PassManager pm(context);
  addCpuLowerPasses(pm);
  if (!module || failed(pm.run(*module)))
    return failure();
  return CompiledProgram::create(*module);
}

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half]
                           : (values[half - 1] + values[half]) / 2;
}

LogicalResult mlir::bngrad::benchmark(Program &program,
                                      MutableArrayRef<Array> arguments,
                                      MutableArrayRef<Array> results,
                                      unsigned repetitions, bool isPrinted) {
  FailureOr<CompiledProgram> bandwidth =
      compileBandwidth(program.getModule().getContext());
  if (failed(bandwidth))
    return reportError("cannot measure the bandwidth of memory");
  std::vector<Array> arrays(3);
  for (Array &array : arrays) {
    std::string error;
    if (!allocateArray(::bngrad::ElementType::F32, {kBandwidthElements}, array,
                       error))
      return reportError("cannot measure the bandwidth of memory: " + error);
    std::memset(array.data.data(), 0, array.data.size());
  }

  auto measure = [](llvm::function_ref<LogicalResult()> run,
                    std::vector<double> &seconds) -> LogicalResult {
    auto start = std::chrono::steady_clock::now();
    LogicalResult result = run();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count());
    return result;
  };
  std::vector<double> programTimes, bandwidthTimes;
  for (unsigned i = 0; i < repetitions + 1; ++i) {
    if (failed(measure([&] { return program.run(arguments, results); },
                       programTimes)) ||
        failed(measure([&] { return call(*bandwidth, kBandwidth, arrays); },
                       bandwidthTimes)))
      return failure();
    // The first round warms up: threads start, pages are mapped.
    if (i == 0) {
      programTimes.clear();
      bandwidthTimes.clear();
    }
  }

  if (!isPrinted)
    return success();
  int64_t bytes = 0;
  for (const Array &array : arguments)
    bytes += array.data.size();
  for (const Array &array : results)
    bytes += array.data.size();
  double seconds = median(programTimes);
  double bytesPerSecond =
      3.0 * sizeof(float) * kBandwidthElements / median(bandwidthTimes);
  double ratio = bytes ? seconds * bytesPerSecond / bytes : 0;
  auto number = [](double value) { return llvm::format("%.4g", value); };
  llvm::outs()
      << "median_us=" << number(seconds * 1e6) << " min_us="
      << number(*std::min_element(programTimes.begin(), programTimes.end()) *
                1e6)
      << " bytes=" << bytes << " gbps=" << number(bytes / seconds * 1e-9)
      << " bandwidth_gbps=" << number(bytesPerSecond * 1e-9)
      << " ratio=" << number(ratio) << " schedule=" << program.getSchedules()
      << " compile_ms=" << number(program.getCompileMilliseconds()) << "\n";
  return success();
}
