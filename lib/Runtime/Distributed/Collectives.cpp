//===- Collectives.cpp - the functions of the library ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Runtime/Collectives.h"
#include "BNGrad/Runtime/Runtime.h"

#include "Error.h"
#include "Groups.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

using namespace bngrad;
using namespace bngrad::distributed;

namespace {
/// The requests that nobody has waited for yet, by number.
struct Requests {
  std::mutex mutex;
  std::unordered_map<int64_t, std::shared_ptr<Request>> byNumber;
  int64_t last = 0;
};
} // namespace

/// Never destroyed, as other destructors may still call the library.
static Requests &getRequests() {
  static auto *requests = new Requests;
  return *requests;
}

/// Returned as the request if memory has run out.
static constexpr int64_t kNoMemory = -1;

static int64_t getElementSize(int64_t dtype) {
  return dtype == BNGRAD_COLLECTIVE_F32 ? 4 : 8;
}

/// Checks a grid and the axes of a group. On an error, sets the text and
/// returns nonzero.
static int verifyGrid(const bngradCollective_t &collective) {
  if (collective.grid_rank < 0 || collective.grid_rank > BNGRAD_MAX_GRID_RANK)
    return fail("collective: expected grid_rank to be 0 to %d, got %lld",
                BNGRAD_MAX_GRID_RANK,
                static_cast<long long>(collective.grid_rank));
  if (collective.grid_rank > 0 && !collective.grid_shape)
    return fail("collective: expected grid_shape, got null");
  int64_t product = 1;
  for (int64_t i = 0; i < collective.grid_rank; ++i) {
    int64_t size = collective.grid_shape[i];
    if (size < 1 || size > INT32_MAX / product)
      return fail("collective: expected sizes of grid_shape to be at least 1 "
                  "and their product at most %d, got %lld for axis %lld",
                  INT32_MAX, static_cast<long long>(size),
                  static_cast<long long>(i));
    product *= size;
  }
  if (collective.num_axes < 0 || collective.num_axes > collective.grid_rank)
    return fail("collective: expected num_axes to be 0 to grid_rank, %lld, got "
                "%lld",
                static_cast<long long>(collective.grid_rank),
                static_cast<long long>(collective.num_axes));
  if (collective.num_axes > 0 && !collective.axes)
    return fail("collective: expected axes, got null");
  for (int64_t i = 0; i < collective.num_axes; ++i) {
    int64_t least = i == 0 ? 0 : collective.axes[i - 1] + 1;
    if (collective.axes[i] < least ||
        collective.axes[i] >= collective.grid_rank)
      return fail("collective: expected axes to be ascending axes of the grid, "
                  "got %lld",
                  static_cast<long long>(collective.axes[i]));
  }
  return 0;
}

static int verify(const bngradCollective_t *collective, const void *data,
                  int64_t count) {
  if (!collective)
    return fail("collective: expected one, got null");
  auto size = static_cast<int64_t>(sizeof(*collective));
  if (collective->struct_size < size)
    return fail("collective: expected struct_size to be at least %lld, got "
                "%lld",
                static_cast<long long>(size),
                static_cast<long long>(collective->struct_size));
  if (!collective->op || !collective->location)
    return fail("collective: expected %s, got null",
                collective->op ? "location" : "op");
  if (collective->dtype < BNGRAD_COLLECTIVE_F32 ||
      collective->dtype > BNGRAD_COLLECTIVE_I64)
    return fail("collective: expected dtype to be 0 to %d, got %lld",
                BNGRAD_COLLECTIVE_I64,
                static_cast<long long>(collective->dtype));
  if (int status = verifyGrid(*collective))
    return status;
  // MPI counts in 32 bits.
  if (count < 0 || count > INT32_MAX)
    return fail("count: expected 0 to %d, got %lld", INT32_MAX,
                static_cast<long long>(count));
  if (!data && count > 0)
    return fail("data: expected elements, got null");
  return 0;
}

/// The number of processes that share a sum.
static int64_t getAxisGroupSize(const Header &header) {
  int64_t size = 1;
  for (int64_t i = 0; i < header.numAxes; ++i)
    size *= header.gridShape[header.axes[i]];
  return size;
}

/// Starts `request` in `group`, or in the default group if it is null.
static void start(Request &request, const bngradCollective_t &collective,
                  void *data, int64_t count, bngradCollectiveGroup *group,
                  const std::shared_ptr<Request> &shared) {
  request.header = makeHeader(collective, count);
  request.name = "all-reduce of " + std::string(collective.op);
  if (*collective.location)
    request.name += " at " + std::string(collective.location);
  request.data = data;
  request.bytes = static_cast<size_t>(count * getElementSize(collective.dtype));
  int64_t gridSize = getGridSize(request.header);
  if (!group)
    group = getDefaultGroup(/*isCreated=*/gridSize > 1);
  if (!group && gridSize > 1)
    return failRequest(request, bngradGetCollectiveError());
  // One process needs no sum, but compares headers if grids may differ.
  bool isAlone = getAxisGroupSize(request.header) == 1;
  if (!group || (group->getSize() == gridSize && isAlone))
    return;
  if (group->getSize() == 1)
    return failRequest(request, "expected " + std::to_string(gridSize) +
                                    " processes for the grid " +
                                    printGrid(request.header) + ", got 1");
  group->start(shared);
}

