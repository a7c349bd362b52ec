//===- ImportTorchForward.cpp - forward passes of torch -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportTorch.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// The operands of a forward pass: input, weight and bias, then the running
/// statistics if there are any, then `training`, if it is an operand, momentum
/// and eps. Any further operand is not read.
struct ForwardSignature {
  StringLiteral name;
  unsigned numOperands, numResults;
  bool hasRunning;
  bool hasTraining;
  /// Whether the updated running statistics are results 3 and 4; else the op
  /// writes to its operands.
  bool returnsRunning;

  unsigned getTraining() const { return hasRunning ? 5 : 3; }
  unsigned getMomentum() const { return getTraining() + hasTraining; }
  bool hasSaved() const { return numResults >= 3; }
  bool hasReserve() const { return numResults == 4; }
};

/// Imports one forward pass of torch.
class TorchForwardImporter : TorchImporter {
public:
  TorchForwardImporter(OpBuilder &b, Operation *op, TorchCasts casts,
                       const ForwardSignature &signature)
      : TorchImporter(b, op, casts), signature(signature) {}

  LogicalResult import();

private:
  LogicalResult importTraining();
  LogicalResult importInference();
  LogicalResult replaceEmpty(unsigned result);
  LogicalResult updateRunning(unsigned number, Value running, Value batch,
                              bool isUnbiased);

  const ForwardSignature &signature;
  ForeignForward forward;
};
} // namespace

/// PyTorch, native_functions.yaml; the conventions are those of
/// Normalization.cpp and of torch/_decomp/decompositions.py: the results are
/// output, the mean and the inverse standard deviation of the batch, which are
/// empty in evaluation, and the running statistics or a reserve for the
/// gradient. The new value of a running statistic is
///   (1 - momentum) * running + momentum * batch
/// where the batch's variance is multiplied by M / (M - 1). cuDNN and MIOpen
/// call momentum exponential_average_factor.
static constexpr ForwardSignature kForwards[] = {
    {"aten.native_batch_norm", 8, 3, true, true, false},
    {"aten._native_batch_norm_legit", 8, 3, true, true, false},
    {"aten._native_batch_norm_legit.no_stats", 6, 3, false, true, false},
    {"aten._native_batch_norm_legit_functional", 8, 5, true, true, true},
    {"aten._native_batch_norm_legit_no_training", 7, 3, true, false, false},
    {"aten.batch_norm", 9, 1, true, true, false},
    {"aten.cudnn_batch_norm", 8, 4, true, true, false},
    {"aten.miopen_batch_norm", 8, 3, true, true, false},
};

static constexpr StringLiteral kRunning[] = {"running_mean", "running_var"};

LogicalResult TorchForwardImporter::import() {
  if (failed(verifyArity(op, signature.numOperands, signature.numResults)))
    return failure();
  bool isTraining = false;
  if (signature.hasTraining) {
    FailureOr<bool> read = readBool(signature.getTraining(), "training");
    if (failed(read))
      return failure();
    isTraining = *read;
  }
  FailureOr<double> epsilon = readFloat(signature.getMomentum() + 1, "eps");
  FailureOr<Value> weight = readTensor(1, "weight");
  FailureOr<Value> bias = readTensor(2, "bias");
  FailureOr<RankedTensorType> output = readResultType(0);
  if (failed(epsilon) || failed(weight) || failed(bias) || failed(output) ||
      failed(readTensor(0, "input", forward.input)))
    return failure();
  if (signature.hasReserve() &&
      failed(verifyUnused(3, "only the gradient of this op reads it")))
    return failure();
  forward.scale = *weight;
  forward.offset = *bias;
  forward.epsilon = *epsilon;
  forward.output = *output;
  return isTraining ? importTraining() : importInference();
}

LogicalResult TorchForwardImporter::importTraining() {
  Value running[2];
  for (auto [i, name] : llvm::enumerate(kRunning)) {
    if (!signature.hasRunning)
      continue;
    if (signature.returnsRunning) {
      if (failed(readTensor(3 + i, name, running[i])))
        return failure();
      continue;
    }
    FailureOr<Value> updated = readTensor(3 + i, name);
    if (failed(updated))
      return failure();
    running[i] = *updated;
  }
  FailureOr<BatchNormTrainingOp> training = buildTraining(b, op, forward);
  if (failed(training) || failed(replaceResult(0, training->getOutput())))
    return failure();
  if (signature.hasSaved() && (failed(replaceResult(1, training->getMean())) ||
                               failed(replaceResult(2, training->getInvStd()))))
    return failure();
  return success(
      succeeded(updateRunning(0, running[0], training->getMean(), false)) &&
      succeeded(updateRunning(1, running[1], training->getVariance(), true)));
}

LogicalResult TorchForwardImporter::importInference() {
  if (!signature.hasRunning)
    return op->emitOpError()
           << "expected training to be true without running statistics, got "
              "false";
  if (failed(
          readTensor(3, kRunning[0], forward.mean, " with training = false")) ||
      failed(readTensor(4, kRunning[1], forward.variance,
                        " with training = false")))
    return failure();
  Value running[] = {forward.mean, forward.variance};
  FailureOr<Value> output = buildInference(b, op, forward);
  if (failed(output) || failed(replaceResult(0, *output)))
    return failure();
  if (signature.hasSaved() &&
      (failed(replaceEmpty(1)) || failed(replaceEmpty(2))))
    return failure();
  for (unsigned i : {0, 1})
    if (signature.returnsRunning && failed(replaceResult(3 + i, running[i])))
      return failure();
  return success();
}

/// Replaces a saved statistic, which is empty in evaluation.
LogicalResult TorchForwardImporter::replaceEmpty(unsigned result) {
  if (op->getResult(result).use_empty())
    return success();
  FailureOr<RankedTensorType> type = readResultType(result);
  if (failed(type))
    return failure();
  if (type->getRank() != 1 ||
      (type->getDimSize(0) != 0 && !type->isDynamicDim(0)))
    return op->emitOpError()
           << "expected result " << result
           << " to be empty with training = false, got " << *type;
  return replaceResult(result, tensor::EmptyOp::create(b, op->getLoc(),
                                                       ArrayRef<int64_t>{0},
                                                       type->getElementType()));
}

/// Computes the new value of a running statistic, a result of the op or an
/// operand that the op updates in place, if there is one.
LogicalResult TorchForwardImporter::updateRunning(unsigned number,
                                                  Value running, Value batch,
                                                  bool isUnbiased) {
  unsigned result = 3 + number;
  if (signature.returnsRunning ? op->getResult(result).use_empty() : !running)
    return success();
  FailureOr<double> momentum = readFloat(signature.getMomentum(), "momentum");
  if (failed(momentum))
    return failure();
  FailureOr<Value> updated =
      buildRunning(b, op, forward, kRunning[number], running, batch,
                   {1 - *momentum, *momentum, isUnbiased});
  if (failed(updated))
    return failure();
  if (signature.returnsRunning)
    return replaceResult(result, *updated);
  return copyToOperand(3 + number, kRunning[number], *updated);
}

std::optional<LogicalResult>
mlir::bngrad::importTorchForward(OpBuilder &b, Operation *op, StringRef name,
                                 TorchCasts casts) {
  const auto *signature = llvm::find_if(
      kForwards, [&](const ForwardSignature &s) { return s.name == name; });
  if (signature == std::end(kForwards))
    return std::nullopt;
  return TorchForwardImporter(b, op, casts, *signature).import();
}
