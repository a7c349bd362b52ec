//===- Order.h - happens-before ---------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each actor (a thread of a cluster, or the asynchronous copies of one block)
// has a clock, and knowledge: for every other actor of its cluster, the latest
// time it is synchronised with (a vector clock). A barrier gives all
// participants the same knowledge. Between clusters, and for flags in memory,
// the log of an address carries the knowledge: releases are appended, and an
// acquire learns the log up to its current length.
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ORDER_H
#define PTX_EMULATOR_LIB_ORDER_H

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bngrad::ptx {

class SyncLog;

/// A log up to some length.
using LogPrefix = std::pair<const SyncLog *, size_t>;

struct Knowledge {
  std::vector<uint32_t> clocks; // of the actors of the cluster
  std::vector<LogPrefix> logs;
};
using KnowledgeRef = std::shared_ptr<const Knowledge>;

/// The knowledge of an actor at one time of its clock.
struct Moment {
  KnowledgeRef known;
  uint32_t actor = 0;
  uint32_t clock = 0;
};

/// Extends `logs` by the prefixes in `more`.
void mergeLogs(std::vector<LogPrefix> &logs,
               const std::vector<LogPrefix> &more);

/// The releases at one address.
class SyncLog {
public:
  void append(uint32_t cluster, const Moment &moment);
  size_t size() const { return moments.size(); }
  /// The prefixes of other logs known to all releases so far.
  const std::vector<LogPrefix> &knownLogs() const { return logs; }
  /// Whether one of the first `length` releases, by an actor of `cluster`, is
  /// ordered after the time `clock` of `actor`.
  bool covers(size_t length, uint32_t cluster, uint32_t actor,
              uint32_t clock) const;

private:
  std::vector<Moment> moments;
  std::unordered_map<uint32_t, std::vector<size_t>> byCluster;
  std::vector<LogPrefix> logs;
};

/// Merges the knowledge of the actors that arrive at a barrier.
class Meeting {
public:
  void add(Moment moment) {
    moments.push_back(std::move(moment));
    joined.reset();
  }
  bool empty() const { return moments.empty(); }
  /// Their merged knowledge; `actors` is the number in the cluster.
  KnowledgeRef knowledge(size_t actors) const;
  /// Whether an actor contributed `known` to knowledge().
  bool includes(const KnowledgeRef &known) const;
  void clear() {
    moments.clear();
    joined.reset();
  }

private:
  std::vector<Moment> moments;
  mutable KnowledgeRef joined;
};

/// The clocks and the knowledge of one cluster.
class Order {
public:
  /// Starts a cluster whose actors have the ids `index * actors + i`.
  void start(uint32_t index, uint32_t actors);

  uint32_t idOf(uint32_t actor) const { return cluster * actors + actor; }
  uint32_t numActors() const { return actors; }
  uint32_t clockOf(uint32_t actor) const { return clocks[actor]; }

  /// Whether the time `clock` of the actor with the id `id` happened before the
  /// current time of `actor`.
  bool happenedBefore(uint32_t id, uint32_t clock, uint32_t actor) const {
    uint32_t other = id - cluster * actors;
    if (other < actors) {
      if (other == actor)
        return true;
      const Knowledge *known = knowledge[actor].get();
      if (known && !known->clocks.empty() && known->clocks[other] >= clock)
        return true;
    }
    return knownThroughLogs(id, clock, actor);
  }

  /// Returns the current moment of `actor`, and advances its clock.
  Moment leave(uint32_t actor);
  /// Adds the knowledge of `meeting` to `actor`.
  void learn(uint32_t actor, const Meeting &meeting);
  /// As learn(), for an actor that arrived at `meeting` itself.
  void settle(uint32_t actor, const Meeting &meeting) {
    knowledge[actor] = meeting.knowledge(actors);
  }
  /// All `participants` leave and learn.
  void synchronize(const std::vector<uint32_t> &participants);

  /// A fence: later relaxed stores of `actor` release its current moment, and
  /// the logs that it read before become known.
  void fence(uint32_t actor);
  void release(uint32_t actor, SyncLog &log);
  void releaseRelaxed(uint32_t actor, SyncLog &log);
  void acquire(uint32_t actor, const SyncLog &log);
  void acquireRelaxed(uint32_t actor, const SyncLog &log);

private:
  bool knownThroughLogs(uint32_t id, uint32_t clock, uint32_t actor) const;
  void addLogs(uint32_t actor, const std::vector<LogPrefix> &logs);

  struct Fenced {
    Moment moment;
    bool valid = false;
    const SyncLog *lastLog = nullptr; // where `moment` was released last
    std::vector<LogPrefix> seen;      // become known at the next fence
  };

  uint32_t cluster = 0;
  uint32_t actors = 0;
  std::vector<uint32_t> clocks;
  std::vector<KnowledgeRef> knowledge;
  std::vector<Fenced> fenced;
};

} // namespace bngrad::ptx

#endif // PTX_EMULATOR_LIB_ORDER_H
