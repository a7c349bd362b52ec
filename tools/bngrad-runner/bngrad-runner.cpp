//===- bngrad-runner.cpp - runs a function of an IR file ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Benchmark.h"
#include "Check.h"
#include "CudaLibrary.h"
#include "Processes.h"
#include "Program.h"
#include "RunOptions.h"
#include "ShardedRun.h"

#include "common/CommandLine.h"
#include "common/Diagnostics.h"
#include "common/OptionTable.h"
#include "common/Outputs.h"

#include "BNGrad/Compiler/Interface.h"
#include "BNGrad/Reference/Npy.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"
#include "BNGrad/Transforms/Schedule/HostCpu.h"

using namespace mlir;
using namespace mlir::bngrad;
using namespace llvm::opt;
using ::bngrad::Array;

/// From libomp, which runs the parallel loops of generated code.
extern "C" void omp_set_num_threads(int);

static LogicalResult parseMpi(const InputArgList &args, RunOptions &options) {
  LogicalResult result = success();
  options.mpi = args.getLastArgValue(OPT_mpi).str();
  StringRef mpi = options.mpi;
  if (args.hasArg(OPT_mpi) && mpi != "openmpi" && mpi != "mpich" &&
      !mpi.contains('/'))
    result = reportError("expected --mpi to be openmpi, mpich or the path of a "
                         "back end, got '" +
                         mpi + "'");
  for (const std::string &text : args.getAllArgValues(OPT_shards)) {
    std::optional<ShardSizes> sizes = parseShardSizes(text);
    if (!sizes)
      result = reportError("expected --shards to be AXIS[,AXIS...]:SIZE[+SIZE"
                           "...], got '" +
                           text + "'");
    else
      options.shards.push_back(std::move(*sizes));
  }
  return result;
}

static FailureOr<RunOptions> parseOptions(const InputArgList &args) {
  RunOptions options;
  LogicalResult result = success();
  FailureOr<std::string> path = parseInput(args, OPT_INPUT);
  if (succeeded(path))
    options.path = *path;
  else
    result = failure();
  options.entry = args.getLastArgValue(OPT_entry).str();
  if (args.hasArg(OPT_entry) && options.entry.empty())
    result = reportError("expected --entry to be a function, got ''");
  if (const Arg *schedule = args.getLastArg(OPT_schedule))
    options.schedule = schedule->getValue();
  options.arguments = args.getAllArgValues(OPT_arg);
  options.results = args.getAllArgValues(OPT_result);
  if (llvm::is_contained(options.results, ""))
    result = reportError("expected --result to be PATH.npy or -, got ''");
  options.check = args.hasArg(OPT_check);
  options.import.reassociateSums = args.hasArg(OPT_reassociate_sums);
  StringRef target = args.getLastArgValue(OPT_target, "cpu");
  if (target == "cuda")
    options.target = RunTarget::Cuda;
  else if (target == "cuda-emulator")
    options.target = RunTarget::CudaEmulator;
  else if (target != "cpu")
    result = reportError("expected --target to be cpu, cuda or cuda-emulator, "
                         "got '" +
                         target + "'");
  if (const Arg *chip = args.getLastArg(OPT_chip)) {
    options.chip = chip->getValue();
    std::string reason;
    if (target == "cpu")
      result = reportError("expected --chip with --target=cuda or "
                           "--target=cuda-emulator alone, got --target=cpu");
    else if (failed(CudaChip::parse(options.chip, reason)))
      result = reportError("--chip: " + reason);
  }
  if (const Arg *slots = args.getLastArg(OPT_active_clusters)) {
    options.activeClusters = slots->getValue();
    if (target == "cpu")
      result = reportError("expected --active-clusters with --target=cuda or "
                           "--target=cuda-emulator alone, got --target=cpu");
  }
  if (failed(parseCount(args, OPT_benchmark, "benchmark", 1000000000,
                        options.benchmark)))
    result = failure();
  // libomp aborts the process if it cannot start a thread.
  if (failed(parseCount(args, OPT_threads, "threads", 1024, options.threads)))
    result = failure();
  // Host code beside kernels runs in one thread.
  else if (options.threads && options.target != RunTarget::Cpu)
    result = reportError("expected --threads with --target=cpu alone, got "
                         "--target=" +
                         target);
  if (failed(parseMpi(args, options)))
    result = failure();
  if (failed(result))
    return failure();
  return options;
}

