//===- Groups.h - the groups of the process ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_GROUPS_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_GROUPS_H

#include "Group.h"

namespace bngrad::distributed {

/// Creates a group. At the end of the process, or when MPI is finalized, its
/// communicators are freed.
///
/// Errors: null and a text.
bngradCollectiveGroup *createGroup(const char *backend,
                                   const void *communicator);

/// Destroys it. An error is a text and another value than 0.
int destroyGroup(bngradCollectiveGroup *group);

/// The group of generated code, which `isCreated` makes where there is none.
///
/// Errors: null, and a text where it should have been made.
bngradCollectiveGroup *getDefaultGroup(bool isCreated);

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_GROUPS_H
