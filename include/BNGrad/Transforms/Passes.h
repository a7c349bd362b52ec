//===- Passes.h - pass declarations and registration ---------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PASSES_H
#define BNGRAD_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

#define GEN_PASS_DECL
#include "BNGrad/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/Passes.h.inc"

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_PASSES_H
