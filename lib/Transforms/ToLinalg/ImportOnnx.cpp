//===- ImportOnnx.cpp - BatchNormalization of ONNX ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// torch-mlir imports an op of ONNX as a torch.operator with its name, in which
// the attribute `a` is `torch.onnx.a`.
//
//===----------------------------------------------------------------------===//

#include "ImportTorch.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// The attributes, with the defaults of ONNX.
struct OnnxOptions {
  double epsilon = 1e-5;
  double momentum = 0.9;
  bool isTraining = false;
};

class OnnxImporter : TorchImporter {
public:
  using TorchImporter::TorchImporter;

  LogicalResult import();

private:
  FailureOr<OnnxOptions> readOptions();
  LogicalResult importTraining(const OnnxOptions &options);

  ForeignForward forward;
};
} // namespace

/// Reads the attributes of opset 15. Attributes of earlier opsets that change
/// the meaning, such as `spatial`, are errors.
FailureOr<OnnxOptions> OnnxImporter::readOptions() {
  OnnxOptions options;
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName();
    if (!name.consume_front("torch.onnx."))
      continue;
    if (name != "epsilon" && name != "momentum" && name != "training_mode")
      return op->emitOpError() << "expected the attributes epsilon, momentum "
                                  "and training_mode of ONNX's opset 15, got '"
                               << name << "'";
    if (name == "training_mode") {
      auto value = dyn_cast<IntegerAttr>(attribute.getValue());
      if (!value)
        return op->emitOpError()
               << "expected an integer attribute 'torch.onnx.training_mode'";
      options.isTraining = !value.getValue().isZero();
      continue;
    }
    auto value = dyn_cast<FloatAttr>(attribute.getValue());
    if (!value)
      return op->emitOpError()
             << "expected a float attribute 'torch.onnx." << name << "'";
    (name == "epsilon" ? options.epsilon : options.momentum) =
        value.getValueAsDouble();
  }
  return options;
}

/// BatchNormalization(X, scale, B, input_mean, input_var): Y, and in training
/// the running statistics
///   momentum * input + (1 - momentum) * current
/// of the biased variance (ONNX operators, BatchNormalization, version 15).
LogicalResult OnnxImporter::import() {
  FailureOr<OnnxOptions> options = readOptions();
  if (failed(options))
    return failure();
  if (!options->isTraining && failed(verifyArity(op, 5, 1)))
    return failure();
  if (op->getNumOperands() != 5)
    return verifyArity(op, 5, op->getNumResults());
  if (op->getNumResults() < 1 || op->getNumResults() > 3)
    return op->emitOpError()
           << "expected 1 to 3 results, got " << op->getNumResults();
  FailureOr<RankedTensorType> output = readResultType(0);
  if (failed(output) || failed(readTensor(0, "X", forward.input)) ||
      failed(readTensor(1, "scale", forward.scale)) ||
      failed(readTensor(2, "B", forward.offset)))
    return failure();
  forward.epsilon = options->epsilon;
  forward.output = *output;
  if (options->isTraining)
    return importTraining(*options);
  if (failed(readTensor(3, "input_mean", forward.mean)) ||
      failed(readTensor(4, "input_var", forward.variance)))
    return failure();
  FailureOr<Value> result = buildInference(b, op, forward);
  if (failed(result))
    return failure();
  return replaceResult(0, *result);
}

LogicalResult OnnxImporter::importTraining(const OnnxOptions &options) {
  FailureOr<BatchNormTrainingOp> training = buildTraining(b, op, forward);
  if (failed(training) || failed(replaceResult(0, training->getOutput())))
    return failure();
  std::pair<StringLiteral, Value> statistics[] = {
      {"input_mean", training->getMean()},
      {"input_var", training->getVariance()}};
  for (unsigned i : llvm::seq(op->getNumResults() - 1)) {
    auto [name, batch] = statistics[i];
    Value running;
    if (failed(readTensor(3 + i, name, running)))
      return failure();
    FailureOr<Value> updated =
        buildRunning(b, op, forward, name, running, batch,
                     {options.momentum, 1 - options.momentum});
    if (failed(updated) || failed(replaceResult(1 + i, *updated)))
      return failure();
  }
  return success();
}

bool mlir::bngrad::isOnnxBatchNorm(Operation *op) {
  return op->getName().getStringRef() == "torch.operator" &&
         getOperatorName(op) == "onnx.BatchNormalization";
}

std::optional<LogicalResult>
mlir::bngrad::importOnnxOp(OpBuilder &b, Operation *op, TorchCasts casts) {
  if (!isOnnxBatchNorm(op))
    return std::nullopt;
  LogicalResult imported = OnnxImporter(b, op, casts).import();
  if (succeeded(imported))
    op->erase();
  return imported;
}
