//===- bngrad-compile.cpp - compiles IR files ahead of time ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Entries.h"
#include "Header.h"
#include "SharedObject.h"

#include "common/CommandLine.h"
#include "common/Diagnostics.h"
#include "common/Input.h"
#include "common/OptionTable.h"
#include "common/Outputs.h"

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/Transforms/Partition/CollectiveCalls.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::bngrad;
using namespace llvm::opt;

namespace {
/// The command line.
struct Options {
  std::string input, output, header;
  ImportOptions import;
  CompileOptions compile;
  OutputKind kind = OutputKind::Object;
  bool isShared = false; // whether to link a shared object
  std::vector<Entry> entries;
  bool hasSchedule = false;
};
} // namespace

static constexpr StringLiteral kHelp =
    R"(OUT
  .so    shared object, linked by a compiler or linker on PATH
  .o     object file; link it with -lm
  .s     assembly
  .ll    LLVM IR, optimized
  .ptx   the kernels, for --target=cuda
  .mlir  the LLVM dialect
With --target=cuda a .o is linked with libBNGradCudaRuntime.
Nothing that is made needs MLIR or LLVM where it runs; see the header for how it
is called.
)";

static std::optional<OutputKind> getKind(StringRef path) {
  return llvm::StringSwitch<std::optional<OutputKind>>(
             llvm::sys::path::extension(path))
      .Cases({".so", ".o"}, OutputKind::Object)
      .Case(".s", OutputKind::Assembly)
      .Case(".ll", OutputKind::LLVMIR)
      .Case(".ptx", OutputKind::PTX)
      .Case(".mlir", OutputKind::MLIR)
      .Default(std::nullopt);
}

/// Checks the outputs before compiling; reports one error for each.
static LogicalResult verifyOutputs(const InputArgList &args,
                                   const Options &options) {
  LogicalResult result = success();
  auto report = [&](const Twine &message) { result = reportError(message); };
  std::vector<std::string> outputs = args.getAllArgValues(OPT_o);
  if (outputs.empty())
    report("expected -o OUT, got none");
  else if (outputs.size() > 1)
    report("expected one -o, got '" + outputs[0] + "' and '" + outputs[1] +
           "'");
  else if (!getKind(outputs[0]))
    report("expected -o to end in .so, .o, .s, .ll, .ptx or .mlir, got '" +
           outputs[0] + "'");
  if (args.hasArg(OPT_header) && options.header.empty())
    report("expected --header to be a file, got ''");
  std::vector<std::string> headers = args.getAllArgValues(OPT_header);
  if (headers.size() > 1)
    report("expected one --header, got '" + headers[0] + "' and '" +
           headers[1] + "'");

  bool isOneFile = !options.output.empty() && !options.header.empty() &&
                   isSameFile(options.output, options.header);
  if (isOneFile)
    report("expected --header to be another file than -o, got '" +
           options.header + "'");
  for (const std::string &path :
       {getKind(options.output) ? options.output : std::string(),
        isOneFile ? std::string() : options.header}) {
    if (path.empty())
      continue;
    std::string error = findWriteError(path);
    if (error.empty() && isWrittenInPlace(path))
      error = "no regular file";
    if (!error.empty())
      report(Twine(path) + ": cannot write: " + error);
    else if (isSameFile(path, options.input))
      report(path + ": cannot write: it is the input");
  }
  return result;
}

/// Checks that options for one target are given only with that target.
static LogicalResult verifyTarget(const InputArgList &args, bool isCuda) {
  LogicalResult result = success();
  auto needs = [&](unsigned id, StringRef name, bool cudaAlone) {
    if (args.hasArg(id) && isCuda != cudaAlone)
      result = reportError(Twine("expected --target=") +
                           (cudaAlone ? "cuda" : "cpu") + " with --" + name +
                           ", got " + (cudaAlone ? "cpu" : "cuda"));
  };
  needs(OPT_chip, "chip", true);
  needs(OPT_active_clusters, "active-clusters", true);
  needs(OPT_format, "format", true);
  needs(OPT_device_arguments, "device-arguments", true);
  needs(OPT_threads, "threads", false);
  return result;
}

