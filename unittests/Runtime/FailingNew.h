//===- FailingNew.h - operator new that fails -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_FAILINGNEW_H
#define BNGRAD_UNITTESTS_FAILINGNEW_H

#include <functional>

/// The outcome of a call during which operator new failed.
struct FailedNew {
  /// Whether there was an allocation to fail.
  bool hasFailed;
  /// Blocks that were allocated and not freed meanwhile, less those that were
  /// freed and older.
  long numLive;
};

/// Calls `run`, in which allocation `number` of the calling thread by operator
/// new fails, and all after it if `forever`; none for 0.
FailedNew callWithFailingNew(long number, bool forever,
                             const std::function<void()> &run);

/// For a driver that stands in for one whose memory is its own: while
/// `isSpared` the allocations of the calling thread neither count nor fail.
extern "C" void spareAllocations(bool isSpared);

#endif // BNGRAD_UNITTESTS_FAILINGNEW_H
