//===- Machine.cpp - a launch: clusters and blocks --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <algorithm>

namespace ptx {

/// Instructions of a warp before the next warp runs.
static constexpr unsigned kQuantum = 4096;
/// Rounds over the warps of a cluster before more clusters become resident.
static constexpr unsigned kRoundsAlone = 64;
/// Rounds of failed waits before a deadlock is reported.
static constexpr unsigned kIdleRounds = 64;

static std::string coordinates(Dim3 at) {
  return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," +
         std::to_string(at.z) + ")";
}

//===----------------------------------------------------------------------===//
// Block
//===----------------------------------------------------------------------===//

void Block::start(Cluster &owner, uint32_t blockRank, Dim3 blockId) {
  cluster = &owner;
  rank = blockRank;
  id = blockId;
  exited = 0;
  mbarriers.clear();
  for (NamedBarrier &barrier : barriers)
    barrier = NamedBarrier();

  const Launch &launch = owner.launch;
  uint32_t reserved = launch.program.reservedSharedBytes;
  uint32_t bytes = reserved + launch.sharedBytes();
  if (sharedData.size() != bytes) {
    sharedData.resize(bytes);
    shared.shadow.resize(bytes);
  }
  // NaN in every floating-point format.
  std::fill(sharedData.begin(), sharedData.end(), 0xFF);
  std::fill_n(sharedData.begin(), reserved, 0);
  shared.data = sharedData.data();
  shared.base = kSharedBase - reserved;
  shared.bytes = bytes;
  shared.defined.resize(bytes, false);
  shared.defined.set(0, reserved, true);
  shared.busy.resize(bytes, false);
  shared.numBusy = shared.numSources = 0;
  shared.shadow.forget();

  uint64_t localBytes =
      uint64_t(launch.program.localBytes) * launch.threadsPerBlock();
  localData.resize(localBytes);
  local.data = localData.data();
  local.bytes = localBytes;
  local.defined.resize(localBytes, false);

  warps.resize((launch.threadsPerBlock() + 31) / 32);
  for (uint32_t i = 0; i < warps.size(); ++i)
    warps[i].start(*this, i);
}

bool Block::isDone() const {
  return exited == cluster->launch.threadsPerBlock();
}

/// Lets the threads go on that wait at `barrier`.
static void finishBarrier(Block &block, NamedBarrier &barrier) {
  Cluster &cluster = *block.cluster;
  for (const NamedBarrier::Waiter &waiter : barrier.waiters) {
    Warp &warp = *waiter.warp;
    for (Group &group : warp.groups)
      if (group.wait == Wait::Barrier && (group.mask & waiter.mask) &&
          &block.barriers[group.detail] == &barrier)
        group.wait = Wait::None;
    for (uint32_t mask = waiter.mask; mask; mask &= mask - 1)
      cluster.order.settle(warp.actorOf(__builtin_ctz(mask)), barrier.meeting);
    bool holds = barrier.op == BarrierOp::And ? barrier.count == barrier.voters
                                              : barrier.count != 0;
    if (waiter.predResult >= 0) {
      uint32_t &target = warp.predicates[waiter.predResult];
      target = holds ? target | waiter.mask : target & ~waiter.mask;
    }
    if (waiter.result >= 0)
      for (uint32_t mask = waiter.mask; mask; mask &= mask - 1)
        warp.out(waiter.result)[__builtin_ctz(mask)] = barrier.count;
  }
  barrier = NamedBarrier();
  ++cluster.launch.progress;
}

void Block::finishIfComplete(NamedBarrier &barrier) {
  if (barrier.arrived == 0)
    return;
  // CUDA C++ Programming Guide, "Independent Thread Scheduling": from 7.0 on,
  // a barrier waits for the threads that have not exited.
  bool exitsArrive = chipNumber(cluster->launch.chip.name) >= 70;
  uint32_t gone = exitsArrive && !barrier.isCounted ? exited : 0;
  if (barrier.arrived + gone >= barrier.expected)
    finishBarrier(*this, barrier);
}

//===----------------------------------------------------------------------===//
// Cluster
//===----------------------------------------------------------------------===//

void Cluster::start(uint64_t index) {
  uint32_t numBlocks = launch.config.cluster.count();
  order.start(index, numBlocks, launch.threadsPerBlock());
  copies.start();
  clusterPhases.assign(launch.threadsPerBlock() * numBlocks, 0);
  clusterPhase = clusterArrived = 0;
  clusterMeeting.clear();
  lastClusterMeeting.clear();
  gridWaits.assign(launch.threadsPerBlock() * numBlocks, 0);
  blocks.resize(numBlocks);
  for (uint32_t rank = 0; rank < numBlocks; ++rank)
    blocks[rank].start(*this, rank, launch.blockId(index, rank));
}

void Cluster::step() {
  for (Block &block : blocks)
    for (Warp &warp : block.warps) {
      warp.run(kQuantum);
      if (launch.failed())
        return;
    }
}

bool Cluster::isDone() const {
  return std::all_of(blocks.begin(), blocks.end(),
                     [](const Block &b) { return b.isDone(); });
}

bool Cluster::isRunnable() const {
  for (const Block &block : blocks)
    for (const Warp &warp : block.warps)
      if (warp.isRunnable())
        return true;
  return false;
}

uint32_t Cluster::actorOf(const Block &block, uint32_t thread) const {
  return block.rank * launch.threadsPerBlock() + thread;
}

void Cluster::finish() {
  if (const AsyncCopy *copy = copies.findOpen())
    launch.report("missing-wait",
                  "PTX line " + std::to_string(copy->line) + ", " +
                      launch.describeActor(order.idOf(copy->issuer)) +
                      ": all threads have exited without a wait for this copy "
                      "of " +
                      std::to_string(copy->bytes) + " bytes");
}

void Cluster::arriveAtClusterBarrier(Warp &warp, uint32_t mask, bool release) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint32_t actor = warp.actorOf(lane);
    if (clusterPhases[actor] == clusterPhase + 1) {
      warp.report(lane, "divergent-barrier",
                  "barrier.cluster.arrive twice without a wait between");
      return;
    }
    clusterPhases[actor] = clusterPhase + 1;
    ++clusterArrived;
    if (release)
      clusterMeeting.add(order.leave(actor));
  }
  ++launch.progress;
  completeClusterBarrier();
}

