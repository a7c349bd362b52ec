//===- Group.h - processes and their collectives ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives of a group are numbered. They begin in the order of their
// numbers, as MPI requires, and each waits until the processes have compared
// the headers of its kind once. The root does that: a process that has not yet
// agreed on a header sends it, the root asks the others for theirs, and answers
// all. A process also sends its header when half of the timeout is over, so
// that the root finds those that are missing.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_GROUP_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_GROUP_H

#include "Comparison.h"
#include "Messages.h"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bngrad::distributed {

/// An all-reduce that was started.
struct Request {
  enum class State { Comparing, Agreed, Started, Done, Failed };

  /// Null if the request involves only one process.
  bngradCollectiveGroup *group = nullptr;
  State state = State::Done;
  Header header = {};
  /// A description such as `all-reduce of bngrad.batch_norm_backward at
  /// f.mlir:1:2`.
  std::string name;
  /// The caller's memory.
  void *data = nullptr;
  size_t bytes = 0;
  /// Holds the elements until summed: after an error MPI may still write here.
  std::unique_ptr<char[]> sums;
  bngradBackendHandle_t handle = 0;
  bool isBegun = false;
  /// Whether the header is on its way to the root, and whether the root has
  /// asked for it.
  bool isSent = false, isAsked = false;
  /// Whether the root was asked who is missing.
  bool isLate = false;
  std::string error;
};

/// Fails `request` with a text.
void failRequest(Request &request, const std::string &text);

} // namespace bngrad::distributed

/// All processes of a communicator. Its functions lock it.
struct bngradCollectiveGroup {
  using Request = bngrad::distributed::Request;
  using Header = bngrad::distributed::Header;
  using Library = bngrad::distributed::Library;

  /// Null and a text on an error.
  static std::unique_ptr<bngradCollectiveGroup> open(Library &library,
                                                     const void *communicator);

  int64_t getRank() const { return rank; }
  int64_t getSize() const { return size; }
  Library &getLibrary() { return library; }

  /// Starts the request, which has a header.
  void start(const std::shared_ptr<Request> &request);
  /// Waits for it. On an error, sets the text and returns nonzero.
  int wait(Request &request);
  bngradCollectiveCounts_t getCounts();
  /// Requests that were not waited for.
  int64_t getNumUnwaited();

  /// Waits at most `seconds` until all processes arrive; false if they do not,
  /// or after an earlier error.
  bool meet(double seconds);
  /// Frees the communicators; later collectives fail with `reason`.
  int close(const char *reason);

private:
  /// The processes that share a sum.
  struct AxisGroup {
    std::vector<int64_t> ranks;
    bngradBackendHandle_t communicator = 0;
    bool isCreated = false;
  };

  explicit bngradCollectiveGroup(Library &library)
      : library(library), backend(*library.functions), messages(library) {}

  int copyCommunicator(const void *original, bool &isStarted);
  int finish(bngradBackendHandle_t request, double timeout, const char *name);
  bool finishSends();
  AxisGroup &getAxisGroup(const Header &header);
  int createCommunicator(AxisGroup &axisGroup);

  // The comparison of headers.
  void compare(Request &request);
  void openComparison(int64_t index);
  void addToComparison(const Header &header, int64_t rank);
  void finishComparison(int64_t index, const std::string &difference,
                        bool isBroken);
  void handle(const bngrad::distributed::Reply &reply);
  int receiveMessages();

  // The requests in flight.
  Request *find(int64_t index);
  Header makeHeaderOf(int64_t index);
  void advance();
  int begin(Request &request);
  void testStarted();
  void progress();
  void removeFinished();
  void breakOff(const std::string &reason);
  bool isOver(Request &request, double elapsed, double timeout);
  void timeOut(Request &request, double timeout);

  Library &library;
  const bngradBackend_t &backend;
  std::mutex mutex;
  bngradBackendHandle_t communicator = 0;
  int64_t rank = 0, size = 1;
  bngrad::distributed::Messages messages;
  /// By grid and axes.
  std::map<std::vector<int64_t>, AxisGroup> axisGroups;
  /// Headers that all processes have agreed on.
  std::set<std::string> agreed;
  /// On the root, by index.
  std::map<int64_t, bngrad::distributed::Comparison> comparisons;
  /// Indices that the root asked for before this process reached them.
  std::set<int64_t> asked;
  int64_t nextIndex = 0;
  /// Neither done nor failed, by index.
  std::deque<std::shared_ptr<Request>> live;
  int64_t numUnwaited = 0;
  /// Why no collective can follow; empty if one can.
  std::string broken;
  bngradCollectiveCounts_t counts = {};
};

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_GROUP_H
