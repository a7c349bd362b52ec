//===- Machine.h - a launch: clusters, blocks, warps ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_MACHINE_H
#define PTX_EMULATOR_LIB_MACHINE_H

#include "Async.h"
#include "Chip.h"
#include "Environment.h"
#include "KernelsAhead.h"
#include "Program.h"
#include "Traffic.h"

#include <optional>

namespace ptx {

class Launch;

/// The reason why lanes do not run.
enum class Wait : uint8_t {
  None,
  Lanes,       // until other lanes of the warp reach the same instruction
  WarpBarrier, // bar.warp.sync, possibly at different instructions
  Barrier,     // of the block
  Cluster      // barrier.cluster.wait
};

/// Lanes of a warp at the same instruction.
struct Group {
  uint32_t pc = 0;
  uint32_t mask = 0;
  Wait wait = Wait::None;
  uint32_t detail = 0; // member mask, or number of the barrier
};

class Warp {
public:
  /// Starts at the first instruction.
  void start(Block &block, uint32_t index);
  /// Runs about `quantum` instructions; fewer if no lane can run or a polled
  /// wait fails.
  void run(unsigned quantum);
  bool isRunnable() const;

  //===--------------------------------------------------------------------===//
  // For handlers
  //===--------------------------------------------------------------------===//

  const uint64_t *in(Column column) const {
    return column >= 0 ? &registers[size_t(column) * 32]
                       : constants + size_t(~column) * 32;
  }
  uint64_t *out(Column column) { return &registers[size_t(column) * 32]; }
  /// The lanes with uninitialised bytes in `column`.
  uint32_t undefinedOf(Column column) const {
    return column >= 0 ? undefined[column] : 0;
  }
  /// The uninitialised bytes, one bit each.
  uint8_t undefinedBytes(Column column, unsigned lane) const {
    return undefinedOf(column) >> lane & 1
               ? undefinedParts[size_t(column) * 32 + lane]
               : 0;
  }
  /// Marks the lanes of `mask` as initialised.
  void define(Column column, uint32_t mask) { undefined[column] &= ~mask; }
  /// As above, except the bytes `bytes(lane)` in the lanes of `affected`.
  /// `bytes` may read the state of the same column.
  template <typename Fn>
  void define(Column column, uint32_t mask, uint32_t affected, Fn bytes) {
    define(column, mask & ~affected);
    for (affected &= mask; affected; affected &= affected - 1) {
      unsigned lane = __builtin_ctz(affected);
      if (uint8_t parts = bytes(lane)) {
        undefined[column] |= 1u << lane;
        undefinedParts[size_t(column) * 32 + lane] = parts;
        undefinedSince[column] = currentLine();
      } else {
        define(column, 1u << lane);
      }
    }
  }
  /// Reports the first source in [first, end) that has undefined bytes, of
  /// those that `inst` reads.
  bool checkSources(const Inst &inst, uint32_t mask, unsigned first,
                    unsigned end);
  /// Describes the origin of the value of an undefined column.
  std::string describeUndefined(Column column) const;
  /// The lanes in which predicate source `i` of `inst` holds.
  uint32_t predicate(const Inst &inst, unsigned i) const {
    uint32_t value = predicates[inst.predSource[i]];
    return inst.predNegated[i] ? ~value : value;
  }
  void setPredicate(const Inst &inst, unsigned i, uint32_t mask,
                    uint32_t value) {
    uint32_t &target = predicates[inst.predDest[i]];
    target = (target & ~mask) | (value & mask);
  }

  /// Sends the lanes of `mask` to `pc`.
  void branch(uint32_t mask, uint32_t pc);
  /// Stops the lanes of `mask` at `pc`.
  void suspend(uint32_t mask, uint32_t pc, Wait wait, uint32_t detail = 0);
  void exitLanes(uint32_t mask);
  /// Orders the accesses of the lanes so far before those that follow.
  void synchronizeLanes(uint32_t mask);
  /// Lets other warps run; then other lanes of this warp run first.
  void yield() { yielding = true; }

  /// Reports an error of `lane` at the current instruction.
  void report(unsigned lane, const char *kind, const std::string &detail);
  /// Reports a use of uninitialised bytes, and gives whether to continue.
  bool reportUninitialised(unsigned lane, const std::string &detail);
  /// Prints a warning, once for each instruction of a kernel.
  void warn(unsigned lane, const char *kind, const std::string &detail);

  uint32_t threadOf(unsigned lane) const { return index * 32 + lane; }
  uint32_t actorOf(unsigned lane) const;
  uint32_t pc() const { return current.pc; }

  Block *block = nullptr;
  Launch *launch = nullptr;
  uint32_t index = 0;
  uint32_t existing = 0; // lanes that have a thread
  uint32_t carry = 0;    // flag of add.cc and similar instructions
  uint32_t carryUndefined = ~0u;
  uint32_t alive = 0;        // of those, the ones that have not exited
  std::vector<Group> groups; // all but the running one
  std::vector<uint32_t> predicates;
  std::vector<uint32_t> predUndefined;

private:
  uint32_t currentLine() const;
  bool pick();
  bool regroup();
  std::string describe(unsigned lane, const std::string &detail) const;
  bool checkDefined(const Inst &inst, uint32_t mask);
  void defineResults(const Inst &inst, uint32_t mask);
  void defineWhole(const Inst &inst, uint32_t mask);
  void defineParts(const Inst &inst, uint32_t mask);
  void defineBitwise(const Inst &inst, uint32_t mask);
  void defineBitwisePredicate(const Inst &inst, uint32_t mask);
  void fillSpecials();
  std::optional<uint64_t> specialOfBlock(Special special) const;
  std::optional<uint64_t> specialOfCluster(Special special) const;
  uint64_t specialOfThread(Special special, unsigned lane) const;

