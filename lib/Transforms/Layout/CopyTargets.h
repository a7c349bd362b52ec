//===- CopyTargets.h - elimination of copies of sums ------------*- C++ -*-===//
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
/// to the buffers that they would later be copied to, instead of to
/// temporaries. If several results are parts of one tensor, bufferization
/// creates such copies for all but one of them. Data results keep their
/// temporaries, because those are dense.
void writeToCopyTargets(RewriterBase &rewriter,
                        ArrayRef<linalg::GenericOp> members);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_COPYTARGETS_H