static int64_t startRequest(bngradCollectiveGroup *group,
                            const bngradCollective_t *collective, void *data,
                            int64_t count) {
  return guard(kNoMemory, [&] {
    auto request = std::make_shared<Request>();
    if (verify(collective, data, count)) {
      request->state = Request::State::Failed;
      request->error = bngradGetCollectiveError();
    } else {
      start(*request, *collective, data, count, group, request);
    }
    Requests &requests = getRequests();
    std::lock_guard<std::mutex> lock(requests.mutex);
    requests.byNumber.emplace(++requests.last, std::move(request));
    return requests.last;
  });
}

int64_t bngradAllReduceStart(const bngradCollective_t *collective, void *data,
                             int64_t count) {
  return startRequest(nullptr, collective, data, count);
}

int64_t bngradGroupAllReduceStart(bngradCollectiveGroup_t group,
                                  const bngradCollective_t *collective,
                                  void *data, int64_t count) {
  return startRequest(group, collective, data, count);
}

/// Waits for the request. On an error, sets the text and returns nonzero.
static int waitFor(int64_t number) {
  if (number == kNoMemory)
    return fail("out of memory");
  return guard(1, [&] {
    std::shared_ptr<Request> request;
    {
      Requests &requests = getRequests();
      std::lock_guard<std::mutex> lock(requests.mutex);
      auto found = requests.byNumber.find(number);
      if (found == requests.byNumber.end())
        return fail("request: expected one that was started and not waited "
                    "for, got %lld",
                    static_cast<long long>(number));
      request = std::move(found->second);
      requests.byNumber.erase(found);
    }
    if (request->group)
      return request->group->wait(*request);
    return request->state == Request::State::Failed ? fail(request->error) : 0;
  });
}

int32_t bngradAllReduceWait(int64_t number) {
  int status = waitFor(number);
  return status == 0 ? 0 : BNGRAD_PROCESS_ERROR;
}

int64_t bngradProcessIndex(const bngradCollective_t *grid) {
  return guard(int64_t(-1), [&]() -> int64_t {
    if (!grid)
      return fail("grid: expected one, got null"), -1;
    if (verifyGrid(*grid))
      return -1;
    Header header = makeHeader(*grid, 0);
    int64_t size = getGridSize(header);
    bngradCollectiveGroup *group = getDefaultGroup(/*isCreated=*/size > 1);
    if (!group)
      return size > 1 ? -1 : 0;
    if (group->getSize() == size)
      return group->getRank();
    fail("expected %lld processes for the grid %s, got %lld",
         static_cast<long long>(size), printGrid(header).c_str(),
         static_cast<long long>(group->getSize()));
    return -1;
  });
}

int32_t bngradCreateCollectiveGroup(bngradCollectiveGroup_t *group,
                                    const char *backend,
                                    const void *communicator) {
  if (!group)
    return fail("group: expected a place for one, got null");
  return guard(1, [&] {
    bngradCollectiveGroup *created = createGroup(backend, communicator);
    if (!created)
      return 1;
    *group = created;
    return 0;
  });
}

int32_t bngradDestroyCollectiveGroup(bngradCollectiveGroup_t group) {
  return guard(1, [&] { return group ? destroyGroup(group) : 0; });
}

bngradCollectiveGroup_t bngradGetDefaultCollectiveGroup(void) {
  return guard<bngradCollectiveGroup_t>(
      nullptr, [] { return getDefaultGroup(/*isCreated=*/true); });
}

int64_t bngradGetCollectiveGroupSize(bngradCollectiveGroup_t group) {
  return group ? group->getSize() : 1;
}

int64_t bngradGetCollectiveGroupRank(bngradCollectiveGroup_t group) {
  return group ? group->getRank() : 0;
}

int32_t bngradGetCollectiveCounts(bngradCollectiveGroup_t group,
                                  bngradCollectiveCounts_t *counts) {
  if (!group || !counts)
    return fail("%s: expected one, got null", group ? "counts" : "group");
  auto size = static_cast<int64_t>(sizeof(*counts));
  if (counts->struct_size < size)
    return fail("counts: expected struct_size to be at least %lld, got %lld",
                static_cast<long long>(size),
                static_cast<long long>(counts->struct_size));
  *counts = group->getCounts();
  return 0;
}
