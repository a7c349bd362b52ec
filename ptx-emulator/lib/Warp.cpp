//===- Warp.cpp - 32 threads and their registers ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <algorithm>
#include <cstdio>

namespace ptx {

static std::string coordinates(Dim3 at) {
  return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," +
         std::to_string(at.z) + ")";
}

void Warp::start(Block &owner, uint32_t warpIndex) {
  block = &owner;
  launch = &owner.cluster->launch;
  index = warpIndex;
  const Program &program = launch->program;
  uint32_t threads = launch->threadsPerBlock();
  uint32_t lanes = std::min(32u, threads - index * 32);
  existing = alive = lanes == 32 ? ~0u : (1u << lanes) - 1;
  current = {0, 0, Wait::None, 0};
  groups.assign(1, {0, alive, Wait::None, 0});
  yielding = rotating = false;
  constants = program.constants.data();
  registers.resize(size_t(program.numRegisters) * 32);
  undefined.assign(program.numRegisters, ~0u);
  undefinedParts.assign(registers.size(), 0xFF);
  undefinedSince.assign(program.numRegisters, 0);
  carryUndefined = ~0u;
  predicates.assign(program.numPredicates, 0);
  predicates[1] = ~0u;
  predUndefined.assign(program.numPredicates, ~0u);
  predUndefined[0] = predUndefined[1] = 0;
  fillSpecials();
}

uint32_t Warp::actorOf(unsigned lane) const {
  return block->cluster->actorOf(*block, threadOf(lane));
}

/// The value of a special register that all threads of the warp share, except
/// for those of the cluster.
std::optional<uint64_t> Warp::specialOfBlock(Special special) const {
  const LaunchConfig &config = launch->config;
  uint32_t processor = (block->id.x + block->id.y * config.grid.x) %
                       launch->chip.multiprocessors;
  switch (special) {
  case Special::NtidX:
    return config.block.x;
  case Special::NtidY:
    return config.block.y;
  case Special::NtidZ:
    return config.block.z;
  case Special::CtaidX:
    return block->id.x;
  case Special::CtaidY:
    return block->id.y;
  case Special::CtaidZ:
    return block->id.z;
  case Special::NctaidX:
    return config.grid.x;
  case Special::NctaidY:
    return config.grid.y;
  case Special::NctaidZ:
    return config.grid.z;
  case Special::WarpId:
    return index;
  case Special::NwarpId:
    return block->warps.size();
  case Special::SmId:
    return processor;
  case Special::NsmId:
    return launch->chip.multiprocessors;
  case Special::GridId:
    return launch->number;
  case Special::DynamicSmemSize:
    return config.dynamicShared;
  case Special::TotalSmemSize:
  case Special::AggrSmemSize:
    return launch->sharedBytes();
  case Special::GridWorkspaceHigh:
    return config.gridWorkspace >> 32;
  case Special::GridWorkspaceLow:
    return uint32_t(config.gridWorkspace);
  case Special::WarpSize:
    return 32;
  default:
    return std::nullopt;
  }
}

/// The value of a special register of the block's cluster.
std::optional<uint64_t> Warp::specialOfCluster(Special special) const {
  const LaunchConfig &config = launch->config;
  Dim3 clusters = {config.grid.x / config.cluster.x,
                   config.grid.y / config.cluster.y,
                   config.grid.z / config.cluster.z};
  Dim3 clusterId = {block->id.x / config.cluster.x,
                    block->id.y / config.cluster.y,
                    block->id.z / config.cluster.z};
  Dim3 inCluster = {block->id.x % config.cluster.x,
                    block->id.y % config.cluster.y,
                    block->id.z % config.cluster.z};
  switch (special) {
  case Special::ClusterIdX:
    return clusterId.x;
  case Special::ClusterIdY:
    return clusterId.y;
  case Special::ClusterIdZ:
    return clusterId.z;
  case Special::NclusterIdX:
    return clusters.x;
  case Special::NclusterIdY:
    return clusters.y;
  case Special::NclusterIdZ:
    return clusters.z;
  case Special::ClusterCtaidX:
    return inCluster.x;
  case Special::ClusterCtaidY:
    return inCluster.y;
  case Special::ClusterCtaidZ:
    return inCluster.z;
  case Special::ClusterNctaidX:
    return config.cluster.x;
  case Special::ClusterNctaidY:
    return config.cluster.y;
  case Special::ClusterNctaidZ:
    return config.cluster.z;
  case Special::ClusterCtaRank:
    return block->rank;
  case Special::ClusterNctaRank:
    return config.cluster.count();
  case Special::IsExplicitCluster:
    return config.hasCluster;
  default:
    return std::nullopt;
  }
}

/// The value of a special register that differs between the threads of a warp.
uint64_t Warp::specialOfThread(Special special, unsigned lane) const {
  Dim3 tid = delinearize(threadOf(lane), launch->config.block);
  uint32_t bit = 1u << lane;
  switch (special) {
  case Special::TidX:
    return tid.x;
  case Special::TidY:
    return tid.y;
  case Special::TidZ:
    return tid.z;
  case Special::LaneId:
    return lane;
  case Special::LanemaskEq:
    return bit;
  case Special::LanemaskLe:
    return bit | (bit - 1);
  case Special::LanemaskLt:
    return bit - 1;
  case Special::LanemaskGe:
    return uint32_t(~(bit - 1));
  case Special::LanemaskGt:
    return uint32_t(~(bit | (bit - 1)));
  default:
    return 0;
  }
}

void Warp::fillSpecials() {
  for (const Program::SpecialColumn &entry : launch->program.specials) {
    define(entry.column, ~0u);
    std::optional<uint64_t> shared = specialOfBlock(entry.special);
    if (!shared)
      shared = specialOfCluster(entry.special);
    uint64_t *column = out(entry.column);
    for (unsigned lane = 0; lane < 32; ++lane)
      column[lane] = shared ? *shared : specialOfThread(entry.special, lane);
  }
}

std::string Warp::describe(unsigned lane, const std::string &detail) const {
  const Inst &inst = launch->program.code[current.pc];
  return "PTX line " + std::to_string(inst.line) + ", block " +
         coordinates(block->id) + ", thread " +
         coordinates(delinearize(threadOf(lane), launch->config.block)) + ": " +
         detail;
}

void Warp::report(unsigned lane, const char *kind, const std::string &detail) {
  launch->report(kind, describe(lane, detail));
}

bool Warp::reportUninitialised(unsigned lane, const std::string &detail) {
  if (launch->uninitialised == Effect::Warn)
    warn(lane, "uninitialised", detail);
  else if (launch->uninitialised == Effect::Error)
    report(lane, "uninitialised", detail);
  return !launch->failed();
}

void Warp::warn(unsigned lane, const char *kind, const std::string &detail) {
  const Program &program = launch->program;
  if (program.warnedLines.insert(program.code[current.pc].line).second)
    std::fprintf(stderr, "ptx-emulator: warning: %s: kernel '%s', %s\n", kind,
                 program.name.c_str(), describe(lane, detail).c_str());
}

//===----------------------------------------------------------------------===//
// Groups of lanes
//===----------------------------------------------------------------------===//

bool Warp::isRunnable() const {
  return std::any_of(groups.begin(), groups.end(),
                     [](const Group &g) { return g.wait == Wait::None; });
}

/// Selects the group with the smallest pc; after a failed wait, the next group
/// after the last one.
bool Warp::pick() {
  auto best = groups.end();
  auto later = groups.end();
  for (auto it = groups.begin(); it != groups.end(); ++it) {
    if (it->wait != Wait::None)
      continue;
    if (best == groups.end() || it->pc < best->pc)
      best = it;
    if (it->pc > current.pc && (later == groups.end() || it->pc < later->pc))
      later = it;
  }
  if (best == groups.end())
    return false;
  if (rotating && later != groups.end())
    best = later;
  current = *best;
  groups.erase(best);
  return true;
}

/// Merges lanes that wait at the same instruction, and yields to lanes with a
/// smaller pc. Returns false if no lanes remain.
bool Warp::regroup() {
  bool behind = false;
  for (size_t i = 0; i < groups.size();) {
    Group &other = groups[i];
    if (other.pc == current.pc &&
        (other.wait == Wait::None || other.wait == Wait::Lanes)) {
      current.mask |= other.mask;
      groups.erase(groups.begin() + i);
      continue;
    }
    behind |= other.wait == Wait::None && other.pc < current.pc;
    ++i;
  }
  if (!behind || rotating)
    return true;
  groups.push_back(current);
  return pick();
}

void Warp::branch(uint32_t mask, uint32_t pc) {
  if (mask == 0)
    return;
  if (mask == current.mask) {
    nextPc = pc;
    return;
  }
  current.mask &= ~mask;
  groups.push_back({pc, mask, Wait::None, 0});
}

void Warp::suspend(uint32_t mask, uint32_t pc, Wait wait, uint32_t detail) {
  current.mask &= ~mask;
  groups.push_back({pc, mask, wait, detail});
}

void Warp::exitLanes(uint32_t mask) {
  current.mask &= ~mask;
  alive &= ~mask;
  block->exited += __builtin_popcount(mask);
  ++launch->progress;
  // Those that wait for lanes of the warp look again: none waits for these.
  for (Group &group : groups) {
    if (group.wait == Wait::WarpBarrier)
      --group.pc;
    if (group.wait == Wait::Lanes || group.wait == Wait::WarpBarrier)
      group.wait = Wait::None;
  }
  block->cluster->leaveClusterBarrier(*this, mask);
  for (NamedBarrier &barrier : block->barriers)
    block->finishIfComplete(barrier);
}

void Warp::synchronizeLanes(uint32_t mask) {
  std::vector<uint32_t> participants;
  for (; mask; mask &= mask - 1)
    participants.push_back(actorOf(__builtin_ctz(mask)));
  block->cluster->order.synchronize(participants);
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

bool Warp::checkDefined(const Inst &inst, uint32_t mask) {
  if (inst.undefinedRule != UndefinedRule::Report)
    return true;
  for (int32_t predicate : inst.predSource)
    if (uint32_t bad = predUndefined[predicate] & mask;
        bad && !reportUninitialised(
                   __builtin_ctz(bad),
                   "reads a predicate that was never written, or depends on a "
                   "value that was not"))
      return false;
  return checkSources(inst, mask, 0, inst.source.count);
}

void Warp::defineResults(const Inst &inst, uint32_t mask) {
  switch (inst.undefinedRule) {
  case UndefinedRule::Report:
    for (Column column : inst.dest)
      define(column, mask);
    break;
  case UndefinedRule::Whole:
    return defineWhole(inst, mask);
  case UndefinedRule::Parts:
    defineParts(inst, mask);
    break;
  case UndefinedRule::Bitwise:
    return; // before the handler
  case UndefinedRule::Handler:
    break;
  }
  for (int32_t predicate : inst.predDest)
    predUndefined[predicate] &= ~mask;
}

/// The lanes of `mask` in which a byte of `bytes` of a source is undefined, or
/// a predicate.
static uint32_t findUndefined(const Warp &warp, const Inst &inst,
                              uint32_t mask) {
  uint32_t result = 0;
  for (Column column : inst.source)
    for (uint32_t lanes = warp.undefinedOf(column) & mask; lanes;
         lanes &= lanes - 1) {
      unsigned lane = __builtin_ctz(lanes);
      if (warp.undefinedBytes(column, lane) & inst.readBytes)
        result |= 1u << lane;
    }
  for (int32_t predicate : inst.predSource)
    result |= warp.predUndefined[predicate] & mask;
  return result;
}

void Warp::defineWhole(const Inst &inst, uint32_t mask) {
  uint32_t affected = findUndefined(*this, inst, mask);
  for (Column column : inst.dest)
    define(column, mask, affected, [](unsigned) { return uint8_t(0xFF); });
  for (int32_t predicate : inst.predDest)
    predUndefined[predicate] = (predUndefined[predicate] & ~mask) | affected;
}

/// Each part of the destination is undefined if that part of a source is.
void Warp::defineParts(const Inst &inst, uint32_t mask) {
  uint32_t affected = 0;
  for (Column column : inst.source)
    affected |= undefinedOf(column);
  define(inst.dest[0], mask, affected, [&](unsigned lane) {
    uint8_t bytes = 0, result = 0;
    for (Column column : inst.source)
      bytes |= undefinedBytes(column, lane);
    uint8_t part = (1u << inst.partBytes) - 1;
    for (unsigned at = 0; at < byteWidth(inst.type); at += inst.partBytes)
      if (bytes >> at & part)
        result |= part << at;
    return result;
  });
}

/// The result of a bitwise operation on bytes; as for lop3, bit 4a+2b+c of
/// `table` is that of bits a, b and c.
static uint8_t applyTable(uint8_t table, const uint8_t *bytes) {
  uint8_t result = 0;
  for (unsigned row = 0; row < 8; ++row)
    if (table >> row & 1)
      result |= uint8_t(row & 4 ? bytes[0] : ~bytes[0]) &
                uint8_t(row & 2 ? bytes[1] : ~bytes[1]) &
                uint8_t(row & 1 ? bytes[2] : ~bytes[2]);
  return result;
}

/// Whether `bytes` decide the result, of which those in `undefined` may have
/// any value. It is enough to try all zeros and all ones for each.
static bool isDecided(uint8_t table, uint8_t *bytes, unsigned undefined) {
  std::optional<uint8_t> first;
  for (unsigned choice = 0; choice < 8; ++choice) {
    if (choice & ~undefined)
      continue;
    for (unsigned i = 0; i < 3; ++i)
      if (undefined >> i & 1)
        bytes[i] = choice >> i & 1 ? 0xFF : 0;
    uint8_t result = applyTable(table, bytes);
    if (!first)
      first = result;
    if (*first != result)
      return false;
  }
  return true;
}

/// Runs before the handler, which may overwrite a source.
void Warp::defineBitwise(const Inst &inst, uint32_t mask) {
  uint32_t affected = 0;
  for (Column column : inst.source)
    affected |= undefinedOf(column);
  define(inst.dest[0], mask, affected, [&](unsigned lane) {
    uint8_t result = 0;
    for (unsigned at = 0; at < byteWidth(inst.type); ++at) {
      uint8_t bytes[3] = {};
      unsigned undefined = 0;
      for (unsigned i = 0; i < inst.source.count; ++i) {
        bytes[i] = in(inst.source[i])[lane] >> (8 * at);
        undefined |= (undefinedBytes(inst.source[i], lane) >> at & 1u) << i;
      }
      if (undefined && !isDecided(inst.table, bytes, undefined))
        result |= 1u << at;
    }
    return result;
  });
}

void Warp::defineBitwisePredicate(const Inst &inst, uint32_t mask) {
  uint32_t result = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint8_t bits[3] = {};
    unsigned undefined = 0;
    for (unsigned i = 0; i < inst.predSource.count; ++i) {
      bits[i] = predicate(inst, i) >> lane & 1 ? 0xFF : 0;
      undefined |= (predUndefined[inst.predSource[i]] >> lane & 1u) << i;
    }
    if (undefined && !isDecided(inst.table, bits, undefined))
      result |= 1u << lane;
  }
  uint32_t &target = predUndefined[inst.predDest[0]];
  target = (target & ~mask) | (result & mask);
}

bool Warp::checkSources(const Inst &inst, uint32_t mask, unsigned first,
                        unsigned end) {
  for (unsigned i = first; i < end; ++i) {
    Column column = inst.source[i];
    for (uint32_t bad = undefinedOf(column) & mask; bad; bad &= bad - 1) {
      unsigned lane = __builtin_ctz(bad);
      if ((undefinedBytes(column, lane) & inst.readBytes) &&
          !reportUninitialised(lane,
                               "reads a register " + describeUndefined(column)))
        return false;
    }
  }
  return true;
}

uint32_t Warp::currentLine() const {
  return launch->program.code[current.pc].line;
}

std::string Warp::describeUndefined(Column column) const {
  uint32_t line = undefinedSince[column];
  if (line == 0)
    return "that was never written";
  return "whose value PTX line " + std::to_string(line) +
         " took from memory or a register that was never written";
}

void Warp::run(unsigned quantum) {
  if (!pick())
    return;
  const Inst *code = launch->program.code.data();
  for (; quantum != 0 && !yielding; --quantum) {
    if (current.mask == 0) {
      if (!pick()) {
        rotating = false;
        return;
      }
    }
    if (!groups.empty() && !regroup())
      return;
    const Inst &inst = code[current.pc];
    nextPc = current.pc + 1;
    uint32_t mask = current.mask;
    launch->instructions += __builtin_popcount(mask);
    ++launch->steps;
    if (inst.guard >= 0) {
      if (uint32_t bad = predUndefined[inst.guard] & mask;
          bad &&
          !reportUninitialised(__builtin_ctz(bad),
                               "the guard was never written, or depends on a "
                               "value that was not"))
        return;
      uint32_t value = predicates[inst.guard];
      mask &= inst.guardNegated ? ~value : value;
    }
    if (mask != 0) {
      if (!checkDefined(inst, mask))
        return;
      if (inst.undefinedRule == UndefinedRule::Bitwise)
        inst.predDest.count ? defineBitwisePredicate(inst, mask)
                            : defineBitwise(inst, mask);
      inst.handler(*this, inst, mask);
      if (launch->failed())
        return;
      defineResults(inst, mask);
    }
    current.pc = nextPc;
  }
  launch->progress += quantum == 0;
  // After a quantum or a yield, lanes with another pc run first.
  rotating = isRunnable() && !rotating;
  yielding = false;
  if (current.mask)
    groups.push_back(current);
  if (launch->steps * 32 > launch->budget) {
    report(current.mask ? __builtin_ctz(current.mask) : 0, "endless-loop",
           "the launch has executed more than " +
               std::to_string(launch->budget) +
               " instructions, counting 32 for a warp (PTX_EMULATOR_BUDGET)");
  }
}

} // namespace ptx
