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
// acquire learns the log up to its current length, as far as the scopes of both
// include the other thread.
//
// The asynchronous proxy sees accesses of threads only after a proxy fence. So
// knowledge also has the part of it that was known at such a fence.
//
// Source: PTX ISA 8.8, "Memory Consistency Model".
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ORDER_H
#define PTX_EMULATOR_LIB_ORDER_H

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptx {

class SyncLog;

/// The threads that a strong operation is visible to: those of its block, of
/// its cluster, or of the device.
enum class Scope : uint8_t { None, Block, Cluster, Device };

/// A thread that releases or acquires.
struct Party {
  Scope scope = Scope::Device;
  uint32_t cluster = 0;
  uint32_t block = 0; // rank in the cluster

  bool operator==(const Party &other) const {
    return scope == other.scope && cluster == other.cluster &&
           block == other.block;
  }
  /// Whether the scope of each includes the other.
  bool sees(const Party &other) const;
};

/// A log up to some length, as it was acquired.
struct LogPrefix {
  const SyncLog *log = nullptr;
  size_t length = 0;
  Party by;
};

/// The memory that a proxy fence is for.
enum class ProxySpace : uint8_t { Shared, Global };

struct Knowledge {
  std::vector<uint32_t> clocks; // of the actors of the cluster
  std::vector<LogPrefix> logs;
  /// The part that the asynchronous proxy also knows, by ProxySpace.
  std::shared_ptr<const Knowledge> fenced[2];
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
  void append(const Party &by, const Moment &moment);
  size_t size() const { return releases.size(); }
  /// The log as of now, for an acquire.
  LogPrefix prefix(const Party &by) const;
  /// Adds the prefixes of other logs that the releases in `prefix` knew.
  void addKnownLogs(const LogPrefix &prefix,
                    std::vector<LogPrefix> &known) const;
  /// Whether a release in `prefix`, by an actor of `cluster`, is ordered after
  /// the time `clock` of `actor`; with `space`, whether it also knew that the
  /// asynchronous proxy is.
  bool covers(const LogPrefix &prefix, uint32_t cluster, uint32_t actor,
              uint32_t clock, const ProxySpace *space) const;

private:
  struct Release {
    Party by;
    Moment moment;
  };
  bool isPlain(const LogPrefix &prefix) const {
    return prefix.by.scope == Scope::Device && prefix.length <= numPlain;
  }

  std::vector<Release> releases;
  /// The first releases, all for the device.
  size_t numPlain = 0;
  std::unordered_map<uint32_t, std::vector<size_t>> byCluster;
  std::vector<LogPrefix> logs; // known to any of them
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
  /// Starts a cluster of `blocks` blocks with `threads` threads each, and one
  /// actor for the copies of each block after all threads. The actors have the
  /// ids `index * numActors() + i`.
  void start(uint32_t index, uint32_t blocks, uint32_t threads);

  uint32_t idOf(uint32_t actor) const { return cluster * actors + actor; }
  uint32_t numActors() const { return actors; }
  uint32_t clockOf(uint32_t actor) const { return clocks[actor]; }
  uint32_t blockOf(uint32_t actor) const {
    return actor < firstCopy ? actor / threadsOfBlock : actor - firstCopy;
  }
  Party partyOf(uint32_t id, Scope scope) const {
    return {scope, id / actors, blockOf(id % actors)};
  }

  /// Whether the time `clock` of the actor with the id `id` happened before the
  /// current time of `actor`.
  bool happenedBefore(uint32_t id, uint32_t clock, uint32_t actor) const {
    uint32_t other = id - cluster * actors;
    if (other == actor)
      return true;
    const Knowledge *known = knowledge[actor].get();
    return known && knows(*known, id, clock, nullptr);
  }
  /// Whether a proxy fence for `space` is between the two, too.
  bool isFenced(uint32_t id, uint32_t clock, uint32_t actor,
                ProxySpace space) const;

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
  void fence(uint32_t actor, Scope scope);
  /// A fence between the threads' accesses and the asynchronous proxy.
  void fenceProxy(uint32_t actor, ProxySpace space);
  void release(uint32_t actor, SyncLog &log, Scope scope);
  void releaseRelaxed(uint32_t actor, SyncLog &log, Scope scope);
  void acquire(uint32_t actor, const SyncLog &log, Scope scope);
  void acquireRelaxed(uint32_t actor, const SyncLog &log, Scope scope);

private:
  bool knows(const Knowledge &known, uint32_t id, uint32_t clock,
             const ProxySpace *space) const;
  void addLogs(uint32_t actor, const std::vector<LogPrefix> &logs);

  /// The last fence of at least some scope.
  struct Fence {
    Moment moment;
    bool valid = false;
    const SyncLog *lastLog = nullptr; // where `moment` was released last
    Scope lastScope = Scope::None;
  };
  /// A log that becomes known at the next fence.
  struct SeenLog {
    LogPrefix prefix;
    std::vector<LogPrefix> known;
  };
  struct Fences {
    Fence byScope[4];
    std::vector<SeenLog> seen;
  };

  uint32_t cluster = 0;
  uint32_t actors = 0;
  uint32_t firstCopy = 0;
  uint32_t threadsOfBlock = 1;
  std::vector<uint32_t> clocks;
  std::vector<KnowledgeRef> knowledge;
  std::vector<Fences> fences;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_ORDER_H
