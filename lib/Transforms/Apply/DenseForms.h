//===- DenseForms.h - dense data, merged loops ------------------*- C++ -*-===//
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
/// the loops follow their order in memory. The last version takes any strides.
///
/// Returns the members of every version; just `members` if the data are dense
/// or cannot be versioned.
///
/// Errors: a diagnostic at a generic.
FailureOr<SmallVector<GroupMembers>>
versionByStrides(RewriterBase &rewriter, const GroupMembers &members);

/// Merges adjacent loops where every operand of `group` allows it, so that
/// dense NCHW data have three loops and NHWC data two, and updates `group`.
/// Operands that were the same value still are. Tensors are unchanged.
void mergeLoops(RewriterBase &rewriter, ScheduledGroup &group);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_DENSEFORMS_H
