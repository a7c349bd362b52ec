//===- Order.cpp - happens-before -------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Order.h"

#include <algorithm>

namespace ptx {

bool Party::sees(const Party &other) const {
  Scope needed = cluster != other.cluster ? Scope::Device
                 : block != other.block   ? Scope::Cluster
                                          : Scope::Block;
  return scope >= needed && other.scope >= needed;
}

void mergeLogs(std::vector<LogPrefix> &logs,
               const std::vector<LogPrefix> &more) {
  for (const LogPrefix &prefix : more) {
    auto same = std::find_if(logs.begin(), logs.end(), [&](const LogPrefix &l) {
      return l.log == prefix.log && l.by == prefix.by;
    });
    if (same == logs.end())
      logs.push_back(prefix);
    else
      same->length = std::max(same->length, prefix.length);
  }
}

void SyncLog::append(const Party &by, const Moment &moment) {
  byCluster[by.cluster].push_back(releases.size());
  numPlain += numPlain == releases.size() && by.scope == Scope::Device;
  releases.push_back({by, moment});
  if (moment.known)
    mergeLogs(logs, moment.known->logs);
}

LogPrefix SyncLog::prefix(const Party &by) const {
  LogPrefix result = {this, releases.size(), by};
  // Where all scopes are the device, it does not matter who acquires.
  if (isPlain(result))
    result.by = Party();
  return result;
}

void SyncLog::addKnownLogs(const LogPrefix &prefix,
                           std::vector<LogPrefix> &known) const {
  if (isPlain(prefix) && prefix.length == releases.size())
    return mergeLogs(known, logs);
  for (size_t i = 0; i < prefix.length; ++i)
    if (releases[i].moment.known && releases[i].by.sees(prefix.by))
      mergeLogs(known, releases[i].moment.known->logs);
}

bool SyncLog::covers(const LogPrefix &prefix, uint32_t cluster, uint32_t actor,
                     uint32_t clock, const ProxySpace *space) const {
  auto found = byCluster.find(cluster);
  if (found == byCluster.end())
    return false;
  bool isPlainPrefix = isPlain(prefix);
  for (size_t index : found->second) {
    if (index >= prefix.length)
      return false;
    const auto &[by, moment] = releases[index];
    if (!isPlainPrefix && !by.sees(prefix.by))
      continue;
    if (!space && moment.actor == actor && moment.clock >= clock)
      return true;
    const Knowledge *known = moment.known.get();
    if (known && space)
      known = known->fenced[unsigned(*space)].get();
    if (known && !known->clocks.empty() && known->clocks[actor] >= clock)
      return true;
  }
  return false;
}

static void raise(Knowledge &knowledge, const Knowledge &other) {
  if (knowledge.clocks.empty())
    knowledge.clocks = other.clocks;
  for (size_t i = 0; i < other.clocks.size(); ++i)
    knowledge.clocks[i] = std::max(knowledge.clocks[i], other.clocks[i]);
  mergeLogs(knowledge.logs, other.logs);
  for (unsigned i = 0; i < 2; ++i) {
    KnowledgeRef &mine = knowledge.fenced[i];
    const KnowledgeRef &more = other.fenced[i];
    if (!more || mine == more)
      continue;
    auto both = std::make_shared<Knowledge>(*more);
    if (mine)
      raise(*both, *mine);
    mine = both;
  }
}

KnowledgeRef Meeting::knowledge(size_t actors) const {
  if (joined)
    return joined;
  auto result = std::make_shared<Knowledge>();
  result->clocks.assign(actors, 0);
  const Knowledge *last = nullptr;
  for (const Moment &moment : moments) {
    if (moment.known && moment.known.get() != last)
      raise(*result, *moment.known);
    last = moment.known.get();
  }
  for (const Moment &moment : moments)
    result->clocks[moment.actor] =
        std::max(result->clocks[moment.actor], moment.clock);
  joined = result;
  return joined;
}

bool Meeting::includes(const KnowledgeRef &known) const {
  if (!known || known == joined)
    return true;
  return std::any_of(moments.begin(), moments.end(),
                     [&](const Moment &m) { return m.known == known; });
}

void Order::start(uint32_t index, uint32_t blocks, uint32_t threads) {
  cluster = index;
  threadsOfBlock = threads;
  firstCopy = threads * blocks;
  actors = firstCopy + blocks;
  clocks.assign(actors, 1);
  knowledge.assign(actors, nullptr);
  fences.assign(actors, Fences());
}

Moment Order::leave(uint32_t actor) {
  return {knowledge[actor], actor, clocks[actor]++};
}

void Order::learn(uint32_t actor, const Meeting &meeting) {
  if (meeting.empty())
    return;
  KnowledgeRef joined = meeting.knowledge(actors);
  if (meeting.includes(knowledge[actor])) {
    knowledge[actor] = joined;
    return;
  }
  auto result = std::make_shared<Knowledge>(*joined);
  raise(*result, *knowledge[actor]);
  knowledge[actor] = result;
}

void Order::synchronize(const std::vector<uint32_t> &participants) {
  Meeting meeting;
  for (uint32_t actor : participants)
    meeting.add(leave(actor));
  KnowledgeRef joined = meeting.knowledge(actors);
  for (uint32_t actor : participants)
    knowledge[actor] = joined;
}

void Order::addLogs(uint32_t actor, const std::vector<LogPrefix> &logs) {
  auto result = knowledge[actor]
                    ? std::make_shared<Knowledge>(*knowledge[actor])
                    : std::make_shared<Knowledge>();
  mergeLogs(result->logs, logs);
  knowledge[actor] = result;
}

void Order::fence(uint32_t actor, Scope scope) {
  Fences &state = fences[actor];
  std::vector<LogPrefix> logs;
  std::vector<SeenLog> left;
  for (SeenLog &seen : state.seen) {
    LogPrefix prefix = seen.prefix;
    if (prefix.by.scope <= scope) {
      mergeLogs(logs, seen.known);
    } else {
      // A later fence may be wider.
      left.push_back(seen);
      prefix.by = partyOf(idOf(actor), scope);
      prefix.log->addKnownLogs(prefix, logs);
    }
    mergeLogs(logs, {prefix});
  }
  state.seen = std::move(left);
  if (!logs.empty())
    addLogs(actor, logs);
  Moment moment = leave(actor);
  for (unsigned i = unsigned(Scope::Block); i <= unsigned(scope); ++i)
    state.byScope[i] = {moment, true, nullptr, Scope::None};
}

void Order::fenceProxy(uint32_t actor, ProxySpace space) {
  Moment moment = leave(actor);
  auto fenced = moment.known ? std::make_shared<Knowledge>(*moment.known)
                             : std::make_shared<Knowledge>();
  auto result = std::make_shared<Knowledge>(*fenced);
  fenced->clocks.resize(actors, 0);
  fenced->clocks[actor] = moment.clock;
  fenced->fenced[0] = fenced->fenced[1] = nullptr;
  result->fenced[unsigned(space)] = fenced;
  knowledge[actor] = result;
}

void Order::release(uint32_t actor, SyncLog &log, Scope scope) {
  log.append(partyOf(idOf(actor), scope), leave(actor));
}

void Order::releaseRelaxed(uint32_t actor, SyncLog &log, Scope scope) {
  const Moment *wider = nullptr;
  for (unsigned i = unsigned(Scope::Device); i >= unsigned(Scope::Block); --i) {
    Fence &last = fences[actor].byScope[i];
    if (!last.valid || (wider && wider->clock == last.moment.clock))
      continue;
    wider = &last.moment;
    Scope both = std::min(scope, Scope(i));
    if (last.lastLog == &log && last.lastScope >= both)
      continue;
    log.append(partyOf(idOf(actor), both), last.moment);
    last.lastLog = &log;
    last.lastScope = both;
  }
}

void Order::acquire(uint32_t actor, const SyncLog &log, Scope scope) {
  if (log.size() == 0)
    return;
  LogPrefix prefix = log.prefix(partyOf(idOf(actor), scope));
  std::vector<LogPrefix> logs;
  log.addKnownLogs(prefix, logs);
  mergeLogs(logs, {prefix});
  addLogs(actor, logs);
}

void Order::acquireRelaxed(uint32_t actor, const SyncLog &log, Scope scope) {
  if (log.size() == 0)
    return;
  LogPrefix prefix = log.prefix(partyOf(idOf(actor), scope));
  std::vector<SeenLog> &seen = fences[actor].seen;
  auto same = std::find_if(seen.begin(), seen.end(), [&](const SeenLog &s) {
    return s.prefix.log == &log && s.prefix.by == prefix.by;
  });
  if (same == seen.end())
    same = seen.insert(same, SeenLog());
  else if (same->prefix.length == prefix.length)
    return;
  same->prefix = prefix;
  log.addKnownLogs(prefix, same->known);
}

bool Order::knows(const Knowledge &known, uint32_t id, uint32_t clock,
                  const ProxySpace *space) const {
  uint32_t other = id - cluster * actors;
  const Knowledge *own = &known;
  if (space)
    own = known.fenced[unsigned(*space)].get();
  if (own && other < actors && !own->clocks.empty() &&
      own->clocks[other] >= clock)
    return true;
  for (const LogPrefix &prefix : known.logs)
    if (prefix.log->covers(prefix, id / actors, id % actors, clock, space))
      return true;
  // Logs that were acquired before the fence.
  return space && own && knows(*own, id, clock, nullptr);
}

bool Order::isFenced(uint32_t id, uint32_t clock, uint32_t actor,
                     ProxySpace space) const {
  const Knowledge *known = knowledge[actor].get();
  return known && knows(*known, id, clock, &space);
}

} // namespace ptx
