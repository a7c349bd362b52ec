//===- Comparison.h - headers of all processes at the root ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_COMPARISON_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_COMPARISON_H

#include "Header.h"

namespace bngrad::distributed {

/// The headers of one collective that the root has received.
class Comparison {
public:
  explicit Comparison(int64_t numProcesses)
      : headers(numProcesses), has(numProcesses) {}

  void add(const Header &header, int64_t rank);
  bool hasOf(int64_t rank) const { return has[rank]; }
  bool isComplete() const { return numHeaders == headers.size(); }

  /// Why the processes cannot go on; empty if they can. Needs all headers.
  std::string findError() const { return findDifference(headers); }
  /// Whether some of them have begun the all-reduce.
  bool isStarted() const { return anyStarted; }
  /// The processes that have sent no header.
  std::vector<int64_t> getMissing() const;

private:
  std::vector<Header> headers;
  std::vector<bool> has;
  size_t numHeaders = 0;
  bool anyStarted = false;
};

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_COMPARISON_H
