//===- Messages.h - messages between the processes of a group ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_MESSAGES_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_MESSAGES_H

#include "Header.h"
#include "Library.h"

#include <memory>
#include <optional>

namespace bngrad::distributed {

/// Rank 0 collects the headers and compares them.
inline constexpr int64_t kRoot = 0;

/// A message of the root about the collective number `index`.
struct Reply {
  enum class Kind : int64_t {
    /// The root compares headers, and asks for those that it does not have.
    Ask = 0,
    /// All headers belong to one collective.
    Agree = 1,
    /// They do not; the text says why.
    Differ = 2
  };
  int64_t index;
  Kind kind;
  /// Whether some processes have begun the all-reduce, so that no other one can
  /// follow.
  int64_t isBroken;
  char text[2048];
};
static_assert(std::is_trivially_copyable_v<Reply>);

/// Sends and receives headers and replies.
class Messages {
public:
  explicit Messages(Library &library) : backend(*library.functions) {}

  void setCommunicator(bngradBackendHandle_t handle) { communicator = handle; }

  /// Starts to send. Ignores errors: they mean that a process is gone, which
  /// the timeout reports.
  void send(const Header &header);
  void send(const Reply &reply, int64_t rank);

  /// Receives a message if there is one, from any process or from the root.
  ///
  /// Errors: sets the text and returns nonzero.
  int receive(std::optional<Header> &header, int64_t &rank);
  int receive(std::optional<Reply> &reply);

  /// Forgets the messages that were sent; false if some were not.
  bool finishSends();

private:
  struct Send {
    std::unique_ptr<char[]> data;
    bngradBackendHandle_t request;
  };
  void send(const void *data, size_t size, int64_t rank, int64_t tag);
  template <typename Message>
  int receiveFrom(int64_t &source, int64_t tag,
                  std::optional<Message> &message);

  const bngradBackend_t &backend;
  bngradBackendHandle_t communicator = 0;
  std::vector<Send> sends;
};

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_MESSAGES_H
