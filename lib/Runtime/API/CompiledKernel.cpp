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
#include "../../Compiler/Library/MemoryFile.h"
#include "Loader.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace bngrad;

namespace {
/// A kernel. The first thread that locks the mutex loads it.
struct Entry {
  explicit Entry(bool isKept) : isKept(isKept) {}
  Entry(const Entry &) = delete;
  Entry &operator=(const Entry &) = delete;
  ~Entry() {
    if (!library)
      return;
    LoaderLock lock;
    dlclose(library);
  }

  std::mutex mutex;
  /// Whether a thread is loading it.
  std::atomic<bool> isLoading{false};
  /// Its functions are null until it is loaded.
  bngradKernel_t kernel = {};
  /// The library that contains it; null if it is never unloaded.
  void *library = nullptr;
  /// Whether it is never removed.
  const bool isKept;
  /// When it was last requested, on the clock of the table.
  uint64_t lastUse = 0;
};

/// The kernels of the process.
class Table {
public:
  /// The entry of a source; a new one is never removed if `isKept`.
  std::shared_ptr<Entry> find(const std::string &source, bool isKept);
  /// Removes the oldest unused entries if there are too many.
  void removeOld();
  /// See mayHaveOwnKernel.
  bool addSizes(const std::string &anySizes, const std::string &text);

  void lock() { mutex.lock(); }
  void unlock() { mutex.unlock(); }
  /// Resets the locks in the child of a fork, where no thread is loading.
  void reset();

private:
  /// Each takes about 100 KB.
  static constexpr ptrdiff_t kMostEntries = 128;

  /// Not held while a kernel is loaded or compiled.
  std::mutex mutex;
  uint64_t clock = 0;
  std::map<std::string, std::shared_ptr<Entry>> entries;
  /// The texts for some sizes beside a text for any sizes.
  std::map<std::string, std::set<std::string>> sizesOf;
};

/// Closes a file descriptor on destruction.
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

/// Created when the library is loaded and never destroyed: threads may still
/// call the library while the process ends.
static Table *table;

[[gnu::constructor]] static void makeTable() {
  alignas(Table) static char memory[sizeof(Table)];
  table = new (memory) Table;
  pthread_atfork([] { table->lock(); }, [] { table->unlock(); },
                 [] { table->reset(); });
}

std::shared_ptr<Entry> Table::find(const std::string &source, bool isKept) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = entries.find(source);
  if (found == entries.end())
    found = entries.emplace(source, std::make_shared<Entry>(isKept)).first;
  found->second->lastUse = ++clock;
  return found->second;
}

void Table::removeOld() {
  std::vector<std::shared_ptr<Entry>> removed; // destroyed after unlocking
  std::lock_guard<std::mutex> lock(mutex);
  auto numRemovable = std::count_if(entries.begin(), entries.end(),
                                    [](const auto &sourceAndEntry) {
                                      return !sourceAndEntry.second->isKept;
                                    });
  for (; numRemovable > kMostEntries; --numRemovable) {
    auto oldest = entries.end();
    for (auto it = entries.begin(); it != entries.end(); ++it) {
      // Another thread can only get it from the table.
      const std::shared_ptr<Entry> &entry = it->second;
      if (!entry->isKept && entry.use_count() == 1 &&
          (oldest == entries.end() || entry->lastUse < oldest->second->lastUse))
        oldest = it;
    }
    if (oldest == entries.end())
      return;
    removed.push_back(std::move(oldest->second));
    entries.erase(oldest);
  }
}

bool Table::addSizes(const std::string &anySizes, const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  std::set<std::string> &texts = sizesOf[anySizes];
  if (texts.size() < kMostSizes)
    texts.insert(text);
  return texts.count(text) != 0;
}

void Table::reset() {
  new (&mutex) std::mutex;
  for (auto it = entries.begin(); it != entries.end();) {
    Entry &entry = *it->second;
    if (entry.isLoading) {
      it = entries.erase(it);
      continue;
    }
    // A thread that no longer exists may have held it.
    new (&entry.mutex) std::mutex;
    ++it;
  }
}

