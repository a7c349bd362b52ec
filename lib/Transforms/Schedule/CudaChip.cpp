//===- CudaChip.cpp - properties of NVIDIA GPUs ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace mlir;
using namespace mlir::bngrad;

// Assumed, see CudaChip::processingClusters.
static constexpr std::array<int64_t, 12> kNoClusters = {};
static constexpr std::array<int64_t, 12> kHopper = {18, 18, 18, 16,
                                                    16, 16, 16, 14};
static constexpr std::array<int64_t, 12> kBlackwell = {20, 20, 20, 18,
                                                       18, 18, 18, 16};

static constexpr CudaChip kChips[] = {
    {"sm_75", 75, 72, kNoClusters, 64 << 10, 1, 63, 80},
    {"sm_80", 80, 108, kNoClusters, 163 << 10, 1, 70, 80},
    {"sm_86", 86, 84, kNoClusters, 99 << 10, 1, 71, 80},
    {"sm_87", 87, 16, kNoClusters, 163 << 10, 1, 74, 80},
    {"sm_89", 89, 142, kNoClusters, 99 << 10, 1, 78, 80},
    {"sm_90", 90, 132, kHopper, 227 << 10, 16, 80, 80},
    {"sm_90a", 90, 132, kHopper, 227 << 10, 16, 80, 80},
    {"sm_100", 100, 148, kBlackwell, 227 << 10, 16, 86, 86},
    {"sm_100a", 100, 148, kBlackwell, 227 << 10, 16, 86, 86},
    {"sm_103", 103, 148, kBlackwell, 227 << 10, 16, 88, 88},
    {"sm_120",
     120,
     170,
     {16, 16, 16, 16, 16, 16, 16, 16, 16, 14, 12},
     99 << 10,
     8,
     87,
     87},
    {"sm_121", 121, 48, {12, 12, 12, 12}, 99 << 10, 8, 88, 88},
};

static constexpr bool isWholeDevice(const CudaChip &chip) {
  int64_t sum = 0;
  for (int64_t count : chip.processingClusters)
    sum += count;
  return sum == (chip.clusterBlocks > 1 ? chip.multiprocessors : 0);
}

static constexpr bool areWholeDevices() {
  for (const CudaChip &chip : kChips)
    if (!isWholeDevice(chip))
      return false;
  return true;
}
static_assert(areWholeDevices(), "all multiprocessors are in some cluster");

// The versions in LLVM 22, from the first that supports one of the chips.
static constexpr unsigned kPtxVersions[] = {63, 64, 65, 70, 71, 72, 73, 74,
                                            75, 76, 77, 78, 80, 81, 82, 83,
                                            84, 85, 86, 87, 88, 90};

int64_t CudaChip::countBlocksAtOnce(int64_t clusterBlocks,
                                    int64_t resident) const {
  if (clusterBlocks == 1)
    return multiprocessors * resident;
  const ActiveClusters &active = activeClusters[llvm::Log2_64(clusterBlocks)];
  int64_t clusters =
      resident / 2 * active.withTwo + resident % 2 * active.withOne;
  if (isAssumed(clusterBlocks))
    for (int64_t count : processingClusters)
      clusters += count * resident / clusterBlocks;
  return clusters * clusterBlocks;
}

bool CudaChip::isAssumed(int64_t clusterBlocks) const {
  return clusterBlocks > 1 &&
         activeClusters[llvm::Log2_64(clusterBlocks)].blocks == 0;
}

/// Parses `SIZE:ONE:TWO`; nothing if it has another form.
static std::optional<ActiveClusters> parseActiveClusters(StringRef text) {
  SmallVector<StringRef> fields;
  text.split(fields, ':');
  ActiveClusters active;
  int64_t *numbers[] = {&active.blocks, &active.withOne, &active.withTwo};
  if (fields.size() != std::size(numbers))
    return std::nullopt;
  for (auto [field, number] : llvm::zip_equal(fields, numbers))
    if (field.getAsInteger(10, *number) || *number < 0 || *number > INT32_MAX)
      return std::nullopt;
  return active;
}

