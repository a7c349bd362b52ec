//===- Device.cpp - modules, memory and launches ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include "Decoder.h"
#include "Environment.h"
#include "Machine.h"
#include "Parser.h"

// This library defines none of it.
#pragma GCC visibility push(default)
#include "BNGrad/Runtime/Cuda.h"
#pragma GCC visibility pop

#include <new>
#include <numeric>
#include <optional>

namespace ptx {

Device &Device::get() {
  // Never destroyed: modules are unloaded in destructors of the program.
  static Device *device = new Device;
  return *device;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// Whether code for `image` runs on `chip`.
static bool fits(const std::string &image, const std::string &chip) {
  if (image.empty() || chip.empty())
    return true;
  bool isSpecific = image.back() == 'a' || image.back() == 'f';
  return isSpecific ? image == chip : chipNumber(image) <= chipNumber(chip);
}

std::string Device::findEmulatedChip(const std::string &name, Chip &chip) {
  chip = findChip(name);
  std::vector<uint32_t> clusters;
  std::string error = readProcessingClusters(clusters);
  if (!clusters.empty()) {
    chip.multiprocessors =
        std::accumulate(clusters.begin(), clusters.end(), uint32_t(0));
    chip.processingClusters = std::move(clusters);
  }
  return error;
}

std::string Device::load(LoadedModule &module) {
  // Release what is left of a load that ran out of memory.
  releaseGlobals(module);
  module.module = Module();
  std::string chip;
  std::string error = readChip(chip);
  if (!error.empty())
    return error;
  const Image *best = nullptr;
  bool hasBinary = false;
  for (const Image &image : module.images) {
    hasBinary |= image.isBinary;
    if (image.isBinary || !fits(image.chip, chip))
      continue;
    if (!best || chipNumber(image.chip) >= chipNumber(best->chip))
      best = &image;
  }
  if (!best)
    return hasBinary ? "unsupported: the module has no PTX for this chip, and "
                       "binary images (cubin, fatbin) cannot be interpreted"
                     : "unsupported: the module has no PTX for " + chip;

  std::string text = best->text;
  error = readReplacement(text);
  if (!error.empty())
    return error;
  if (!parseModule(text, module.module, error))
    return "unsupported: " + error;
  if (!fits(module.module.target, chip))
    return "unsupported: the PTX is for " + module.module.target +
           ", and PTX_EMULATOR_CHIP is " + chip;
  error = findEmulatedChip(!chip.empty() ? chip : module.module.target,
                           module.chip);
  return error.empty() ? createGlobals(module) : error;
}

/// Allocates and initializes the variables of the module.
std::string Device::createGlobals(LoadedModule &module) {
  std::vector<std::pair<const Variable *, Buffer *>> created;
  for (const Variable &variable : module.module.variables) {
    if (variable.space != Space::Global && variable.space != Space::Constant)
      continue;
    Buffer *buffer = memory.allocate(variable.bytes(), false);
    if (!buffer)
      return "unsupported: out of memory for '" + variable.name + "'";
    buffer->name = variable.name;
    // Variables without an initializer are zero.
    std::memset(buffer->data, 0, variable.bytes());
    buffer->defined.set(0, variable.bytes(), true);
    module.globals[variable.name] = buffer->base;
    created.emplace_back(&variable, buffer);
  }
  for (auto &[variable, buffer] : created) {
    uint64_t width = byteWidth(variable->type), offset = 0;
    if (width > sizeof(Initializer::bits) && !variable->initializers.empty())
      return "unsupported: PTX line " + std::to_string(variable->line) +
             ": values of 128 bits for '" + variable->name + "'";
    for (const Initializer &value : variable->initializers) {
      uint64_t bits = value.bits;
      if (!value.symbol.empty()) {
        auto found = module.globals.find(value.symbol);
        if (found == module.globals.end())
          return "unsupported: PTX line " + std::to_string(variable->line) +
                 ": '" + value.symbol + "' in an initialiser is not a variable";
        bits += found->second;
      }
      if (offset + width > variable->bytes())
        return "unsupported: PTX line " + std::to_string(variable->line) +
               ": too many values for '" + variable->name + "'";
      std::memcpy(buffer->data + offset, &bits, width);
      offset += width;
    }
  }
  return "";
}

std::string Device::prepare(KernelHandle &kernel) {
  LoadedModule &module = *kernel.module;
  if (!module.isLoaded) {
    module.error = load(module);
    module.isLoaded = true;
  }
  if (!module.error.empty())
    return module.error;
  if (kernel.program || !kernel.error.empty())
    return kernel.error;
  auto found = module.module.functions.find(kernel.name);
  if (found == module.module.functions.end() || !found->second.isEntry)
    return kernel.error =
               "unsupported: the module has no kernel '" + kernel.name + "'";
  auto program = std::make_unique<Program>();
  Decoder decoder(module.module, module.globals, *program);
  if (!decoder.decode(found->second))
    return kernel.error = decoder.errorKind + ": kernel '" + kernel.name +
                          "', " + decoder.error;
  kernel.program = std::move(program);
  return "";
}

void Device::releaseGlobals(LoadedModule &module) {
  for (const auto &global : module.globals)
    memory.release(global.second);
  module.globals.clear();
}

void Device::unload(LoadedModule *module) {
  for (auto it = modules.begin(); it != modules.end(); ++it)
    if (it->get() == module) {
      releaseGlobals(*module);
      modules.erase(it);
      return;
    }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// Memory for barriers of a grid, which is zero at the launch: its size and a
/// counter, each of 32 bits.
struct GridWorkspace {
  explicit GridWorkspace(DeviceMemory &memory)
      : memory(memory), buffer(memory.allocate(kBytes, false)) {
    if (!buffer)
      throw std::bad_alloc();
    buffer->name = "grid workspace";
    std::memset(buffer->data, 0, kBytes);
    buffer->defined.set(0, kBytes, true);
  }
  ~GridWorkspace() { memory.release(buffer->base); }
  GridWorkspace(const GridWorkspace &) = delete;
  GridWorkspace &operator=(const GridWorkspace &) = delete;

  static constexpr uint64_t kBytes = 8;
  DeviceMemory &memory;
  Buffer *buffer;
};
} // namespace

std::string Device::launch(KernelHandle &kernel, LaunchConfig config,
                           void **params, uint64_t numParams,
                           bool knowsNumParams) {
  std::string error = prepare(kernel);
  if (!error.empty())
    return error;
  const Program &program = *kernel.program;
  config.carveout = kernel.carveout;
  if (knowsNumParams && numParams != program.params.size())
    return "launch-bounds: kernel '" + kernel.name + "': expected " +
           std::to_string(program.params.size()) + " parameters, got " +
           std::to_string(numParams);
  // Excess parameters are reported below.
  bool fits = program.paramBytes <= program.mostParamBytes;
  config.params.resize(fits ? program.paramBytes : 0);
  for (size_t i = 0; fits && i < program.params.size(); ++i)
    std::memcpy(config.params.data() + program.params[i].offset, params[i],
                program.params[i].bytes);
  std::optional<GridWorkspace> workspace;
  if (program.usesGridWorkspace)
    config.gridWorkspace = workspace.emplace(memory).buffer->base;
  Stream &stream = streams[config.stream];
  bool overlaps = kernel.module->globals.count(BNGRAD_CUDA_KERNELS_WAIT_SYMBOL);
  if (!overlaps)
    stream.ahead.clear();
  else if (stream.lastLaunch != 0)
    stream.ahead.add(memory, stream.lastLaunch, stream.lastKernel);
  Launch launch(memory, program, kernel.module->chip, std::move(config),
                ++numLaunches);
  if (overlaps && !stream.ahead.empty())
    launch.ahead = &stream.ahead;
  stream.lastLaunch = launch.number;
  stream.lastKernel = program.name;
  if (!launch.run())
    return launch.error;
  return record(launch);
}

static std::string list(Dim3 dims) {
  return "[" + std::to_string(dims.x) + ", " + std::to_string(dims.y) + ", " +
         std::to_string(dims.z) + "]";
}

static std::string quoteJson(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

static std::string toJson(const Launch &launch) {
  const LaunchConfig &config = launch.config;
  std::string json = "{\"kernel\": " + quoteJson(launch.program.name);
  auto field = [&](const char *name, const std::string &value) {
    json +=
        std::string(json.back() == '{' ? "\"" : ", \"") + name + "\": " + value;
  };
  auto number = [&](const char *name, uint64_t value) {
    field(name, std::to_string(value));
  };
  field("grid", list(config.grid));
  field("block", list(config.block));
  field("cluster", list(config.cluster));
  number("shared_bytes", launch.sharedBytes());
  number("instructions", launch.instructions);
  number("bank_conflicts", launch.conflicts);
  json += ", \"buffers\": [";
  bool isFirst = true;
  for (const auto &entry : launch.traffic.entries()) {
    const BufferTraffic &traffic = entry.second;
    json += isFirst ? "{" : ", {";
    isFirst = false;
    field("name", quoteJson(traffic.name));
    number("bytes", traffic.bytes);
    number("load_bytes", traffic.loadBytes);
    number("load_sectors", traffic.loadSectors);
    number("store_bytes", traffic.storeBytes);
    number("store_sectors", traffic.storeSectors);
    number("requests", traffic.requests);
    number("requests_128bit", traffic.requests128Bit);
    number("bulk_load_bytes", traffic.bulkLoadBytes);
    number("bulk_load_sectors", traffic.bulkLoadSectors);
    number("bulk_store_bytes", traffic.bulkStoreBytes);
    number("bulk_store_sectors", traffic.bulkStoreSectors);
    number("atomics", traffic.atomics);
    json += "}";
  }
  return json + "]}";
}

std::string Device::record(const Launch &launch) {
  LaunchRecord &record = records.emplace_back();
  record.kernel = launch.program.name;
  for (const auto &entry : launch.traffic.entries())
    record.buffers.push_back(entry.second);
  return writeTraffic(toJson(launch));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::string Device::findPiece(const char *what, uint64_t address,
                              uint64_t bytes, Piece &piece) {
  Buffer *buffer = memory.find(address);
  if (!buffer) {
    if (address >= kDeviceBase || address == 0)
      return std::string("out-of-bounds: ") + what + " of " +
             std::to_string(bytes) + " bytes at " + hex(address) + ", " +
             memory.describe(address);
    piece.data = reinterpret_cast<uint8_t *>(address);
    return "";
  }
  piece.offset = address - buffer->base;
  if (bytes > buffer->bytes - piece.offset)
    return std::string("out-of-bounds: ") + what + " of " +
           std::to_string(bytes) + " bytes at offset " +
           std::to_string(piece.offset) + " of '" + buffer->name + "' of " +
           std::to_string(buffer->bytes) + " bytes";
  piece.buffer = buffer;
  piece.data = buffer->data + piece.offset;
  return "";
}

std::string Device::copy(void *to, const void *from, uint64_t bytes,
                         std::vector<char> *late) {
  if (bytes == 0)
    return "";
  Piece source, dest;
  std::string error = findPiece(
      "mgpuMemcpy: source", reinterpret_cast<uint64_t>(from), bytes, source);
  if (error.empty())
    error = findPiece("mgpuMemcpy: destination", reinterpret_cast<uint64_t>(to),
                      bytes, dest);
  if (!error.empty())
    return error;
  if (late && !dest.buffer) {
    late->assign(source.data, source.data + bytes);
    return "";
  }
  std::memmove(dest.data, source.data, bytes);
  if (dest.buffer && source.buffer)
    dest.buffer->defined.copy(dest.offset, source.buffer->defined,
                              source.offset, bytes);
  else if (dest.buffer)
    dest.buffer->defined.set(dest.offset, bytes, true);
  return "";
}

std::string Device::fill(void *to, uint32_t value, unsigned width,
                         uint64_t count) {
  if (count == 0)
    return "";
  Piece dest;
  std::string error = findPiece("mgpuMemset", reinterpret_cast<uint64_t>(to),
                                count * width, dest);
  if (!error.empty())
    return error;
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(dest.data + i * width, &value, width);
  if (dest.buffer)
    dest.buffer->defined.set(dest.offset, count * width, true);
  return "";
}

} // namespace ptx
