//===- Faults.h - faults of a CUDA driver on command ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// FAKE_FAULTS is a list of ITEM|CALL|NUMBER|ACTION, separated by semicolons.
// The fault happens in call NUMBER (from 1; 0: each) of CALL in a process, of
// those while the variable BNGRAD_GPU_ITEM is ITEM, where a star at the end
// stands for any text. The action is
//
//   error=CODE   this call fails
//   sticky=CODE  this and all later calls of the process fail
//   corrupt      a copy to the host has a wrong bit, a graph a memory node, a
//                kernel does nothing, and an event is over
//   sleep=N      takes N milliseconds longer
//   hang, crash  as they say
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TEST_GPUSUITE_FAULTS_H
#define BNGRAD_TEST_GPUSUITE_FAULTS_H

#include "../../../lib/Runtime/Cuda/Driver.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

namespace faults {

using namespace bngrad::cuda;

struct Fault {
  std::string item, call;
  int number;
  std::string action;
};

inline int toInt(const char *text) {
  return int(std::strtol(text, nullptr, 10));
}

inline const char *getOption(const char *name, const char *otherwise) {
  const char *found = std::getenv(name);
  return found && *found ? found : otherwise;
}

inline std::vector<Fault> readFaults() {
  std::vector<Fault> faults;
  std::string text = getOption("FAKE_FAULTS", "");
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find(';', begin), text.size());
    std::string fields[4];
    size_t at = begin;
    for (std::string &field : fields) {
      size_t bar = std::min(text.find('|', at), end);
      field = text.substr(at, bar - at);
      at = std::min(bar + 1, end);
    }
    faults.push_back(
        {fields[0], fields[1], toInt(fields[2].c_str()), fields[3]});
    begin = end + 1;
  }
  return faults;
}

/// Whether `pattern` is `item`, or the start of it before a star.
inline bool matches(const std::string &pattern, const std::string &item) {
  if (!pattern.empty() && pattern.back() == '*')
    return item.compare(0, pattern.size() - 1, pattern, 0,
                        pattern.size() - 1) == 0;
  return item == pattern;
}

inline std::mutex mutex;
inline CUresult stickyError = CUDA_SUCCESS;

/// The fault of this call of `call`; `corrupts` is set instead for a copy.
inline CUresult fault(const char *call, bool *corrupts = nullptr) {
  // Never destroyed: modules are unloaded at the end of the process.
  static const auto &faults = *new std::vector<Fault>(readFaults());
  static auto &counts = *new std::map<const Fault *, int>;
  std::unique_lock<std::mutex> lock(mutex);
  if (stickyError != CUDA_SUCCESS)
    return stickyError;
  std::string item = getOption("BNGRAD_GPU_ITEM", "");
  for (const Fault &each : faults) {
    if (each.call != call || !matches(each.item, item))
      continue;
    int count = ++counts[&each];
    if (each.number != 0 && each.number != count)
      continue;
    size_t equals = each.action.find('=');
    std::string action = each.action.substr(0, equals);
    auto code = CUresult(equals == std::string::npos
                             ? 1
                             : toInt(each.action.c_str() + equals + 1));
    if (action == "hang") {
      lock.unlock();
      for (;;)
        pause();
    }
    if (action == "sleep") {
      lock.unlock();
      usleep(1000 * unsigned(code));
      return CUDA_SUCCESS;
    }
    if (action == "crash")
      std::raise(SIGSEGV);
    if (action == "corrupt" && corrupts) {
      *corrupts = true;
      return CUDA_SUCCESS;
    }
    if (action == "sticky")
      stickyError = code;
    return code;
  }
  return CUDA_SUCCESS;
}

} // namespace faults

#define RETURN_IF_FAULTY(call)                                                 \
  do {                                                                         \
    CUresult faulty = fault(call);                                             \
    if (faulty != CUDA_SUCCESS)                                                \
      return faulty;                                                           \
  } while (false)

#endif // BNGRAD_TEST_GPUSUITE_FAULTS_H
