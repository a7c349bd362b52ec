//===- TorchTypes.h - tensors of torch-mlir ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_TORCHTYPES_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_TORCHTYPES_H

#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::bngrad {

/// The builtin tensor of a `!torch.vtensor<[d0,?,...],dtype>`, of torch-mlir's
/// dialect or unregistered; null for any other type, also for a vtensor of
/// unknown rank or dtype. Integers are signless.
RankedTensorType getBuiltinTensor(Type type);

/// True for a type of torch-mlir's dialect, whether it is registered or not.
bool isTorchType(Type type);

/// True for a `!torch.vtensor` of any kind.
bool isVTensor(Type type);

/// Casts `value` between a `!torch.vtensor` and its builtin tensor by the ops
/// that `casts` names.
Value castTorchTensor(OpBuilder &b, Location loc, Value value, Type type,
                      TorchCasts casts);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_TORCHTYPES_H
