//===- Diagnostics.cpp - one-line errors ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "common/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Compiler.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <new>
#include <unistd.h>

using namespace mlir;
using namespace mlir::bngrad;

static constexpr StringLiteral kDefaultToolName = "bngrad";
static StringRef toolName = kDefaultToolName;
static std::string inputName;
static std::function<void(StringRef)> errorHandler;

void mlir::bngrad::setToolName(StringRef name) { toolName = name; }

void mlir::bngrad::setErrorHandler(std::function<void(StringRef)> handler) {
  errorHandler = std::move(handler);
}

void mlir::bngrad::setInputName(StringRef name) { inputName = name.str(); }

/// The name of the tool, or of the program until main has set it.
static StringRef getToolName() {
#ifdef __GLIBC__
  if (toolName == kDefaultToolName)
    return program_invocation_short_name;
#endif
  return toolName;
}

/// Reports a fatal error and ends the process. Allocates nothing. If several
/// threads fail at the same time, one reports.
[[noreturn]] static void exitWithError(StringRef reason) {
  static std::atomic_flag isReported;
  thread_local bool isExiting = false;
  if (isReported.test_and_set()) {
    // An interrupt handler below has failed as well.
    if (isExiting)
      ::_exit(1);
    for (;;)
      ::pause();
  }
  isExiting = true;
  StringRef name = getToolName();
  // Write once, as other threads may write at the same time.
  std::array<char, 512> line;
  int length = std::snprintf(line.data(), line.size(), "%.*s: error: %.*s\n",
                             static_cast<int>(name.size()), name.data(),
                             static_cast<int>(reason.size()), reason.data());
  if (length > 0)
    (void)!::write(STDERR_FILENO, line.data(),
                   std::min<size_t>(length, line.size() - 1));
  // Removes incomplete files.
  llvm::sys::RunInterruptHandlers();
  ::_exit(1);
}

[[noreturn]] static void exitOutOfMemory() { exitWithError("out of memory"); }

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                    \
    !LLVM_ADDRESS_SANITIZER_BUILD
/// No caller handles a failed allocation of fewer bytes.
static constexpr size_t kSmallAllocation = 1 << 20;

/// MLIR writes to the memory of each new op and dialect interface without
/// checking the pointer.
static void *orExit(void *memory, size_t size) {
  if (!memory && size < kSmallAllocation)
    exitOutOfMemory();
  return memory;
}

extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size) { return orExit(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) {
  size_t bytes = 0;
  bool isLarge = __builtin_mul_overflow(count, size, &bytes);
  return orExit(__libc_calloc(count, size), isLarge ? SIZE_MAX : bytes);
}
}
#endif

void mlir::bngrad::reportOutOfMemory() {
  std::set_new_handler(exitOutOfMemory);
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { exitOutOfMemory(); });
  // For example, if a thread cannot be created.
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    exitWithError(StringRef(reason).split('\n').first);
  });
}

LogicalResult mlir::bngrad::reportError(const Twine &message) {
  std::string text = message.str();
  StringRef firstLine = StringRef(text).split('\n').first;
  if (errorHandler) {
    errorHandler(firstLine);
    return failure();
  }
  // Write once, as processes of a job may share standard error.
  llvm::errs() << (toolName + ": error: " + firstLine + "\n").str();
  return failure();
}

std::string mlir::bngrad::printLocation(Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // A module that the text does not contain has line 0.
  if (auto file = location->findInstanceOf<FileLineColLoc>();
      file && file.getLine() != 0)
    os << file.getFilename().getValue() << ":" << file.getLine() << ":"
       << file.getColumn();
  else
    os << inputName;
  return text;
}

void mlir::bngrad::printVersion(raw_ostream &os) {
  os << "BNGrad version " << BNGRAD_VERSION << "\nLLVM version "
     << LLVM_VERSION_STRING << "\n";
}

OneLineDiagnostics::OneLineDiagnostics(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return success();
        if (!hasReported)
          (void)reportError(printLocation(diagnostic.getLocation()) + ": " +
                            diagnostic.str());
        hasReported = true;
        return success();
      }) {}
