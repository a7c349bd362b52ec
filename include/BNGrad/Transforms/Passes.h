//===- Passes.h - the passes of all stages -------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PASSES_H
#define BNGRAD_TRANSFORMS_PASSES_H

#include "BNGrad/Transforms/Apply/Passes.h"
#include "BNGrad/Transforms/Bufferize/Passes.h"
#include "BNGrad/Transforms/CAbi/Passes.h"
#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Partition/Passes.h"
#include "BNGrad/Transforms/Schedule/Passes.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"

namespace mlir::bngrad {

/// Registers the passes of all stages.
inline void registerBNGradPasses() {
  registerBNGradToLinalgPasses();
  registerBNGradPartitionPasses();
  registerBNGradSchedulePasses();
  registerBNGradBufferizePasses();
  registerBNGradApplyPasses();
  registerBNGradCAbiPasses();
  registerBNGradLowerPasses();
}

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_PASSES_H
