//===- Library.cpp - back ends that are loaded ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "Error.h"
#include "Settings.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <thread>
#include <unistd.h>

using namespace bngrad;
using namespace bngrad::distributed;

namespace {
/// An MPI for which there is a back end.
struct KnownLibrary {
  const char *name, *path;
  /// SONAMEs of the MPI itself.
  const char *sonames[2];
};
} // namespace

static constexpr KnownLibrary kLibraries[] = {
    {"openmpi", BNGRAD_OPENMPI_LIBRARY, {"libmpi.so.40", "libmpi.so.80"}},
    {"mpich", BNGRAD_MPICH_LIBRARY, {"libmpich.so.12", "libmpi.so.12"}}};

/// The name of the MPI that the process has loaded; empty if none.
static const char *findLoaded() {
  for (const KnownLibrary &known : kLibraries)
    for (const char *soname : known.sonames)
      if (void *handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) {
        dlclose(handle);
        return known.name;
      }
  return "";
}

/// The path of the library for `choice`; empty and a text on an error.
static std::string findPath(const std::string &choice) {
  for (const KnownLibrary &known : kLibraries)
    if (choice == known.name)
      return known.path;
  if (choice.find('/') != std::string::npos)
    return choice;
  if (choice.empty())
    fail("expected an MPI: load one before, or choose one with "
         "BNGRAD_MPI=openmpi|mpich|PATH; got none");
  else
    fail("expected the MPI to be openmpi, mpich or the path of a back end, "
         "got '%s'",
         choice.c_str());
  return "";
}

/// Loads the library at `path`; false and a text on an error.
static bool load(const std::string &path, Library &library) {
  // Its symbols are global, because plugins of some builds of Open MPI look for
  // them.
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    fail("cannot load the back end: %s", dlerror());
    return false;
  }
  auto get = reinterpret_cast<decltype(&bngradGetBackend)>(
      dlsym(handle, "bngradGetBackend"));
  if (!get) {
    fail("%s: expected a back end, which has bngradGetBackend, got none",
         path.c_str());
    dlclose(handle);
    return false;
  }
  library.functions = get();
  library.path = path;
  if (library.functions->version == BNGRAD_BACKEND_VERSION)
    return true;
  fail("%s: expected version %d of the back end, got %lld", path.c_str(),
       BNGRAD_BACKEND_VERSION,
       static_cast<long long>(library.functions->version));
  return false;
}

namespace {
/// Ends the process if this object lives longer than `seconds`.
class Watch {
public:
  explicit Watch(double seconds) : thread([this, seconds] { run(seconds); }) {}
  ~Watch() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
    }
    changed.notify_one();
    thread.join();
  }

private:
  void run(double seconds) {
    std::unique_lock<std::mutex> lock(mutex);
    if (changed.wait_for(lock, std::chrono::duration<double>(seconds),
                         [this] { return isOver; }))
      return;
    std::fprintf(stderr,
                 "bngrad: error: expected all processes to initialize MPI "
                 "within %s, got fewer\n",
                 printSeconds(seconds).c_str());
    _exit(1);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  std::thread thread;
};
} // namespace

/// Initializes the MPI of `library`. The call waits for all processes and
/// cannot be interrupted.
static int initialize(const Library &library) {
  double timeout;
  if (int status = getTimeout(timeout))
    return status;
  Watch watch(timeout);
  bngradBackendError_t error;
  if (library.functions->initialize(&error))
    return fail("%s: %s", library.functions->name, error.text);
  return 0;
}

Library *distributed::loadLibrary(std::string choice) {
  struct Libraries {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<Library>> byPath;
  };
  static auto *libraries = new Libraries;
  std::lock_guard<std::mutex> lock(libraries->mutex);
  if (choice.empty())
    choice = getBackendChoice();
  if (choice.empty())
    choice = findLoaded();
  std::string path = findPath(choice);
  if (path.empty())
    return nullptr;
  std::unique_ptr<Library> &library = libraries->byPath[path];
  if (library)
    return library.get();
  // Two MPIs in one process fail in obscure ways.
  const char *loaded = findLoaded();
  for (const KnownLibrary &known : kLibraries)
    if (*loaded && choice == known.name && choice != loaded) {
      fail("expected %s, which the process has loaded, as its MPI, got %s",
           loaded, choice.c_str());
      return nullptr;
    }
  auto created = std::make_unique<Library>();
  if (!load(path, *created) || initialize(*created))
    return nullptr;
  library = std::move(created);
  return library.get();
}

LibraryScope::LibraryScope(Library &library) {
  if (!library.functions->is_concurrent())
    lock = std::unique_lock<std::mutex>(library.mutex);
  bngradBackendError_t error;
  if (library.functions->check_thread(&error))
    status = fail("%s: %s", library.functions->name, error.text);
}
