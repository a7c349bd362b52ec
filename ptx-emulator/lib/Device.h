//===- Device.h - modules, memory and launches ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_DEVICE_H
#define PTX_EMULATOR_LIB_DEVICE_H

#include "Chip.h"
#include "KernelsAhead.h"
#include "Memory.h"
#include "Module.h"
#include "Program.h"
#include "Traffic.h"

#include <mutex>
#include <optional>
#include <set>

namespace ptx {

struct LaunchConfig;

/// An image of a module.
struct Image {
  std::string chip; // empty: that of the text
  bool isBinary = false;
  std::string text;
};

struct LoadedModule;

struct KernelHandle {
  LoadedModule *module = nullptr;
  std::string name;
  std::unique_ptr<Program> program;
  std::string error;                // why there is no program
  std::optional<uint32_t> carveout; // in percent
};

struct LoadedModule {
  std::vector<Image> images;
  bool isLoaded = false;
  std::string error; // why it cannot be loaded
  Module module;
  std::unordered_map<std::string, uint64_t> globals;
  std::map<std::string, KernelHandle> kernels;
  Chip chip;
};

struct LaunchRecord {
  std::string kernel;
  std::vector<BufferTraffic> buffers;
};

/// The device of the process. Its functions return an error message, empty on
/// success; the caller holds `mutex`.
class Device {
public:
  static Device &get();

  /// Finds the chip `name` as the environment describes it.
  static std::string findEmulatedChip(const std::string &name, Chip &chip);
  /// Makes the program of `kernel`, if there is none.
  std::string prepare(KernelHandle &kernel);
  std::string launch(KernelHandle &kernel, LaunchConfig config, void **params,
                     uint64_t numParams, bool knowsNumParams);
  /// If `late` is given, a copy to host memory is recorded there instead.
  std::string copy(void *to, const void *from, uint64_t bytes,
                   std::vector<char> *late = nullptr);
  /// Writes `count` values of `width` bytes.
  std::string fill(void *to, uint32_t value, unsigned width, uint64_t count);
  void unload(LoadedModule *module);
  /// Makes the next kernel of `stream` start when those before it are complete:
  /// there is an operation in between, or the host has waited.
  void completeKernels(void *stream) { streams.erase(stream); }
  void completeAllKernels() { streams.clear(); }

  std::mutex mutex;
  DeviceMemory memory;
  std::set<std::unique_ptr<LoadedModule>> modules;
  std::vector<LaunchRecord> records;

private:
  std::string load(LoadedModule &module);
  std::string createGlobals(LoadedModule &module);
  void releaseGlobals(LoadedModule &module);
  struct Piece {
    uint8_t *data = nullptr;
    Buffer *buffer = nullptr; // null: memory of the host
    uint64_t offset = 0;
  };
  std::string findPiece(const char *what, uint64_t address, uint64_t bytes,
                        Piece &piece);
  std::string record(const class Launch &launch);

  uint64_t numLaunches = 0;
  /// The kernels of a stream since the last one that had to be complete.
  struct Stream {
    KernelsAhead ahead; // but the last
    uint64_t lastLaunch = 0;
    std::string lastKernel;
  };
  std::map<void *, Stream> streams;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_DEVICE_H
