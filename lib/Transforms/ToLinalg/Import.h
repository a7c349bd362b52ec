//===- Import.h - gradients of other dialects ----------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialects are not linked in: their ops are read in generic form, as
// unregistered ops. The meaning of an op is that of its own specification; an
// op that the bngrad op cannot express is an error, never a guess.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORT_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORT_H

#include "BNGrad/Dialect/BNGrad.h"

namespace mlir::bngrad {

/// The attribute `name` of an unregistered op, written `<{...}>` or `{...}`.
Attribute getAttribute(Operation *op, StringRef name);

/// Checks the numbers of operands and results.
///
/// Errors: a diagnostic at `op`.
LogicalResult verifyArity(Operation *op, unsigned numOperands,
                          unsigned numResults);

/// Checks that `type` is a tensor that bngrad computes with.
///
/// Errors: a diagnostic at `op`, which calls the tensor `name`.
LogicalResult verifyTensor(Operation *op, StringRef name, Type type);

/// One gradient of another dialect, read but not yet rewritten. Values are
/// builtin tensors; absent ones are null.
struct ForeignGradient {
  Value gradOutput, input, scale, mean, variance, invStd;
  int64_t featureDim = 1;
  double epsilon = 0;
  Statistics statistics = Statistics::Batch;
  /// Builtin types of the three results; null: not computed.
  Type gradInput, gradScale, gradOffset;
};

/// Builds the bngrad op of `gradient` before `op`. The results have the given
/// types; those that are not computed get the type of mean.
///
/// Errors: a diagnostic at `op`, or at the location of the new op.
FailureOr<BatchNormBackwardOp> buildGradient(OpBuilder &b, Operation *op,
                                             ForeignGradient gradient);

/// Replaces a stablehlo.batch_norm_grad or mhlo.batch_norm_grad.
///
/// Errors: a diagnostic at `op`.
LogicalResult importBatchNormGrad(OpBuilder &b, Operation *op);

/// Replaces a torch.aten.native_batch_norm_backward, and erases the constants
/// that only it uses.
///
/// Errors: a diagnostic at `op`.
LogicalResult importNativeBatchNormBackward(OpBuilder &b, Operation *op);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORT_H
