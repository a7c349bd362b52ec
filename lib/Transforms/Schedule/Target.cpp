//===- Target.cpp - properties of a CPU for schedules ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/Target.h"

#include "MachineCaches.h"

#include "BNGrad/Transforms/Schedule/HostCpu.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Threading.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir::bngrad;

/// Returns the bytes of the data cache of this `level`, which Linux lists in
/// `folder`, such as `32768K`, or 0 if it is not listed.
static int64_t readCacheBytes(llvm::StringRef folder, int level) {
  for (int index = 0; index < 8; ++index) {
    auto read = [&](llvm::StringRef file) -> std::string {
      auto buffer = llvm::MemoryBuffer::getFile(
          folder + "/index" + llvm::Twine(index) + "/" + file,
          /*IsText=*/true);
      return buffer ? (*buffer)->getBuffer().trim().str() : "";
    };
    if (read("level") != std::to_string(level) || read("type") == "Instruction")
      continue;
    std::string size = read("size");
    int64_t kibibytes;
    if (llvm::StringRef(size).consumeInteger(10, kibibytes))
      return 0;
    return kibibytes << 10;
  }
  return 0;
}

void Target::setFeatures(const llvm::Triple &triple,
                         llvm::function_ref<bool(llvm::StringRef)> has) {
  vectorBits = 128;
  if (has("avx512f"))
    vectorBits = 512;
  else if (has("avx2"))
    vectorBits = 256;
  fma = has("fma") || triple.isAArch64();
  bf16Conversion = has("avx512f") && has("avx512bf16");
  f16Conversion = has("f16c") || !triple.isX86();
}

void Target::setCaches(llvm::StringRef folder) {
  if (int64_t bytes = readCacheBytes(folder, 1))
    l1Bytes = bytes;
  for (int level : {2, 3})
    if (int64_t bytes = readCacheBytes(folder, level))
      lastLevelBytes = bytes;
}

/// The threads and caches of this machine.
static Target findMachine() {
  Target target;
  target.threads = llvm::hardware_concurrency().compute_thread_count();
  if (auto caches = MachineCaches::fromHwloc()) {
    target.l1Bytes = caches->l1Bytes;
    target.lastLevelBytes = caches->lastLevelBytes;
  } else {
    target.setCaches("/sys/devices/system/cpu/cpu0/cache");
  }
  return target;
}

Target Target::host() {
  static const Target machine = findMachine();
  Target target = machine;
  HostCpu cpu = HostCpu::get();
  target.setFeatures(
      llvm::Triple(llvm::sys::getProcessTriple()),
      [&](llvm::StringRef feature) { return cpu.hasFeature.lookup(feature); });
  return target;
}
