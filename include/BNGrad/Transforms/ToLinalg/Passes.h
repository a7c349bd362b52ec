//===- Passes.h - bngrad to linalg on tensors ----------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_TOLINALG_PASSES_H
#define BNGRAD_TRANSFORMS_TOLINALG_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

/// The casts between torch-mlir's tensors and builtin tensors: casts that
/// `--bngrad-torch-to-builtin` folds, or casts of torch-mlir's own passes.
enum class TorchCasts { Builtin, TorchConversion };

#define GEN_PASS_DECL
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"

/// Each adds the passes of a stage, for pass managers on a module: import of
/// other dialects, bngrad to linalg, and fusion of element-wise ops.
void addImportPasses(OpPassManager &pm);
void addDecomposePasses(OpPassManager &pm);
void addFusePasses(OpPassManager &pm);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_TOLINALG_PASSES_H
