//===- Passes.h - groups to loops and kernels ----------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_APPLY_PASSES_H
#define BNGRAD_TRANSFORMS_APPLY_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

#define GEN_PASS_DECL
#include "BNGrad/Transforms/Apply/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/Apply/Passes.h.inc"

/// Adds the passes of the stage `apply`, for pass managers on a module.
/// `chip` and `deviceArguments`: as in CudaPipelineOptions.
void addCpuApplyPasses(OpPassManager &pm);
void addCudaApplyPasses(OpPassManager &pm, StringRef chip,
                        bool deviceArguments);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_APPLY_PASSES_H
