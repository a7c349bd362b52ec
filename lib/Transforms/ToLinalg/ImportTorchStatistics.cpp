//===- ImportTorchStatistics.cpp - torch's synchronized forward pass ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each process computes the statistics of its part of a batch, the statistics
// of all parts are joined, and each process normalizes its part:
// torch/nn/modules/_functions.py, with the conventions of
// cuda/Normalization.cu.
//
//===----------------------------------------------------------------------===//

#include "BatchNormBuilder.h"
#include "ImportTorch.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
class TorchStatisticsImporter : TorchImporter {
public:
  using TorchImporter::TorchImporter;

  LogicalResult importStats();
  LogicalResult importElemt();
  LogicalResult importGather();

private:
  LogicalResult readParts();
  SmallVector<Value> addParts(ValueRange channels, unsigned numSums);
  Value buildChannel(ValueRange inputs,
                     function_ref<Value(const Arithmetic &, ValueRange)> value);

  // The operands of importGather, with a row or an element for each part.
  Value means, invStds, counts;
  double epsilon = 0;
  FloatType type;
};
} // namespace

/// batch_norm_stats(input, eps): mean and inverse standard deviation.
LogicalResult TorchStatisticsImporter::importStats() {
  if (failed(verifyArity(op, 2, 2)))
    return failure();
  ForeignForward forward;
  FailureOr<double> eps = readFloat(1, "eps");
  if (failed(eps) || failed(readTensor(0, "input", forward.input)))
    return failure();
  forward.epsilon = *eps;
  forward.output = forward.input.getType();
  FailureOr<BatchNormTrainingOp> training = buildTraining(b, op, forward);
  return success(succeeded(training) &&
                 succeeded(replaceResult(0, training->getMean())) &&
                 succeeded(replaceResult(1, training->getInvStd())));
}

/// batch_norm_elemt(input, weight, bias, mean, invstd, eps): output. eps is not
/// read, as invstd includes it.
LogicalResult TorchStatisticsImporter::importElemt() {
  if (failed(verifyArity(op, 6, 1)))
    return failure();
  ForeignForward forward;
  FailureOr<Value> weight = readTensor(1, "weight");
  FailureOr<Value> bias = readTensor(2, "bias");
  FailureOr<RankedTensorType> output = readResultType(0);
  if (failed(weight) || failed(bias) || failed(output) ||
      failed(readTensor(0, "input", forward.input)) ||
      failed(readTensor(3, "mean", forward.mean)) ||
      failed(readTensor(4, "invstd", forward.invStd)))
    return failure();
  forward.scale = *weight;
  forward.offset = *bias;
  forward.output = *output;
  FailureOr<Value> result = buildInference(b, op, forward);
  return success(succeeded(result) && succeeded(replaceResult(0, *result)));
}

/// Reads the operands of importGather.
LogicalResult TorchStatisticsImporter::readParts() {
  FailureOr<double> eps = readFloat(6, "eps");
  if (failed(eps) || failed(readTensor(1, "mean", means)) ||
      failed(readTensor(2, "invstd", invStds)) ||
      failed(readTensor(7, "counts", counts)) ||
      failed(verifyNotUpdated(3, "running_mean")) ||
      failed(verifyNotUpdated(4, "running_var")))
    return failure();
  epsilon = *eps;
  type = getAccumulatorType({means, invStds, counts});
  auto shape = cast<RankedTensorType>(means.getType()).getShape();
  if (shape.size() != 2)
    return op->emitOpError()
           << "expected mean to have a row for each process, got "
           << means.getType();
  return success(
      succeeded(verifyShape(op, "invstd", invStds.getType(), shape)) &&
      succeeded(
          verifyShape(op, "counts", counts.getType(), shape.take_front())));
}

