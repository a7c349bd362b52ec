//===- GraphMemory.cpp - device memory of graphs ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphMemory.h"
#include "../Immortal.h"
#include "Memory.h"

#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace bngrad::cuda {

namespace {
/// Memory of a graph.
struct Block {
  /// Unique in the process. An address may be reused once its context is
  /// destroyed.
  uintptr_t number = 0;
  uint64_t bytes = 0;
  Capture capture;
  /// The graph still exists.
  bool hasGraph = true;
  /// It was not released yet.
  bool isInUse = true;
  /// Calls that are captured later in the same stream may use it.
  bool isReusable = false;
};
using Blocks = std::map<std::pair<const Context *, CUdeviceptr>, Block>;

struct BlockTable {
  /// Destructors of user objects wait for it, so it is not held during calls of
  /// the driver.
  std::mutex mutex;
  Blocks blocks;
  uintptr_t lastNumber = 0;
};

/// Streams that are never captured, in which memory is allocated and freed.
struct StreamTable {
  std::mutex mutex;
  std::unordered_map<const Context *, CUstream> streams;
};
} // namespace

static BlockTable &blockTable() {
  static Immortal<BlockTable> table;
  return *table;
}

/// The stream of `context` that is never captured; null and a report if it
/// cannot be made.
static CUstream getOwnStream(const Context &context) {
  static Immortal<StreamTable> table;
  std::lock_guard<std::mutex> lock((*table).mutex);
  CUstream &stream = (*table).streams[&context];
  if (!stream)
    context.check(
        context.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
        "cuStreamCreate");
  return stream;
}

/// The address of the smallest block of `context` with `bytes` that a call in
/// `capture` may use; 0 if there is none.
static CUdeviceptr reuseBlock(const Context &context, uint64_t bytes,
                              const Capture &capture) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto best = table.blocks.end();
  for (auto it = table.blocks.begin(); it != table.blocks.end(); ++it) {
    const Block &block = it->second;
    if (it->first.first == &context && !block.isInUse && block.isReusable &&
        block.capture.id == capture.id &&
        block.capture.stream == capture.stream && block.bytes >= bytes &&
        (best == table.blocks.end() || block.bytes < best->second.bytes))
      best = it;
  }
  if (best == table.blocks.end())
    return 0;
  best->second.isInUse = true;
  return best->first.second;
}

/// The destructor of a user object, for the block with the number `object`. By
/// then the graph and its executables are destroyed and their launches have
/// ended. Must not call the driver.
static void noteDestroyedGraph(void *object) {
  auto number = reinterpret_cast<uintptr_t>(object);
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  for (auto &[key, block] : table.blocks) {
    if (block.number != number)
      continue;
    block.hasGraph = false;
    key.first->hasUnusedGraphMemory = true;
  }
}

/// Lets the block with `number` live as long as `graph`.
static bool giveToGraph(const Context &context, uintptr_t number,
                        CUgraph graph) {
  const Driver &driver = context.driver;
  void *pointer = reinterpret_cast<void *>(number);
  CUuserObject object = nullptr;
  if (!context.check(
          driver.cuUserObjectCreate(&object, pointer, noteDestroyedGraph, 1,
                                    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          "cuUserObjectCreate")) {
    noteDestroyedGraph(pointer);
    return false;
  }
  // The driver does not synchronize access to a graph.
  static Immortal<std::mutex> graphs;
  std::lock_guard<std::mutex> lock(*graphs);
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
  if (CUdeviceptr address = reuseBlock(context, bytes, capture))
    return address;

  // Insert the entry first: memory without an entry would leak.
  Blocks made;
  Block &block = made[{&context, 0}];
  block.bytes = bytes;
  block.capture = capture;
  RelaxedScope relaxed(context.driver);
  CUstream stream = getOwnStream(context);
  if (!stream)
    return 0;
  CUdeviceptr address = allocateInOrder(context, bytes, stream);
  if (!address)
    return 0;
  uintptr_t number = 0;
  {
    BlockTable &table = blockTable();
    std::lock_guard<std::mutex> lock(table.mutex);
    number = block.number = ++table.lastNumber;
    Blocks::node_type entry = made.extract(made.begin());
    entry.key().second = address;
    table.blocks.insert(std::move(entry));
  }
  // The graph may be launched in other streams.
  if (giveToGraph(context, number, capture.graph) &&
      context.check(context.driver.cuStreamSynchronize(stream),
                    "cuStreamSynchronize"))
    return address;
  releaseForGraph(context, address, capture.stream);
  return 0;
}

bool releaseForGraph(const Context &context, CUdeviceptr address,
                     CUstream stream) {
  BlockTable &table = blockTable();
  auto isOfGraph = [&] {
    std::lock_guard<std::mutex> lock(table.mutex);
    return table.blocks.count({&context, address}) != 0;
  };
  if (!isOfGraph())
    return false;
  Capture capture = getCapture(context, stream);
  if (!capture) {
    // Work outside of the graph; the block may be freed after it.
    RelaxedScope relaxed(context.driver);
    context.check(context.driver.cuStreamSynchronize(stream),
                  "cuStreamSynchronize");
  }
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = table.blocks.find({&context, address});
  if (found == table.blocks.end())
    return true;
  Block &block = found->second;
  block.isInUse = false;
  // The handle of the per-thread default stream stands for many streams.
  block.isReusable = capture.id == block.capture.id &&
                     stream == block.capture.stream &&
                     stream != getStreamPerThread();
  if (!block.hasGraph)
    context.hasUnusedGraphMemory = true;
  return true;
}

bool freeMemoryOfDestroyedGraphs(const Context &context) {
  if (!context.hasUnusedGraphMemory.exchange(false))
    return true;
  Blocks unused;
  {
    BlockTable &table = blockTable();
    std::lock_guard<std::mutex> lock(table.mutex);
    for (auto it = table.blocks.begin(); it != table.blocks.end();) {
      auto next = std::next(it);
      if (it->first.first == &context && !it->second.hasGraph &&
          !it->second.isInUse)
        unused.insert(table.blocks.extract(it));
      it = next;
    }
  }
  if (unused.empty())
    return true;
  RelaxedScope relaxed(context.driver);
  CUstream stream = getOwnStream(context);
  bool isFreed = stream != nullptr;
  for (const auto &[key, block] : unused)
    isFreed &= freeInOrder(context, key.second, stream);
  return isFreed;
}

} // namespace bngrad::cuda
