//===- Link.cpp - shared objects in memory --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// lld writes a regular file through a temporary file, for which LLVM installs
// signal handlers that would replace the program's. So the output is a pipe:
// lld writes to it directly, and a thread reads it.
//
//===----------------------------------------------------------------------===//

#include "Link.h"

#include "MemoryFile.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// Closes a file descriptor on destruction.
class File {
public:
  explicit File(int descriptor = -1) : descriptor(descriptor) {}
  ~File() { reset(); }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  void reset(int other = -1) {
    if (descriptor >= 0)
      close(descriptor);
    descriptor = other;
  }
  int get() const { return descriptor; }
  /// The name of the open file in this process.
  std::string getPath() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  int descriptor;
};

/// Reads a pipe to its end in a separate thread.
class PipeReader {
public:
  PipeReader() = default;
  ~PipeReader() { (void)finish(); }

  /// False, with the reason in errno, if there is no pipe or no thread.
  bool start();
  std::string getPath() const { return toWrite.getPath(); }
  /// Returns all that was written.
  std::string finish();

private:
  void read();

  File toRead, toWrite;
  std::optional<pthread_t> thread;
  std::string bytes;
};
} // namespace

void PipeReader::read() {
  char chunk[1 << 14];
  for (;;) {
    ssize_t count = ::read(toRead.get(), chunk, sizeof(chunk));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return;
    bytes.append(chunk, static_cast<size_t>(count));
  }
}

bool PipeReader::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return false;
  toRead.reset(ends[0]);
  toWrite.reset(ends[1]);
  // Leave signals to the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t created;
  errno = pthread_create(
      &created, nullptr,
      [](void *reader) -> void * {
        static_cast<PipeReader *>(reader)->read();
        return nullptr;
      },
      this);
  int code = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = code;
  if (code == 0)
    thread = created;
  return code == 0;
}

std::string PipeReader::finish() {
  // The reader ends when no write end is open.
  toWrite.reset();
  if (thread)
    pthread_join(*thread, nullptr);
  thread.reset();
  return std::move(bytes);
}

/// Writes `object` to a file in memory.
static bool writeObject(StringRef object, File &file) {
  file.reset(memfd_create("bngrad.o", MFD_CLOEXEC));
  while (!object.empty()) {
    ssize_t count = write(file.get(), object.data(), object.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    object = object.drop_front(static_cast<size_t>(count));
  }
  return true;
}

FailureOr<std::string> mlir::bngrad::link(StringRef object, const char *library,
                                          std::string &error) {
  if (const char *reason = ::bngrad::findNamesError()) {
    error = std::string("cannot link: ") + reason;
    return failure();
  }
  File input;
  PipeReader output;
  if (!writeObject(object, input) || !output.start()) {
    error = "cannot write an object file in memory: " +
            std::string(std::strerror(errno));
    return failure();
  }
  std::string inputPath = input.getPath(), outputPath = output.getPath();
  // There is no -lc or -lm, because the process already has both libraries.
  // There is one thread, because a forked child would lack the threads of lld.
  SmallVector<const char *> arguments = {"ld.lld",
                                         "-shared",
                                         "--threads=1",
                                         "-z",
                                         "relro",
                                         "-z",
                                         "now",
                                         "-o",
                                         outputPath.c_str(),
                                         inputPath.c_str()};
  if (library)
    arguments.push_back(library);
  std::string text;
  llvm::raw_string_ostream os(text);
  // lld has global state. fork() waits until no compilation runs, so this lock
  // is free in the child.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  lld::Result result =
      lld::lldMain(arguments, os, os, {{lld::Gnu, &lld::elf::link}});
  std::string image = output.finish();
  if (result.retCode == 0)
    return image;
  error = "cannot link: " + StringRef(text).trim().split('\n').first.str();
  return failure();
}
