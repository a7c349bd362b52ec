//===- GraphMemory.cpp - device memory of graphs ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphMemory.h"
#include "Immortal.h"
#include "Memory.h"

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace bngrad::cuda {

namespace {
/// Memory of a graph.
struct Block {
  const Context *context = nullptr;
  uint64_t bytes = 0;
  Capture capture;
  /// The graph is not destroyed.
  bool hasGraph = true;
  /// It is not released.
  bool isInUse = true;
  /// Calls that are captured later in the same stream may use it.
  bool isReusable = false;
};
using Blocks = std::map<CUdeviceptr, Block>;

struct BlockTable {
  std::mutex mutex;
  Blocks blocks;
  /// Some blocks may have neither a graph nor a user.
  std::atomic<bool> hasUnused{false};
  /// Streams that are never captured, in which memory is allocated and freed.
  std::unordered_map<const Context *, CUstream> streams;
};

/// The scope in which the calling thread may allocate memory and wait for a
/// stream while other streams are captured, whatever the mode of the captures.
class RelaxedScope {
public:
  explicit RelaxedScope(const Driver &driver) : driver(driver) { exchange(); }
  RelaxedScope(const RelaxedScope &) = delete;
  RelaxedScope &operator=(const RelaxedScope &) = delete;
  ~RelaxedScope() { exchange(); }

private:
  void exchange() { driver.cuThreadExchangeStreamCaptureMode(&mode); }

  const Driver &driver;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};
} // namespace

static BlockTable &blockTable() {
  static Immortal<BlockTable> table;
  return *table;
}

/// The stream of `context` that is never captured; null and a report if it
/// cannot be made.
static CUstream getOwnStream(const Context &context) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  CUstream &stream = table.streams[&context];
  if (!stream)
    context.check(
        context.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
        "cuStreamCreate");
  return stream;
}

/// The address of the smallest block with `bytes` that a call in `capture` may
/// use; 0 if there is none.
static CUdeviceptr reuseBlock(uint64_t bytes, const Capture &capture) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto best = table.blocks.end();
  for (auto it = table.blocks.begin(); it != table.blocks.end(); ++it) {
    const Block &block = it->second;
    if (!block.isInUse && block.isReusable && block.capture.id == capture.id &&
        block.capture.stream == capture.stream && block.bytes >= bytes &&
        (best == table.blocks.end() || block.bytes < best->second.bytes))
      best = it;
  }
  if (best == table.blocks.end())
    return 0;
  best->second.isInUse = true;
  return best->first;
}

/// The destructor of a user object, for the block at the address `object`. The
/// graph and its executables are destroyed, and their launches have ended. Must
/// not call the driver.
static void noteDestroyedGraph(void *object) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = table.blocks.find(reinterpret_cast<uintptr_t>(object));
  if (found == table.blocks.end())
    return;
  found->second.hasGraph = false;
  table.hasUnused = true;
}

/// Lets the block at `address` live as long as `graph`.
static bool giveToGraph(const Context &context, CUdeviceptr address,
                        CUgraph graph) {
  const Driver &driver = context.driver;
  void *pointer = reinterpret_cast<void *>(static_cast<uintptr_t>(address));
  CUuserObject object = nullptr;
  if (!context.check(
          driver.cuUserObjectCreate(&object, pointer, noteDestroyedGraph, 1,
                                    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          "cuUserObjectCreate")) {
    noteDestroyedGraph(pointer);
    return false;
  }
  if (context.check(driver.cuGraphRetainUserObject(graph, object, 1,
                                                   CU_GRAPH_USER_OBJECT_MOVE),
                    "cuGraphRetainUserObject"))
    return true;
  driver.cuUserObjectRelease(object, 1);
  return false;
}

Capture getCapture(const Context &context, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  Capture result;
  result.stream = stream;
  if (context.driver.cuStreamGetCaptureInfo(stream, &status, &result.id,
                                            &result.graph, nullptr,
                                            nullptr) != CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return {};
  return result;
}

CUdeviceptr allocateForGraph(const Context &context, uint64_t bytes,
                             const Capture &capture) {
  if (CUdeviceptr address = reuseBlock(bytes, capture))
    return address;

  // The entry first: memory that is in no table would be lost.
  Blocks made;
  made[0] = {&context, bytes, capture};
  RelaxedScope relaxed(context.driver);
  CUstream stream = getOwnStream(context);
  if (!stream)
    return 0;
  CUdeviceptr address = allocateInOrder(context, bytes, stream);
  if (!address)
    return 0;
  {
    Blocks::node_type entry = made.extract(made.begin());
    entry.key() = address;
    BlockTable &table = blockTable();
    std::lock_guard<std::mutex> lock(table.mutex);
    // Blocks of contexts that are destroyed are still in the table.
    table.blocks.erase(address);
    table.blocks.insert(std::move(entry));
  }
  // The graph is launched in other streams.
  if (giveToGraph(context, address, capture.graph) &&
      context.check(context.driver.cuStreamSynchronize(stream),
                    "cuStreamSynchronize"))
    return address;
  releaseForGraph(address, nullptr);
  return 0;
}

bool releaseForGraph(CUdeviceptr address, CUstream stream) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = table.blocks.find(address);
  if (found == table.blocks.end())
    return false;
  Block &block = found->second;
  block.isInUse = false;
  // The handle of the default stream of each thread stands for many streams.
  block.isReusable =
      stream == block.capture.stream && stream != getStreamPerThread();
  if (!block.hasGraph)
    table.hasUnused = true;
  return true;
}

bool freeMemoryOfDestroyedGraphs(const Context &context) {
  BlockTable &table = blockTable();
  if (!table.hasUnused.exchange(false))
    return true;
  Blocks unused;
  {
    std::lock_guard<std::mutex> lock(table.mutex);
    for (auto it = table.blocks.begin(); it != table.blocks.end();) {
      const Block &block = it->second;
      auto next = std::next(it);
      if (!block.hasGraph && !block.isInUse) {
        if (block.context == &context)
          unused.insert(table.blocks.extract(it));
        else
          table.hasUnused = true;
      }
      it = next;
    }
  }
  if (unused.empty())
    return true;
  RelaxedScope relaxed(context.driver);
  CUstream stream = getOwnStream(context);
  bool isFreed = stream != nullptr;
  for (const auto &[address, block] : unused)
    isFreed = isFreed && freeInOrder(context, address, stream);
  return isFreed;
}

} // namespace bngrad::cuda
