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

/// Instructions that convert between f32 and narrower types.
struct FloatInstructions {
  /// f32 to bf16, as in Target::bf16Conversion: it flushes subnormals.
  bool bf16 = false;
  /// f32 to bf16 in `gpu.launch`: it rounds like `arith.truncf`. sm_80 and
  /// newer.
  bool kernelBF16 = false;
  /// f32 to f16 and back, as in Target::f16Conversion.
  bool f16 = true;
};

/// Adds the patterns of `--bngrad-expand-truncf`: `arith.truncf` to f16, bf16
/// and f32 then rounds once, in the mode of the op, also to subnormals. Without
/// instructions for f16, adds patterns for `arith.extf` of f16 as well.
void populateExpandTruncFPatterns(RewritePatternSet &patterns,
                                  const FloatInstructions &instructions = {});

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_LOWER_PATTERNS_H