/// Parses the options of --target=cuda.
static LogicalResult parseCudaOptions(const InputArgList &args, OutputKind kind,
                                      CudaCompileOptions &cuda) {
  LogicalResult result = success();
  auto report = [&](const Twine &message) { result = reportError(message); };
  cuda.deviceArguments = args.hasArg(OPT_device_arguments);
  cuda.chips = args.getLastArgValue(OPT_chip, KernelOptions().chip).str();
  cuda.activeClusters = args.getLastArgValue(OPT_active_clusters).str();
  std::string reason;
  FailureOr<SmallVector<const CudaChip *>> chips =
      CudaChip::parse(cuda.chips, reason);
  if (failed(chips))
    report("--chip: " + reason);
  else if (kind == OutputKind::PTX && chips->size() != 1)
    report("expected one --chip for a .ptx, got '" + cuda.chips + "'");
  else if (args.hasArg(OPT_active_clusters) &&
           failed(CudaChip::getCommon(*chips).setActiveClusters(
               cuda.activeClusters, reason)))
    report("--active-clusters: " + reason);
  StringRef format = args.getLastArgValue(OPT_format, "isa");
  auto known = llvm::StringSwitch<std::optional<CudaFormat>>(format)
                   .Case("isa", CudaFormat::Isa)
                   .Case("bin", CudaFormat::Bin)
                   .Case("fatbin", CudaFormat::Fatbin)
                   .Default(std::nullopt);
  if (!known)
    report("expected --format to be isa, bin or fatbin, got '" + format + "'");
  else if (kind == OutputKind::PTX && *known != CudaFormat::Isa)
    report("expected --format=isa for a .ptx, got " + format);
  cuda.format = known.value_or(CudaFormat::Isa);
  return result;
}

static FailureOr<Options> parseOptions(const InputArgList &args) {
  Options options;
  CompileOptions &compile = options.compile;
  LogicalResult result = success();
  auto report = [&](const Twine &message) { result = reportError(message); };
  FailureOr<std::string> path = parseInput(args, OPT_INPUT);
  if (succeeded(path))
    options.input = *path;
  else
    result = failure();
  options.output = args.getLastArgValue(OPT_o).str();
  options.header = args.getLastArgValue(OPT_header).str();
  if (failed(verifyOutputs(args, options)))
    result = failure();
  FailureOr<std::vector<Entry>> entries =
      parseEntries(args.getAllArgValues(OPT_entry));
  if (failed(entries))
    result = failure();
  else
    options.entries = *entries;
  if (std::optional<OutputKind> kind = getKind(options.output))
    options.kind = *kind;
  options.isShared = llvm::sys::path::extension(options.output) == ".so";

  StringRef target = args.getLastArgValue(OPT_target, "cpu");
  if (target == "cuda")
    compile.device = Device::Cuda;
  else if (target != "cpu")
    report("expected --target to be cpu or cuda, got '" + target + "'");
  if (options.kind == OutputKind::PTX && target == "cpu")
    report("expected --target=cuda for a .ptx, got cpu");
  bool isKnown = target == "cpu" || target == "cuda";
  bool isCuda = compile.device == Device::Cuda;
  if (isKnown && failed(verifyTarget(args, isCuda)))
    result = failure();
  if (isCuda && failed(parseCudaOptions(args, options.kind, compile.cuda)))
    result = failure();

  compile.codeGen.cpu = args.getLastArgValue(OPT_mcpu).str();
  if (args.hasArg(OPT_mcpu) && compile.codeGen.cpu.empty())
    report("expected --mcpu to be native or a CPU that LLVM knows, got ''");
  compile.codeGen.triple = args.getLastArgValue(OPT_mtriple).str();
  if (args.hasArg(OPT_mtriple) && compile.codeGen.triple.empty())
    report("expected --mtriple to be one such as aarch64-linux-gnu, got ''");
  if (args.hasArg(OPT_mtriple) && options.isShared)
    report("expected -o to end in .o, .s, .ll or .mlir with --mtriple, got '" +
           options.output + "'");
  compile.codeGen.features = args.getLastArgValue(OPT_mattr).str();
  if (args.hasArg(OPT_mattr) && compile.codeGen.features.empty())
    report("expected --mattr to be one such as +avx2, got ''");
  compile.packed = args.hasArg(OPT_packed);
  if (compile.packed && args.hasArg(OPT_header))
    report("expected no --header with --packed, got '" + options.header + "'");
  options.hasSchedule = args.hasArg(OPT_schedule);
  options.import.reassociateSums = args.hasArg(OPT_reassociate_sums);
  compile.schedule = args.getLastArgValue(OPT_schedule).str();
  std::optional<unsigned> threads;
  if (args.getLastArgValue(OPT_threads) == "caller")
    compile.threads = -1;
  else if (failed(parseCount(args, OPT_threads, "threads", 1024, threads,
                             /*other=*/"caller")))
    result = failure();
  else
    compile.threads = threads.value_or(0);
  if (failed(result))
    return failure();
  return options;
}

