//===- Passes.h - lowering of loops and kernels to LLVM ------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_LOWER_PASSES_H
#define BNGRAD_TRANSFORMS_LOWER_PASSES_H

#include "BNGrad/Transforms/Schedule/Target.h"

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

#define GEN_PASS_DECL
#include "BNGrad/Transforms/Lower/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/Lower/Passes.h.inc"

/// The formats in which kernels can be embedded in a module.
enum class CudaFormat { Isa, Bin, Fatbin };

/// How kernels are compiled. CudaPipelineOptions describes the fields.
struct KernelOptions {
  std::string chip = "sm_90";
  std::string features;
  unsigned optLevel = 3;
  CudaFormat format = CudaFormat::Isa;
};

/// Adds the passes of the stage `lower`. `pm` must be a pass manager on a
/// module.
void addCpuLowerPasses(OpPassManager &pm, const Target &target = {});
void addCudaLowerPasses(OpPassManager &pm, const KernelOptions &options);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_LOWER_PASSES_H
