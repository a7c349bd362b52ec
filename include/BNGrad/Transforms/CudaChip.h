//===- CudaChip.h - what schedules depend on of a GPU -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CUDACHIP_H
#define BNGRAD_TRANSFORMS_CUDACHIP_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::bngrad {

/// A generation of NVIDIA GPUs, by the name that ptxas has for it. Source: the
/// tables of compute capabilities in the CUDA C++ programming guide.
struct CudaChip {
  StringRef name;
  /// Compute capability, such as 90.
  unsigned capability;
  /// Multiprocessors of its largest GPU.
  int64_t multiprocessors;
  /// Shared memory that one block can have, in bytes.
  int64_t sharedBytes;
  /// Version of PTX that is emitted for it, such as 80.
  unsigned ptxVersion;

  /// True if blocks of a cluster can read each other's shared memory.
  bool hasClusters() const { return capability >= 90; }

  /// What all of `chips` can do, under the name of the oldest.
  static CudaChip getCommon(ArrayRef<const CudaChip *> chips);

  /// The chip of that name, or null.
  static const CudaChip *find(StringRef name);
  /// All chips, oldest first.
  static ArrayRef<CudaChip> getAll();
  /// Parses chips, comma-separated.
  ///
  /// Errors: failure and a `reason` where a name is unknown or none is given.
  static FailureOr<SmallVector<const CudaChip *>> parse(StringRef names,
                                                        std::string &reason);
};

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CUDACHIP_H
