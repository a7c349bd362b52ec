//===- Outputs.cpp - files that are written whole or not at all -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "common/Outputs.h"
#include "common/Diagnostics.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::bngrad;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static LogicalResult reportUnwritable(StringRef path, const Twine &why) {
  return reportError(path + ": cannot write: " + why);
}

/// The open descriptor that `path` names.
static std::optional<int> getDescriptor(StringRef path) {
  if (path == "/dev/stdout")
    return STDOUT_FILENO;
  if (path == "/dev/stderr")
    return STDERR_FILENO;
  int descriptor;
  if ((path.consume_front("/dev/fd/") ||
       path.consume_front("/proc/self/fd/")) &&
      !path.getAsInteger(10, descriptor) && descriptor >= 0)
    return descriptor;
  return std::nullopt;
}

bool mlir::bngrad::isWrittenInPlace(StringRef path) {
  fs::file_status status;
  return getDescriptor(path) ||
         (!fs::status(path, status) &&
          (status.type() == fs::file_type::character_file ||
           status.type() == fs::file_type::fifo_file));
}

/// `path` with links resolved, to the existing or future file.
static std::string resolve(StringRef path) {
  SmallString<256> real;
  if (!fs::real_path(path, real))
    return real.str().str();
  StringRef folder = path::parent_path(path);
  if (fs::real_path(folder.empty() ? "." : folder, real))
    return path.str();
  path::append(real, path::filename(path));
  return real.str().str();
}

bool mlir::bngrad::isSameFile(StringRef left, StringRef right) {
  return resolve(left) == resolve(right) || fs::equivalent(left, right);
}

std::string mlir::bngrad::findWriteError(StringRef path) {
  if (std::optional<int> descriptor = getDescriptor(path))
    return ::fcntl(*descriptor, F_GETFL) == -1
               ? std::generic_category().message(errno)
               : std::string();
  auto toText = [](std::error_code error) {
    return error ? error.message() : std::string();
  };
  auto toTextOf = [&](std::errc error) {
    return toText(std::make_error_code(error));
  };
  fs::file_status status;
  if (!fs::status(path, status)) {
    if (fs::is_directory(status))
      return toTextOf(std::errc::is_a_directory);
    if (!isWrittenInPlace(path) && !fs::is_regular_file(status))
      return "expected a file, a pipe or a device that takes characters";
    if (std::error_code error = fs::access(path, fs::AccessMode::Write);
        error || isWrittenInPlace(path))
      return toText(error);
  }
  // A temporary file in the same folder is written and then renamed.
  std::string target = resolve(path);
  StringRef folder = path::parent_path(target);
  if (folder.empty())
    folder = ".";
  if (fs::exists(folder) && !fs::is_directory(folder))
    return toTextOf(std::errc::not_a_directory);
  return toText(fs::access(folder, fs::AccessMode::Write));
}

Outputs::~Outputs() {
  for (const File &file : files) {
    (void)fs::remove(file.temporary);
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  }
}

/// Creates the temporary file, and returns a descriptor to write to.
FailureOr<int> Outputs::create(StringRef path) {
  std::string target = resolve(path);
  // In the same folder, so that it can be renamed. The length is independent of
  // the name's, which may be the maximum.
  SmallString<256> temporary;
  int descriptor;
  for (unsigned number = files.size();; ++number) {
    temporary = path::parent_path(target);
    path::append(temporary, ".bngrad-" +
                                Twine(llvm::sys::Process::getProcessId()) +
                                "-" + Twine(number) + ".tmp");
    // Register it before it exists, as this allocates and may end the process.
    llvm::sys::RemoveFileOnSignal(temporary);
    std::error_code error =
        fs::openFileForWrite(temporary, descriptor, fs::CD_CreateNew);
    if (!error)
      break;
    llvm::sys::DontRemoveFileOnSignal(temporary);
    // Skip files left by another process with this id.
    if (error != std::errc::file_exists)
      return reportUnwritable(path, error.message());
  }
  // Report a file that grows too large as its own error. LLVM makes this signal
  // end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  files.push_back({path.str(), target, temporary.str().str()});
  fs::file_status status;
  if (!fs::status(target, status))
    (void)fs::setPermissions(temporary, status.permissions());
  return descriptor;
}

/// Opens an output that is written in place; -1 and errno if that fails.
static int openInPlace(StringRef path) {
  if (std::optional<int> descriptor = getDescriptor(path))
    return ::dup(*descriptor);
  // Non-blocking, or opening a pipe that nobody reads would hang.
  int descriptor =
      ::open(path.str().c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor >= 0)
    (void)::fcntl(descriptor, F_SETFL, O_WRONLY);
  return descriptor;
}

LogicalResult Outputs::add(StringRef path, Writer write) {
  int descriptor;
  if (isWrittenInPlace(path)) {
    descriptor = openInPlace(path);
    if (descriptor < 0)
      return reportUnwritable(
          path, errno == ENXIO ? "nobody reads this pipe"
                               : std::generic_category().message(errno));
  } else {
    FailureOr<int> created = create(path);
    if (failed(created))
      return failure();
    descriptor = *created;
  }
  std::string error;
  bool isWritten = write(descriptor, error);
  std::error_code closed =
      llvm::sys::Process::SafelyCloseFileDescriptor(descriptor);
  if (!isWritten)
    return reportUnwritable(path, error);
  if (closed)
    return reportUnwritable(path, closed.message());
  return success();
}

LogicalResult Outputs::add(StringRef path, StringRef content) {
  return add(path, [&](int descriptor, std::string &error) {
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/false);
    os << content;
    os.flush();
    error = os.error().message();
    bool isWritten = !os.has_error();
    os.clear_error();
    return isWritten;
  });
}

FailureOr<std::string> Outputs::addForProcess(StringRef path) {
  FailureOr<int> descriptor = create(path);
  if (failed(descriptor))
    return failure();
  (void)llvm::sys::Process::SafelyCloseFileDescriptor(*descriptor);
  return files.back().temporary;
}

LogicalResult Outputs::keep() {
  LogicalResult result = success();
  for (const File &file : files) {
    if (std::error_code error = fs::rename(file.temporary, file.target)) {
      result = reportUnwritable(file.path, error.message());
      (void)fs::remove(file.temporary);
    }
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  }
  files.clear();
  return result;
}