bool Cluster::passClusterBarrier(Warp &warp, unsigned lane) {
  uint32_t actor = warp.actorOf(lane);
  if (clusterPhases[actor] == 0) {
    warp.report(lane, "divergent-barrier",
                "barrier.cluster.wait without barrier.cluster.arrive");
    return false;
  }
  if (clusterPhases[actor] == clusterPhase + 1)
    return false;
  clusterPhases[actor] = 0;
  order.learn(actor, lastClusterMeeting);
  return true;
}

void Cluster::leaveClusterBarrier(Warp &warp, uint32_t mask) {
  if (clusterArrived == 0)
    return;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      clusterArrived -= clusterPhases[warp.actorOf(lane)] == clusterPhase + 1;
  completeClusterBarrier();
}

void Cluster::completeClusterBarrier() {
  uint32_t alive = 0;
  for (const Block &block : blocks)
    alive += launch.threadsPerBlock() - block.exited;
  if (clusterArrived == 0 || clusterArrived < alive)
    return;
  ++clusterPhase;
  clusterArrived = 0;
  std::swap(lastClusterMeeting, clusterMeeting);
  clusterMeeting.clear();
  for (Block &block : blocks)
    for (Warp &warp : block.warps)
      for (Group &group : warp.groups)
        if (group.wait == Wait::Cluster)
          group.wait = Wait::None;
}