  Group current;
  uint32_t nextPc = 0;
  bool yielding = false;
  bool rotating = false; // other lanes than those with the smallest pc
  const uint64_t *constants = nullptr;
  std::vector<uint64_t> registers;
  std::vector<uint32_t> undefined;      // a bit for each lane
  std::vector<uint8_t> undefinedParts;  // of the lanes in `undefined`
  std::vector<uint32_t> undefinedSince; // line; 0: from the beginning
};

enum class BarrierOp : uint8_t { Sync, Arrive, And, Or, PopCount };

/// A barrier of bar.sync and similar instructions.
struct NamedBarrier {
  uint32_t arrived = 0;
  uint32_t expected = 0;
  bool isCounted = false; // the instructions state the number of threads
  BarrierOp op = BarrierOp::Sync; // of those that wait
  struct Waiter {
    Warp *warp;
    uint32_t mask;
    Column result; // of bar.red, or -1
    int32_t predResult;
  };
  std::vector<Waiter> waiters;
  Meeting meeting;
  uint32_t count = 0; // of true predicates, and of all
  uint32_t voters = 0;
};

struct Block {
  Cluster *cluster = nullptr;
  uint32_t rank = 0;
  Dim3 id;
  Region shared, local;
  std::vector<uint8_t> sharedData, localData;
  std::vector<Warp> warps;
  NamedBarrier barriers[16];
  std::map<uint32_t, Mbarrier> mbarriers; // by offset
  uint32_t exited = 0;                    // threads

  void start(Cluster &cluster, uint32_t rank, Dim3 id);
  bool isDone() const;
  /// Ends the phase of `barrier`, one of `barriers`, if all threads that have
  /// not exited have arrived.
  void finishIfComplete(NamedBarrier &barrier);
};

class Cluster {
public:
  explicit Cluster(Launch &launch) : launch(launch), copies(*this) {}
  void start(uint64_t index);
  /// Lets each warp run for a while.
  void step();
  bool isDone() const;
  bool isRunnable() const;
  /// Checks that no copy is pending after all threads have exited.
  void finish();
  /// Reports why no thread can run.
  void reportStuck();

  uint32_t actorOf(const Block &block, uint32_t thread) const;
  void arriveAtClusterBarrier(Warp &warp, uint32_t mask, bool release);
  /// Returns false if the lane must wait.
  bool passClusterBarrier(Warp &warp, unsigned lane);
  /// The lanes exit: other threads no longer wait for them.
  void leaveClusterBarrier(Warp &warp, uint32_t mask);
  void completeClusterBarrier();

  /// A thread executes griddepcontrol.wait.
  void waitForKernelsAhead(uint32_t actor);
  /// Whether a thread has done so, or is ordered after one that has.
  bool isAfterKernelsAhead(uint32_t actor);

  Launch &launch;
  std::vector<Block> blocks;
  Order order;
  AsyncCopies copies;
  std::vector<uint32_t> clusterPhases; // by thread: phase + 1 it arrived in
  uint32_t clusterPhase = 0;
  uint32_t clusterArrived = 0;
  Meeting clusterMeeting, lastClusterMeeting;
  std::vector<uint32_t> gridWaits; // by thread: its time then; 0: none
};

struct LaunchConfig {
  Dim3 grid, block, cluster;
  bool hasCluster = false;
  uint32_t dynamicShared = 0;
  void *stream = nullptr;
  uint64_t gridWorkspace = 0; // its address
  /// The share of shared memory that the kernel prefers, in percent.
  std::optional<uint32_t> carveout;
  std::vector<uint8_t> params;
};

class Launch {
public:
  Launch(DeviceMemory &memory, const Program &program, const Chip &chip,
         LaunchConfig config, uint64_t number);

  /// Runs all blocks. Returns false and sets `error` on failure.
  bool run();
  std::string error; // "<kind>: ..."

  bool failed() const { return !error.empty(); }
  void report(const char *kind, const std::string &text);
  /// "block (x,y,z), thread (x,y,z)" of an actor in the launch.
  std::string describeActor(uint32_t id) const;
  SyncLog *findLog(uint64_t address, bool create);

  uint32_t threadsPerBlock() const { return config.block.count(); }
  uint32_t sharedBytes() const {
    return program.dynamicSharedOffset + config.dynamicShared;
  }
  /// The id of the block with `rank` in cluster `index`.
  Dim3 blockId(uint64_t index, uint32_t rank) const;

  DeviceMemory &memory;
  const Program &program;
  const Chip chip;
  const LaunchConfig config;
  const uint64_t number;
  Region params;
  Traffic traffic;
  uint64_t instructions = 0; // of threads
  uint64_t steps = 0;        // instructions of warps
  uint64_t conflicts = 0;    // of banks
  uint64_t budget = 0;
  Effect equalStores = Effect::Warn;
  Effect uninitialised = Effect::Error;
  bool shufflesOrder = false;
  /// Increases with every event that may end a wait.
  uint64_t progress = 0;
  std::vector<Cluster *> active;
  /// Null if no kernel ahead may still run.
  const KernelsAhead *ahead = nullptr;
  bool hasWaited = false; // for kernels ahead

private:
  bool check();
  bool checkResidency();
  std::unordered_map<uint64_t, std::unique_ptr<SyncLog>> logs;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_MACHINE_H
