//===- Passes.h - tensors to buffers -------------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_BUFFERIZE_PASSES_H
#define BNGRAD_TRANSFORMS_BUFFERIZE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

#define GEN_PASS_DECL
#include "BNGrad/Transforms/Bufferize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/Bufferize/Passes.h.inc"

/// Adds the passes of the stage `bufferize`, for pass managers on a module.
void addBufferizePasses(OpPassManager &pm);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_BUFFERIZE_PASSES_H
