//===- MachineCaches.cpp - caches of the CPUs of this process -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libhwloc is loaded at run time, so programs do not depend on it.
//
//===----------------------------------------------------------------------===//

#include "MachineCaches.h"

#include "llvm/ADT/ScopeExit.h"

#include <algorithm>

using namespace mlir::bngrad;

#if __has_include(<hwloc.h>)
#include <hwloc.h>
#endif

#if defined(HWLOC_API_VERSION) && HWLOC_API_VERSION >= 0x00020000

#include <dlfcn.h>

namespace {
/// The functions of libhwloc that are called.
struct Hwloc {
  decltype(&hwloc_topology_init) init;
  decltype(&hwloc_topology_destroy) destroy;
  decltype(&hwloc_topology_set_flags) setFlags;
  decltype(&hwloc_topology_set_all_types_filter) filterAll;
  decltype(&hwloc_topology_set_cache_types_filter) filterCaches;
  decltype(&hwloc_topology_load) load;
  decltype(&hwloc_topology_is_thissystem) isThisSystem;
  decltype(&hwloc_topology_restrict) restrictTo;
  decltype(&hwloc_get_cpubind) getBinding;
  decltype(&hwloc_get_type_depth) getDepth;
  decltype(&hwloc_get_nbobjs_by_depth) countObjects;
  decltype(&hwloc_get_obj_by_depth) getObject;
  decltype(&hwloc_bitmap_alloc) allocateSet;
  decltype(&hwloc_bitmap_free) freeSet;
  decltype(&hwloc_bitmap_weight) countSet;

  /// False if the library is not installed, or lacks one of them.
  bool find();
};
} // namespace

bool Hwloc::find() {
  // Every minor version of version 2 has this name.
  void *library = dlopen("libhwloc.so.15", RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return false;
  auto lookUp = [&](auto &function, const char *name) {
    void *address = dlsym(library, name);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
    return address != nullptr;
  };
  return lookUp(init, "hwloc_topology_init") &&
         lookUp(destroy, "hwloc_topology_destroy") &&
         lookUp(setFlags, "hwloc_topology_set_flags") &&
         lookUp(filterAll, "hwloc_topology_set_all_types_filter") &&
         lookUp(filterCaches, "hwloc_topology_set_cache_types_filter") &&
         lookUp(load, "hwloc_topology_load") &&
         lookUp(isThisSystem, "hwloc_topology_is_thissystem") &&
         lookUp(restrictTo, "hwloc_topology_restrict") &&
         lookUp(getBinding, "hwloc_get_cpubind") &&
         lookUp(getDepth, "hwloc_get_type_depth") &&
         lookUp(countObjects, "hwloc_get_nbobjs_by_depth") &&
         lookUp(getObject, "hwloc_get_obj_by_depth") &&
         lookUp(allocateSet, "hwloc_bitmap_alloc") &&
         lookUp(freeSet, "hwloc_bitmap_free") &&
         lookUp(countSet, "hwloc_bitmap_weight");
}

/// Leaves only the CPUs on which this process may run. A topology from the
/// environment, which tests use, stays whole.
static void restrictToProcess(const Hwloc &hwloc, hwloc_topology_t topology) {
  if (!hwloc.isThisSystem(topology))
    return;
  hwloc_bitmap_t cpus = hwloc.allocateSet();
  if (cpus && hwloc.getBinding(topology, cpus, HWLOC_CPUBIND_PROCESS) == 0)
    hwloc.restrictTo(topology, cpus, /*flags=*/0);
  hwloc.freeSet(cpus);
}

static MachineCaches readCaches(const Hwloc &hwloc, hwloc_topology_t topology) {
  MachineCaches caches;
  for (hwloc_obj_type_t type :
       {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
        HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    int depth = hwloc.getDepth(topology, type);
    unsigned count = depth < 0 ? 0 : hwloc.countObjects(topology, depth);
    uint64_t total = 0;
    for (unsigned i = 0; i < count; ++i) {
      hwloc_obj_t cache = hwloc.getObject(topology, depth, i);
      int64_t bytes = cache->attr->cache.size;
      total += bytes;
      int64_t share = bytes / std::max(hwloc.countSet(cache->cpuset), 1);
      if (type == HWLOC_OBJ_L1CACHE && share != 0)
        caches.l1Bytes =
            caches.l1Bytes ? std::min(caches.l1Bytes, share) : share;
    }
    if (total != 0)
      caches.lastLevelBytes = total;
  }
  return caches;
}

std::optional<MachineCaches> MachineCaches::fromHwloc() {
  Hwloc hwloc;
  hwloc_topology_t topology;
  if (!hwloc.find() || hwloc.init(&topology) != 0)
    return std::nullopt;
  llvm::scope_exit destroy([&] { hwloc.destroy(topology); });
  // Load only caches: the rest takes most of the time.
  if (hwloc.filterAll(topology, HWLOC_TYPE_FILTER_KEEP_NONE) != 0 ||
      hwloc.filterCaches(topology, HWLOC_TYPE_FILTER_KEEP_ALL) != 0)
    return std::nullopt;
#if HWLOC_API_VERSION >= 0x00020800
  // An older library rejects the flags and merely takes longer.
  hwloc.setFlags(topology, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                               HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                               HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
#endif
  if (hwloc.load(topology) != 0)
    return std::nullopt;
  restrictToProcess(hwloc, topology);
  MachineCaches caches = readCaches(hwloc, topology);
  // The sums may have overflowed.
  if (caches.l1Bytes <= 0 || caches.lastLevelBytes <= 0)
    return std::nullopt;
  return caches;
}

#else // Without its header, the types are unknown.

std::optional<MachineCaches> MachineCaches::fromHwloc() { return std::nullopt; }

#endif
