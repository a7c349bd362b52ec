//===- FoldReshape.h - loops of the finer shape on both sides --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_FOLDRESHAPE_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_FOLDRESHAPE_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::bngrad {

/// Adds patterns that split the loops of generics into the finer shape of the
/// reshapes between them.
void populateFoldReshapePatterns(RewritePatternSet &patterns);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_FOLDRESHAPE_H
