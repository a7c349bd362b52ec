//===- ShardedRun.cpp - a program of several processes --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardedRun.h"

#include "Arguments.h"
#include "Benchmark.h"
#include "Check.h"
#include "Processes.h"

#include "common/Diagnostics.h"
#include "common/Outputs.h"

#include "BNGrad/Reference/Npy.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;
using ::bngrad::ArrayPart;

/// Reads or generates this process's parts of the arguments.
LogicalResult ShardedRun::makeParts() {
  sharding.sizes = options.shards;
  if (failed(sharding.verifySizes()))
    return failure();
  auto findPart = [&](unsigned i, ArrayRef<int64_t> shape,
                      std::string &error) -> FailureOr<ArrayPart> {
    FailureOr<ArrayPart> found = sharding.getPart(sharding.arguments[i], shape,
                                                  Processes::getRank(), error);
    ArrayRef<int64_t> expected = part.getArgumentTypes()[i].shape;
    if (failed(found) ||
        succeeded(verifyCompatibleShape(expected, found->shape)))
      return found;
    error = "expected shape " + printShape(expected) + " of a part, got " +
            printShape(found->shape);
    return failure();
  };
  FailureOr<std::vector<Array>> made =
      makeArguments(whole, options.arguments, findPart, &argumentShapes);
  if (failed(made))
    return failure();
  arguments = std::move(*made);
  return success();
}

LogicalResult ShardedRun::compile() {
  return success(succeeded(part.compile(execution)) &&
                 succeeded(whole.compileShapes(part)));
}

/// Checks sizes, and allocates the results.
LogicalResult ShardedRun::prepare() {
  // Shapes without data.
  std::vector<Array> shapes(arguments.size());
  for (auto [i, array] : llvm::enumerate(shapes)) {
    array.type = arguments[i].type;
    array.shape = argumentShapes[i];
  }
  FailureOr<ArrayRef<ArrayType>> types = whole.computeResultTypes(shapes);
  if (failed(types))
    return failure();
  for (const ArrayType &type : *types)
    resultShapes.push_back(type.shape);
  FailureOr<std::vector<Array>> prepared = part.prepareResults(arguments);
  if (failed(prepared))
    return failure();
  results = std::move(*prepared);
  for (auto [i, result] : llvm::enumerate(results)) {
    std::string error;
    FailureOr<ArrayPart> found = sharding.getPart(
        sharding.results[i], resultShapes[i], Processes::getRank(), error);
    if (failed(found))
      return reportError("result " + Twine(i) + ": " + error);
    if (found->shape != result.shape)
      return reportError("result " + Twine(i) + ": expected a part of shape " +
                         printShape(found->shape) + ", got " +
                         printShape(result.shape));
    resultParts.push_back(std::move(*found));
  }
  return success();
}

/// Writes this process's part of result `i` to the file at `path`, which
/// already has a header.
LogicalResult ShardedRun::writePart(size_t i, StringRef path) {
  if (!sharding.isFirstOfPart(sharding.results[i], Processes::getRank()))
    return success();
  auto fail = [&](const Twine &reason) {
    return reportError(options.results[i] + ": cannot write: " + reason);
  };
  int descriptor;
  if (std::error_code error = llvm::sys::fs::openFileForWrite(
          path, descriptor, llvm::sys::fs::CD_OpenExisting))
    return fail(error.message());
  std::string error;
  bool isWritten = ::bngrad::writeNpyPart(descriptor, resultShapes[i],
                                          resultParts[i], results[i], error);
  std::error_code closed =
      llvm::sys::Process::SafelyCloseFileDescriptor(descriptor);
  if (!isWritten)
    return fail(error);
  return closed ? fail(closed.message()) : success();
}

/// Writes result `i`, which the first process has completely, in place.
LogicalResult ShardedRun::writeAlone(size_t i, StringRef path) {
  if (results[i].shape != resultShapes[i])
    return reportError("expected a file for result " + Twine(i) +
                       ", which is spread over processes, got '" + path + "'");
  Outputs outputs;
  auto write = [&](int descriptor, std::string &error) {
    return ::bngrad::writeNpy(descriptor, results[i], error);
  };
  return Processes::getRank() == 0 ? outputs.add(path, write) : success();
}

/// Writes the results: the first process creates each file, and all write their
/// parts.
LogicalResult ShardedRun::write() {
  Outputs outputs;
  for (auto [i, path] : llvm::enumerate(options.results)) {
    if (path == "-")
      continue;
    if (isWrittenInPlace(path)) {
      if (failed(Processes::agree(writeAlone(i, path))))
        return failure();
      continue;
    }
    std::string name;
    LogicalResult created = success();
    if (Processes::getRank() == 0) {
      FailureOr<std::string> added = outputs.addForProcess(path);
      std::string error;
      int descriptor;
      created = added;
      if (succeeded(added) &&
          !llvm::sys::fs::openFileForWrite(*added, descriptor,
                                           llvm::sys::fs::CD_OpenExisting)) {
        if (!::bngrad::writeNpyHeader(descriptor, results[i].type,
                                      resultShapes[i], error))
          created = reportError(Twine(path) + ": cannot write: " + error);
        (void)llvm::sys::Process::SafelyCloseFileDescriptor(descriptor);
        name = *added;
      }
    }
    if (failed(Processes::agree(created)))
      return failure();
    FailureOr<std::string> shared = Processes::broadcast(name);
    if (failed(shared) || failed(Processes::agree(writePart(i, *shared))))
      return failure();
  }
  return Processes::agree(outputs.keep());
}

/// Compares with the reference of the whole batch.
LogicalResult ShardedRun::check() {
  FailureOr<std::vector<Array>> wholeArguments =
      makeArguments(whole, options.arguments);
  if (failed(wholeArguments))
    return failure();
  if (succeeded(checkResults(whole, *wholeArguments, results, resultParts)))
    return success();
  return reportError("--check: expected all results to be within their bounds, "
                     "got one that is not");
}

LogicalResult ShardedRun::run(function_ref<LogicalResult()> verify,
                              function_ref<LogicalResult()> finish) {
  // Report all errors of the command line at once.
  LogicalResult verified = verify();
  LogicalResult made = makeParts();
  if (failed(
          Processes::agree(success(succeeded(verified) && succeeded(made)))) ||
      failed(Processes::agree(compile())) ||
      failed(Processes::agree(prepare())))
    return failure();
  LogicalResult ran = part.run(arguments, results);
  // If a process is lost, skip the final barrier.
  if (failed(
          Processes::agree(success(succeeded(ran) && succeeded(finish())))) ||
      failed(write()))
    return failure();
  if (options.check && failed(Processes::agree(check())))
    return failure();
  if (!options.benchmark)
    return success();
  return Processes::agree(benchmark(part, arguments, results,
                                    *options.benchmark,
                                    /*isPrinted=*/Processes::getRank() == 0));
}
