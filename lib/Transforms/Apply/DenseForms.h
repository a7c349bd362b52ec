//===- DenseForms.h - versions of a group by strides ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_DENSEFORMS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_DENSEFORMS_H

#include "Schedule/ScheduledGroup.h"

namespace mlir::bngrad {

/// Data with strides may be dense all the same, in row-major order or in
/// another (channels-last data viewed as NCHW). Where `members`, which lie in
/// one `scf.execute_region`, have such operands, makes a version of the region
/// for each order whose test does not fail at compile time; one is chosen at
/// run time by the strides. In it the data are memrefs of identity layout and
/// the loops follow their order in memory.
///
/// Parts of dense data, such as some channels of it, are not dense, but their
/// rows are contiguous. For a CPU and one feature loop, a version for each
/// order takes such data: [N, C, S] or [N, C], as memrefs with strides of
/// which the last is 1. The last version takes any strides: that with vectors
/// by dense copies.
///
/// Returns the members of every version; just `members` if the data are dense
/// or cannot be versioned.
///
/// Errors: a diagnostic at a generic.
FailureOr<SmallVector<GroupMembers>>
versionByStrides(RewriterBase &rewriter, const GroupMembers &members);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_DENSEFORMS_H
