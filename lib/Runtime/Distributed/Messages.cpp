//===- Messages.cpp - messages between the processes of a group -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Messages.h"

#include "Error.h"

#include <algorithm>
#include <cstring>

using namespace bngrad;
using namespace bngrad::distributed;

// Every MPI supports tags up to 32767.
static constexpr int64_t kHeaderTag = 1;
static constexpr int64_t kReplyTag = 2;

void Messages::send(const void *data, size_t size, int64_t rank, int64_t tag) {
  Send sent = {std::make_unique<char[]>(size), 0};
  std::memcpy(sent.data.get(), data, size);
  bngradBackendError_t error;
  if (backend.send_start(communicator, sent.data.get(),
                         static_cast<int64_t>(size), rank, tag, &sent.request,
                         &error) == 0)
    sends.push_back(std::move(sent));
}

void Messages::send(const Header &header) {
  send(&header, sizeof(header), kRoot, kHeaderTag);
}

void Messages::send(const Reply &reply, int64_t rank) {
  // Omit the bytes after the text.
  send(&reply, offsetof(Reply, text) + std::strlen(reply.text) + 1, rank,
       kReplyTag);
}

template <typename Message>
int Messages::receiveFrom(int64_t &source, int64_t tag,
                          std::optional<Message> &message) {
  bngradBackendError_t error;
  int64_t bytes = -1;
  if (backend.probe(communicator, &source, tag, &bytes, &error))
    return fail("%s: %s", backend.name, error.text);
  if (bytes < 0)
    return 0;
  Message received = {};
  if (bytes > static_cast<int64_t>(sizeof(received)))
    return fail("expected a message of at most %zu bytes, got %lld",
                sizeof(received), static_cast<long long>(bytes));
  if (backend.receive(communicator, &received, bytes, source, tag, &error))
    return fail("%s: %s", backend.name, error.text);
  message = received;
  return 0;
}

int Messages::receive(std::optional<Header> &header, int64_t &rank) {
  rank = BNGRAD_BACKEND_ANY_SOURCE;
  return receiveFrom(rank, kHeaderTag, header);
}

int Messages::receive(std::optional<Reply> &reply) {
  int64_t rank = kRoot;
  return receiveFrom(rank, kReplyTag, reply);
}

bool Messages::finishSends() {
  auto isSent = [&](Send &sent) {
    bngradBackendError_t error;
    int isDone = 0;
    return backend.test(&sent.request, &isDone, &error) != 0 || isDone;
  };
  sends.erase(std::remove_if(sends.begin(), sends.end(), isSent), sends.end());
  return sends.empty();
}
