//===- Async.h - mbarriers and asynchronous copies --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy moves its bytes only when something waits for it with success. Until
// then its destination is busy, and its source must not be written.
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ASYNC_H
#define PTX_EMULATOR_LIB_ASYNC_H

#include "Memory.h"

#include <deque>

namespace bngrad::ptx {

class Cluster;
struct Block;
struct Inst;
class Warp;

struct AsyncCopy {
  Region *source = nullptr;
  Region *dest = nullptr;
  uint64_t sourceOffset = 0, destOffset = 0;
  uint32_t sourceBytes = 0; // the rest of `bytes` is filled with zeros
  uint32_t bytes = 0;
  uint32_t line = 0;
  uint32_t issuer = 0; // actor of the cluster
  /// The actor that writes: the issuer for cp.async, the asynchronous copies
  /// of the block for a bulk copy.
  uint32_t writer = 0;
  uint32_t writeTime = 0; // of a bulk copy
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
  Meeting current;   // of those who arrived in this phase
  Meeting completed; // of the phase before
  /// Copies that complete on this phase.
  std::vector<AsyncCopy *> copies;
  int64_t copyBytes = 0;
  /// Warps whose waits for this phase have failed. The first one of a warp
  /// always does, so that one whose result is ignored is found.
  std::vector<const Warp *> failed;
  /// Threads whose cp.async arrive when their copies are done.
  struct Deferred {
    uint32_t actor;
    std::vector<AsyncCopy *> copies;
  };
  std::vector<Deferred> deferred;
};

/// What one thread has under way, of cp.async or of bulk copies.
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
  /// Reads the source, if that was not done, and writes the destination.
  void complete(AsyncCopy &copy);
  /// Completes all but the last `keep` groups of `queue`, or only reads.
  void wait(CopyQueue &queue, size_t keep, bool readOnly);

  /// A copy whose source has one of these bytes, or null.
  const AsyncCopy *findSource(const Region *region, uint64_t offset,
                              uint64_t bytes) const;
  /// A copy whose destination has one of these bytes, or null.
  const AsyncCopy *findDest(const Region *region, uint64_t offset,
                            uint64_t bytes) const;
  /// A copy that is not complete, or null.
  const AsyncCopy *findOpen() const;
  bool empty() const { return numOpen == 0; }

  /// The queues of a thread.
  CopyQueue &threadQueue(uint32_t actor) { return threads[actor]; }
  CopyQueue &bulkQueue(uint32_t actor) { return bulk[actor]; }

  /// Whether the phase with parity or number of `barrier` is over; copies that
  /// are all that is missing are completed for that.
  bool testPhase(Mbarrier &barrier, uint32_t parity, const Warp &warp);
  /// Ends the phase if nothing is missing.
  void finishPhase(Mbarrier &barrier);

private:
  Cluster &cluster;
  std::vector<std::unique_ptr<AsyncCopy>> copies;   // some not done
  std::vector<std::unique_ptr<AsyncCopy>> finished; // all done
  size_t numOpen = 0;
  std::unordered_map<uint32_t, CopyQueue> threads, bulk;
};

} // namespace bngrad::ptx

#endif // PTX_EMULATOR_LIB_ASYNC_H
