//===- CopyTargets.h - sums where they are copied to ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LAYOUT_COPYTARGETS_H
#define BNGRAD_LIB_TRANSFORMS_LAYOUT_COPYTARGETS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::bngrad {

/// Makes `members`, the generics of a group, write per-channel results directly
/// to the targets of copies instead of to temporaries. Bufferization creates
/// such copies for all but one of several results that are parts of one tensor.
/// Results with one element per iteration keep their temporaries, which are
/// dense.
void writeToCopyTargets(RewriterBase &rewriter,
                        ArrayRef<linalg::GenericOp> members);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_COPYTARGETS_H
