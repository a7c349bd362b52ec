//===- Patterns.h - lowering, for other passes ---------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_LOWER_PATTERNS_H
#define BNGRAD_TRANSFORMS_LOWER_PATTERNS_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::bngrad {

/// Adds the patterns of `--bngrad-expand-truncf`: `arith.truncf` to f16 and
/// bf16 rounds once, to nearest even, also to subnormals. `bf16Conversion`: as
/// in Target.
void populateExpandTruncFPatterns(RewritePatternSet &patterns,
                                  bool bf16Conversion = false);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_LOWER_PATTERNS_H
