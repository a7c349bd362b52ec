//===- FakeMpi.cpp - a back end whose processes are threads ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeMpi.h"

#include "../../../lib/Runtime/Distributed/Backend.h"

#include "BNGrad/Runtime/Collectives.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace bngrad::fake {
Behaviour behaviour;
std::atomic<int64_t> numAllReduces{0}, numCommunicators{0};
} // namespace bngrad::fake

using namespace bngrad::fake;

namespace {
/// A communicator of one process. Calls that belong together have the same
/// `name` and number in all processes.
struct Context {
  std::string name;
  int64_t rank, size;
  int64_t numCalls = 0;
};

struct Message {
  int64_t source;
  std::string data;
};

/// A call of all processes of a communicator.
struct Meeting {
  int64_t numArrived = 0;
  std::map<int64_t, std::string> data;
  /// Where the communicators of a copy are written, once all are there.
  std::vector<std::pair<int64_t *, int64_t>> copies;
};

struct Request {
  std::shared_ptr<Meeting> meeting;
  int64_t size = 0;
  void *data = nullptr;
  int64_t dtype = 0;
};

struct World {
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Request>> requests;
  std::map<std::string, std::shared_ptr<Meeting>> meetings;
  /// By communicator, receiver and tag.
  std::map<std::string, std::deque<Message>> mailboxes;
};
} // namespace

static World &getWorld() {
  static auto *world = new World;
  return *world;
}

static Context &toContext(int64_t handle) {
  return *reinterpret_cast<Context *>(handle);
}

static int failIf(const char *call, bngradBackendError_t *error) {
  const char *failing = behaviour.failing;
  if (!failing || std::strcmp(failing, call) != 0)
    return 0;
  std::snprintf(error->text, sizeof(error->text), "%s: planted", call);
  return 1;
}

/// Those of groups that were broken off are never destroyed.
static int64_t makeContext(const std::string &name, int64_t rank,
                           int64_t size) {
  ++numCommunicators;
  World &world = getWorld();
  std::lock_guard<std::mutex> lock(world.mutex);
  world.contexts.push_back(
      std::make_unique<Context>(Context{name, rank, size}));
  return reinterpret_cast<int64_t>(world.contexts.back().get());
}

/// Joins the next call of the communicator's processes.
static int64_t join(Context &context, void *data, int64_t bytes, int64_t dtype,
                    int64_t *copy = nullptr) {
  std::string name = context.name + "#" + std::to_string(context.numCalls++);
  World &world = getWorld();
  std::lock_guard<std::mutex> lock(world.mutex);
  std::shared_ptr<Meeting> &meeting = world.meetings[name];
  if (!meeting)
    meeting = std::make_shared<Meeting>();
  meeting->data[context.rank].assign(static_cast<const char *>(data), bytes);
  world.requests.push_back(
      std::make_unique<Request>(Request{meeting, context.size, data, dtype}));
  Request *request = world.requests.back().get();
  if (copy)
    meeting->copies.push_back({copy, reinterpret_cast<int64_t>(&context)});
  if (++meeting->numArrived == context.size) {
    for (auto [place, communicator] : meeting->copies)
      *place = communicator;
    world.meetings.erase(name);
  }
  return reinterpret_cast<int64_t>(request);
}

template <typename T> static void addTo(void *data, const Meeting &meeting) {
  auto *sums = static_cast<T *>(data);
  size_t count = meeting.data.begin()->second.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    sums[i] = 0;
    for (const auto &[rank, bytes] : meeting.data) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      sums[i] += value;
    }
  }
}

static int test(int64_t *handle, int *isDone, bngradBackendError_t *error) {
  if (failIf("MPI_Test", error))
    return 1;
  World &world = getWorld();
  std::lock_guard<std::mutex> lock(world.mutex);
  auto *request = reinterpret_cast<Request *>(*handle);
  // Messages are sent at once.
  *isDone = !request || request->meeting->numArrived == request->size;
  if (!request || !*isDone)
    return 0;
  if (request->dtype == BNGRAD_COLLECTIVE_F32)
    addTo<float>(request->data, *request->meeting);
  else if (request->dtype == BNGRAD_COLLECTIVE_F64)
    addTo<double>(request->data, *request->meeting);
  else
    addTo<int64_t>(request->data, *request->meeting);
  request->meeting.reset();
  *handle = 0;
  return 0;
}

