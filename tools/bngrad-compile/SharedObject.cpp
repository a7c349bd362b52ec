//===- SharedObject.cpp - links shared objects ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedObject.h"

#include "common/Diagnostics.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::bngrad;
namespace fs = llvm::sys::fs;

/// Writes all of `content` to `descriptor`, and closes it.
static std::error_code write(int descriptor, StringRef content) {
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << content;
  os.close();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

namespace {
/// The first linker on PATH.
struct Linker {
  std::string program;
  bool isDriver = false; // a compiler, which finds libraries itself
};
} // namespace

static FailureOr<Linker> findLinker() {
  for (StringRef name : {"clang-22", "clang", "cc", "gcc"})
    if (auto program = llvm::sys::findProgramByName(name))
      return Linker{*program, true};
  for (StringRef name : {"ld.lld-22", "ld.lld", "ld"})
    if (auto program = llvm::sys::findProgramByName(name))
      return Linker{*program, false};
  return reportError("expected clang-22, clang, cc, gcc, ld.lld-22, ld.lld or "
                     "ld on PATH to link a .so, got none");
}

LogicalResult mlir::bngrad::addSharedObject(Outputs &outputs, StringRef path,
                                            StringRef object,
                                            ArrayRef<std::string> libraries,
                                            bool besideToo) {
  FailureOr<Linker> linker = findLinker();
  if (failed(linker))
    return failure();
  SmallString<64> objectPath, logPath;
  int objectDescriptor;
  if (std::error_code error = fs::createTemporaryFile(
          "bngrad-compile", "o", objectDescriptor, objectPath))
    return reportError("temporary file: cannot write: " + error.message());
  llvm::FileRemover removeObject(objectPath);
  std::error_code error = write(objectDescriptor, object);
  if (!error)
    error = fs::createTemporaryFile("bngrad-compile", "log", logPath);
  llvm::FileRemover removeLog(logPath);
  if (error)
    return reportError("temporary file: cannot write: " + error.message());
  FailureOr<std::string> temporary = outputs.addForProcess(path);
  if (failed(temporary))
    return failure();

  StringRef name = llvm::sys::path::filename(path);
  SmallVector<StringRef> options = {
      "--as-needed", "--no-undefined", "-z", "relro", "-z",
      "now",         "-soname",        name};
  if (besideToo)
    options.append({"-rpath", "$ORIGIN"});
  for (StringRef library : libraries)
    options.append({"-rpath", llvm::sys::path::parent_path(library)});
  SmallVector<StringRef> args = {linker->program, "-shared"};
  for (StringRef option : options) {
    // A driver passes these flags on.
    if (linker->isDriver)
      args.push_back("-Xlinker");
    args.push_back(option);
  }
  if (!linker->isDriver)
    args.append({"-L/usr/local/lib", "-L/lib64", "-L/usr/lib64", "-L/lib",
                 "-L/usr/lib", "-L/usr/lib/x86_64-linux-gnu",
                 "-L/usr/lib/aarch64-linux-gnu"});
  args.append({"-o", *temporary, objectPath});
  llvm::append_range(args, libraries);
  args.append({"-lm", "-lc"});

  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(logPath),
                                          StringRef(logPath)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(linker->program, args, std::nullopt,
                                         redirects, 0, 0, &message);
  if (status != 0) {
    if (auto log = llvm::MemoryBuffer::getFile(logPath))
      if (StringRef text = (*log)->getBuffer().trim(); !text.empty())
        message = text.split('\n').first.str();
    return reportError(path + ": linking with " + linker->program +
                       " failed: " + message);
  }
  return success();
}
