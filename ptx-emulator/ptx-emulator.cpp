//===- ptx-emulator.cpp - runs one kernel of a PTX file ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A complete host program: it allocates the arguments, launches the kernel once
// through the functions of Cuda.h, and prints buffers.
//
//===----------------------------------------------------------------------===//

#include "lib/Rounding.h"

#include "BNGrad/Runtime/Cuda.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

using namespace ptx;

static const char kUsage[] =
    R"(usage: ptx-emulator FILE.ptx --kernel=K --grid=X[,Y[,Z]] --block=X[,Y[,Z]]
         [--cluster=X[,Y[,Z]]] [--dynamic-shared=BYTES] --arg=SPEC...
         [--print=I]... [--dump=I:PATH]...
       ptx-emulator --help | --version

SPEC is one parameter of the kernel:
  TYPE:VALUE               a scalar: u32:5, f32:1.5, b64:0x10
  buffer:TYPE:COUNT:FILL   device memory
  registered:TYPE:COUNT:FILL  memory of the host, registered
  host:TYPE:COUNT:FILL     memory of the host, not registered
TYPE is that of PTX: u8 to u64, s8 to s64, b8 to b64, f16, bf16, f32, f64.
FILL is zero, iota (0, 1, ...), random (floats in [-1, 1)), uninit, or a file
with the bytes: @PATH.

--print=I prints the buffer of argument I (from 0) after the launch, --dump
writes its bytes. The exit code is 1 if the emulator reported an error.
)";

/// Largest size of one buffer; a larger one is probably a typing error.
static constexpr uint64_t kMostBytes = uint64_t(1) << 36;

namespace {

struct Argument {
  Type type = Type::None;
  uint64_t scalar = 0; // the value, or the address of the buffer
  uint64_t rest = 0;   // upper half of a parameter of 16 bytes
  bool isBuffer = false;
  bool isHost = false;
  uint64_t count = 0;
  std::vector<char> bytes;
};

struct Options {
  std::string file, kernel;
  Dim3 grid, block, cluster;
  bool hasCluster = false;
  int32_t dynamicShared = 0;
  std::vector<Argument> arguments;
  std::vector<unsigned> prints;
  std::vector<std::pair<unsigned, std::string>> dumps;
};

} // namespace

[[noreturn]] static void fail(const std::string &message) {
  std::fprintf(stderr, "ptx-emulator: %s\n", message.c_str());
  std::exit(2);
}

/// Flushes the output, or fails: exit() would not report a full disk.
static void flushOutput() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    fail(std::string("standard output: cannot write: ") + std::strerror(errno));
}

/// Allocates nothing.
[[noreturn]] static void exitOutOfMemory() {
  constexpr char kText[] = "ptx-emulator: error: out of memory\n";
  (void)!::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(1);
}

static std::vector<std::string> split(const std::string &text, char at,
                                      size_t most) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (parts.size() + 1 < most) {
    size_t end = text.find(at, begin);
    if (end == std::string::npos)
      break;
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

static uint64_t parseInteger(const std::string &text) {
  char *end = nullptr;
  bool negative = !text.empty() && text[0] == '-';
  uint64_t value = negative ? uint64_t(std::strtoll(text.c_str(), &end, 0))
                            : std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end)
    fail("expected an integer, got '" + text + "'");
  return value;
}

/// An integer from 0 to `most`.
static uint64_t parseCount(const std::string &text, uint64_t most) {
  errno = 0;
  uint64_t value = parseInteger(text);
  if (text[0] == '-' || errno != 0 || value > most)
    fail("expected an integer from 0 to " + std::to_string(most) + ", got '" +
         text + "'");
  return value;
}

static Dim3 parseDims(const std::string &text) {
  std::vector<std::string> parts = split(text, ',', 3);
  uint32_t extents[3] = {1, 1, 1};
  for (size_t i = 0; i < parts.size(); ++i)
    extents[i] = parseCount(parts[i], UINT32_MAX);
  return {extents[0], extents[1], extents[2]};
}

/// The bits of a number in `type`.
static uint64_t encode(Type type, double value) {
  switch (type) {
  case Type::F64:
    return toBits(value);
  case Type::F32:
    return toBits(float(value));
  case Type::F16:
    return narrow(value, kHalf, Round::NearestEven);
  case Type::BF16:
    return narrow(value, kBFloat, Round::NearestEven);
  default:
    return uint64_t(int64_t(value));
  }
}

