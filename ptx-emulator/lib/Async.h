//===- Async.h - mbarriers and asynchronous copies --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy moves its bytes only when a wait for it succeeds. Until then its
// destination is busy, and its source must not be written.
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ASYNC_H
#define PTX_EMULATOR_LIB_ASYNC_H

#include "AtomicOp.h"
#include "Memory.h"

#include <deque>
#include <optional>

namespace ptx {

class Cluster;
struct Block;
struct Inst;
class Warp;

struct AsyncCopy {
  Region *source = nullptr; // null: `data` from the beginning
  Region *dest = nullptr;
  uint64_t sourceOffset = 0, destOffset = 0;
  uint32_t sourceBytes = 0; // the rest of `bytes` is filled with zeros
  uint32_t bytes = 0;
  uint32_t line = 0;
  uint32_t issuer = 0; // actor of the cluster
  /// The actor that writes: for cp.async the issuer, for a bulk copy the actor
  /// of the block's asynchronous copies.
  uint32_t writer = 0;
  uint32_t writeTime = 0;             // of a bulk copy
  std::optional<Reduction> reduction; // instead of a plain write
  bool isBulk = false;                // by the asynchronous proxy
  bool sourceRead = false;
  bool done = false;
  std::vector<uint8_t> data; // between reading and writing
  ByteFlags dataDefined;
};

struct Mbarrier {
  uint32_t expected = 0; // arrivals of a phase
  uint32_t pending = 0;  // arrivals still to come
  int64_t bytes = 0;     // expected by expect_tx, not yet complete
  uint32_t phase = 0;
  Meeting current;   // of the threads that arrived in this phase
  Meeting completed; // of the previous phase
  // As above, of the threads of other blocks.
  Meeting currentFar, completedFar;
  // The thread that initialised it, for the asynchronous proxy.
  uint32_t initId = 0;
  uint32_t initTime = 0;
  uint32_t initFenceTime = 0; // of fence.mbarrier_init; 0: none
  /// Copies that complete in this phase.
  std::vector<AsyncCopy *> copies;
  int64_t copyBytes = 0;
  /// Warps whose waits for this phase have failed. The first wait of a warp
  /// always fails, so that a program which ignores the result is found.
  std::vector<const Warp *> failed;
  /// Threads with a cp.async that arrives when their copies are complete.
  struct Deferred {
    uint32_t actor;
    std::vector<AsyncCopy *> copies;
  };
  std::vector<Deferred> deferred;
};

/// Pending copies of one thread, of cp.async or bulk.
struct CopyQueue {
  std::vector<AsyncCopy *> open; // not committed
  std::deque<std::vector<AsyncCopy *>> groups;
};

/// The copies of one cluster.
class AsyncCopies {
public:
  explicit AsyncCopies(Cluster &cluster) : cluster(cluster) {}
  void start();

  AsyncCopy *add(const AsyncCopy &copy);
  /// Reads the source.
  void read(AsyncCopy &copy);
  /// Reads the source, unless it was read before, and writes the destination.
  void complete(AsyncCopy &copy);
  /// Completes all but the last `keep` groups of `queue`, or only reads.
  void wait(CopyQueue &queue, size_t keep, bool readOnly);

  /// A copy whose source has one of these bytes, or null.
  const AsyncCopy *findSource(const Region *region, uint64_t offset,
                              uint64_t bytes) const;
  /// A copy whose destination has one of these bytes, or null; with
  /// `reductions`, also one that reduces.
  const AsyncCopy *findDest(const Region *region, uint64_t offset,
                            uint64_t bytes, bool reductions) const;
  /// A copy that is not complete, or null.
  const AsyncCopy *findOpen() const;
  bool empty() const { return numOpen == 0; }

  /// The queues of a thread.
  CopyQueue &threadQueue(uint32_t actor) { return threads[actor]; }
  CopyQueue &bulkQueue(uint32_t actor) { return bulk[actor]; }

  /// Whether the phase of `barrier` with this parity or number is complete. If
  /// only copies are missing, they are completed first.
  bool testPhase(Mbarrier &barrier, uint32_t parity, const Warp &warp);
  /// Ends the phase if all arrivals and bytes are complete.
  void finishPhase(Mbarrier &barrier);

private:
  void writeDest(AsyncCopy &copy);

  Cluster &cluster;
  std::vector<std::unique_ptr<AsyncCopy>> copies;   // some pending
  std::vector<std::unique_ptr<AsyncCopy>> finished; // all complete
  size_t numOpen = 0;
  std::unordered_map<uint32_t, CopyQueue> threads, bulk;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_ASYNC_H
