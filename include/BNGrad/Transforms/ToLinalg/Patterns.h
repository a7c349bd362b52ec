//===- Patterns.h - bngrad to linalg, for other passes -------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_TOLINALG_PATTERNS_H
#define BNGRAD_TRANSFORMS_TOLINALG_PATTERNS_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class DialectRegistry;
class RewritePatternSet;
} // namespace mlir

namespace mlir::bngrad {

/// Adds the patterns of `--bngrad-decompose`: each bngrad op becomes
/// `linalg.generic` ops on tensors. Ops for unused results are not built. A
/// pass with these patterns calls registerDecomposeDependentDialects in its
/// getDependentDialects.
///
/// Shapes: any rank >= 1, static or dynamic; sizes of 0 included.
/// Errors: none; an op that does not match is unchanged.
/// Source: docs/mathematics.md.
void populateDecomposePatterns(RewritePatternSet &patterns);

/// Adds the dialects of the ops that the patterns of this header create.
void registerDecomposeDependentDialects(DialectRegistry &registry);

/// Adds the patterns of `--bngrad-fold-transpose`: if grad_output, input and
/// mask are transposed in the same way, the op takes their sources, with
/// permuted feature_dims, and grad_input is transposed instead.
///
/// Errors: none; an op that does not match is unchanged.
void populateFoldTransposePatterns(RewritePatternSet &patterns);

/// Adds the patterns of `--bngrad-split`: `bngrad.batch_norm_backward` becomes
/// its two halves, and per-channel linalg for grad_scale and grad_offset;
/// `bngrad.batch_norm_training` becomes sums, `bngrad.batch_norm_inference`,
/// and per-channel linalg for the statistics.
///
/// Errors: none; an op that does not match is unchanged.
/// Source: docs/mathematics.md, sections 7 and 10.
void populateSplitPatterns(RewritePatternSet &patterns);

/// Adds the patterns of `--bngrad-fuse`: element-wise generics are fused into
/// their readers. Unlike upstream's element-wise fusion, a producer with
/// several readers is fused into all of them, and per-channel values are never
/// recomputed per element.
///
/// Needs: reshapes with consecutive indices, which `--bngrad-expand-views`
///        checks.
/// Errors: none; a generic that does not match is unchanged.
/// Source: docs/rationale.md, section "Fusion".
void populateFusePatterns(RewritePatternSet &patterns);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_TOLINALG_PATTERNS_H
