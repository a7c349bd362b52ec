//===- CudaChip.h - properties of NVIDIA GPUs -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_SCHEDULE_CUDACHIP_H
#define BNGRAD_TRANSFORMS_SCHEDULE_CUDACHIP_H

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <array>

namespace mlir::bngrad {

/// How many clusters of `blocks` blocks a device runs at once, with one block
/// and with two on each multiprocessor. Source: its driver
/// (cuOccupancyMaxActiveClusters).
struct ActiveClusters {
  int64_t blocks = 0; // 0 if not counted
  int64_t withOne = 0, withTwo = 0;
};

/// A generation of NVIDIA GPUs, under the name that ptxas uses. Source: the
/// tables of compute capabilities in the CUDA C++ programming guide.
struct CudaChip {
  // Facts of every chip.
  /// Threads of a warp.
  static constexpr int64_t kWarpSize = GpuSchedule::kWarpSize;
  /// Largest static shared memory of a block, in bytes.
  static constexpr int64_t kStaticSharedBytes = 48 << 10;
  /// Shared memory that the driver reserves for each block, in bytes.
  static constexpr int64_t kDriverSharedBytes = 1 << 10;
  /// The unit and the alignment of bulk and asynchronous copies, in bytes.
  static constexpr int64_t kCopyBytes = 16;
  /// Blocks of the largest clusters of any chip.
  static constexpr int64_t kMostClusterBlocks = GpuSchedule::kMostClusterBlocks;

  StringRef name;
  /// Compute capability, such as 90.
  unsigned capability;
  /// Multiprocessors of a large GPU of this chip; others have more or fewer.
  int64_t multiprocessors;
  /// Multiprocessors of each of its processing clusters; 0 past the last. The
  /// blocks of a cluster run on one processing cluster. The numbers differ from
  /// device to device, and no document states them, so these are assumed, with
  /// one smaller than the others: for sm_90, devices that run 15 clusters of 8
  /// blocks at once have been observed.
  std::array<int64_t, 12> processingClusters;
  /// Largest shared memory of a block, in bytes.
  int64_t sharedBytes;
  /// Largest number of blocks of a cluster; 1 without clusters. The runtime
  /// allows more than 8 for each kernel that needs them.
  int64_t clusterBlocks;
  /// First version of PTX, such as 71, that supports the chip and all
  /// instructions of its kernels: bulk copies of sm_90 came with 80. Source:
  /// the release notes of the PTX ISA.
  unsigned firstPtxVersion;
  /// Version of PTX that is emitted for it, such as 80.
  unsigned ptxVersion;
  /// The clusters that a device reported, by the logarithm of their size.
  std::array<ActiveClusters, 5> activeClusters = {};

  /// Blocks that run at once in clusters of `clusterBlocks`, with `resident`
  /// blocks on a multiprocessor.
  int64_t countBlocksAtOnce(int64_t clusterBlocks, int64_t resident) const;

  /// Whether that number is assumed from `processingClusters`, not reported by
  /// a device.
  bool isAssumed(int64_t clusterBlocks) const;

  /// Replaces the assumption by what a device reported: the fields of
  /// ActiveClusters as `SIZE:ONE:TWO` for each size of clusters,
  /// comma-separated.
  ///
  /// Errors: failure and a `reason`.
  LogicalResult setActiveClusters(StringRef text, std::string &reason);

  /// True if blocks of a cluster can read each other's shared memory.
  bool hasClusters() const { return clusterBlocks > 1; }

  /// True if a kernel can be launched while the one ahead of it runs. Source:
  /// the PTX ISA, "griddepcontrol".
  bool canOverlapLaunches() const { return capability >= 90; }

  /// True if an instruction rounds f32 to bf16. Source: the PTX ISA, "cvt".
  bool roundsToBF16() const { return capability >= 80; }

  /// Checks that kernels of `schedule` run on the chip.
  ///
  /// Errors: failure and a `reason`.
  LogicalResult verifySupport(ScheduleAttr schedule, std::string &reason) const;

  /// The common properties of `chips`, under the name of the oldest.
  static CudaChip getCommon(ArrayRef<const CudaChip *> chips);

  /// The chip of that name, or null.
  static const CudaChip *find(StringRef name);
  /// All chips, oldest first.
  static ArrayRef<CudaChip> getAll();
  /// Parses chips, comma-separated.
  ///
  /// Errors: failure and a `reason` if a name is unknown or none is given.
  static FailureOr<SmallVector<const CudaChip *>> parse(StringRef names,
                                                        std::string &reason);
  /// Checks LLVM's `features`, a version of PTX such as `+ptx80`.
  ///
  /// Errors: failure and a `reason` if there are other features, LLVM does not
  ///         know the version, or the version does not support all of `chips`.
  static LogicalResult verifyFeatures(StringRef features,
                                      ArrayRef<const CudaChip *> chips,
                                      std::string &reason);
};

/// Largest size of the parameters of a kernel, in bytes, with LLVM's
/// `features`. Source: the PTX ISA, "Kernel function parameters".
uint64_t getMostParameterBytes(StringRef features);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_SCHEDULE_CUDACHIP_H
