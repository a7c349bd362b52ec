//===- TargetTest.cpp - features and caches of a CPU ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/Target.h"

#include "BNGrad/Transforms/Schedule/HostCpu.h"

#include "../Runtime/Kernels/InstructionSet.h"
#include "Schedule/MachineCaches.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Triple.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <unistd.h>

using mlir::bngrad::HostCpu;
using mlir::bngrad::MachineCaches;
using mlir::bngrad::Target;

static Target getTarget(llvm::StringRef triple,
                        const llvm::StringSet<> &features) {
  Target target;
  target.setFeatures(llvm::Triple(triple), [&](llvm::StringRef feature) {
    return features.contains(feature);
  });
  return target;
}

TEST(TargetTest, LengthOfVectors) {
  EXPECT_EQ(getTarget("x86_64", {}).vectorBits, 128);
  EXPECT_EQ(getTarget("x86_64", {"avx2"}).vectorBits, 256);
  EXPECT_EQ(getTarget("x86_64", {"avx2", "avx512f"}).vectorBits, 512);
  EXPECT_EQ(getTarget("aarch64", {"neon"}).vectorBits, 128);
}

TEST(TargetTest, FusedMultiplyAdd) {
  EXPECT_FALSE(getTarget("x86_64", {"avx2"}).fma);
  EXPECT_TRUE(getTarget("x86_64", {"avx2", "fma"}).fma);
  EXPECT_TRUE(getTarget("aarch64", {}).fma);
}

// Both features are needed.
TEST(TargetTest, ConversionToBF16) {
  EXPECT_FALSE(getTarget("x86_64", {"avx512f"}).bf16Conversion);
  EXPECT_FALSE(getTarget("x86_64", {"avx512bf16"}).bf16Conversion);
  EXPECT_TRUE(getTarget("x86_64", {"avx512f", "avx512bf16"}).bf16Conversion);
}

TEST(TargetTest, ConversionOfF16) {
  EXPECT_FALSE(getTarget("x86_64", {"avx2"}).f16Conversion);
  EXPECT_TRUE(getTarget("x86_64", {"avx2", "f16c"}).f16Conversion);
  EXPECT_TRUE(getTarget("aarch64", {}).f16Conversion);
}

namespace {
/// Changes BNGRAD_ISA, which the run of the tests may have set.
class HostCpuTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (const char *value = std::getenv("BNGRAD_ISA"))
      old = value;
  }
  void TearDown() override {
    if (old)
      setenv("BNGRAD_ISA", old->c_str(), 1);
    else
      unsetenv("BNGRAD_ISA");
  }

  std::optional<std::string> old;
};
} // namespace

// The compiler's target is the instruction set, whatever else the CPU has.
TEST_F(HostCpuTest, InstructionSets) {
  struct Expected {
    const char *name, *cpu, *features;
    int64_t vectorBits;
    bool fma, f16Conversion, bf16Conversion;
  };
  const Expected all[] = {
      {"x86-64-v2", "x86-64-v2", "", 128, false, false, false},
      {"x86-64-v3", "x86-64-v3", "", 256, true, true, false},
      {"x86-64-v4", "x86-64-v4", "", 512, true, true, false},
      {"x86-64-v4+avx512bf16", "x86-64-v4", "+avx512bf16", 512, true, true,
       true},
      {"armv8-a", "generic", "", 128, true, true, false}};
  for (size_t i = 0; bngradInstructionSets[i].name; ++i) {
    std::string name = bngradInstructionSets[i].name;
    const Expected *expected = llvm::find_if(
        all, [&](const Expected &each) { return each.name == name; });
    ASSERT_NE(expected, std::end(all)) << name;
    setenv("BNGRAD_ISA", name.c_str(), 1);
    std::string reason;
    if (!bngradHasInstructionSet(i)) {
      EXPECT_TRUE(failed(HostCpu::verify(reason))) << name;
      continue;
    }
    EXPECT_TRUE(succeeded(HostCpu::verify(reason))) << reason;
    HostCpu cpu = HostCpu::get();
    EXPECT_EQ(cpu.name, expected->cpu);
    EXPECT_EQ(cpu.features, expected->features);
    Target target = Target::host();
    EXPECT_EQ(target.vectorBits, expected->vectorBits) << name;
    EXPECT_EQ(target.fma, expected->fma) << name;
    EXPECT_EQ(target.f16Conversion, expected->f16Conversion) << name;
    EXPECT_EQ(target.bf16Conversion, expected->bf16Conversion) << name;
  }
}

