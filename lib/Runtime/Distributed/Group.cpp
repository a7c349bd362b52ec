//===- Group.cpp - processes and their collectives ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Group.h"

#include "Error.h"
#include "Pause.h"
#include "Settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace bngrad;
using namespace bngrad::distributed;

using Group = bngradCollectiveGroup;

/// The share of the timeout after which the root names the processes that are
/// missing, so that its answer reaches the others before they give up.
static constexpr double kRootShare = 0.8;
/// The share after which a process asks the root who is missing.
static constexpr double kAskShare = 0.5;

void distributed::failRequest(Request &request, const std::string &text) {
  request.state = Request::State::Failed;
  request.error = request.name + ": " + text;
}

/// The parts of a header that all calls of a collective share.
static std::string makeKey(const Header &header) {
  Header key = header;
  key.index = 0;
  key.progress = Progress::Comparing;
  size_t length = std::strlen(key.op);
  return std::string(reinterpret_cast<const char *>(&key),
                     offsetof(Header, op) + length);
}

static void log(int64_t rank, const char *event, const Request &request) {
  if (isLogged())
    std::fprintf(stderr, "bngrad: rank %lld: %s %lld, %zu bytes: %s\n",
                 static_cast<long long>(rank), event,
                 static_cast<long long>(request.header.index), request.bytes,
                 request.name.c_str());
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

/// Keeps a group forever if MPI may still write to its communicator.
static void abandon(std::unique_ptr<Group> group) {
  struct Abandoned {
    std::mutex mutex;
    std::vector<std::unique_ptr<Group>> groups;
  };
  static auto *abandoned = new Abandoned;
  std::lock_guard<std::mutex> lock(abandoned->mutex);
  abandoned->groups.push_back(std::move(group));
}

std::unique_ptr<Group> Group::open(Library &library, const void *communicator) {
  std::unique_ptr<Group> group(new Group(library));
  bool isStarted = false;
  if (group->copyCommunicator(communicator, isStarted)) {
    if (isStarted)
      abandon(std::move(group));
    return nullptr;
  }
  LibraryScope scope(library);
  if (scope.status)
    return nullptr;
  bngradBackendError_t error;
  if (group->backend.get_place(group->communicator, &group->rank, &group->size,
                               &error)) {
    fail("%s: %s", group->backend.name, error.text);
    return nullptr;
  }
  group->messages.setCommunicator(group->communicator);
  group->counts.struct_size = sizeof(bngradCollectiveCounts_t);
  group->counts.communicators = 1;
  return group;
}

/// Polls `request` until it ends or times out, without blocking other threads'
/// use of MPI. On an error, sets the text and returns nonzero.
int Group::finish(bngradBackendHandle_t request, double timeout,
                  const char *name) {
  for (Pause pause; pause.getSeconds() <= timeout; pause.wait()) {
    LibraryScope scope(library);
    if (scope.status)
      return scope.status;
    bngradBackendError_t error;
    int isDone = 0;
    if (backend.test(&request, &isDone, &error))
      return fail("%s: %s", backend.name, error.text);
    if (isDone)
      return 0;
  }
  return fail("expected all processes of the communicator to %s within %s, "
              "got fewer",
              name, printSeconds(timeout).c_str());
}

int Group::copyCommunicator(const void *original, bool &isStarted) {
  double timeout;
  if (int status = getTimeout(timeout))
    return status;
  bngradBackendHandle_t request;
  {
    LibraryScope scope(library);
    bngradBackendError_t error;
    if (scope.status)
      return scope.status;
    if (backend.copy_start(original, &communicator, &request, &error))
      return fail("%s: %s", backend.name, error.text);
    isStarted = true;
  }
  return finish(request, timeout, "make a group");
}

Group::AxisGroup &Group::getAxisGroup(const Header &header) {
  std::vector<int64_t> key(header.gridShape,
                           header.gridShape + header.gridRank);
  key.push_back(-1);
  key.insert(key.end(), header.axes, header.axes + header.numAxes);
  AxisGroup &axisGroup = axisGroups[key];
  if (axisGroup.ranks.empty())
    axisGroup.ranks = distributed::getAxisGroup(header, rank);
  return axisGroup;
}

/// Creates the communicator of `axisGroup` if it has none. All its processes do
/// so at this point, as they have agreed on the header.
int Group::createCommunicator(AxisGroup &axisGroup) {
  if (axisGroup.isCreated)
    return 0;
  auto count = static_cast<int64_t>(axisGroup.ranks.size());
  bngradBackendError_t error;
  if (count == size)
    axisGroup.communicator = communicator;
  else if (backend.create(communicator, axisGroup.ranks.data(), count,
                          &axisGroup.communicator, &error))
    return fail("%s: %s", backend.name, error.text);
  else
    ++counts.communicators;
  axisGroup.isCreated = true;
  return 0;
}

bool Group::meet(double seconds) {
  std::lock_guard<std::mutex> lock(mutex);
  bngradBackendHandle_t request;
  {
    LibraryScope scope(library);
    bngradBackendError_t error;
    if (scope.status || !broken.empty() ||
        backend.barrier_start(communicator, &request, &error))
      return false;
  }
  return finish(request, seconds, "end") == 0;
}

bool Group::finishSends() {
  LibraryScope scope(library);
  return scope.status != 0 || messages.finishSends();
}

int Group::close(const char *reason) {
  std::lock_guard<std::mutex> lock(mutex);
  // A communicator with an unfinished all-reduce cannot be freed.
  bool isFree = broken.empty() && live.empty();
  if (broken.empty())
    breakOff(reason);
  if (!isFree)
    return 0;
  double timeout;
  if (int status = getTimeout(timeout))
    return status;
  Pause pause;
  while (!finishSends() && pause.getSeconds() <= timeout)
    pause.wait();
  LibraryScope scope(library);
  if (scope.status)
    return scope.status;
  bngradBackendError_t error;
  for (auto &[key, axisGroup] : axisGroups)
    if (axisGroup.isCreated && axisGroup.communicator != communicator &&
        backend.destroy(axisGroup.communicator, &error))
      return fail("%s: %s", backend.name, error.text);
  axisGroups.clear();
  if (backend.destroy(communicator, &error))
    return fail("%s: %s", backend.name, error.text);
  counts.communicators = 0;
  return 0;
}

//===----------------------------------------------------------------------===//
// The comparison of headers
//===----------------------------------------------------------------------===//

/// The request number `index`, if it is in flight.
Request *Group::find(int64_t index) {
  for (const auto &request : live)
    if (request->header.index == index)
      return request.get();
  return nullptr;
}

/// The header of collective number `index`, which this process has started.
Header Group::makeHeaderOf(int64_t index) {
  if (Request *request = find(index)) {
    Header header = request->header;
    if (request->state == Request::State::Started)
      header.progress = Progress::Started;
    return header;
  }
  Header header = {};
  header.index = index;
  header.progress = Progress::Done;
  return header;
}

/// Lets the root compare the header of `request` with those of the others.
void Group::compare(Request &request) {
  request.isSent = true;
  ++counts.headers;
  if (rank == kRoot)
    openComparison(request.header.index);
  else
    messages.send(makeHeaderOf(request.header.index));
}

/// Called on the root: adds its own header if it has started the collective,
/// and asks all other processes for theirs.
void Group::openComparison(int64_t index) {
  auto [found, isNew] = comparisons.try_emplace(index, size);
  if (found->second.hasOf(kRoot))
    return;
  Reply ask = {};
  ask.index = index;
  ask.kind = Reply::Kind::Ask;
  for (int64_t other = 1; other < size; ++other)
    messages.send(ask, other);
  addToComparison(makeHeaderOf(index), kRoot);
}

/// Called on the root.
void Group::addToComparison(const Header &header, int64_t from) {
  Comparison &comparison =
      comparisons.try_emplace(header.index, size).first->second;
  comparison.add(header, from);
  if (comparison.isComplete())
    return finishComparison(header.index, comparison.findError(),
                            comparison.isStarted());
  if (header.index < nextIndex)
    openComparison(header.index);
}

/// Called on the root: tells all processes the result.
void Group::finishComparison(int64_t index, const std::string &difference,
                             bool isBroken) {
  comparisons.erase(index);
  Reply reply = {};
  reply.index = index;
  reply.kind = difference.empty() ? Reply::Kind::Agree : Reply::Kind::Differ;
  reply.isBroken = isBroken && !difference.empty();
  difference.copy(reply.text, sizeof(reply.text) - 1);
  for (int64_t other = 1; other < size; ++other)
    messages.send(reply, other);
  handle(reply);
}

void Group::handle(const Reply &reply) {
  Request *request = find(reply.index);
  if (reply.kind == Reply::Kind::Ask) {
    if (reply.index >= nextIndex)
      asked.insert(reply.index);
    else if (!request)
      messages.send(makeHeaderOf(reply.index));
    else if (request->isAsked = true; !request->isSent)
      compare(*request);
    return;
  }
  if (reply.kind == Reply::Kind::Differ && request)
    failRequest(*request, reply.text);
  if (reply.kind == Reply::Kind::Differ && reply.isBroken)
    return breakOff(request ? request->error : reply.text);
  if (!request)
    return;
  request->isSent = request->isAsked = false;
  if (reply.kind == Reply::Kind::Agree)
    agreed.insert(makeKey(request->header));
  if (request->state == Request::State::Comparing)
    request->state = Request::State::Agreed;
}

int Group::receiveMessages() {
  for (;;) {
    std::optional<Header> header;
    std::optional<Reply> reply;
    int64_t from = kRoot;
    int status = rank == kRoot ? messages.receive(header, from)
                               : messages.receive(reply);
    if (status)
      return status;
    if (header)
      addToComparison(*header, from);
    else if (reply)
      handle(*reply);
    else
      return 0;
  }
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void Group::start(const std::shared_ptr<Request> &request) {
  std::lock_guard<std::mutex> lock(mutex);
  LibraryScope scope(library);
  if (scope.status)
    return failRequest(*request, bngradGetCollectiveError());
  if (!broken.empty())
    return failRequest(*request, "expected a group without an earlier error, "
                                 "got: " +
                                     broken);
  request->group = this;
  request->header.index = nextIndex;
  request->sums = std::make_unique<char[]>(request->bytes);
  if (request->bytes > 0)
    std::memcpy(request->sums.get(), request->data, request->bytes);
  request->state = Request::State::Comparing;
  live.push_back(request);
  ++nextIndex;
  ++counts.all_reduces;
  counts.bytes += static_cast<int64_t>(request->bytes);
  counts.in_flight = std::max(counts.in_flight, ++numUnwaited);
  log(rank, "starts all-reduce", *request);
  if (asked.erase(request->header.index))
    request->isAsked = true;
  bool isCompared =
      request->isAsked || comparisons.count(request->header.index);
  if (isCompared || !agreed.count(makeKey(request->header)))
    compare(*request);
  else
    request->state = Request::State::Agreed;
  progress();
}

/// Begins the all-reduce of `request`.
int Group::begin(Request &request) {
  AxisGroup &axisGroup = getAxisGroup(request.header);
  if (int status = createCommunicator(axisGroup))
    return status;
  bngradBackendError_t error;
  if (backend.all_reduce_start(axisGroup.communicator, request.sums.get(),
                               request.header.count, request.header.dtype,
                               nullptr, &request.handle, &error))
    return fail("%s: %s", backend.name, error.text);
  request.state = Request::State::Started;
  request.isBegun = true;
  return 0;
}

/// Begins the requests that all processes have agreed on, in order.
void Group::advance() {
  for (const auto &request : live) {
    if (request->state == Request::State::Comparing)
      return;
    if (request->state == Request::State::Agreed && begin(*request)) {
      failRequest(*request, bngradGetCollectiveError());
      return breakOff(request->error);
    }
  }
}

void Group::testStarted() {
  for (const auto &request : live) {
    if (request->state != Request::State::Started)
      continue;
    bngradBackendError_t error;
    int isDone = 0;
    if (backend.test(&request->handle, &isDone, &error)) {
      failRequest(*request, std::string(backend.name) + ": " + error.text);
      return breakOff(request->error);
    }
    if (isDone)
      request->state = Request::State::Done;
  }
}

/// Advances everything that can advance without waiting.
void Group::progress() {
  if (!broken.empty())
    return;
  if (receiveMessages())
    breakOff(bngradGetCollectiveError());
  removeFinished();
  advance();
  testStarted();
  removeFinished();
  messages.finishSends();
}

void Group::removeFinished() {
  auto isFinished = [](const std::shared_ptr<Request> &request) {
    return request->state == Request::State::Done ||
           request->state == Request::State::Failed;
  };
  live.erase(std::remove_if(live.begin(), live.end(), isFinished), live.end());
}

/// Keeps memory that MPI may still write to.
static void abandon(std::unique_ptr<char[]> memory) {
  struct Abandoned {
    std::mutex mutex;
    std::vector<std::unique_ptr<char[]>> memory;
  };
  static auto *abandoned = new Abandoned;
  std::lock_guard<std::mutex> lock(abandoned->mutex);
  abandoned->memory.push_back(std::move(memory));
}

/// Fails all requests in flight and all later ones.
void Group::breakOff(const std::string &reason) {
  broken = reason;
  for (const auto &request : live) {
    if (request->isBegun)
      abandon(std::move(request->sums));
    if (request->state != Request::State::Failed)
      failRequest(*request, reason);
  }
  live.clear();
}

/// Ends `request` if its time is over.
void Group::timeOut(Request &request, double timeout) {
  std::string within = "within " + printSeconds(timeout);
  auto comparison = comparisons.find(request.header.index);
  if (comparison != comparisons.end()) {
    std::string text = "expected all processes to start it " + within +
                       ", got nothing from " +
                       printRanks(comparison->second.getMissing());
    return finishComparison(request.header.index, text, /*isBroken=*/true);
  }
  std::string text = "expected all processes to end it " + within;
  if (request.isSent && !request.isAsked)
    text = "expected rank 0 to answer " + within + ", got no answer";
  failRequest(request, text);
  breakOff(request.error);
}

/// Whether `request` has ended, or its time is over.
bool Group::isOver(Request &request, double elapsed, double timeout) {
  std::lock_guard<std::mutex> lock(mutex);
  LibraryScope scope(library);
  if (scope.status) {
    failRequest(request, bngradGetCollectiveError());
    breakOff(request.error);
  } else {
    progress();
  }
  auto hasEnded = [&] {
    return request.state == Request::State::Done ||
           request.state == Request::State::Failed;
  };
  if (!hasEnded() && !request.isSent && !request.isLate &&
      elapsed > kAskShare * timeout) {
    request.isLate = true;
    compare(request);
  }
  if (!hasEnded() && elapsed > (rank == kRoot ? kRootShare : 1) * timeout)
    timeOut(request, timeout);
  if (!hasEnded())
    return false;
  --numUnwaited;
  // Log first: another thread may start an all-reduce after this.
  log(rank, "ends all-reduce", request);
  return true;
}

int Group::wait(Request &request) {
  double timeout;
  if (int status = getTimeout(timeout))
    return status;
  Pause pause;
  while (!isOver(request, pause.getSeconds(), timeout))
    pause.wait();
  if (request.state == Request::State::Failed)
    return fail(request.error);
  if (request.bytes > 0)
    std::memcpy(request.data, request.sums.get(), request.bytes);
  return 0;
}

bngradCollectiveCounts_t Group::getCounts() {
  std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

int64_t Group::getNumUnwaited() {
  std::lock_guard<std::mutex> lock(mutex);
  return numUnwaited;
}
