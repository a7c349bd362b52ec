//===- CompiledKernel.cpp - kernels compiled at run time ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledKernel.h"

#include "../../Compiler/Library/CacheEntry.h"
#include "../../Compiler/Library/CompilerLibrary.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace bngrad;

namespace {
/// A kernel, which is loaded by the first that locks the mutex.
struct Entry {
  std::mutex mutex;
  bool isLoaded = false;
  bngradKernel_t kernel = {};
};

/// Closes a file at the end.
class File {
public:
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0)
      close(descriptor);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  const int descriptor;
};
} // namespace

/// An environment variable; empty: it is not set.
static std::string getVariable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// The folder of the cache, which exists; empty: there is none.
static std::string findFolder() {
  std::string folder;
  if (std::getenv("BNGRAD_CACHE_DIR")) {
    folder = getVariable("BNGRAD_CACHE_DIR");
  } else if (std::string base = getVariable("XDG_CACHE_HOME"); !base.empty()) {
    folder = base + "/bngrad";
  } else if (std::string home = getVariable("HOME"); !home.empty()) {
    mkdir((home + "/.cache").c_str(), 0700);
    folder = home + "/.cache/bngrad";
  }
  if (folder.empty())
    return "";
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return "";
  // Code of others would run in this process.
  struct stat status;
  bool isOwn = stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
               status.st_uid == geteuid() &&
               (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return isOwn ? folder : "";
}

/// All of a file; empty: there is none.
static std::string readFile(const std::string &path) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  char chunk[1 << 14];
  ssize_t count;
  while ((count = read(file.descriptor, chunk, sizeof(chunk))) > 0)
    bytes.append(chunk, static_cast<size_t>(count));
  return bytes;
}

/// This CPU: its name and features.
static std::string describeCpu() {
  std::string text = readFile("/proc/cpuinfo"), described;
  // The first of several; the fields of x86-64, and of AArch64.
  text.resize(std::min(text.find("\n\n"), text.size()));
  for (const char *field : {"model name", "flags", "CPU part", "Features"}) {
    size_t start = text.find(std::string("\n") + field);
    if (start != std::string::npos)
      described += text.substr(start, text.find('\n', start + 1) - start);
  }
  return described;
}

/// The name of a kernel in the cache: of its source, the version and the CPU.
static std::string makeKey(const std::string &source) {
  std::string all = std::string(BNGRAD_VERSION) + describeCpu() + "\n" + source;
  char key[40];
  std::snprintf(
      key, sizeof(key), "%016llx%016llx",
      static_cast<unsigned long long>(hashBytes(all.data(), all.size())),
      static_cast<unsigned long long>(
          hashBytes(all.data(), all.size(), all.size())));
  return key;
}

/// The error of dlopen or dlsym.
static std::string takeLoaderError() {
  const char *text = dlerror();
  return text ? text : "a library: out of memory";
}

/// Loads a shared object from memory; an error, or empty.
static std::string loadKernel(const char *image, size_t size,
                              bngradKernel_t &kernel) {
  File file(memfd_create("bngrad", MFD_CLOEXEC));
  if (file.descriptor < 0)
    return "cannot create a file in memory";
  for (size_t done = 0; done < size;) {
    ssize_t count = write(file.descriptor, image + done, size - done);
    if (count <= 0)
      return "cannot write a file in memory";
    done += static_cast<size_t>(count);
  }
  // No two have one path: dlopen would take them for one library.
  static std::atomic<unsigned> number{0};
  std::string path = "/proc/self";
  for (unsigned rest = number++; rest != 0; rest /= 2)
    path += rest % 2 == 0 ? "/" : "/.";
  path += "/fd/" + std::to_string(file.descriptor);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return "cannot load " + takeLoaderError();
  kernel.call = reinterpret_cast<bngradPackedFunction_t>(
      dlsym(library, kCompiledPackedName));
  kernel.get_workspace_size = reinterpret_cast<size_t (*)(void *const *)>(
      dlsym(library, kCompiledWorkspaceName));
  if (kernel.call && kernel.get_workspace_size)
    return "";
  dlclose(library);
  return std::string("expected ") + kCompiledPackedName + ", got none";
}