/// Adds up, for each channel, the counts and the products of count and mean or,
/// if `channels` has the mean of all parts, the squares about it.
SmallVector<Value> TorchStatisticsImporter::addParts(ValueRange channels,
                                                     unsigned numSums) {
  Location loc = op->getLoc();
  AffineExpr part = b.getAffineDimExpr(0), channel = b.getAffineDimExpr(1);
  auto mapTo = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(2, 0, exprs, b.getContext());
  };
  SmallVector<AffineMap> maps = {mapTo({part, channel}), mapTo({part, channel}),
                                 mapTo(part)};
  maps.append(channels.size() + numSums, mapTo(channel));
  SmallVector<Value> inputs = {means, invStds, counts}, inits;
  llvm::append_range(inputs, channels);
  Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 0.0));
  while (inits.size() < numSums) {
    Value init = tensor::EmptyOp::create(
        b, loc, tensor::getMixedSize(b, loc, means, 1), type);
    inits.push_back(linalg::FillOp::create(b, loc, zero, init).getResult(0));
  }
  auto body = [&](OpBuilder &nested, Location, ValueRange args) {
    Arithmetic math{nested, loc, type};
    Value mean = math.extend(args[0]), count = math.extend(args[2]);
    SmallVector<Value> terms = {count, math.mul(count, mean)};
    if (!channels.empty()) {
      Value std = math.div(math.constant(1.0), math.extend(args[1]));
      Value variance = math.sub(math.mul(std, std), math.constant(epsilon));
      Value distance = math.sub(mean, args[3]);
      terms = {
          math.mul(count, math.add(variance, math.mul(distance, distance)))};
    }
    for (auto [term, sum] : llvm::zip_equal(terms, args.take_back(numSums)))
      term = math.accumulate(sum, term);
    linalg::YieldOp::create(nested, loc, terms);
  };
  utils::IteratorType iterators[] = {utils::IteratorType::reduction,
                                     utils::IteratorType::parallel};
  return linalg::GenericOp::create(b, loc, TypeRange(ValueRange(inits)), inputs,
                                   inits, maps, iterators, body)
      .getResults();
}

Value TorchStatisticsImporter::buildChannel(
    ValueRange inputs,
    function_ref<Value(const Arithmetic &, ValueRange)> value) {
  Location loc = op->getLoc();
  Value init = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSize(b, loc, means, 1), type);
  SmallVector<AffineMap> maps(inputs.size() + 1, b.getDimIdentityMap());
  auto body = [&](OpBuilder &nested, Location, ValueRange args) {
    linalg::YieldOp::create(nested, loc, value({nested, loc, type}, args));
  };
  return linalg::GenericOp::create(b, loc, init.getType(), inputs, init, maps,
                                   utils::IteratorType::parallel, body)
      .getResult(0);
}

/// batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean,
/// running_var, momentum, eps, counts): mean and inverse standard deviation of
/// the whole batch, from those of its parts. Each variance is
/// 1/invstd^2 - eps.
LogicalResult TorchStatisticsImporter::importGather() {
  if (failed(verifyArity(op, 8, 2)) || failed(readParts()))
    return failure();
  SmallVector<Value> sums = addParts({}, 2);
  Value count = sums[0];
  Value mean = buildChannel({sums[1], count},
                            [](const Arithmetic &math, ValueRange args) {
                              return math.div(args[0], args[1]);
                            });
  Value squares = addParts(mean, 1).front();
  Value invStd = buildChannel(
      {squares, count}, [&](const Arithmetic &math, ValueRange args) {
        return math.invStd(math.div(args[0], args[1]), math.constant(epsilon));
      });
  return success(succeeded(replaceResult(0, mean)) &&
                 succeeded(replaceResult(1, invStd)));
}

std::optional<LogicalResult>
mlir::bngrad::importTorchStatistics(OpBuilder &b, Operation *op, StringRef name,
                                    TorchCasts casts) {
  TorchStatisticsImporter importer(b, op, casts);
  if (name == "aten.batch_norm_stats")
    return importer.importStats();
  if (name == "aten.batch_norm_elemt")
    return importer.importElemt();
  if (name == "aten.batch_norm_gather_stats_with_counts")
    return importer.importGather();
  return std::nullopt;
}
