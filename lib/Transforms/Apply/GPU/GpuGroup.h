//===- GpuGroup.h - what all emitters of kernels use ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule's emitter is a GpuGroup. It builds its kernels from parts with one
// job each, which read the group but do not change it:
//
//   GpuGroup.h     launches, and walks of threads over loops of the data
//   GpuPieces.h    memory and elements of a piece
//   GpuSums.h      sums of a thread, a warp, a block
//   GpuMoments.h   a mean and squares about it, together
//   GpuChannels.h  per-channel values
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUGROUP_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUGROUP_H

#include "Apply/GroupEmitter.h"
#include "DeviceBuffers.h"
#include "Schedule/Moments.h"

#include "BNGrad/Dialect/Schedule.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::bngrad {

/// Where a piece is: an index for every loop of the data, null until a walk
/// sets it. The last loop's index is that of the piece's first element.
using Indices = SmallVector<Value>;

inline Value isBelow(IndexBuilder index, Value value, Value bound) {
  return index.compare(arith::CmpIPredicate::ult, value, bound);
}
inline Value isZero(IndexBuilder index, Value value) {
  return index.compare(arith::CmpIPredicate::eq, value, index.constant(0));
}

/// The pieces that a thread visits in some loops of the data, numbered as one
/// sequence with the last loop innermost.
struct Walk {
  SmallVector<unsigned> loops;
  SmallVector<Value> sizes;   // by loop; the innermost one in pieces
  SmallVector<Value> strides; // by loop, from a piece of the thread to the next
  unsigned inner = 0;         // the innermost loop of the data
  int64_t lanes = 1;          // elements of a piece

  Walk() = default;
  /// A walk with a stride of `stride` pieces.
  Walk(IndexBuilder index, ArrayRef<unsigned> loops, ArrayRef<Value> sizes,
       Value stride, unsigned inner, int64_t lanes);

  Value countPieces(IndexBuilder index) const { return index.product(sizes); }
  /// The position of piece `number`: an index for each loop.
  SmallVector<Value> delinearize(IndexBuilder index, Value number) const;
  /// The thread's position after `position`.
  SmallVector<Value> advance(IndexBuilder index, ValueRange position) const;
  /// `indices`, with the walk's loops set to `position`.
  Indices getIndices(IndexBuilder index, Indices indices,
                     ValueRange position) const;
};

/// The pieces of a walk that a thread visits: number `from + thread` and every
/// `stride`-th after it, before `to`.
struct ThreadPieces {
  Value from, thread, stride, to;
  bool isChunk = false; // known to be one whole chunk
  int64_t width = 0;    // bound of `thread` if it is not `stride`
};

/// The pieces of a thread, as whole chunks of kUnroll pieces and a rest.
struct Chunks {
  Chunks(IndexBuilder index, const ThreadPieces &pieces);

  /// The first piece of the thread after the whole chunks.
  Value getRest(IndexBuilder index) const {
    return index.add(start, index.mul(count, size));
  }

  Value size;  // of a chunk, in pieces of all threads
  Value count; // of whole chunks
  Value start; // the first piece of the thread
};

/// The threads of a kernel, and their memory.
struct LaunchShape {
  Value blocks;
  int64_t threads;                // of a block
  TypeRange shared = {};          // workgroup memory, by buffer
  bool startsNext = false;        // lets the blocks of the next kernel start
  int64_t dynamicSharedBytes = 0; // more workgroup memory
  int64_t cluster = 1;            // blocks of a cluster
};

class Kernel;

/// A group whose kernels are emitted. Each schedule is a subclass.
///
/// Shapes: `sizes` in elements, by loop over the data, static or dynamic.
/// Units:  `threads` of a block; lanes in elements of a piece.
class GpuGroup : public GroupEmitter {
public:
  GpuGroup(OpBuilder &b, const ScheduledGroup &group,
           const GpuSchedule &schedule, DeviceBuffers &buffers);

  /// Like the method of the base class. The stage of the squares of `moments`
  /// has two sums, those of emitMoments, and the stage of the mean has none.
  void enterStage(unsigned number);
  /// Whether the sums of the current stage are those of emitMoments.
  bool computesMoments() const {
    return moments && stageNumber == moments->sum + 1;
  }

  /// Like the method of the base class, but with scalars for one lane.
  Accumulators zeroSums(OpBuilder &b, int64_t lanes = 1) const {
    return lanes == 1 ? GroupEmitter::zeroSums(b)
                      : GroupEmitter::zeroSums(b, lanes);
  }
  Walk createWalk(OpBuilder &b, ArrayRef<unsigned> loops, Value stride,
                  int64_t lanes) const;

  void launch(OpBuilder &b, StringRef name, const LaunchShape &shape,
              function_ref<void(OpBuilder &, const Kernel &)> body) const;
  static MemRefType getSharedType(int64_t elements, Type type);
  /// The type of `elements` in shared memory, by sum.
  SmallVector<Type> getSharedTypes(int64_t elements) const;
  void barrier(OpBuilder &b) const { gpu::BarrierOp::create(b, loc); }
  /// Emits a loop that carries nothing.
  scf::ForOp forEach(OpBuilder &b, Value from, Value to, Value step,
                     function_ref<void(OpBuilder &, Value)> body) const;

  const GpuSchedule schedule;
  DeviceBuffers &buffers;
  /// A mean and squares about it, which are computed together.
  const std::optional<MomentStages> moments;
  Value channels;        // the number of channels
  const int64_t threads; // of a block
  const unsigned inner;  // the innermost loop
  std::string module;    // the symbol of the kernels
};

/// The values of a kernel that all threads of a block use.
class Kernel {
public:
  /// Calls `body` with each of `count` numbers, in one thread of the block.
  void forEach(OpBuilder &b, int64_t count,
               function_ref<void(OpBuilder &, Value)> body) const;
  /// How many adjacent threads can share each of `count` numbers: a power of 2,
  /// at most `most` and at most a warp.
  int64_t countSharers(int64_t count, int64_t most) const;
  /// Calls `body` with each of `count` numbers in `parts` adjacent threads, and
  /// with the thread's part. If `parts` is more than 1, all threads of a warp
  /// call it, because of shuffles; some may have a number past the last.
  using SharedBody = function_ref<void(OpBuilder &, Value number, Value part)>;
  void forEachShared(OpBuilder &b, int64_t count, int64_t parts,
                     SharedBody body) const;
  /// The number of a thread if it has at most one; some threads may have a
  /// number past the last.
  std::optional<Value> getSharedNumber(OpBuilder &b, int64_t count,
                                       int64_t parts) const;

  const GpuGroup &gpu;
  Value block, thread; // their numbers in the grid and in the block
  int64_t threads;     // of a block
  ValueRange shared;   // workgroup memory
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUGROUP_H
