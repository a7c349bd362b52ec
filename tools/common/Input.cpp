//===- Input.cpp - reads IR files -----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "common/Input.h"
#include "common/Diagnostics.h"

#include "BNGrad/Dialect/Nesting.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"

#include <unistd.h>

using namespace mlir;
using namespace mlir::bngrad;

/// The limit for inputs other than regular files, as they may be endless.
static constexpr size_t kMostBytes = size_t(1) << 30;

/// The bytes of `path` ("-" for standard input); null and an error on failure.
static std::unique_ptr<llvm::MemoryBuffer> readInput(StringRef path,
                                                     std::string &error) {
  namespace fs = llvm::sys::fs;
  fs::file_status status;
  std::error_code code =
      path == "-" ? fs::status(STDIN_FILENO, status) : fs::status(path, status);
  if (code || fs::is_regular_file(status) || fs::is_directory(status))
    return openInputFile(path, &error);
  llvm::Expected<fs::file_t> file =
      path == "-" ? llvm::Expected<fs::file_t>(fs::getStdinHandle())
                  : fs::openNativeFileForRead(path);
  auto fail = [&](const Twine &why) {
    error = ("cannot open input file '" + path + "': " + why).str();
    return nullptr;
  };
  if (!file)
    return fail(llvm::toString(file.takeError()));
  llvm::scope_exit close([&] {
    if (path != "-")
      (void)fs::closeFile(*file);
  });
  std::string bytes;
  constexpr size_t kChunk = size_t(1) << 20;
  while (bytes.size() <= kMostBytes) {
    size_t size = bytes.size();
    bytes.resize(size + kChunk);
    llvm::Expected<size_t> count =
        fs::readNativeFile(*file, {bytes.data() + size, kChunk});
    if (!count)
      return fail(llvm::toString(count.takeError()));
    bytes.resize(size + *count);
    if (*count == 0)
      return llvm::MemoryBuffer::getMemBufferCopy(bytes, path == "-" ? "<stdin>"
                                                                     : path);
  }
  return fail("expected at most 2^30 bytes of what is no file, got more");
}

OwningOpRef<ModuleOp> mlir::bngrad::readModule(MLIRContext *context,
                                               StringRef path) {
  if (path.empty()) {
    (void)reportError("expected a file, got ''");
    return {};
  }
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = readInput(path, error);
  if (!buffer) {
    (void)reportError(error);
    return {};
  }
  setInputName(buffer->getBufferIdentifier());
  OneLineDiagnostics diagnostics(context);
  return parseModule(std::move(buffer), context);
}
