//===- Passes.h - the C interface of compiled functions ------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CABI_PASSES_H
#define BNGRAD_TRANSFORMS_CABI_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

#define GEN_PASS_DECL
#include "BNGrad/Transforms/CAbi/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/CAbi/Passes.h.inc"

/// Adds the passes that inline all calls and drop promises to LLVM, so that
/// `bngrad-add-shape-functions` can run next. `pm` must be a pass manager on a
/// module.
void addInlinePasses(OpPassManager &pm);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_PASSES_H
