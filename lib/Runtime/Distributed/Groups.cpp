//===- Groups.cpp - the groups of the process -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Groups.h"

#include "Error.h"
#include "Settings.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

using namespace bngrad;
using namespace bngrad::distributed;

using Group = bngradCollectiveGroup;

/// How long an ending process waits for the others, in seconds.
static constexpr double kEndTimeout = 30;

namespace {
struct Groups {
  std::mutex mutex;
  std::vector<std::unique_ptr<Group>> groups;
  /// Groups that were destroyed after an error. MPI may still read their
  /// messages.
  std::vector<std::unique_ptr<Group>> abandoned;
  Group *defaultGroup = nullptr;
  /// The process that created them: a child is not a member.
  pid_t process = 0;
  bool isWatched = false;
  /// Held while the default group is created, which may take long.
  std::mutex defaultMutex;
};
} // namespace

/// Never destroyed, as other destructors may still call the library.
static Groups &getGroups() {
  static auto *groups = new Groups;
  return *groups;
}

static void closeAll(const char *reason) {
  Groups &groups = getGroups();
  std::lock_guard<std::mutex> lock(groups.mutex);
  for (const std::unique_ptr<Group> &group : groups.groups)
    (void)group->close(reason);
}

/// Finalizes MPI at the end of the process if a back end has initialized it.
/// Does nothing after an error, because it would wait for processes that are
/// gone; the launcher then ends the others.
static void endAll() {
  Groups &groups = getGroups();
  if (groups.process != getpid())
    return;
  double timeout;
  if (getTimeout(timeout))
    return;
  Library *library = nullptr;
  for (const std::unique_ptr<Group> &group : groups.groups) {
    library = &group->getLibrary();
    if (!library->functions->is_owner() ||
        !group->meet(std::min(timeout, kEndTimeout)))
      return;
  }
  closeAll("expected a process that goes on, got one that ends");
  bngradBackendError_t error;
  if (library)
    (void)library->functions->finalize(&error);
}

static void closeBeforeFinalize() {
  closeAll("expected MPI to be initialized, got MPI_Finalize before");
}

Group *distributed::createGroup(const char *backend, const void *communicator) {
  Library *library = loadLibrary(backend ? backend : "");
  if (!library)
    return nullptr;
  // Do not hold the lock, as this waits for other processes.
  std::unique_ptr<Group> group = Group::open(*library, communicator);
  if (!group)
    return nullptr;
  Groups &groups = getGroups();
  std::lock_guard<std::mutex> lock(groups.mutex);
  if (!groups.isWatched) {
    bngradBackendError_t error;
    LibraryScope scope(*library);
    if (scope.status)
      return nullptr;
    if (library->functions->set_finalize_hook(closeBeforeFinalize, &error)) {
      fail("%s: %s", library->functions->name, error.text);
      return nullptr;
    }
    std::atexit(endAll);
    groups.process = getpid();
    groups.isWatched = true;
  }
  groups.groups.push_back(std::move(group));
  return groups.groups.back().get();
}

int distributed::destroyGroup(Group *group) {
  Groups &groups = getGroups();
  std::lock_guard<std::mutex> lock(groups.mutex);
  auto found = std::find_if(groups.groups.begin(), groups.groups.end(),
                            [&](const std::unique_ptr<Group> &other) {
                              return other.get() == group;
                            });
  if (found == groups.groups.end())
    return fail("group: expected one that was created and not destroyed, got "
                "another");
  if (int64_t count = group->getNumUnwaited())
    return fail("group: expected one whose requests were waited for, got %lld "
                "in flight",
                static_cast<long long>(count));
  if (group == groups.defaultGroup)
    return fail("group: expected one that was created, got the default group");
  int status = group->close("expected a group, got one that was destroyed");
  if (group->getCounts().communicators > 0)
    groups.abandoned.push_back(std::move(*found));
  groups.groups.erase(found);
  return status;
}

Group *distributed::getDefaultGroup(bool isCreated) {
  Groups &groups = getGroups();
  std::lock_guard<std::mutex> lock(groups.defaultMutex);
  if (!groups.defaultGroup && isCreated)
    groups.defaultGroup = createGroup(nullptr, nullptr);
  return groups.defaultGroup;
}
