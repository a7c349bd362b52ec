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

/// Adds versions of a group for the layouts that strided data may turn out to
/// have at run time.
///
/// Data with strides may still be dense, either in row-major order or in
/// another order, such as channels-last data viewed as NCHW. If `members`,
/// which are in one `scf.execute_region`, have strided operands, the region is
/// cloned for each order that is not excluded at compile time, and the strides
/// select one of the versions at run time. In such a version, the data are
/// memrefs with identity layout, and the loops follow their order in memory.
///
/// A part of dense data, such as some of the channels, is not dense, but its
/// rows are contiguous. On a CPU with one feature loop, a version for each
/// order handles such data, [N, C, S] or [N, C], as memrefs whose last stride
/// is 1. The last version handles any strides; if the group has a schedule with
/// vectors, it works on dense copies of the data.
///
/// Returns the members of every version, or just `members` if the data are
/// dense or versions are impossible.
///
/// Errors: a diagnostic at a generic.
FailureOr<SmallVector<GroupMembers>>
versionByStrides(RewriterBase &rewriter, const GroupMembers &members);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_DENSEFORMS_H
