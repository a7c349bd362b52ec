//===- GpuMoments.h - a mean and squares about it, together -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUMOMENTS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUMOMENTS_H

#include "GpuPieces.h"
#include "Schedule/Moments.h"

namespace mlir::bngrad {

/// The sums of x - first and of its square over `threadPieces`, in f64, where x
/// are the elements whose moments the stages of `moments` compute. Per lane
/// unless all lanes of a piece are of one channel; so is `first`, an element of
/// the channel.
///
/// A thread reads each element once, and adds up distances and squares about
/// the mean of a few elements at a time (docs/mathematics.md, section 10).
Accumulators emitMoments(OpBuilder &b, Pieces pieces,
                         const MomentStages &moments, Value first,
                         const Walk &walk, Indices indices,
                         const ThreadPieces &threadPieces);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUMOMENTS_H
