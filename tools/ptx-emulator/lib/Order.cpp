//===- Order.cpp - happens-before -------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Order.h"

#include <algorithm>

namespace bngrad::ptx {

void mergeLogs(std::vector<LogPrefix> &logs,
               const std::vector<LogPrefix> &more) {
  for (const LogPrefix &prefix : more) {
    auto same = std::find_if(logs.begin(), logs.end(), [&](const LogPrefix &l) {
      return l.first == prefix.first;
    });
    if (same == logs.end())
      logs.push_back(prefix);
    else
      same->second = std::max(same->second, prefix.second);
  }
}

void SyncLog::append(uint32_t cluster, const Moment &moment) {
  byCluster[cluster].push_back(moments.size());
  moments.push_back(moment);
  if (moment.known)
    mergeLogs(logs, moment.known->logs);
}

bool SyncLog::covers(size_t length, uint32_t cluster, uint32_t actor,
                     uint32_t clock) const {
  auto found = byCluster.find(cluster);
  if (found == byCluster.end())
    return false;
  for (size_t index : found->second) {
    if (index >= length)
      return false;
    const Moment &moment = moments[index];
    if (moment.actor == actor && moment.clock >= clock)
      return true;
    if (moment.known && !moment.known->clocks.empty() &&
        moment.known->clocks[actor] >= clock)
      return true;
  }
  return false;
}

static void raise(Knowledge &knowledge, const Knowledge &other) {
  for (size_t i = 0; i < other.clocks.size(); ++i)
    knowledge.clocks[i] = std::max(knowledge.clocks[i], other.clocks[i]);
  mergeLogs(knowledge.logs, other.logs);
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

void Order::start(uint32_t index, uint32_t numActors) {
  cluster = index;
  actors = numActors;
  clocks.assign(actors, 1);
  knowledge.assign(actors, nullptr);
  fenced.assign(actors, Fenced());
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

void Order::fence(uint32_t actor) {
  Fenced &state = fenced[actor];
  if (!state.seen.empty()) {
    addLogs(actor, state.seen);
    state.seen.clear();
  }
  state.moment = leave(actor);
  state.valid = true;
  state.lastLog = nullptr;
}

void Order::release(uint32_t actor, SyncLog &log) {
  log.append(cluster, leave(actor));
}

void Order::releaseRelaxed(uint32_t actor, SyncLog &log) {
  Fenced &state = fenced[actor];
  if (!state.valid || state.lastLog == &log)
    return;
  log.append(cluster, state.moment);
  state.lastLog = &log;
}

void Order::acquire(uint32_t actor, const SyncLog &log) {
  if (log.size() == 0)
    return;
  std::vector<LogPrefix> logs = log.knownLogs();
  mergeLogs(logs, {{&log, log.size()}});
  addLogs(actor, logs);
}

void Order::acquireRelaxed(uint32_t actor, const SyncLog &log) {
  if (log.size() == 0)
    return;
  mergeLogs(fenced[actor].seen, log.knownLogs());
  mergeLogs(fenced[actor].seen, {{&log, log.size()}});
}

bool Order::knownThroughLogs(uint32_t id, uint32_t clock,
                             uint32_t actor) const {
  const Knowledge *known = knowledge[actor].get();
  if (!known)
    return false;
  for (const LogPrefix &prefix : known->logs)
    if (prefix.first->covers(prefix.second, id / actors, id % actors, clock))
      return true;
  return false;
}

} // namespace bngrad::ptx
