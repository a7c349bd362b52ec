//===- Settings.cpp - back end and timeout --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Settings.h"

#include "BNGrad/Runtime/Collectives.h"
#include "Error.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace bngrad;
using namespace bngrad::distributed;

static constexpr double kDefaultTimeout = 300;
/// One year, so that sums of times stay in range.
static constexpr double kMaxTimeout = 31536000;

static std::atomic<double> timeout{0};

namespace {
struct Choice {
  std::mutex mutex;
  std::string backend;
};
} // namespace

/// Never destroyed, as other destructors may still call the library.
static Choice &getChoice() {
  static auto *choice = new Choice;
  return *choice;
}

std::string distributed::getBackendChoice() {
  Choice &choice = getChoice();
  std::lock_guard<std::mutex> lock(choice.mutex);
  if (!choice.backend.empty())
    return choice.backend;
  const char *text = std::getenv("BNGRAD_MPI");
  return text ? text : "";
}

int distributed::getTimeout(double &seconds) {
  seconds = timeout.load(std::memory_order_relaxed);
  if (seconds > 0)
    return 0;
  const char *text = std::getenv("BNGRAD_TIMEOUT");
  seconds = kDefaultTimeout;
  if (!text || !*text)
    return 0;
  char *end = nullptr;
  seconds = std::strtod(text, &end);
  if (*end == '\0' && seconds > 0 && seconds <= kMaxTimeout)
    return 0;
  return fail("BNGRAD_TIMEOUT: expected seconds, more than 0 and at most %.0f, "
              "got '%s'",
              kMaxTimeout, text);
}

std::string distributed::printSeconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", seconds);
  return text;
}

bool distributed::isLogged() {
  static const bool kIsLogged = [] {
    const char *text = std::getenv("BNGRAD_LOG_COLLECTIVES");
    return text && std::strcmp(text, "1") == 0;
  }();
  return kIsLogged;
}

int32_t bngradSetCollectiveBackend(const char *backend) {
  return guard(1, [&] {
    Choice &choice = getChoice();
    std::lock_guard<std::mutex> lock(choice.mutex);
    choice.backend = backend ? backend : "";
    return 0;
  });
}

int32_t bngradSetCollectiveTimeout(double seconds) {
  if (!(seconds >= 0 && seconds <= kMaxTimeout))
    return fail("seconds: expected at least 0 and at most %.0f, got %g",
                kMaxTimeout, seconds);
  timeout.store(seconds, std::memory_order_relaxed);
  return 0;
}