/// An environment variable; empty if it is not set.
static std::string getVariable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// The existing folder of the cache; empty if there is none.
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
  // Otherwise other users could run code in this process.
  struct stat status;
  bool isOwn = stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
               status.st_uid == geteuid() &&
               (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return isOwn ? folder : "";
}

/// Appends at most `most` bytes of a file.
static void readFrom(const File &file, size_t most, std::string &bytes) {
  char chunk[1 << 14];
  while (most > 0) {
    ssize_t count = read(file.descriptor, chunk, std::min(most, sizeof(chunk)));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return;
    bytes.append(chunk, static_cast<size_t>(count));
    most -= static_cast<size_t>(count);
  }
}

/// This CPU: its name and features.
static std::string describeCpu() {
  // Much more than the entry of the first CPU.
  constexpr size_t kMostBytes = 1 << 16;
  std::string text, described;
  readFrom(File(open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC)), kMostBytes, text);
  // Keep the first CPU's entry, and its fields on x86-64 and AArch64.
  text.resize(std::min(text.find("\n\n"), text.size()));
  for (const char *field : {"model name", "flags", "CPU part", "Features"}) {
    size_t start = text.find(std::string("\n") + field);
    if (start != std::string::npos)
      described += text.substr(start, text.find('\n', start + 1) - start);
  }
  return described;
}

/// The name of a kernel in the cache, from its source, version and CPU.
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

/// Loads a shared object from memory; returns an error, or empty. It is
/// unloaded with the entry if `isUnloaded`.
static std::string loadKernel(const std::string &image, bool isUnloaded,
                              Entry &entry) {
  if (const char *reason = findNamesError())
    return std::string("cannot load a kernel: ") + reason;
  File file(memfd_create("bngrad", MFD_CLOEXEC));
  if (file.descriptor < 0)
    return "cannot create a file in memory";
  for (size_t done = 0; done < image.size();) {
    ssize_t count =
        write(file.descriptor, image.data() + done, image.size() - done);
    if (count <= 0)
      return "cannot write a file in memory";
    done += static_cast<size_t>(count);
  }
  // Each image needs its own path; dlopen would take two images with the same
  // path for one library.
  static std::atomic<unsigned> number{0};
  std::string path = "/proc/self";
  for (unsigned rest = number++; rest != 0; rest /= 2)
    path += rest % 2 == 0 ? "/" : "/.";
  path += "/fd/" + std::to_string(file.descriptor);
  LoaderLock lock;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return "cannot load " + takeLoaderError();
  bngradKernel_t kernel = {};
  kernel.call = reinterpret_cast<bngradPackedFunction_t>(
      dlsym(library, kCompiledPackedName));
  kernel.get_workspace_size = reinterpret_cast<size_t (*)(void *const *)>(
      dlsym(library, kCompiledWorkspaceName));
  if (!kernel.call || !kernel.get_workspace_size) {
    dlclose(library);
    return std::string("expected ") + kCompiledPackedName + ", got none";
  }
  entry.kernel = kernel;
  if (isUnloaded)
    entry.library = library;
  return "";
}

/// The shared object of a kernel, from the cache; empty if there is none.
/// Ignores files that were changed after they were written, and anything but
/// regular files: a pipe or a device might have no end.
static std::string readCached(const std::string &path,
                              const std::string &text) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0 ||
      !S_ISREG(status.st_mode))
    return "";
  CacheEntryHeader header;
  std::string start, rest;
  readFrom(file, sizeof(header), start);
  if (start.size() < sizeof(header))
    return "";
  std::memcpy(&header, start.data(), sizeof(header));
  auto size = static_cast<uint64_t>(status.st_size) - sizeof(header);
  if (header.textSize != text.size() || size < text.size() ||
      header.imageSize != size - text.size())
    return "";
  readFrom(file, size, rest);
  if (rest.size() != size || rest.compare(0, text.size(), text) != 0)
    return "";
  std::string image = rest.substr(text.size());
  CacheEntryHeader expected = makeCacheEntryHeader(text, image);
  return std::memcmp(&header, &expected, sizeof(header)) == 0 ? image : "";
}

