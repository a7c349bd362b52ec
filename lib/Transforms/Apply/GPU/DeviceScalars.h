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

/// Makes `generic` read scalars of arguments, such as the count of a gradient,
/// as operands: a value of its body that host code computes from loads of
/// arguments is computed in the body instead. For arguments in device memory,
/// which the host cannot load. Loads at indices that are not constant, and of
/// arguments that the function writes, are unchanged.
///
/// Returns `generic`, or the op that has replaced it.
linalg::GenericOp readScalarsAsOperands(RewriterBase &rewriter,
                                        linalg::GenericOp generic);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_DEVICESCALARS_H
