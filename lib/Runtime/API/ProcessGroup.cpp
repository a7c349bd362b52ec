//===- ProcessGroup.cpp - processes that share a batch --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProcessGroup.h"

#include "Error.h"
#include "Loader.h"

#include <dlfcn.h>
#include <memory>
#include <new>
#include <type_traits>

using namespace bngrad;

/// Loads the library and all functions; null on success, otherwise the reason.
static const char *loadDistributed(DistributedLibrary &library) {
  void *handle = dlopen(BNGRAD_DISTRIBUTED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return dlerror();
  bool hasAll = true;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(handle, symbol));
    hasAll &= function != nullptr;
  };
  find(library.create, "bngradCreateCollectiveGroup");
  find(library.destroy, "bngradDestroyCollectiveGroup");
  find(library.getSize, "bngradGetCollectiveGroupSize");
  find(library.start, "bngradGroupAllReduceStart");
  find(library.wait, "bngradAllReduceWait");
  find(library.getError, "bngradGetCollectiveError");
  return hasAll ? nullptr
                : "expected " BNGRAD_DISTRIBUTED_LIBRARY " with the functions "
                  "of Collectives.h, got another library";
}

/// The library, which stays loaded; null and a reason on failure.
static const DistributedLibrary *getLibrary(const char *&reason) {
  static DistributedLibrary library;
  static bool isLoaded;
  LoaderLock lock;
  if (!isLoaded)
    reason = loadDistributed(library);
  isLoaded |= !reason;
  return isLoaded ? &library : nullptr;
}

bngradStatus_t bngradCreateProcessGroup(bngradProcessGroup_t *group,
                                        const char *backend,
                                        const void *communicator) {
  if (!group)
    return fail(BNGRAD_NULL_POINTER, "group: expected a place for one, got "
                                     "null");
  const char *reason = nullptr;
  const DistributedLibrary *library = getLibrary(reason);
  if (!library)
    return fail(BNGRAD_PROCESS_ERROR, "%s", reason);
  std::unique_ptr<bngradProcessGroup> created(new (std::nothrow)
                                                  bngradProcessGroup);
  if (!created)
    return fail(BNGRAD_INTERNAL_ERROR, "out of memory");
  created->library = library;
  if (library->create(&created->group, backend, communicator) != 0)
    return fail(BNGRAD_PROCESS_ERROR, "%s", library->getError());
  *group = created.release();
  return succeed();
}

bngradStatus_t bngradDestroyProcessGroup(bngradProcessGroup_t group) {
  if (!group)
    return BNGRAD_SUCCESS;
  std::unique_ptr<bngradProcessGroup> destroyed(group);
  if (group->library->destroy(group->group) != 0)
    return fail(BNGRAD_PROCESS_ERROR, "%s", group->library->getError());
  return BNGRAD_SUCCESS;
}
