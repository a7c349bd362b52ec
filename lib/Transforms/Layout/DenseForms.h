//===- DenseForms.h - versions of a group by strides ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LAYOUT_DENSEFORMS_H
#define BNGRAD_LIB_TRANSFORMS_LAYOUT_DENSEFORMS_H

#include "Schedule/ScheduledGroup.h"

namespace mlir::bngrad {

/// Data with strides may still be dense, in row-major order or in another
/// (channels-last data viewed as NCHW). If `members`, in one
/// `scf.execute_region`, have such operands, makes a version of the region for
/// each order whose test does not fail at compile time; at run time, the
/// strides choose one. In it the data are memrefs of identity layout, and the
/// loops follow their order in memory.
///
/// Parts of dense data, such as some of the channels, are not dense, but their
/// rows are contiguous. For a CPU and one feature loop, a version for each
/// order handles such data, [N, C, S] or [N, C], as memrefs whose last stride
/// is 1. The last version handles any strides; with vectors, it makes dense
/// copies.
///
/// Returns the members of every version; just `members` if the data are dense
/// or cannot be versioned.
///
/// Errors: a diagnostic at a generic.
FailureOr<SmallVector<GroupMembers>>
versionByStrides(RewriterBase &rewriter, const GroupMembers &members);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_DENSEFORMS_H
