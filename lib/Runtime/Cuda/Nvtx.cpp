//===- Nvtx.cpp - ranges for profilers --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVTX is reached in either of two ways. In version 3, a profiler that runs the
// process names a library in the environment; that library requests tables of
// slots and stores its functions there. In version 2, libnvToolsExt exists.
// Source: NVTX, nvtxDetail/nvtxTypes.h and nvtxInit.h (version 3).
//
//===----------------------------------------------------------------------===//

#include "Nvtx.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

namespace bngrad::cuda {

using PushFunction = int (*)(const char *);
using PopFunction = int (*)();

//===----------------------------------------------------------------------===//
// The tables of version 3
//===----------------------------------------------------------------------===//

using Slot = void (*)();

// The numbers are NVTX's own.
static constexpr unsigned kCoreModule = 1;
static constexpr unsigned kPushSlot = 9;
static constexpr unsigned kPopSlot = 11;
static constexpr unsigned kMaxSlots = 16;
// Slots of modules 1 to 6, including slot 0, which none uses.
static constexpr unsigned kNumSlots[] = {0, 16, 9, 15, 7, 16, 7};
static constexpr unsigned kNumModules = std::size(kNumSlots);
static constexpr uint32_t kCallbacksTable = 1;
static constexpr uint32_t kVersionTable = 3;

namespace {
struct ModuleSlots {
  Slot slots[kMaxSlots];
  /// Addresses of the slots; null at both ends.
  Slot *addresses[kMaxSlots + 1];
};
struct CallbacksTable {
  size_t structSize;
  int (*getSlots)(int module, Slot ***slots, unsigned *numSlots);
};
struct VersionTable {
  size_t structSize;
  uint32_t version;
  uint32_t reserved;
  void (*setInjectionVersion)(uint32_t version);
};
} // namespace

static ModuleSlots moduleSlots[kNumModules];

static int getSlots(int module, Slot ***slots, unsigned *numSlots) {
  if (module < int(kCoreModule) || module >= int(kNumModules))
    return 0;
  ModuleSlots &result = moduleSlots[module];
  for (unsigned i = 1; i < kNumSlots[module]; ++i)
    result.addresses[i] = &result.slots[i];
  if (slots)
    *slots = result.addresses;
  if (numSlots)
    *numSlots = kNumSlots[module];
  return 1;
}

static void ignoreVersion(uint32_t) {}

static const void *getExportTable(uint32_t id) {
  static const CallbacksTable callbacks = {sizeof(callbacks), getSlots};
  static const VersionTable version = {sizeof(version), 3, 0, ignoreVersion};
  if (id == kCallbacksTable)
    return &callbacks;
  return id == kVersionTable ? &version : nullptr;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

namespace {
struct Nvtx {
  PushFunction push = nullptr;
  PopFunction pop = nullptr;

  Nvtx() {
    if (!loadInjection())
      loadLibrary();
    if (!push || !pop)
      push = nullptr, pop = nullptr;
  }

private:
  bool loadInjection() {
    const char *path = std::getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : nullptr;
    if (!library)
      return false;
    using Initialize = int (*)(const void *(*getExportTable)(uint32_t));
    auto initialize = reinterpret_cast<Initialize>(
        dlsym(library, "InitializeInjectionNvtx2"));
    if (!initialize || !initialize(getExportTable))
      return false;
    const ModuleSlots &core = moduleSlots[kCoreModule];
    push = reinterpret_cast<PushFunction>(core.slots[kPushSlot]);
    pop = reinterpret_cast<PopFunction>(core.slots[kPopSlot]);
    return true;
  }

  void loadLibrary() {
    if (void *library = dlopen("libnvToolsExt.so.1", RTLD_LAZY)) {
      push = reinterpret_cast<PushFunction>(dlsym(library, "nvtxRangePushA"));
      pop = reinterpret_cast<PopFunction>(dlsym(library, "nvtxRangePop"));
    }
  }
};
} // namespace

static const Nvtx &nvtx() {
  static const Nvtx loaded;
  return loaded;
}

Range::Range(const char *text) {
  if (nvtx().push)
    nvtx().push(text);
}

Range::~Range() {
  if (nvtx().pop)
    nvtx().pop();
}

} // namespace bngrad::cuda
