//===- FoldConstants.h - per-channel values of constants --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_FOLDCONSTANTS_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_FOLDCONSTANTS_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::bngrad {

/// Adds a pattern that computes generics over channels whose inputs are
/// constants.
void populateFoldConstantsPatterns(RewritePatternSet &patterns);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_FOLDCONSTANTS_H
