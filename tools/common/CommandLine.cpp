//===- CommandLine.cpp - values of options --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "common/CommandLine.h"
#include "common/Diagnostics.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Dialect/ForeignDialects.h"
#include "BNGrad/InitAll.h"
#include "BNGrad/Transforms/Transforms.h"

#include "llvm/Option/ArgList.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::bngrad;

LogicalResult mlir::bngrad::parseCount(const llvm::opt::InputArgList &args,
                                       unsigned id, StringRef name,
                                       unsigned most,
                                       std::optional<unsigned> &count,
                                       const char *other) {
  const llvm::opt::Arg *arg = args.getLastArg(id);
  if (!arg)
    return success();
  unsigned value;
  if (StringRef(arg->getValue()).getAsInteger(10, value) || value < 1 ||
      value > most)
    return reportError("expected --" + name +
                       " to be a whole number from 1 to " + Twine(most) +
                       (*other ? " or " : "") + other + ", got '" +
                       arg->getValue() + "'");
  count = value;
  return success();
}

FailureOr<std::string>
mlir::bngrad::parseInput(const llvm::opt::InputArgList &args,
                         unsigned inputId) {
  std::vector<std::string> inputs = args.getAllArgValues(inputId);
  if (inputs.empty())
    return reportError("expected a file, got none; - is standard input");
  if (inputs.size() > 1)
    return reportError("expected one file, got '" + inputs[0] + "' and '" +
                       inputs[1] + "'");
  return inputs[0];
}

LogicalResult mlir::bngrad::verifySchedule(StringRef schedule,
                                           MLIRContext *context) {
  std::string reason;
  if (succeeded(parseSchedule(schedule, context, reason)))
    return success();
  return reportError("--schedule: " + reason);
}

void mlir::bngrad::prepareContext(MLIRContext &context) {
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  registerForeignDialects(registry);
  context.appendDialectRegistry(registry);
  // Dialects that are not linked in may have gradients to import.
  context.allowUnregisteredDialects();
}

std::string mlir::bngrad::getOwnLibrary(StringRef name) {
  static int anchor;
  SmallString<128> path(llvm::sys::fs::getMainExecutable(nullptr, &anchor));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::remove_filename(path);
  // The folder of the build, or the installed one.
  SmallString<128> installed(path);
  llvm::sys::path::append(path, "lib", name);
  llvm::sys::path::append(installed, BNGRAD_LIBDIR, name);
  bool isInstalled =
      !llvm::sys::fs::exists(path) && llvm::sys::fs::exists(installed);
  return (isInstalled ? installed : path).str().str();
}