void Cluster::waitForKernelsAhead(uint32_t actor) {
  gridWaits[actor] = order.clockOf(actor);
  launch.hasWaited = true;
}

bool Cluster::isAfterKernelsAhead(uint32_t actor) {
  for (uint32_t other = 0; gridWaits[actor] == 0 && other < gridWaits.size();
       ++other)
    if (gridWaits[other] != 0 &&
        order.happenedBefore(order.idOf(other), gridWaits[other], actor))
      gridWaits[actor] = order.clockOf(actor);
  return gridWaits[actor] != 0;
}

void Cluster::reportStuck() {
  const char *kind = "deadlock";
  Warp *stuck = nullptr;
  const Group *where = nullptr;
  // The most specific reason first.
  for (Wait wait : {Wait::Lanes, Wait::WarpBarrier, Wait::Barrier,
                    Wait::Cluster, Wait::None}) {
    for (Block &block : blocks)
      for (Warp &warp : block.warps)
        for (Group &group : warp.groups)
          if (!stuck && group.wait == wait) {
            stuck = &warp;
            where = &group;
          }
  }
  uint32_t pc = where->pc;
  if (where->wait == Wait::Barrier)
    --pc; // its lanes continue after the barrier
  unsigned lane = __builtin_ctz(where->mask);
  const Inst &inst = launch.program.code[pc];
  std::string text = "waits forever";
  uint32_t threads = launch.threadsPerBlock();
  if (where->wait == Wait::Lanes || where->wait == Wait::WarpBarrier) {
    bool isBarrier = inst.aligned;
    kind = isBarrier ? "divergent-barrier" : "divergent-shuffle";
    text = "only lanes " + hex(where->mask) + " of the warp are here, " +
           "expected " + hex(isBarrier ? stuck->existing : where->detail) +
           "; lanes " + hex(stuck->existing & ~stuck->alive) + " have exited";
  } else if (where->wait == Wait::Barrier) {
    const NamedBarrier &barrier = stuck->block->barriers[where->detail];
    kind = "divergent-barrier";
    text = std::to_string(barrier.arrived) + " of " +
           std::to_string(barrier.expected) + " threads reached barrier " +
           std::to_string(where->detail) + "; " +
           std::to_string(stuck->block->exited) + " of the " +
           std::to_string(threads) + " threads of the block have exited";
  } else if (where->wait == Wait::Cluster) {
    text = std::to_string(clusterArrived) +
           " threads of the cluster reached barrier.cluster; the others wait "
           "elsewhere";
  } else {
    text = "all threads that have not exited wait for events that cannot "
           "occur";
  }
  launch.report(kind,
                "PTX line " + std::to_string(inst.line) + ", " +
                    launch.describeActor(order.idOf(stuck->actorOf(lane))) +
                    ": " + text);
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

Launch::Launch(DeviceMemory &memory, const Program &program, const Chip &chip,
               LaunchConfig launchConfig, uint64_t number)
    : memory(memory), program(program), chip(chip),
      config(std::move(launchConfig)), number(number) {
  params.create(0, config.params.size(), true);
  params.data = const_cast<uint8_t *>(config.params.data());
}

void Launch::report(const char *kind, const std::string &text) {
  if (error.empty())
    error = std::string(kind) + ": kernel '" + program.name + "', " + text;
}

Dim3 Launch::blockId(uint64_t index, uint32_t rank) const {
  Dim3 cluster = delinearize(index, {config.grid.x / config.cluster.x,
                                     config.grid.y / config.cluster.y,
                                     config.grid.z / config.cluster.z});
  Dim3 inner = delinearize(rank, config.cluster);
  return {cluster.x * config.cluster.x + inner.x,
          cluster.y * config.cluster.y + inner.y,
          cluster.z * config.cluster.z + inner.z};
}

std::string Launch::describeActor(uint32_t id) const {
  uint32_t numBlocks = config.cluster.count();
  uint32_t threads = threadsPerBlock();
  uint32_t actors = (threads + 1) * numBlocks;
  uint32_t actor = id % actors;
  if (actor >= threads * numBlocks)
    return "an asynchronous copy of block " +
           coordinates(blockId(id / actors, actor - threads * numBlocks));
  return "block " + coordinates(blockId(id / actors, actor / threads)) +
         ", thread " + coordinates(delinearize(actor % threads, config.block));
}

SyncLog *Launch::findLog(uint64_t address, bool create) {
  auto found = logs.find(address);
  if (found != logs.end())
    return found->second.get();
  if (!create)
    return nullptr;
  return (logs[address] = std::make_unique<SyncLog>()).get();
}

static bool differs(const uint64_t *required, Dim3 actual) {
  return required[0] != 0 &&
         (required[0] != actual.x || required[1] != actual.y ||
          required[2] != actual.z);
}

static std::string extents(const uint64_t *dims) {
  return std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + "x" +
         std::to_string(dims[2]);
}

static std::string extents(Dim3 dims) {
  uint64_t values[] = {dims.x, dims.y, dims.z};
  return extents(values);
}

/// Checks the limits of the driver.
bool Launch::check() {
  const Function &function = *program.function;
  std::string what;
  auto refuse = [&](const std::string &text) {
    if (what.empty())
      what = text;
  };
  Dim3 grid = config.grid, block = config.block, cluster = config.cluster;
  if (grid.count() == 0 || grid.x > 0x7FFFFFFF || grid.y > 65535 ||
      grid.z > 65535)
    refuse("expected a grid of 1x1x1 to 2147483647x65535x65535 blocks, got " +
           extents(grid));
  if (block.count() == 0 || block.count() > 1024 || block.x > 1024 ||
      block.y > 1024 || block.z > 64)
    refuse("expected a block of 1 to 1024 threads and at most 1024x1024x64, "
           "got " +
           extents(block));
  if (differs(function.requiredThreads, block))
    refuse("expected a block of " + extents(function.requiredThreads) +
           " (.reqntid), got " + extents(block));
  if (function.maxThreads && block.count() > function.maxThreads)
    refuse("expected at most " + std::to_string(function.maxThreads) +
           " threads in a block (.maxntid), got " +
           std::to_string(block.count()));
  if (differs(function.requiredCluster, cluster))
    refuse("expected a cluster of " + extents(function.requiredCluster) +
           " (.reqnctapercluster), got " + extents(cluster));
  if (config.hasCluster && !chip.clusters)
    refuse("expected no cluster on " + chip.name + ", got " + extents(cluster));
  if (cluster.count() == 0 || cluster.count() > 16)
    refuse("expected a cluster of 1 to 16 blocks, got " + extents(cluster));
  else if (function.maxClusterRank && cluster.count() > function.maxClusterRank)
    refuse("expected at most " + std::to_string(function.maxClusterRank) +
           " blocks in a cluster (.maxclusterrank), got " + extents(cluster));
  else if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    refuse("expected a grid that is a multiple of the cluster " +
           extents(cluster) + ", got " + extents(grid));
  if (program.staticSharedBytes > 48 << 10)
    refuse("expected at most 49152 bytes of static shared memory, got " +
           std::to_string(program.staticSharedBytes));
  if (sharedBytes() > chip.sharedBytes)
    refuse("expected at most " + std::to_string(chip.sharedBytes) +
           " bytes of shared memory on " + chip.name + ", got " +
           std::to_string(sharedBytes()));
  // The CUDA C++ Programming Guide, "Technical Specifications".
  if (program.localBytes > 512 << 10)
    refuse("expected at most 524288 bytes of local memory per thread, got " +
           std::to_string(program.localBytes));
  if (program.paramBytes > program.mostParamBytes)
    refuse("expected at most " + std::to_string(program.mostParamBytes) +
           " bytes of parameters, got " + std::to_string(program.paramBytes));
  if (!what.empty())
    error = "launch-bounds: kernel '" + program.name + "': " + what;
  return what.empty();
}

bool Launch::checkResidency() {
  uint64_t blocks = chip.countResidentBlocks(threadsPerBlock(), sharedBytes());
  if (config.cluster.count() > 1 && !chip.processingClusters.empty() &&
      chip.countClusterSlots(config.cluster.count(), blocks) == 0)
    error = "launch-bounds: kernel '" + program.name +
            "': expected a cluster that fits a processing cluster of " +
            std::to_string(*std::max_element(chip.processingClusters.begin(),
                                             chip.processingClusters.end())) +
            " multiprocessors, with " + std::to_string(blocks) +
            " blocks on each, got " + extents(config.cluster);
  if (failed() || !config.carveout)
    return !failed();
  // The hardware may round it up, which is not relied upon.
  uint64_t all = chip.sharedBytesOfMultiprocessor();
  uint64_t bytes = blocks * (sharedBytes() + chip.reservedSharedBytes());
  uint64_t least = (100 * bytes + all - 1) / all;
  if (*config.carveout < least)
    error = "carve-out: kernel '" + program.name + "': expected at least " +
            std::to_string(least) + " % for the " + std::to_string(blocks) +
            " blocks of " + std::to_string(sharedBytes()) +
            " bytes of shared memory that a multiprocessor could run, got " +
            std::to_string(*config.carveout) + " %";
  return !failed();
}

bool Launch::run() {
  error = readBudget(budget);
  if (!failed())
    error = readEqualStores(equalStores);
  if (!failed())
    error = readUninitialised(uninitialised);
  if (!failed())
    error = readShuffleOrder(shufflesOrder);
  if (failed() || !check() || !checkResidency())
    return false;
  uint64_t numClusters = config.grid.count() / config.cluster.count();
  // As many clusters as fit on the chip run concurrently; a new one starts when
  // the others wait, or have run for a long time.
  uint64_t perProcessor = std::max<uint64_t>(
      1, chip.countResidentBlocks(threadsPerBlock(), sharedBytes()));
  uint64_t resident = std::max<uint64_t>(
      1, perProcessor * chip.multiprocessors / config.cluster.count());

  std::vector<std::unique_ptr<Cluster>> running, idle;
  uint64_t next = 0;
  unsigned idleRounds = 0, rounds = 0;
  while (next < numClusters || !running.empty()) {
    bool more = running.empty() || rounds >= kRoundsAlone || idleRounds > 1;
    if (more && next < numClusters && running.size() < resident) {
      if (idle.empty())
        idle.push_back(std::make_unique<Cluster>(*this));
      running.push_back(std::move(idle.back()));
      idle.pop_back();
      active.push_back(running.back().get());
      running.back()->start(next++);
      rounds = idleRounds = 0;
    }
    uint64_t before = progress;
    ++rounds;
    for (size_t i = 0; i < running.size();) {
      running[i]->step();
      if (failed())
        return false;
      if (!running[i]->isDone()) {
        ++i;
        continue;
      }
      running[i]->finish();
      if (failed())
        return false;
      idle.push_back(std::move(running[i]));
      running.erase(running.begin() + i);
      active.erase(active.begin() + i);
      ++progress;
      rounds = 0;
    }
    idleRounds = progress == before ? idleRounds + 1 : 0;
    bool full = next == numClusters || running.size() >= resident;
    bool stuck = !running.empty() &&
                 std::none_of(running.begin(), running.end(),
                              [](const auto &c) { return c->isRunnable(); });
    if (full && (stuck || idleRounds > kIdleRounds)) {
      running.front()->reportStuck();
      return false;
    }
    if (stuck)
      idleRounds = 2;
  }
  if (ahead && !hasWaited)
    report("missing-grid-wait",
           "no thread waits for the kernels ahead, and so none after it does; "
           "expected griddepcontrol.wait");
  return !failed();
}

} // namespace ptx