/// The compiler; null if there is none, with the reason in `error`.
static bngradCompileFunction_t findCompiler(std::string &error) {
  const char *given = std::getenv("BNGRAD_COMPILER");
  if (given && !*given) {
    error = "BNGRAD_COMPILER is empty";
    return nullptr;
  }
  LoaderLock lock;
  void *library =
      dlopen(given ? given : BNGRAD_COMPILER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void *function = library ? dlsym(library, "bngradCompile") : nullptr;
  if (!function) {
    error = takeLoaderError();
    return nullptr;
  }
  lock.watch(reinterpret_cast<bngradHoldCompilationsFunction_t>(
                 dlsym(library, "bngradHoldCompilations")),
             reinterpret_cast<bngradReleaseCompilationsFunction_t>(
                 dlsym(library, "bngradReleaseCompilations")));
  return reinterpret_cast<bngradCompileFunction_t>(function);
}

/// Compiles a kernel to a shared object, which the compiler also stores in the
/// cache; empty on an error.
static std::string compile(const std::string &folder, const std::string &key,
                           const std::string &text,
                           const CompiledTarget &target, bngradStatus_t &status,
                           std::string &error) {
  status = BNGRAD_COMPILER_NOT_FOUND;
  bngradCompileFunction_t compiler = findCompiler(error);
  if (!compiler)
    return "";
  status = BNGRAD_INTERNAL_ERROR;
  struct Result {
    std::string image;
    bool isOutOfMemory;
  } result = {"", false};
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
    // The compiler is built without exceptions.
    try {
      result.image.assign(image, size);
    } catch (const std::bad_alloc &) {
      result.isOutOfMemory = true;
    }
  };
  request.context = &result;
  request.error = message;
  request.error_size = sizeof(message);
  // An exception would leave the compiler's locks held.
  int32_t code = [&]() noexcept { return compiler(&request); }();
  if (result.isOutOfMemory)
    throw std::bad_alloc();
  if (code == 2)
    error = "expected libBNGradCompiler.so of version " BNGRAD_VERSION
            ", got another one";
  else if (code != 0)
    error = *message ? message : "cannot compile";
  return code == 0 ? std::move(result.image) : "";
}

/// Loads the kernel of an entry, whose mutex is held.
static void load(const std::string &source, const std::string &text,
                 const CompiledTarget &target, Entry &entry,
                 bngradStatus_t &status, std::string &error) {
  std::string folder = findFolder(), key = makeKey(source), image;
  if (!folder.empty())
    image = readCached(folder + "/" + getCacheFileName(key), text);
  if (image.empty())
    image = compile(folder, key, text, target, status, error);
  if (image.empty())
    return;
  status = BNGRAD_INTERNAL_ERROR;
  error = loadKernel(image, /*isUnloaded=*/target.chip.empty(), entry);
}

bool bngrad::mayHaveOwnKernel(const std::string &anySizes,
                              const std::string &text) {
  return table->addSizes(anySizes, text);
}

std::shared_ptr<const bngradKernel_t>
bngrad::findCompiledKernel(const std::string &text,
                           const CompiledTarget &target, bngradStatus_t &status,
                           std::string &error) {
  // Everything that the code depends on, besides version and CPU. The compiler
  // also reads BNGRAD_ISA.
  std::string source =
      getVariable("BNGRAD_ISA") + "\n" + target.library + target.chip + text;
  // A GPU may still run a kernel that nobody holds.
  bool isKept = !target.chip.empty();
  std::shared_ptr<Entry> entry = table->find(source, isKept);
  std::shared_ptr<const bngradKernel_t> kernel(entry, &entry->kernel);
  {
    std::lock_guard<std::mutex> lock(entry->mutex);
    if (kernel->call)
      return kernel;
    struct Loading {
      explicit Loading(Entry &entry) : entry(entry) { entry.isLoading = true; }
      ~Loading() { entry.isLoading = false; }
      Entry &entry;
    } loading(*entry);
    load(source, text, target, *entry, status, error);
    if (!kernel->call)
      kernel = nullptr;
  }
  // Kernels that cannot be loaded have entries, too.
  table->removeOld();
  return kernel;
}