/// The shared object of a kernel, from the cache; empty: there is none. A file
/// that is not as it was written does not count.
static std::string readCached(const std::string &path,
                              const std::string &text) {
  std::string bytes = readFile(path);
  CacheEntryHeader header;
  if (bytes.size() < sizeof(header))
    return "";
  std::memcpy(&header, bytes.data(), sizeof(header));
  size_t rest = bytes.size() - sizeof(header);
  bool isWhole = header.textSize == text.size() &&
                 header.imageSize == rest - text.size() &&
                 rest >= text.size() &&
                 bytes.compare(sizeof(header), text.size(), text) == 0;
  if (!isWhole)
    return "";
  std::string image = bytes.substr(sizeof(header) + text.size());
  CacheEntryHeader expected = makeCacheEntryHeader(text, image);
  return std::memcmp(&header, &expected, sizeof(header)) == 0 ? image : "";
}

/// The compiler; null: there is none, for the reason `error`.
static bngradCompileFunction_t findCompiler(std::string &error) {
  const char *given = std::getenv("BNGRAD_COMPILER");
  if (given && !*given) {
    error = "BNGRAD_COMPILER is empty";
    return nullptr;
  }
  void *library =
      dlopen(given ? given : BNGRAD_COMPILER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void *function = library ? dlsym(library, "bngradCompile") : nullptr;
  if (!function)
    error = takeLoaderError();
  return reinterpret_cast<bngradCompileFunction_t>(function);
}

/// Compiles a kernel, and keeps it in the cache.
static bool compile(const std::string &folder, const std::string &key,
                    const std::string &text, const CompiledTarget &target,
                    bngradKernel_t &kernel, bngradStatus_t &status,
                    std::string &error) {
  status = BNGRAD_COMPILER_NOT_FOUND;
  bngradCompileFunction_t compiler = findCompiler(error);
  if (!compiler)
    return false;
  status = BNGRAD_INTERNAL_ERROR;
  struct Result {
    bngradKernel_t &kernel;
    std::string error;
    bool isOutOfMemory;
  } result = {kernel, "", false};
  char message[512] = "";
  bngradCompileRequest_t request = {};
  request.struct_size = sizeof(request);
  request.text = text.data();
  request.text_size = text.size();
  if (!target.chip.empty()) {
    request.chip = target.chip.c_str();
    request.library = target.library.c_str();
  }
  request.in_halves = target.inHalves;
  request.folder = folder.empty() ? nullptr : folder.c_str();
  request.key = key.c_str();
  request.take = [](void *context, const char *image, size_t size) {
    auto &result = *static_cast<Result *>(context);
    // The compiler has no exceptions.
    try {
      result.error = loadKernel(image, size, result.kernel);
    } catch (const std::bad_alloc &) {
      result.isOutOfMemory = true;
    }
  };
  request.context = &result;
  request.error = message;
  request.error_size = sizeof(message);
  // An exception would leave the locks of the compiler as they are.
  int32_t code = [&]() noexcept { return compiler(&request); }();
  if (result.isOutOfMemory)
    throw std::bad_alloc();
  if (code == 0)
    error = result.error;
  else if (code == 2)
    error = "expected libBNGradCompiler.so of version " BNGRAD_VERSION
            ", got another one";
  else
    error = *message ? message : "cannot compile";
  return error.empty();
}

const bngradKernel_t *bngrad::findCompiledKernel(const std::string &text,
                                                 const CompiledTarget &target,
                                                 bngradStatus_t &status,
                                                 std::string &error) {
  // All that its code depends on, in this version and on this CPU. The compiler
  // reads the variable, too.
  std::string source =
      getVariable("BNGRAD_ISA") + "\n" + target.library + target.chip + text;
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Entry>> entries;
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<Entry> &found = entries[source];
    if (!found)
      found = std::make_shared<Entry>();
    entry = found;
  }
  std::lock_guard<std::mutex> lock(entry->mutex);
  if (entry->isLoaded)
    return &entry->kernel;
  std::string folder = findFolder(), key = makeKey(source);
  std::string image;
  if (!folder.empty())
    image = readCached(folder + "/" + getCacheFileName(key), text);
  if (image.empty()) {
    entry->isLoaded =
        compile(folder, key, text, target, entry->kernel, status, error);
  } else {
    status = BNGRAD_INTERNAL_ERROR;
    error = loadKernel(image.data(), image.size(), entry->kernel);
    entry->isLoaded = error.empty();
  }
  return entry->isLoaded ? &entry->kernel : nullptr;
}