/// The file of the command line that --result number `i` would overwrite; empty
/// if none.
static std::string findSameFile(const RunOptions &options, size_t i) {
  StringRef path = options.results[i];
  if (options.path != "-" && isSameFile(path, options.path))
    return "it is the program";
  for (auto [j, spec] : llvm::enumerate(options.arguments))
    if (!StringRef(spec).starts_with("random:") && isSameFile(path, spec))
      return "it is argument " + std::to_string(j);
  for (size_t j = 0; j < i; ++j)
    if (options.results[j] != "-" && isSameFile(path, options.results[j]))
      return "it is --result number " + std::to_string(j) + ", too";
  return "";
}

/// Checks the options other than --arg before compiling, and reports all
/// errors.
static LogicalResult verifyOptions(const RunOptions &options,
                                   const Program &program,
                                   MLIRContext *context) {
  LogicalResult result = success();
  if (options.schedule)
    result = verifySchedule(*options.schedule, context);
  size_t numResults = program.getResultTypes().size();
  if (options.results.size() > numResults)
    result = reportError(printSymbol(program.getEntry()) +
                         ": expected at most " + Twine(numResults) +
                         " --result, got " + Twine(options.results.size()));
  for (auto [i, path] : llvm::enumerate(options.results)) {
    if (path == "-")
      continue;
    std::string error = findWriteError(path);
    if (error.empty() && !isWrittenInPlace(path))
      error = findSameFile(options, i);
    if (!error.empty())
      result = reportError(Twine(path) + ": cannot write: " + error);
  }
  return result;
}

static LogicalResult writeResults(ArrayRef<std::string> paths,
                                  ArrayRef<Array> results) {
  Outputs outputs;
  for (auto [path, result] : llvm::zip(paths, results)) {
    auto write = [&result = result](int descriptor, std::string &error) {
      return ::bngrad::writeNpy(descriptor, result, error);
    };
    if (path != "-" && failed(outputs.add(path, write)))
      return failure();
  }
  return outputs.keep();
}

/// How many clusters run at once, as in CudaPipelineOptions: as the options
/// say, else as the device says if the code is for its chip.
static FailureOr<std::string> findActiveClusters(const RunOptions &options,
                                                 const CudaLibrary &library,
                                                 StringRef chip) {
  if (!options.activeClusters)
    return options.chip.empty() ? library.findActiveClusters(chip)
                                : std::string();
  std::string reason;
  FailureOr<SmallVector<const CudaChip *>> chips =
      CudaChip::parse(chip, reason);
  if (failed(chips) || failed(CudaChip::getCommon(*chips).setActiveClusters(
                           *options.activeClusters, reason)))
    return reportError("--active-clusters: " + reason);
  return *options.activeClusters;
}

/// Where and how functions run, and the library of kernels.
static LogicalResult setExecution(const RunOptions &options,
                                  Execution &execution,
                                  std::optional<CudaLibrary> &library) {
  if (std::string reason; failed(HostCpu::verify(reason)))
    return reportError(reason);
  execution.schedule = options.schedule.value_or("");
  if (options.threads) {
    omp_set_num_threads(*options.threads);
    execution.target.threads = *options.threads;
  }
  if (options.target == RunTarget::Cpu)
    return success();
  FailureOr<CudaLibrary> loaded = CudaLibrary::load(options.target);
  if (failed(loaded))
    return failure();
  library = std::move(*loaded);
  execution.library = library->getPath();
  FailureOr<std::string> chip = library->chooseChip(options.chip);
  if (failed(chip))
    return failure();
  FailureOr<std::string> active = findActiveClusters(options, *library, *chip);
  if (failed(active))
    return failure();
  execution.chip = *chip;
  execution.activeClusters = *active;
  return success();
}

