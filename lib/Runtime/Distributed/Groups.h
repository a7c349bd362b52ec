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
/// Errors: returns null and sets the text.
bngradCollectiveGroup *createGroup(const char *backend,
                                   const void *communicator);

/// Destroys it. On an error, sets the text and returns nonzero.
int destroyGroup(bngradCollectiveGroup *group);

/// The group of generated code. If there is none, it is created if `isCreated`.
///
/// Errors: null, and a text if it should have been created.
bngradCollectiveGroup *getDefaultGroup(bool isCreated);

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_GROUPS_H