static bool isReal(Type type) {
  return type == Type::F64 || type == Type::F32 || type == Type::F16 ||
         type == Type::BF16;
}

/// Avoids streams, which report the end of the file if memory runs out.
static std::vector<char> readFile(const std::string &path) {
  constexpr size_t kChunk = size_t(1) << 16;
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<char> bytes;
  ssize_t count = file < 0 ? -1 : 1;
  while (count > 0) {
    size_t size = bytes.size();
    bytes.resize(size + kChunk);
    count = ::read(file, bytes.data() + size, kChunk);
    bytes.resize(size + std::max<ssize_t>(count, 0));
  }
  if (count < 0)
    fail("cannot read '" + path + "': " + std::strerror(errno));
  ::close(file);
  return bytes;
}

/// Allocates nothing, so that running out of memory leaves no partial file.
static bool writeFile(const char *path, const std::vector<char> &bytes) {
  int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0)
    return false;
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count <= 0 && errno != EINTR)
      break;
    done += count > 0 ? count : 0;
  }
  return ::close(file) == 0 && done == bytes.size();
}

static std::vector<char> makeBytes(Type type, uint64_t count,
                                   const std::string &fill) {
  unsigned width = byteWidth(type);
  std::vector<char> bytes(count * width);
  uint64_t state = 1;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    if (fill == "iota") {
      bits = isReal(type) ? encode(type, double(i)) : i;
    } else if (fill == "random") {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bits = isReal(type)
                 ? encode(type,
                          double(int64_t(state >> 11) - (1ll << 52)) * 0x1p-52)
                 : state >> 16;
    }
    std::memcpy(&bytes[i * width], &bits, width);
  }
  return bytes;
}

static Argument parseArgument(const std::string &spec) {
  std::vector<std::string> parts = split(spec, ':', 4);
  Argument argument;
  if (parts.size() == 2) {
    argument.type = parseType(parts[0]);
    if (byteWidth(argument.type) == 0)
      fail("expected a type, got '" + parts[0] + "'");
    argument.scalar =
        isReal(argument.type)
            ? encode(argument.type, std::strtod(parts[1].c_str(), nullptr))
            : parseInteger(parts[1]);
    return argument;
  }
  if (parts.size() != 4)
    fail("expected TYPE:VALUE or buffer:TYPE:COUNT:FILL, got '" + spec + "'");
  argument.isBuffer = true;
  argument.isHost = parts[0] == "host" || parts[0] == "registered";
  argument.type = parseType(parts[1]);
  unsigned width = byteWidth(argument.type);
  if ((!argument.isHost && parts[0] != "buffer") || width == 0)
    fail("expected a buffer, got '" + spec + "'");
  argument.count = parseCount(parts[2], kMostBytes / width);
  const std::string &fill = parts[3];
  if (fill[0] == '@') {
    argument.bytes = readFile(fill.substr(1));
    if (argument.bytes.size() != argument.count * width)
      fail("expected " + std::to_string(argument.count * width) +
           " bytes in '" + fill.substr(1) + "', got " +
           std::to_string(argument.bytes.size()));
  } else if (fill == "zero" || fill == "iota" || fill == "random" ||
             fill == "uninit") {
    argument.bytes = makeBytes(argument.type, argument.count, fill);
  } else {
    fail("expected zero, iota, random, uninit or @PATH, got '" + fill + "'");
  }

  if (argument.isHost) {
    argument.scalar = reinterpret_cast<uint64_t>(argument.bytes.data());
    int64_t descriptor[] = {int64_t(argument.scalar), int64_t(argument.scalar),
                            0, int64_t(argument.count), 1};
    if (parts[0] == "registered")
      mgpuMemHostRegisterMemRef(1, descriptor, width);
    return argument;
  }
  void *device = mgpuMemAlloc(argument.bytes.size(), nullptr, 0);
  if (fill != "uninit")
    mgpuMemcpy(device, argument.bytes.data(), argument.bytes.size(), nullptr);
  argument.scalar = reinterpret_cast<uint64_t>(device);
  return argument;
}

