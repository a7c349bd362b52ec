//===- bngrad-opt.cpp - runs passes on IR files ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/ForeignDialects.h"
#include "BNGrad/InitAll.h"
#include "Schedules.h"
#include "VerifyNesting.h"
#include "common/Diagnostics.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"

#include <unistd.h>

using namespace mlir;
using namespace mlir::bngrad;

/// Reports errors in the pipeline's text and options as one line each. For a
/// bad option value the option parser has already printed a line: after it, the
/// diagnostic of a pass has no first line, and that of a pipeline only says
/// that it could not be added.
static LogicalResult setUpPipeline(const MlirOptMainConfig &config,
                                   PassManager &pm) {
  ScopedDiagnosticHandler handler(pm.getContext(), [](Diagnostic &diagnostic) {
    std::string text = diagnostic.str();
    if (!text.empty() && text.front() != '\n' &&
        !StringRef(text).starts_with("failed to add `"))
      (void)reportError(text);
    return success();
  });
  return config.setupPassPipeline(pm);
}

static llvm::cl::opt<SchedulesFormat> schedulesFormat(
    "print-schedules",
    llvm::cl::desc("Print the kinds of #bngrad.schedule, and exit"),
    llvm::cl::values(clEnumValN(SchedulesFormat::Json, "json", "for scripts"),
                     clEnumValN(SchedulesFormat::Markdown, "markdown",
                                "the tables of docs/schedules.md")));

int main(int argc, char **argv) {
  setToolName("bngrad-opt");
  reportOutOfMemory();
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  registerForeignDialects(registry);
  mlir::bngrad::registerAllPasses();
  llvm::InitLLVM initialized(argc, argv);
  llvm::cl::SetVersionPrinter(printVersion);
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  // Without the name of the program, and with the arguments in files such as
  // @FILE; one that cannot be read stays an argument.
  SmallVector<const char *> arguments;
  llvm::cl::expandResponseFiles(argc, argv, /*EnvVar=*/nullptr, saver,
                                arguments);
  if (failed(verifyArguments(arguments)))
    return asMainReturnCode(failure());
  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "BNGrad optimizer: gradients of batch normalization\n",
      registry);
  if (schedulesFormat != SchedulesFormat::None) {
    printSchedules(llvm::outs(), schedulesFormat);
    llvm::outs().flush();
    return asMainReturnCode(success());
  }
  MlirOptMainConfig parsed = MlirOptMainConfig::createFromCLOptions();
  if (parsed.shouldListPasses() || parsed.shouldShowDialects())
    return asMainReturnCode(
        MlirOptMain(argc, argv, inputName, outputName, registry));

  if (inputName == "-" &&
      llvm::sys::Process::FileDescriptorIsDisplayed(STDIN_FILENO))
    llvm::errs() << "reading standard input\n";
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputName, &error);
  if (!input)
    return asMainReturnCode(reportError(error));
  setInputName(input->getBufferIdentifier());
  if (failed(verifyInputs(*input, parsed, registry)))
    return asMainReturnCode(failure());
  std::unique_ptr<llvm::ToolOutputFile> output =
      openOutputFile(outputName, &error);
  if (!output)
    return asMainReturnCode(reportError(error));
  MlirOptMainConfig config = parsed;
  config.setPassPipelineSetupFn([&](PassManager &pm) {
    if (failed(setUpPipeline(parsed, pm)))
      return failure();
    return verifyLibraries(pm, registry);
  });
  if (failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return asMainReturnCode(failure());
  output->keep();
  return asMainReturnCode(success());
}