// All of the CPU without a value, and with one that verify() refuses.
TEST_F(HostCpuTest, WholeCpu) {
  unsetenv("BNGRAD_ISA");
  HostCpu whole = HostCpu::get();
  EXPECT_NE(whole.features, "");
  std::string reason;
  for (const char *value : {"", "vax", "x86-64-v", "x86-64-v3,x86-64-v2"}) {
    setenv("BNGRAD_ISA", value, 1);
    EXPECT_EQ(succeeded(HostCpu::verify(reason)), *value == '\0') << value;
    HostCpu cpu = HostCpu::get();
    EXPECT_EQ(cpu.name, whole.name);
    EXPECT_EQ(cpu.features, whole.features);
  }
  EXPECT_TRUE(llvm::StringRef(reason).ends_with(", got 'x86-64-v3,x86-64-v2'"));
}

/// A path of this test, as the working directory may be read-only.
static std::filesystem::path getTemporaryPath(const std::string &name) {
  return std::filesystem::temp_directory_path() /
         ("bngrad-" + std::to_string(::getpid()) + "-" + name);
}

namespace {
/// A folder like /sys/devices/system/cpu/cpu0/cache.
class CachesTest : public ::testing::Test {
protected:
  void SetUp() override { std::filesystem::remove_all(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void addCache(const std::string &level, const std::string &type,
                const std::string &size) {
    auto path = folder / ("index" + std::to_string(count++));
    std::filesystem::create_directories(path);
    std::ofstream(path / "level") << level << '\n';
    std::ofstream(path / "type") << type << '\n';
    std::ofstream(path / "size") << size << '\n';
  }
  Target read() {
    Target target;
    target.l1Bytes = 1;
    target.lastLevelBytes = 2;
    target.setCaches(folder.string());
    return target;
  }

  std::filesystem::path folder = getTemporaryPath("caches");
  int count = 0;
};
} // namespace

TEST_F(CachesTest, ThreeLevels) {
  addCache("1", "Instruction", "64K");
  addCache("1", "Data", "32K");
  addCache("2", "Unified", "1024K");
  addCache("3", "Unified", "32768K");
  EXPECT_EQ(read().l1Bytes, 32 << 10);
  EXPECT_EQ(read().lastLevelBytes, 32 << 20);
}

TEST_F(CachesTest, TwoLevels) {
  addCache("1", "Data", "48K");
  addCache("1", "Instruction", "64K");
  addCache("2", "Unified", "2048K");
  EXPECT_EQ(read().l1Bytes, 48 << 10);
  EXPECT_EQ(read().lastLevelBytes, 2 << 20);
}

TEST_F(CachesTest, AsManyAsEight) {
  for (int i = 0; i < 6; ++i)
    addCache("1", "Instruction", "64K");
  addCache("1", "Data", "16K");
  addCache("2", "Unified", "512K");
  EXPECT_EQ(read().l1Bytes, 16 << 10);
  EXPECT_EQ(read().lastLevelBytes, 512 << 10);
}

// A machine may list no caches, or say nothing of their size.
TEST_F(CachesTest, NothingIsKnown) {
  EXPECT_EQ(read().l1Bytes, 1);
  EXPECT_EQ(read().lastLevelBytes, 2);
  addCache("1", "Data", "");
  addCache("2", "Unified", "unknown");
  EXPECT_EQ(read().l1Bytes, 1);
  EXPECT_EQ(read().lastLevelBytes, 2);
}

// The package of the header depends on the library.
#if __has_include(<hwloc.h>)

namespace {
/// Other machines, which libhwloc reads from the environment.
class HwlocTest : public ::testing::Test {
protected:
  void TearDown() override {
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
  }
};
} // namespace

// Two sockets of four caches each; two threads per core.
TEST_F(HwlocTest, ManySockets) {
  setenv("HWLOC_SYNTHETIC",
         "Package:2 L3:4(size=33554432) L2:8(size=1048576) L1d:1(size=49152) "
         "Core:1 PU:2",
         /*replace=*/1);
  auto caches = MachineCaches::fromHwloc();
  ASSERT_TRUE(caches.has_value());
  EXPECT_EQ(caches->l1Bytes, 24 << 10);
  EXPECT_EQ(caches->lastLevelBytes, 256 << 20);
}

TEST_F(HwlocTest, TwoLevels) {
  setenv("HWLOC_SYNTHETIC", "L2:2(size=1048576) L1d:2(size=65536) Core:1 PU:1",
         /*replace=*/1);
  auto caches = MachineCaches::fromHwloc();
  ASSERT_TRUE(caches.has_value());
  EXPECT_EQ(caches->l1Bytes, 64 << 10);
  EXPECT_EQ(caches->lastLevelBytes, 2 << 20);
}

TEST_F(HwlocTest, NoCaches) {
  setenv("HWLOC_SYNTHETIC", "Core:4 PU:1", /*replace=*/1);
  EXPECT_FALSE(MachineCaches::fromHwloc().has_value());
}

/// An object of a topology in XML, with the CPUs of the mask `cpus`.
static std::string getObject(const std::string &type, unsigned cpus,
                             const std::string &attributes,
                             const std::string &children = "") {
  static int index = 0;
  std::ostringstream os;
  os << "<object type=\"" << type << "\" gp_index=\"" << ++index << "\" "
     << attributes << std::hex;
  for (const char *prefix : {"", "complete_"})
    os << ' ' << prefix << "cpuset=\"0x" << cpus << "\" " << prefix
       << "nodeset=\"0x1\"";
  os << '>' << children << "</object>\n";
  return os.str();
}

static std::string getCache(int level, int64_t bytes, unsigned cpus,
                            const std::string &children) {
  std::ostringstream attributes;
  attributes << "depth=\"" << level << "\" cache_size=\"" << bytes
             << "\" cache_type=\"1\" cache_linesize=\"64\" "
                "cache_associativity=\"8\"";
  return getObject("L" + std::to_string(level) + "Cache", cpus,
                   attributes.str(), children);
}

// Two small cores beside a large one.
TEST_F(HwlocTest, CoresOfTwoKinds) {
  auto getCpu = [](int number) {
    return getObject("PU", 1U << number,
                     "os_index=\"" + std::to_string(number) + "\"");
  };
  std::string cores = getCache(1, 32 << 10, 0x1, getCpu(0)) +
                      getCache(1, 32 << 10, 0x2, getCpu(1)) +
                      getCache(1, 48 << 10, 0x4, getCpu(2));
  std::string node = getObject("NUMANode", 0x7, "os_index=\"0\"");
  std::filesystem::path file = getTemporaryPath("topology.xml");
  std::ofstream(file) << "<?xml version=\"1.0\"?>\n"
                         "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                         "<topology version=\"2.0\">"
                      << getObject("Machine", 0x7,
                                   "os_index=\"0\" allowed_cpuset=\"0x7\" "
                                   "allowed_nodeset=\"0x1\"",
                                   node + getCache(3, 24 << 20, 0x7, cores))
                      << "</topology>\n";
  setenv("HWLOC_XMLFILE", file.c_str(), /*replace=*/1);
  auto caches = MachineCaches::fromHwloc();
  std::filesystem::remove(file);
  ASSERT_TRUE(caches.has_value());
  EXPECT_EQ(caches->l1Bytes, 32 << 10);
  EXPECT_EQ(caches->lastLevelBytes, 24 << 20);
}

#endif // __has_include(<hwloc.h>)
