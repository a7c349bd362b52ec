//===- Patterns.h - lowering patterns for other passes -------- -*- C++ -*-===//
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

/// The available instructions that convert between f32 and narrower types.
struct FloatInstructions {
  /// Converts f32 to bf16 on the CPU, and flushes subnormals
  /// (Target::bf16Conversion).
  bool bf16 = false;
  /// Converts f32 to bf16 in `gpu.launch`, and rounds like `arith.truncf`.
  /// sm_80 and newer chips have it.
  bool kernelBF16 = false;
  /// Converts f32 to f16 and back (Target::f16Conversion).
  bool f16 = true;
};

/// Adds the patterns of `--bngrad-expand-truncf`, which make `arith.truncf` to
/// f16, bf16 and f32 round only once, also to subnormal results, and in the
/// mode of the op. If there are no instructions for f16, adds patterns for
/// `arith.extf` from f16 as well.
void populateExpandTruncFPatterns(RewritePatternSet &patterns,
                                  const FloatInstructions &instructions = {});

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_LOWER_PATTERNS_H