LogicalResult CudaChip::setActiveClusters(StringRef text, std::string &reason) {
  llvm::raw_string_ostream os(reason);
  if (!hasClusters()) {
    os << "expected chips with clusters, sm_90 or newer, got " << name;
    return failure();
  }
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    std::optional<ActiveClusters> active = parseActiveClusters(part);
    if (!active) {
      os << "expected SIZE:ONE:TWO, the clusters of SIZE blocks that run at "
            "once with one block and with two on a multiprocessor, got '"
         << part << "'";
      return failure();
    }
    // A device may report 0 for a cluster size that no chip supports.
    int64_t most = active->withTwo == 0 ? kMostClusterBlocks : clusterBlocks;
    if (active->blocks < 2 || active->blocks > most ||
        !llvm::isPowerOf2_64(active->blocks)) {
      os << "expected a size of clusters that is a power of 2 from 2 to "
         << clusterBlocks << " for the given chips, got '" << part << "'";
      return failure();
    }
    if (active->withOne > active->withTwo) {
      os << "expected at least as many clusters with two blocks on a "
            "multiprocessor as with one, got '"
         << part << "'";
      return failure();
    }
    ActiveClusters &known = activeClusters[llvm::Log2_64(active->blocks)];
    if (known.blocks != 0) {
      os << "expected each size of clusters once, got " << active->blocks
         << " twice";
      return failure();
    }
    known = *active;
  }
  return success();
}

LogicalResult CudaChip::verifySupport(ScheduleAttr schedule,
                                      std::string &reason) const {
  if (!usesClusters(schedule.getKind()))
    return success();
  llvm::raw_string_ostream os(reason);
  if (!hasClusters()) {
    os << "expected schedule '" << stringifyScheduleKind(schedule.getKind())
       << "' on sm_90 or newer, got " << name;
    return failure();
  }
  if (int64_t blocks = schedule.getGpu().clusterBlocks;
      blocks > clusterBlocks) {
    os << "expected cluster_blocks of at most " << clusterBlocks
       << " for the given chips, got " << blocks;
    return failure();
  }
  return success();
}

ArrayRef<CudaChip> CudaChip::getAll() { return kChips; }

CudaChip CudaChip::getCommon(ArrayRef<const CudaChip *> chips) {
  CudaChip common = **llvm::min_element(
      chips, [](auto *a, auto *b) { return a->capability < b->capability; });
  for (const CudaChip *chip : chips) {
    common.sharedBytes = std::min(common.sharedBytes, chip->sharedBytes);
    common.clusterBlocks = std::min(common.clusterBlocks, chip->clusterBlocks);
  }
  return common;
}

const CudaChip *CudaChip::find(StringRef name) {
  const CudaChip *chip = llvm::find_if(
      kChips, [&](const CudaChip &known) { return known.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

FailureOr<SmallVector<const CudaChip *>> CudaChip::parse(StringRef names,
                                                         std::string &reason) {
  SmallVector<StringRef> parts;
  names.split(parts, ',');
  SmallVector<const CudaChip *> chips;
  for (StringRef part : parts) {
    const CudaChip *chip = find(part.trim());
    if (!chip) {
      llvm::raw_string_ostream os(reason);
      os << "expected chip to be some of ";
      llvm::interleaveComma(kChips, os,
                            [&](const CudaChip &known) { os << known.name; });
      os << ", got '" << part << "'";
      return failure();
    }
    if (!llvm::is_contained(chips, chip))
      chips.push_back(chip);
  }
  return chips;
}

/// The version in `+ptx80`; none if `features` is anything else.
static std::optional<unsigned> parseVersion(StringRef features) {
  unsigned version;
  if (features.consume_front("+ptx") && !features.getAsInteger(10, version))
    return version;
  return std::nullopt;
}

LogicalResult CudaChip::verifyFeatures(StringRef features,
                                       ArrayRef<const CudaChip *> chips,
                                       std::string &reason) {
  const CudaChip *newest =
      *llvm::max_element(chips, [](const CudaChip *a, const CudaChip *b) {
        return a->firstPtxVersion < b->firstPtxVersion;
      });
  ArrayRef<unsigned> allowed =
      ArrayRef(kPtxVersions).drop_while([&](unsigned version) {
        return version < newest->firstPtxVersion;
      });
  std::optional<unsigned> version = parseVersion(features);
  if (version && llvm::is_contained(allowed, *version))
    return success();
  llvm::raw_string_ostream os(reason);
  os << "expected features for " << newest->name << " to be one of ";
  llvm::interleaveComma(allowed, os,
                        [&](unsigned version) { os << "+ptx" << version; });
  os << ", got '" << features << "'";
  return failure();
}

uint64_t mlir::bngrad::getMostParameterBytes(StringRef features) {
  return parseVersion(features).value_or(0) >= 81 ? 32764 : 4096;
}
