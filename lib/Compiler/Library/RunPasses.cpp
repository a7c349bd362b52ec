//===- RunPasses.cpp - passes on text -------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramLibrary.h"
#include "Source.h"

#include "BNGrad/Dialect/Nesting.h"
#include "BNGrad/InitAll.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace mlir;
using namespace mlir::bngrad;

/// A flag of bngrad-opt that is not a pass, but that passes may need.
static constexpr StringLiteral kAllowUnregistered =
    "--allow-unregistered-dialect";

/// Adds the pass or pipeline that `flag` names, such as
/// `--bngrad-cpu-pipeline=stop-after=group`.
static LogicalResult addPass(OpPassManager &pm, StringRef flag,
                             Source &source) {
  StringRef text = flag;
  bool isFlag = text.consume_front("--") || text.consume_front("-");
  auto [name, options] = text.split('=');
  const PassRegistryEntry *entry = nullptr;
  if (isFlag)
    entry = PassInfo::lookup(name);
  if (isFlag && !entry)
    entry = PassPipelineInfo::lookup(name);
  if (!entry)
    return source.emitError(
        "expected a pass such as --bngrad-decompose, got '" + flag + "'");
  std::string reason;
  if (failed(verifyNesting(options, reason)))
    return source.emitError("--" + name + ": " + reason);
  LogicalResult result =
      entry->addToPipeline(pm, options, [&](const Twine &message) {
        // LLVM's option parser prints only to standard error.
        std::string text = message.str();
        return text.empty() ? failure() : source.emitError(flag + ": " + text);
      });
  if (failed(result) && !source.hasDiagnostics())
    return source.emitError(flag + ": expected options of --" + name +
                            ", got '" + options + "'");
  return result;
}

static LogicalResult addPipeline(OpPassManager &pm, StringRef pipeline,
                                 Source &source) {
  std::string error;
  if (failed(verifyNesting(pipeline, error)))
    return source.emitError("passes: " + error);
  llvm::raw_string_ostream os(error);
  FailureOr<OpPassManager> parsed = parsePassPipeline(pipeline, os);
  if (failed(parsed))
    return source.emitError("passes: " + StringRef(error).trim());
  if (parsed->getOpAnchorName() != pm.getOpAnchorName())
    return source.emitError("expected passes on " + pm.getOpAnchorName() +
                            ", got '" + parsed->getOpAnchorName() + "'");
  pm = std::move(*parsed);
  return success();
}

/// Runs passes on a module, and returns it as text.
static FailureOr<std::string> run(StringRef text, const char *pipeline,
                                  ArrayRef<StringRef> flags, Source &source) {
  // Once for all compilations. fork() waits for these, so its child never finds
  // the lock taken.
  static std::once_flag isRegistered;
  std::call_once(isRegistered, [] { mlir::bngrad::registerAllPasses(); });
  PassManager pm(source.getContext(), ModuleOp::getOperationName(),
                 PassManager::Nesting::Implicit);
  if (pipeline && failed(addPipeline(pm, pipeline, source)))
    return failure();
  for (StringRef flag : flags)
    if (failed(addPass(pm, flag, source)))
      return failure();
  std::string printed;
  llvm::raw_string_ostream printedOs(printed);
  pm.printAsTextualPipeline(printedOs);
  if (failed(verifyNestingOfLibraries(printed, source.getContext())) ||
      failed(source.parse(text)) || failed(pm.run(source.getModule())))
    return failure();
  std::string result;
  llvm::raw_string_ostream os(result);
  source.getModule()->print(os);
  os << "\n";
  return result;
}

int32_t bngradRunPasses(const char *text, size_t textSize, const char *pipeline,
                        const char *const *passes, size_t numPasses,
                        bngradTake_t take) {
  SmallVector<StringRef> flags(passes, passes + numPasses);
  bool allowsUnregistered = llvm::is_contained(flags, kAllowUnregistered);
  llvm::erase(flags, StringRef(kAllowUnregistered));
  return runAndTake(take, allowsUnregistered, [&](Source &source) {
    return run({text, textSize}, pipeline, flags, source);
  });
}
