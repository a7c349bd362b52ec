//===- Order.h - what happened before what ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each actor (a thread of a cluster, or the asynchronous copies of one block)
// has a clock, and knowledge: up to which time of every other actor of its
// cluster it is synchronised with. A barrier gives all its participants the
// same knowledge. Between clusters, and for flags in memory, knowledge goes
// through the log of an address: releases are appended, and an acquire knows
// the log up to its current length.
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

/// What an actor knew at a time of its own.
struct Moment {
  KnowledgeRef known;
  uint32_t actor = 0;
  uint32_t clock = 0;
};

/// Raises `logs` to what `more` says.
void mergeLogs(std::vector<LogPrefix> &logs,
               const std::vector<LogPrefix> &more);

/// The releases at one address.
class SyncLog {
public:
  void append(uint32_t cluster, const Moment &moment);
  size_t size() const { return moments.size(); }
  /// What all releases so far knew of other logs.
  const std::vector<LogPrefix> &knownLogs() const { return logs; }
  /// Whether one of the first `length` releases, by an actor of `cluster`,
  /// comes after the time `clock` of `actor`.
  bool covers(size_t length, uint32_t cluster, uint32_t actor,
              uint32_t clock) const;

private:
  std::vector<Moment> moments;
  std::unordered_map<uint32_t, std::vector<size_t>> byCluster;
  std::vector<LogPrefix> logs;
};

/// Collects what those who arrive at a barrier know.
class Meeting {
public:
  void add(Moment moment) {
    moments.push_back(std::move(moment));
    joined.reset();
  }
  bool empty() const { return moments.empty(); }
  /// What all of them know together; `actors` is the number in the cluster.
  KnowledgeRef knowledge(size_t actors) const;
  /// Whether `known` is part of knowledge() because someone brought it.
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

  /// Whether the time `clock` of the actor with the id `id` came before the
  /// present of `actor`.
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

  /// The present of `actor`, whose clock moves on.
  Moment leave(uint32_t actor);
  /// Gives `actor` what those who came to `meeting` knew.
  void learn(uint32_t actor, const Meeting &meeting);
  /// The same for an actor that came to `meeting` itself.
  void settle(uint32_t actor, const Meeting &meeting) {
    knowledge[actor] = meeting.knowledge(actors);
  }
  /// All of `participants` leave and learn.
  void synchronize(const std::vector<uint32_t> &participants);

  /// A fence: what `actor` releases without further qualification from now on
  /// is its present, and what it read before is now known.
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
    std::vector<LogPrefix> seen;      // to be known at the next fence
  };

  uint32_t cluster = 0;
  uint32_t actors = 0;
  std::vector<uint32_t> clocks;
  std::vector<KnowledgeRef> knowledge;
  std::vector<Fenced> fenced;
};

} // namespace bngrad::ptx

#endif // PTX_EMULATOR_LIB_ORDER_H
