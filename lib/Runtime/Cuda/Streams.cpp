//===- Streams.cpp - streams and events -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generated code creates and destroys streams and events in every call.
// Destroyed ones are kept and handed out again in the same context. In a thread
// that set a caller's stream, that stream is used instead.
//
//===----------------------------------------------------------------------===//

#include "Streams.h"
#include "../Immortal.h"
#include "Abi.h"
#include "Context.h"
#include "Nvtx.h"

#include <map>
#include <mutex>
#include <utility>

namespace bngrad::cuda {

namespace {
/// The streams or events of all contexts; none is ever destroyed. Only a new
/// one allocates: later its entry moves between the tables.
template <typename Handle> class HandlePool {
public:
  /// An unused handle of `context`. If all are in use, `create(&handle)` makes
  /// a new one; it returns false if it fails.
  template <typename Create>
  Handle take(const Context &context, Create create) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      Handles &handles = unused[&context];
      if (!handles.empty())
        return use(handles.extract(handles.begin()), context);
    }
    // Insert the entry first: a handle without one would leak.
    Handles made = {{nullptr, &context}};
    Entry entry = made.extract(made.begin());
    if (!create(&entry.key()))
      return nullptr;
    std::lock_guard<std::mutex> lock(mutex);
    return use(std::move(entry), context);
  }

  /// False if `handle` is not in use.
  bool giveBack(Handle handle) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = used.find(handle);
    if (found == used.end())
      return false;
    unused.find(found->second)->second.insert(used.extract(found));
    return true;
  }

private:
  using Handles = std::map<Handle, const Context *>;
  using Entry = typename Handles::node_type;

  Handle use(Entry entry, const Context &context) {
    auto position = used.insert(std::move(entry)).position;
    // A handle of a destroyed context may be reused in another one.
    position->second = &context;
    return position->first;
  }

  std::mutex mutex;
  Handles used;
  std::map<const Context *, Handles> unused;
};
} // namespace

namespace {
/// The caller's stream; null is a valid stream.
struct CallersStream {
  bool isSet = false;
  void *stream = nullptr;
  bool hasHostCopies = false; // since the last wait
};
} // namespace

static thread_local CallersStream callersStream;

bool isCallersStream(void *stream) {
  return callersStream.isSet && callersStream.stream == stream;
}

void noteHostCopy(void *stream) {
  callersStream.hasHostCopies |= isCallersStream(stream);
}

/// The pool of all handles of a type.
template <typename Handle> static HandlePool<Handle> &handlePool() {
  static Immortal<HandlePool<Handle>> pool;
  return *pool;
}

/// A handle for the exported function `call`. If all are in use,
/// `create(context, &handle)` makes a new one; it returns false if it fails.
template <typename Handle, typename Create>
static Handle takeHandle(const char *call, Create create) {
  return guard(call, [&]() -> Handle {
    DeviceScope device;
    if (!device)
      return nullptr;
    return handlePool<Handle>().take(
        *device, [&](Handle *handle) { return create(*device, handle); });
  });
}

/// Takes `handle` back for the exported function `call`; it is `kind`.
template <typename Handle>
static void giveBackHandle(const char *call, void *handle, const char *kind) {
  if (!handlePool<Handle>().giveBack(static_cast<Handle>(handle)))
    report(kNoDriverCode,
           Line(call, ": expected ", kind, " that is not destroyed"));
}

} // namespace bngrad::cuda

using namespace bngrad::cuda;

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

void bngradCudaSetStream(void *stream) {
  callersStream = {};
  callersStream.isSet = true;
  callersStream.stream = stream;
}

void bngradCudaResetStream(void) { callersStream = {}; }

void *mgpuStreamCreate(void) {
  if (callersStream.isSet)
    return callersStream.stream;
  return takeHandle<CUstream>(
      __func__, [](const Context &context, CUstream *stream) {
        return context.check(
            context.driver.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING),
            "cuStreamCreate");
      });
}

void mgpuStreamDestroy(void *stream) {
  // Work still in the stream runs before the work of the next user.
  if (!stream || isCallersStream(stream))
    return;
  giveBackHandle<CUstream>(__func__, stream, "a stream of mgpuStreamCreate");
}

void mgpuStreamSynchronize(void *stream) {
  if (isCallersStream(stream) &&
      !std::exchange(callersStream.hasHostCopies, false))
    return;
  guard(__func__, [&] {
    Range range("bngrad: stream synchronize");
    if (DeviceScope device; device)
      device->check(
          device->driver.cuStreamSynchronize(static_cast<CUstream>(stream)),
          "cuStreamSynchronize");
  });
}

void mgpuStreamWaitEvent(void *stream, void *event) {
  guard(__func__, [&] {
    if (DeviceScope device; device)
      device->check(
          device->driver.cuStreamWaitEvent(static_cast<CUstream>(stream),
                                           static_cast<CUevent>(event), 0),
          "cuStreamWaitEvent");
  });
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

void *mgpuEventCreate(void) {
  return takeHandle<CUevent>(
      __func__, [](const Context &context, CUevent *event) {
        return context.check(
            context.driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING),
            "cuEventCreate");
      });
}

void mgpuEventDestroy(void *event) {
  // A wait that has begun is not affected by later records.
  if (event)
    giveBackHandle<CUevent>(__func__, event, "an event of mgpuEventCreate");
}

void mgpuEventSynchronize(void *event) {
  guard(__func__, [&] {
    Range range("bngrad: event synchronize");
    if (DeviceScope device; device)
      device->check(
          device->driver.cuEventSynchronize(static_cast<CUevent>(event)),
          "cuEventSynchronize");
  });
}

void mgpuEventRecord(void *event, void *stream) {
  guard(__func__, [&] {
    if (DeviceScope device; device)
      device->check(device->driver.cuEventRecord(static_cast<CUevent>(event),
                                                 static_cast<CUstream>(stream)),
                    "cuEventRecord");
  });
}
