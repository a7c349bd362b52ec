//===- Passes.h - groups and their schedules ------------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_SCHEDULE_PASSES_H
#define BNGRAD_TRANSFORMS_SCHEDULE_PASSES_H

#include "BNGrad/Transforms/Schedule/Target.h"

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

#define GEN_PASS_DECL
#include "BNGrad/Transforms/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/Schedule/Passes.h.inc"

/// Adds the passes of the stage `group`, for pass managers on a module. If
/// `schedule` is empty, one is chosen for `target`, or one that all chips can
/// run. `activeClusters` is as in CudaPipelineOptions.
void addGroupPasses(OpPassManager &pm, StringRef schedule,
                    const Target &target);
void addCudaGroupPasses(OpPassManager &pm, StringRef schedule, StringRef chip,
                        StringRef activeClusters = "");

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_SCHEDULE_PASSES_H
