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

/// Instructions that convert f32 to bf16.
struct BF16Instructions {
  /// As Target::bf16Conversion: it flushes subnormals.
  bool host = false;
  /// In `gpu.launch`: it rounds as `arith.truncf` does. sm_80 and newer.
  bool kernels = false;
};

/// Adds the patterns of `--bngrad-expand-truncf`: `arith.truncf` to
/// f16, bf16 and f32 rounds once, in the mode of the op, also to subnormals.
void populateExpandTruncFPatterns(RewritePatternSet &patterns,
                                  const BF16Instructions &instructions = {});

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_LOWER_PATTERNS_H
