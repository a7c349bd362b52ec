//===- VerifyNesting.cpp - the nesting of what MLIR parses ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyNesting.h"

#include "BNGrad/Dialect/Nesting.h"
#include "common/Diagnostics.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::bngrad;

LogicalResult mlir::bngrad::verifyArguments(ArrayRef<const char *> arguments) {
  for (StringRef argument : arguments) {
    std::string reason;
    if (failed(verifyNesting(argument, reason)))
      return reportError(argument.split('=').first + ": " + reason);
  }
  return success();
}

/// Checks the pipeline in the resources of a reproducer, whose nesting has been
/// checked.
static LogicalResult verifyReproducer(std::unique_ptr<llvm::MemoryBuffer> input,
                                      MLIRContext *context) {
  std::string reason;
  ParserConfig config(context, /*verifyAfterParse=*/false);
  config.attachResourceParser(
      "mlir_reproducer", [&](AsmParsedResourceEntry &entry) {
        if (entry.getKey() != "pipeline")
          return success();
        FailureOr<std::string> pipeline = entry.parseAsString();
        return failed(pipeline) ? failure() : verifyNesting(*pipeline, reason);
      });
  // Other errors are reported when MLIR parses the input again.
  ScopedDiagnosticHandler handler(context,
                                  [](Diagnostic &) { return success(); });
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  Block block;
  (void)parseSourceFile(sources, &block, config);
  return reason.empty() ? success()
                        : reportError("pipeline of the reproducer: " + reason);
}

LogicalResult mlir::bngrad::verifyInputs(llvm::MemoryBufferRef input,
                                         const MlirOptMainConfig &config,
                                         const DialectRegistry &registry) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  OneLineDiagnostics diagnostics(&context);
  // MLIR reports a file that cannot be read.
  auto irdl = llvm::MemoryBuffer::getFile(config.getIrdlFile());
  if (irdl && failed(verifyNesting(**irdl, &context)))
    return failure();
  auto verifyPart = [&](std::unique_ptr<llvm::MemoryBuffer> part,
                        raw_ostream &) {
    if (failed(verifyNesting(*part, &context)))
      return failure();
    return config.shouldRunReproducer()
               ? verifyReproducer(std::move(part), &context)
               : success();
  };
  return splitAndProcessBuffer(llvm::MemoryBuffer::getMemBuffer(input),
                               verifyPart, llvm::nulls(),
                               config.inputSplitMarker());
}

LogicalResult mlir::bngrad::verifyLibraries(const PassManager &pm,
                                            const DialectRegistry &registry) {
  std::string pipeline;
  llvm::raw_string_ostream os(pipeline);
  pm.printAsTextualPipeline(os);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OneLineDiagnostics diagnostics(&context);
  return verifyNestingOfLibraries(pipeline, &context);
}
