//===- DeviceScalars.h - scalars that kernels read --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_DEVICESCALARS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_DEVICESCALARS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::bngrad {

/// Makes `generic` read scalars from arguments, such as the count of a
/// gradient, as operands: if host code computes a value for its body from loads
/// of arguments, the body computes it instead, as the host cannot load from
/// device memory. Loads at indices that are not constant, and loads of
/// arguments that the function writes, do not change.
///
/// Returns `generic`, or the op that replaced it.
linalg::GenericOp readScalarsAsOperands(RewriterBase &rewriter,
                                        linalg::GenericOp generic);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_DEVICESCALARS_H