/// The absolute paths of the libraries to link a shared object of `module`,
/// lowered for `device`, with, besides those of C and mathematics.
static std::vector<std::string> getLibraries(ModuleOp module, Device device) {
  std::vector<std::string> libraries;
  if (device == Device::Cuda)
    libraries.push_back(getOwnLibrary("libBNGradCudaRuntime.so"));
  if (callsCollectives(module))
    libraries.push_back(getOwnLibrary("libBNGradDistributed.so"));
  return libraries;
}

/// The `reason` of verifyTarget, with the field's name replaced by the
/// option's.
static std::string toOption(StringRef reason) {
  auto [field, rest] = reason.split(':');
  StringRef option = llvm::StringSwitch<StringRef>(field)
                         .Case("triple", "--mtriple")
                         .Case("cpu", "--mcpu")
                         .Case("features", "--mattr")
                         .Default(field);
  return (option + ":" + rest).str();
}

static LogicalResult run(const Options &options) {
  if (std::string reason; failed(verifyTarget(options.compile.codeGen, reason)))
    return reportError(toOption(reason));
  MLIRContext context(MLIRContext::Threading::DISABLED);
  prepareContext(context);
  if (options.hasSchedule &&
      failed(verifySchedule(options.compile.schedule, &context)))
    return failure();
  OwningOpRef<ModuleOp> module = readModule(&context, options.input);
  if (!module)
    return failure();
  FailureOr<std::vector<ExportedFunction>> functions = failure();
  {
    OneLineDiagnostics diagnostics(&context);
    std::string reason;
    if (failed(selectEntries(*module, options.entries, reason)))
      return reportError("expected --entry " + reason);
    if (failed(importModule(*module, options.import)))
      return failure();
    functions = findExportedFunctions(*module);
  }
  if (failed(functions))
    return failure();
  if (functions->empty())
    return reportError(options.input +
                       ": expected a public function, got none");
  // Frameworks often use this name; --bngrad-export-c explains other errors.
  bool hasMain = llvm::any_of(*functions, [](const ExportedFunction &function) {
    return function.name == "main";
  });
  if (hasMain && options.entries.empty())
    return reportError(options.input +
                       ": expected a name that C can call, got 'main'; give "
                       "the function another one with --entry=main=NAME");
  FailureOr<std::string> compiled = failure();
  {
    OneLineDiagnostics diagnostics(&context);
    compiled = compile(*module, options.compile, options.kind);
  }
  if (failed(compiled))
    return failure();

  Outputs outputs;
  Device device = options.compile.device;
  std::vector<std::string> libraries = getLibraries(*module, device);
  if (failed(options.isShared
                 ? addSharedObject(outputs, options.output, *compiled,
                                   libraries, /*besideToo=*/!libraries.empty())
                 : outputs.add(options.output, *compiled)))
    return failure();
  if (!options.header.empty() &&
      failed(outputs.add(
          options.header,
          makeHeader(*functions, llvm::sys::path::filename(options.header),
                     device, options.compile.cuda.deviceArguments,
                     callsCollectives(*module)))))
    return failure();
  return outputs.keep();
}

/// LLVM is part of this tool and allocates memory before main.
[[gnu::constructor(101)]] static void reportEarlyOutOfMemory() {
  setToolName("bngrad-compile");
  reportOutOfMemory();
}

int main(int argc, char **argv) {
  int status;
  FailureOr<Options> options = parseCommandLine(
      argc, argv,
      {"bngrad-compile", "FILE|- -o OUT [options]",
       "Compiles the public functions of an IR file (text or bytecode; - is "
       "standard input) for use from C",
       kHelp.str()},
      parseOptions, status);
  if (failed(options))
    return status;
  return failed(run(*options));
}