/// Runs a program of one process.
static LogicalResult runAlone(const RunOptions &options, Program &program,
                              const Execution &execution,
                              std::optional<CudaLibrary> &library) {
  // Report all errors of the command line at once.
  LogicalResult verified =
      verifyOptions(options, program, program.getModule().getContext());
  FailureOr<std::vector<Array>> arguments =
      makeArguments(program, options.arguments);
  if (failed(verified) || failed(arguments) ||
      failed(program.compile(execution)))
    return failure();
  FailureOr<std::vector<Array>> results = program.prepareResults(*arguments);
  if (failed(results) || failed(program.run(*arguments, *results)) ||
      (library && failed(library->takeStatus())) ||
      failed(writeResults(options.results, *results)))
    return failure();
  if (options.check && failed(checkResults(program, *arguments, *results)))
    return failure();
  if (options.benchmark)
    return benchmark(program, *arguments, *results, *options.benchmark);
  return success();
}

/// Checks that the number of processes is that of the program.
static LogicalResult verifyLaunch(const RunOptions &options,
                                  const Program *part) {
  int64_t expected = part ? part->getSharding().getNumProcesses() : 1;
  int64_t size = Processes::getSize();
  if (expected == size)
    return success();
  if (!part)
    return reportError("expected a program with shard annotations for " +
                       Twine(size) + " processes, got one without");
  std::string needed = (Twine(expected) + " processes for the grid " +
                        part->getSharding().printGrid())
                           .str();
  if (options.mpi.empty())
    return reportError("expected --mpi=openmpi or --mpi=mpich and " + needed +
                       ", as of mpirun -n " + Twine(expected) + ", got none");
  return reportError("expected " + needed + ", as of mpirun -n " +
                     Twine(expected) + ", got " + Twine(size));
}

static LogicalResult run(const RunOptions &options) {
  if (failed(Processes::initialize(options.mpi)))
    return failure();
  MLIRContext context;
  Execution execution;
  std::optional<CudaLibrary> library;
  FailureOr<Program> program = failure();
  FailureOr<std::optional<Program>> part = failure();
  auto load = [&]() -> LogicalResult {
    if (failed(setExecution(options, execution, library)))
      return failure();
    prepareContext(context);
    program =
        Program::load(&context, options.path, options.entry, options.import);
    if (failed(program))
      return failure();
    part = program->partition();
    return failed(part) ? failure()
                        : verifyLaunch(options, *part ? &**part : nullptr);
  };
  if (failed(Processes::agree(load())))
    return failure();
  if (!*part)
    return runAlone(options, *program, execution, library);
  ShardedRun shardedRun(options, *program, **part, execution);
  auto verify = [&] { return verifyOptions(options, *program, &context); };
  return shardedRun.run(
      verify, [&] { return library ? library->takeStatus() : success(); });
}

int main(int argc, char **argv) {
  int status;
  Processes::silenceOthers();
  FailureOr<RunOptions> options = parseCommandLine(
      argc, argv,
      {"bngrad-runner", "FILE|- [options]",
       "Runs a function of an IR file (text or bytecode; - is standard input) "
       "with bngrad ops",
       (kSpecHelp + "\n" + kBenchmarkHelp).str()},
      parseOptions, status);
  if (failed(options))
    return status;
  bool hasFailed = failed(run(*options));
  llvm::outs().flush();
  if (llvm::outs().has_error()) {
    (void)reportError("standard output: cannot write: " +
                      llvm::outs().error().message());
    llvm::outs().clear_error();
    return 1;
  }
  return hasFailed;
}
