//===- Async.cpp - mbarriers and asynchronous copies ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async.h"

#include "Machine.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ptx {

void AsyncCopies::start() {
  copies.clear();
  finished.clear();
  numOpen = 0;
  threads.clear();
  bulk.clear();
}

AsyncCopy *AsyncCopies::add(const AsyncCopy &copy) {
  copies.push_back(std::make_unique<AsyncCopy>(copy));
  AsyncCopy *added = copies.back().get();
  added->dest->busy.set(added->destOffset, added->bytes, true);
  ++added->dest->numBusy;
  if (added->source)
    ++added->source->numSources;
  ++numOpen;
  return added;
}

void AsyncCopies::read(AsyncCopy &copy) {
  if (copy.sourceRead)
    return;
  copy.sourceRead = true;
  --copy.source->numSources;
  copy.data.assign(copy.bytes, 0);
  copy.dataDefined.resize(copy.bytes, true);
  if (copy.sourceBytes == 0)
    return;
  std::memcpy(copy.data.data(), copy.source->data + copy.sourceOffset,
              copy.sourceBytes);
  copy.dataDefined.copy(0, copy.source->defined, copy.sourceOffset,
                        copy.sourceBytes);
}

static bool overlaps(uint64_t a, uint64_t aBytes, uint64_t b, uint64_t bBytes) {
  return a < b + bBytes && b < a + aBytes;
}

void AsyncCopies::writeDest(AsyncCopy &copy) {
  Region &dest = *copy.dest;
  uint8_t *to = dest.data + copy.destOffset;
  if (!copy.reduction) {
    std::memcpy(to, copy.data.data(), copy.bytes);
    dest.defined.copy(copy.destOffset, copy.dataDefined, 0, copy.bytes);
  } else {
    reduce(*copy.reduction, to, copy.data.data(), copy.bytes);
  }
  dest.busy.set(copy.destOffset, copy.bytes, false);
  --dest.numBusy;
  // Several reductions may be pending at one place.
  for (Cluster *other : cluster.launch.active)
    for (const auto &pending : other->copies.copies)
      if (copy.reduction && !pending->done && pending->dest == copy.dest &&
          overlaps(pending->destOffset, pending->bytes, copy.destOffset,
                   copy.bytes))
        dest.busy.set(pending->destOffset, pending->bytes, true);
}

void AsyncCopies::complete(AsyncCopy &copy) {
  if (copy.done)
    return;
  read(copy);
  copy.done = true;
  writeDest(copy);
  // If a thread waits for its own copy, others must be ordered after the wait.
  Scope scope = copy.reduction ? Scope::Device : Scope::None;
  if (copy.writer == copy.issuer)
    copy.dest->shadow.overwrite(copy.destOffset, copy.bytes,
                                {&cluster.order, copy.writer, scope},
                                copy.isBulk);
  copy.data.clear();
  copy.data.shrink_to_fit();
  ++cluster.launch.progress;
  // Queues and barriers may still refer to it.
  if (--numOpen == 0) {
    std::move(copies.begin(), copies.end(), std::back_inserter(finished));
    copies.clear();
  }
}

void AsyncCopies::wait(CopyQueue &queue, size_t keep, bool readOnly) {
  size_t count = queue.groups.size() > keep ? queue.groups.size() - keep : 0;
  for (size_t i = 0; i < count; ++i)
    for (AsyncCopy *copy : queue.groups[i])
      readOnly ? read(*copy) : complete(*copy);
  if (!readOnly)
    queue.groups.erase(queue.groups.begin(), queue.groups.begin() + count);
}

const AsyncCopy *AsyncCopies::findSource(const Region *region, uint64_t offset,
                                         uint64_t bytes) const {
  for (const auto &copy : copies)
    if (!copy->sourceRead && copy->source == region &&
        overlaps(copy->sourceOffset, copy->sourceBytes, offset, bytes))
      return copy.get();
  return nullptr;
}

const AsyncCopy *AsyncCopies::findDest(const Region *region, uint64_t offset,
                                       uint64_t bytes, bool reductions) const {
  for (const auto &copy : copies)
    if (!copy->done && copy->dest == region &&
        (reductions || !copy->reduction) &&
        overlaps(copy->destOffset, copy->bytes, offset, bytes))
      return copy.get();
  return nullptr;
}

const AsyncCopy *AsyncCopies::findOpen() const {
  for (const auto &copy : copies)
    if (!copy->done)
      return copy.get();
  return nullptr;
}

void AsyncCopies::finishPhase(Mbarrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.failed.clear();
  barrier.pending = barrier.expected;
  std::swap(barrier.completed, barrier.current);
  barrier.current.clear();
  std::swap(barrier.completedFar, barrier.currentFar);
  barrier.currentFar.clear();
  ++cluster.launch.progress;
}

bool AsyncCopies::testPhase(Mbarrier &barrier, uint32_t parity,
                            const Warp &warp) {
  if ((barrier.phase & 1) != parity)
    return true;
  // The phase must be incomplete only because of pending copies.
  uint32_t deferred = barrier.deferred.size();
  if (barrier.pending != deferred || barrier.bytes != barrier.copyBytes ||
      (deferred == 0 && barrier.copies.empty()))
    return false;
  if (std::find(barrier.failed.begin(), barrier.failed.end(), &warp) ==
      barrier.failed.end())
    return false;
  for (AsyncCopy *copy : barrier.copies) {
    complete(*copy);
    barrier.current.add({nullptr, copy->writer, copy->writeTime});
  }
  for (Mbarrier::Deferred &arrival : barrier.deferred) {
    for (AsyncCopy *copy : arrival.copies)
      complete(*copy);
    barrier.current.add(cluster.order.leave(arrival.actor));
  }
  barrier.pending = 0;
  barrier.bytes = barrier.copyBytes = 0;
  barrier.copies.clear();
  barrier.deferred.clear();
  finishPhase(barrier);
  return true;
}

} // namespace ptx
