//===- GraphMemory.cpp - device memory of graphs ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphMemory.h"
#include "Immortal.h"

#include <iterator>
#include <list>
#include <mutex>

namespace bngrad::cuda {

namespace {
/// Memory of a graph, or of one that was destroyed.
struct Block {
  const Context *context = nullptr;
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
  /// The graph whose memory it is, and the stream whose calls may use it.
  Capture capture;
  bool isInUse = false;
};
using Blocks = std::list<Block>;

/// A block moves between the lists without an allocation: the destructor of a
/// user object must not fail.
struct BlockTable {
  std::mutex mutex;
  Blocks ofGraphs;
  Blocks unused;
};

/// The scope in which the calling thread may allocate and free memory while a
/// stream is captured, by whichever thread and in whichever mode.
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

/// The smallest block of `blocks` with `bytes` for which `fits(block)`; the end
/// if there is none.
template <typename Predicate>
static Blocks::iterator findBlock(Blocks &blocks, uint64_t bytes,
                                  Predicate fits) {
  auto best = blocks.end();
  for (auto it = blocks.begin(); it != blocks.end(); ++it)
    if (it->bytes >= bytes && fits(*it) &&
        (best == blocks.end() || it->bytes < best->bytes))
      best = it;
  return best;
}

/// Whether a block of `capture` that is no longer in use was found for `bytes`;
/// sets `address`.
static bool reuseWithinGraph(uint64_t bytes, const Capture &capture,
                             CUdeviceptr &address) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = findBlock(table.ofGraphs, bytes, [&](const Block &block) {
    // The stream orders its calls, also where the graph is executed.
    return !block.isInUse && block.capture.id == capture.id &&
           block.capture.stream == capture.stream;
  });
  if (found == table.ofGraphs.end())
    return false;
  found->isInUse = true;
  address = found->address;
  return true;
}

/// Moves a block of `context` with `bytes`, which no graph uses, to `taken`.
/// Without one, moves all that are too small, to be freed.
static void takeUnused(const Context &context, uint64_t bytes, Blocks &taken,
                       Blocks &tooSmall) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto isOfContext = [&](const Block &block) {
    return block.context == &context;
  };
  auto found = findBlock(table.unused, bytes, isOfContext);
  if (found != table.unused.end()) {
    taken.splice(taken.end(), table.unused, found);
    return;
  }
  for (auto it = table.unused.begin(); it != table.unused.end();) {
    auto next = std::next(it);
    if (isOfContext(*it))
      tooSmall.splice(tooSmall.end(), table.unused, it);
    it = next;
  }
}

/// The destructor of the user object of a block, which must not call the
/// driver. Its graph and all executables of it are destroyed.
static void keepUnused(void *blockPointer) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  for (auto it = table.ofGraphs.begin(); it != table.ofGraphs.end(); ++it) {
    if (&*it != blockPointer)
      continue;
    it->capture = {};
    it->isInUse = false;
    table.unused.splice(table.unused.end(), table.ofGraphs, it);
    return;
  }
}

/// Makes `block` belong to the graph of its capture.
static bool giveToGraph(const Context &context, Block &block) {
  const Driver &driver = context.driver;
  CUuserObject object = nullptr;
  if (!context.check(
          driver.cuUserObjectCreate(&object, &block, keepUnused, 1,
                                    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          "cuUserObjectCreate")) {
    keepUnused(&block);
    return false;
  }
  if (context.check(driver.cuGraphRetainUserObject(block.capture.graph, object,
                                                   1,
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
  CUdeviceptr address = 0;
  if (reuseWithinGraph(bytes, capture, address))
    return address;

  const Driver &driver = context.driver;
  RelaxedScope relaxed(driver);
  Blocks taken, tooSmall;
  takeUnused(context, bytes, taken, tooSmall);
  for (const Block &block : tooSmall)
    context.check(driver.cuMemFree(block.address), "cuMemFree");
  if (taken.empty()) {
    // The entry first: memory that is in no table would be lost.
    taken.emplace_back();
    Block &block = taken.back();
    block.context = &context;
    block.bytes = bytes;
    if (!context.check(driver.cuMemAlloc(&block.address, bytes), "cuMemAlloc"))
      return 0;
  }

  Block &block = taken.back();
  block.capture = capture;
  block.isInUse = true;
  address = block.address;
  {
    BlockTable &table = blockTable();
    std::lock_guard<std::mutex> lock(table.mutex);
    table.ofGraphs.splice(table.ofGraphs.end(), taken);
  }
  return giveToGraph(context, block) ? address : 0;
}

bool releaseForGraph(CUdeviceptr address) {
  BlockTable &table = blockTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  for (Blocks *blocks : {&table.ofGraphs, &table.unused}) {
    for (Block &block : *blocks) {
      if (block.address != address)
        continue;
      block.isInUse = false;
      return true;
    }
  }
  return false;
}

} // namespace bngrad::cuda
