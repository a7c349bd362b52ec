//===- ImportTorchForward.cpp - forward passes of torch -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportTorch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// The operands of a forward pass: input, weight and bias, then the running
/// statistics if there are any, then `training`, if it is an operand, momentum
/// and eps.
struct ForwardSignature {
  StringLiteral name;
  bool hasRunning;
  bool hasTraining;
  /// Whether the updated running statistics are results; else the op writes to
  /// its operands.
  bool returnsRunning;

  unsigned getTraining() const { return hasRunning ? 5 : 3; }
  unsigned getMomentum() const { return getTraining() + hasTraining; }
  unsigned getNumOperands() const { return getMomentum() + 2; }
  unsigned getNumResults() const { return returnsRunning ? 5 : 3; }
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
  LogicalResult updateRunning(unsigned result, Value running, Value batch,
                              bool isVariance);
  Value buildBesselFactor(FloatType type);

  const ForwardSignature &signature;
  ForeignForward forward;
};
} // namespace

/// PyTorch, native_functions.yaml; the conventions are those of
/// Normalization.cpp: the results are output, the mean and the inverse standard
/// deviation of the batch, which are empty in evaluation, and the running
/// statistics. The new value of these is
///   (1 - momentum) * running + momentum * batch
/// where the batch's variance is multiplied by M / (M - 1).
static constexpr ForwardSignature kForwards[] = {
    {"aten.native_batch_norm", true, true, false},
    {"aten._native_batch_norm_legit", true, true, false},
    {"aten._native_batch_norm_legit.no_stats", false, true, false},
    {"aten._native_batch_norm_legit_functional", true, true, true},
    {"aten._native_batch_norm_legit_no_training", true, false, false},
};

LogicalResult TorchForwardImporter::import() {
  if (failed(verifyArity(op, signature.getNumOperands(),
                         signature.getNumResults())))
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
  forward.scale = *weight;
  forward.offset = *bias;
  forward.epsilon = *epsilon;
  forward.output = *output;
  return isTraining ? importTraining() : importInference();
}

LogicalResult TorchForwardImporter::importTraining() {
  Value running[2];
  static constexpr StringLiteral kNames[] = {"running_mean", "running_var"};
  for (auto [i, name] : llvm::enumerate(kNames)) {
    if (!signature.hasRunning)
      continue;
    if (signature.returnsRunning) {
      if (failed(readTensor(3 + i, name, running[i])))
        return failure();
      continue;
    }
    FailureOr<Value> mutated = readTensor(3 + i, name);
    if (failed(mutated))
      return failure();
    if (*mutated)
      return op->emitOpError()
             << "expected " << name
             << " to be None with training = true, as this op updates it in "
                "place (aten._native_batch_norm_legit_functional returns the "
                "new value), got a tensor";
  }
  FailureOr<BatchNormTrainingOp> training = buildTraining(b, op, forward);
  if (failed(training))
    return failure();
  Value values[] = {training->getOutput(), training->getMean(),
                    training->getInvStd()};
  for (auto [i, value] : llvm::enumerate(values))
    if (failed(replaceResult(i, value)))
      return failure();
  if (!signature.returnsRunning)
    return success();
  return success(
      succeeded(updateRunning(3, running[0], training->getMean(), false)) &&
      succeeded(updateRunning(4, running[1], training->getVariance(), true)));
}

LogicalResult TorchForwardImporter::importInference() {
  if (!signature.hasRunning)
    return op->emitOpError()
           << "expected training to be true without running statistics, got "
              "false";
  if (failed(readTensor(3, "running_mean", forward.mean,
                        " with training = false")) ||
      failed(readTensor(4, "running_var", forward.variance,
                        " with training = false")))
    return failure();
  Value running[] = {forward.mean, forward.variance};
  FailureOr<Value> output = buildInference(b, op, forward);
  if (failed(output) || failed(replaceResult(0, *output)) ||
      failed(replaceEmpty(1)) || failed(replaceEmpty(2)))
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

/// M / (M - 1).
Value TorchForwardImporter::buildBesselFactor(FloatType type) {
  Location loc = op->getLoc();
  Value count = arith::ConstantIndexOp::create(b, loc, 1);
  auto inputType = cast<RankedTensorType>(forward.input.getType());
  for (int64_t dim : llvm::seq(inputType.getRank()))
    if (dim != forward.featureDim)
      count = b.createOrFold<arith::MulIOp>(
          loc, count, b.createOrFold<tensor::DimOp>(loc, forward.input, dim));
  Value integer =
      b.createOrFold<arith::IndexCastOp>(loc, b.getI64Type(), count);
  Value all = arith::SIToFPOp::create(b, loc, type, integer);
  Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 1.0));
  return arith::DivFOp::create(b, loc, all,
                               arith::SubFOp::create(b, loc, all, one));
}

/// Replaces a running statistic by its new value.
LogicalResult TorchForwardImporter::updateRunning(unsigned result,
                                                  Value running, Value batch,
                                                  bool isVariance) {
  if (op->getResult(result).use_empty())
    return success();
  FailureOr<double> momentum = readFloat(signature.getMomentum(), "momentum");
  if (failed(momentum))
    return failure();
  Location loc = op->getLoc();
  FloatType type = getAccumulatorType({running, batch});
  running = convertElements(b, loc, running, type);
  batch = convertElements(b, loc, batch, type);
  Value factor = isVariance ? buildBesselFactor(type) : Value();
  auto runningType = cast<RankedTensorType>(running.getType());
  if (runningType.getRank() != 1)
    return op->emitOpError()
           << "expected running statistics of rank 1, got " << runningType;
  Value init = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, batch), type);
  auto body = [&](OpBuilder &nested, Location, ValueRange args) {
    auto scaled = [&](Value value, double by) -> Value {
      Value constant =
          arith::ConstantOp::create(nested, loc, nested.getFloatAttr(type, by));
      return arith::MulFOp::create(nested, loc, value, constant);
    };
    Value ofBatch = args[1];
    if (factor)
      ofBatch = arith::MulFOp::create(nested, loc, ofBatch, factor);
    Value sum =
        arith::AddFOp::create(nested, loc, scaled(args[0], 1 - *momentum),
                              scaled(ofBatch, *momentum));
    linalg::YieldOp::create(nested, loc, sum);
  };
  SmallVector<AffineMap> maps(3, b.getDimIdentityMap());
  Value updated = linalg::GenericOp::create(
                      b, loc, init.getType(), ValueRange{running, batch}, init,
                      maps, utils::IteratorType::parallel, body)
                      .getResult(0);
  return replaceResult(result, updated);
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
