//===- Comparison.cpp - headers of all processes at the root --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"

using namespace bngrad::distributed;

void Comparison::add(const Header &header, int64_t rank) {
  anyStarted |= header.progress != Progress::Comparing;
  headers[rank] = header;
  numHeaders += has[rank] ? 0 : 1;
  has[rank] = true;
}

std::vector<int64_t> Comparison::getMissing() const {
  std::vector<int64_t> missing;
  for (size_t rank = 0; rank < has.size(); ++rank)
    if (!has[rank])
      missing.push_back(static_cast<int64_t>(rank));
  return missing;
}
