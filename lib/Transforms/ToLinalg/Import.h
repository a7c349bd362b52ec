//===- Import.h - ops of other dialects ----------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialects are not linked in: their ops are read in generic form, as
// unregistered ops. An op means what its own specification says; an op that the
// bngrad op cannot express is an error, never a guess.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORT_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORT_H

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"

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

/// Checks that the sizes of `type`, a ranked tensor that the diagnostic at `op`
/// calls `name`, are compatible with `shape`.
LogicalResult verifyShape(Operation *op, const Twine &name, Type type,
                          ArrayRef<int64_t> shape);

/// One gradient of another dialect, read but not yet rewritten. Values are
/// builtin tensors; absent ones are null.
struct ForeignGradient {
  Value gradOutput, input, scale, mean, variance, invStd;
  int64_t featureDim = 1;
  double epsilon = 0;
  Statistics statistics = Statistics::Batch;
  /// Builtin types of the three results; null if not computed.
  Type gradInput, gradScale, gradOffset;
};

/// Builds the bngrad op of `gradient` before `op`. The results have the given
/// types; results that are not computed have the type of mean.
///
/// Errors: a diagnostic at `op`.
FailureOr<BatchNormBackwardOp> buildGradient(OpBuilder &b, Operation *op,
                                             ForeignGradient gradient);

/// The sums of a gradient, each of the shape of mean, in the accumulator type.
struct SumRows {
  Value dy, dyXmu;
};

/// Builds the first half of a gradient before `op`.
///
/// Errors: a diagnostic at `op`.
FailureOr<SumRows> buildSums(OpBuilder &b, Operation *op,
                             const ForeignGradient &gradient);

/// Builds the second half of `gradient` before `op`, from the sums of the whole
/// batch and its `count`, an i64.
///
/// Errors: a diagnostic at `op`.
FailureOr<Value> buildElements(OpBuilder &b, Operation *op,
                               ForeignGradient gradient, SumRows sums,
                               Value count);

/// `tensor` with elements of float type `type`.
Value convertElements(OpBuilder &b, Location loc, Value tensor, Type type);

/// One forward pass of another dialect, read but not yet rewritten. Values are
/// builtin tensors; absent ones are null. `mean` and one of `variance` and
/// `invStd` are given in inference only.
struct ForeignForward {
  Value input, scale, offset, mean, variance, invStd;
  int64_t featureDim = 1;
  double epsilon = 0;
  Type output;
};

/// Builds training before `op`. Statistics whose types are null have the
/// accumulator type.
///
/// Errors: a diagnostic at `op`.
FailureOr<BatchNormTrainingOp> buildTraining(OpBuilder &b, Operation *op,
                                             ForeignForward forward,
                                             Type mean = {},
                                             Type variance = {});

/// Builds inference before `op`, and returns its output.
///
/// Errors: a diagnostic at `op`.
FailureOr<Value> buildInference(OpBuilder &b, Operation *op,
                                ForeignForward forward);

/// How training changes a running statistic, to
///   keep * running + add * batch
/// where a variance of the batch is multiplied by M / (M - 1) if `isUnbiased`.
/// With one element per channel, an unbiased variance is NaN; without elements,
/// the running statistic is kept.
struct RunningUpdate {
  double keep, add;
  bool isUnbiased = false;
};

/// Builds the new value of the running statistic `running`, which the
/// diagnostic at `op` calls `name`, from the statistic `batch` of training.
FailureOr<Value> buildRunning(OpBuilder &b, Operation *op,
                              const ForeignForward &forward, StringRef name,
                              Value running, Value batch, RunningUpdate update);

/// Replaces a batch_norm_grad, batch_norm_training or batch_norm_inference of
/// StableHLO or MHLO; nothing for any other op.
///
/// Errors: a diagnostic at `op`.
std::optional<LogicalResult> importStableHloOp(OpBuilder &b, Operation *op);

/// The name of an op, which a torch.operator has as an attribute; empty if it
/// has none.
StringRef getOperatorName(Operation *op);

/// The name of a torch op without `torch.`, also for a torch.operator.
std::optional<StringRef> getTorchName(Operation *op);

/// Whether `op` is a BatchNormalization of ONNX, as torch-mlir imports it.
bool isOnnxBatchNorm(Operation *op);

/// Replaces a BatchNormalization of ONNX; nothing for any other op.
///
/// Errors: a diagnostic at the op.
std::optional<LogicalResult> importOnnxOp(OpBuilder &b, Operation *op,
                                          TorchCasts casts);

/// Replaces a gradient or a forward pass of torch; nothing for any other op.
/// Operands that do not affect it may have any type; optional ones are read
/// through torch.derefine.
///
/// Errors: a diagnostic at `op`.
std::optional<LogicalResult> importTorchOp(OpBuilder &b, Operation *op,
                                           TorchCasts casts);

/// Erases torch ops in `root` that compute nothing: descriptions of symbolic
/// shapes, and unused constants, lists and literals, whether imported ops or
/// PyTorch's graphs left them.
void eraseDeadTorchValues(Operation *root);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORT_H