static int copyStart(const void *original, int64_t *copy, int64_t *request,
                     bngradBackendError_t *error) {
  if (failIf("MPI_Comm_idup", error))
    return 1;
  static const Communicator kAlone = {-1, 0, 1};
  const auto &from =
      original ? *static_cast<const Communicator *>(original) : kAlone;
  int64_t made =
      makeContext("job" + std::to_string(from.job), from.rank, from.size);
  *request = join(toContext(made), nullptr, 0, BNGRAD_COLLECTIVE_I64, copy);
  return 0;
}

static int create(int64_t communicator, const int64_t *ranks, int64_t count,
                  int64_t *created, bngradBackendError_t *error) {
  if (failIf("MPI_Comm_create_group", error))
    return 1;
  Context &context = toContext(communicator);
  std::string name = context.name + "(";
  int64_t rank = 0;
  for (int64_t i = 0; i < count; ++i) {
    name += std::to_string(ranks[i]) + ",";
    if (ranks[i] == context.rank)
      rank = i;
  }
  *created = makeContext(name + ")", rank, count);
  return 0;
}

static int allReduceStart(int64_t communicator, void *data, int64_t count,
                          int64_t dtype, const bngradBackendDevice_t *,
                          int64_t *request, bngradBackendError_t *error) {
  if (failIf("MPI_Iallreduce", error))
    return 1;
  ++numAllReduces;
  int64_t bytes = count * (dtype == BNGRAD_COLLECTIVE_F32 ? 4 : 8);
  *request = join(toContext(communicator), data, bytes, dtype);
  return 0;
}

static std::string getMailbox(const Context &context, int64_t receiver,
                              int64_t tag) {
  return context.name + "/" + std::to_string(receiver) + "/" +
         std::to_string(tag);
}

static int sendStart(int64_t communicator, const void *data, int64_t bytes,
                     int64_t to, int64_t tag, int64_t *request,
                     bngradBackendError_t *error) {
  if (failIf("MPI_Isend", error))
    return 1;
  Context &context = toContext(communicator);
  World &world = getWorld();
  std::lock_guard<std::mutex> lock(world.mutex);
  world.mailboxes[getMailbox(context, to, tag)].push_back(
      {context.rank, std::string(static_cast<const char *>(data), bytes)});
  *request = 0;
  return 0;
}

static int probe(int64_t communicator, int64_t *source, int64_t tag,
                 int64_t *bytes, bngradBackendError_t *error) {
  if (failIf("MPI_Iprobe", error))
    return 1;
  Context &context = toContext(communicator);
  World &world = getWorld();
  std::lock_guard<std::mutex> lock(world.mutex);
  auto &mailbox = world.mailboxes[getMailbox(context, context.rank, tag)];
  *bytes = -1;
  if (mailbox.empty())
    return 0;
  *source = mailbox.front().source;
  *bytes = static_cast<int64_t>(mailbox.front().data.size());
  return 0;
}

static int receive(int64_t communicator, void *data, int64_t bytes, int64_t,
                   int64_t tag, bngradBackendError_t *) {
  Context &context = toContext(communicator);
  World &world = getWorld();
  std::lock_guard<std::mutex> lock(world.mutex);
  auto &mailbox = world.mailboxes[getMailbox(context, context.rank, tag)];
  std::memcpy(data, mailbox.front().data.data(), bytes);
  mailbox.pop_front();
  return 0;
}

const bngradBackend_t *bngradGetBackend() {
  static const bngradBackend_t kBackend = {
      BNGRAD_BACKEND_VERSION,
      "fake",
      [](bngradBackendError_t *error) { return failIf("MPI_Init", error); },
      [](bngradBackendError_t *) { return 0; },
      [] { return 0; },
      [](bngradBackendError_t *error) {
        return failIf("MPI_Is_thread_main", error);
      },
      [] { return int(behaviour.isConcurrent); },
      [](void (*)(), bngradBackendError_t *) { return 0; },
      copyStart,
      [](int64_t communicator, int64_t *rank, int64_t *size,
         bngradBackendError_t *) {
        *rank = toContext(communicator).rank;
        *size = toContext(communicator).size;
        return 0;
      },
      create,
      [](int64_t, bngradBackendError_t *) {
        --numCommunicators;
        return 0;
      },
      test,
      allReduceStart,
      [](int64_t communicator, int64_t *request, bngradBackendError_t *) {
        *request =
            join(toContext(communicator), nullptr, 0, BNGRAD_COLLECTIVE_I64);
        return 0;
      },
      sendStart,
      probe,
      receive};
  return &kBackend;
}
