//===- ProcessGroup.h - processes that share a batch ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_PROCESSGROUP_H
#define BNGRAD_LIB_RUNTIME_API_PROCESSGROUP_H

#include "BNGrad/Runtime/Collectives.h"
#include "BNGrad/Runtime/Runtime.h"

namespace bngrad {

/// The functions of libBNGradDistributed.so that the C library calls.
struct DistributedLibrary {
  decltype(&bngradCreateCollectiveGroup) create;
  decltype(&bngradDestroyCollectiveGroup) destroy;
  decltype(&bngradGetCollectiveGroupSize) getSize;
  decltype(&bngradGroupAllReduceStart) start;
  decltype(&bngradAllReduceWait) wait;
  decltype(&bngradGetCollectiveError) getError;
};

} // namespace bngrad

struct bngradProcessGroup {
  const bngrad::DistributedLibrary *library;
  bngradCollectiveGroup_t group;
};

#endif // BNGRAD_LIB_RUNTIME_API_PROCESSGROUP_H