static Options parseOptions(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    if (text == "--help") {
      std::fputs(kUsage, stdout);
      flushOutput();
      std::exit(0);
    }
    if (text == "--version") {
      std::puts("BNGrad version " BNGRAD_VERSION "\nbuilt without LLVM");
      flushOutput();
      std::exit(0);
    }
    if (text.compare(0, 2, "--") != 0) {
      options.file = text;
      continue;
    }
    std::vector<std::string> parts = split(text.substr(2), '=', 2);
    const std::string &name = parts[0];
    if (parts.size() != 2)
      fail("expected " + text + "=VALUE");
    const std::string &value = parts[1];
    if (name == "kernel") {
      options.kernel = value;
    } else if (name == "grid") {
      options.grid = parseDims(value);
    } else if (name == "block") {
      options.block = parseDims(value);
    } else if (name == "cluster") {
      options.cluster = parseDims(value);
      options.hasCluster = true;
    } else if (name == "dynamic-shared") {
      options.dynamicShared = parseCount(value, INT32_MAX);
    } else if (name == "arg") {
      options.arguments.push_back(parseArgument(value));
    } else if (name == "print") {
      options.prints.push_back(parseCount(value, UINT32_MAX));
    } else if (name == "dump") {
      std::vector<std::string> dump = split(value, ':', 2);
      if (dump.size() != 2)
        fail("expected --dump=I:PATH");
      options.dumps.emplace_back(parseCount(dump[0], UINT32_MAX), dump[1]);
    } else {
      fail("unknown option '--" + name + "'");
    }
  }
  if (options.file.empty() || options.kernel.empty())
    fail("expected a file and --kernel; see --help");
  return options;
}

/// Reads back the buffer of argument `index`.
static Argument &fetch(Options &options, unsigned index) {
  if (index >= options.arguments.size() || !options.arguments[index].isBuffer)
    fail("argument " + std::to_string(index) + " is not a buffer");
  Argument &argument = options.arguments[index];
  if (!argument.isHost)
    mgpuMemcpy(argument.bytes.data(), reinterpret_cast<void *>(argument.scalar),
               argument.bytes.size(), nullptr);
  return argument;
}

static void print(const Argument &argument, unsigned index) {
  std::printf("arg %u:", index);
  unsigned width = byteWidth(argument.type);
  for (uint64_t i = 0; i < argument.count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &argument.bytes[i * width], width);
    switch (argument.type) {
    case Type::F64:
      std::printf(" %.17g", fromBits<double>(bits));
      break;
    case Type::F32:
      std::printf(" %.9g", double(fromBits<float>(bits)));
      break;
    case Type::F16:
      std::printf(" %.6g", widen(bits, kHalf));
      break;
    case Type::BF16:
      std::printf(" %.6g", widen(bits, kBFloat));
      break;
    default:
      if (isSigned(argument.type)) {
        unsigned shift = 64 - width * 8;
        std::printf(" %lld",
                    static_cast<long long>(int64_t(bits << shift) >> shift));
      } else if (argument.type >= Type::U8) {
        std::printf(" %llu", static_cast<unsigned long long>(bits));
      } else {
        std::printf(" 0x%llx", static_cast<unsigned long long>(bits));
      }
    }
  }
  std::printf("\n");
}

int main(int argc, char **argv) {
  std::set_new_handler(exitOutOfMemory);
  Options options = parseOptions(argc, argv);
  std::vector<char> text = readFile(options.file);
  text.push_back('\0');
  void *module = mgpuModuleLoadJIT(text.data(), 3);
  void *function = mgpuModuleGetFunction(module, options.kernel.c_str());
  std::vector<void *> params;
  params.reserve(options.arguments.size());
  for (Argument &argument : options.arguments)
    params.push_back(&argument.scalar);
  const Dim3 &grid = options.grid, &block = options.block;
  const Dim3 &cluster = options.cluster;
  if (options.hasCluster)
    mgpuLaunchClusterKernel(function, cluster.x, cluster.y, cluster.z, grid.x,
                            grid.y, grid.z, block.x, block.y, block.z,
                            options.dynamicShared, nullptr, params.data(),
                            nullptr);
  else
    mgpuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                     block.z, options.dynamicShared, nullptr, params.data(),
                     nullptr, params.size());
  if (bngradCudaTakeStatus() != 0)
    return 1;
  for (unsigned index : options.prints)
    print(fetch(options, index), index);
  flushOutput();
  for (const auto &dump : options.dumps) {
    const Argument &argument = fetch(options, dump.first);
    if (!writeFile(dump.second.c_str(), argument.bytes))
      fail("cannot write '" + dump.second + "'");
  }
  mgpuModuleUnload(module);
  return bngradCudaTakeStatus() != 0;
}
