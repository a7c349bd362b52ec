//===- ImportTorch.cpp - ops of torch, above all its gradients ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportTorch.h"
#include "TorchTypes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/TypeUtilities.h"

#include <array>

using namespace mlir;
using namespace mlir::bngrad;

/// Skips ops that only forget part of the type of `value`, such as the cast
/// from `!torch.none` to an optional tensor.
static Value skipDerefine(Value value) {
  for (Operation *op = value.getDefiningOp();
       op && op->getName().getStringRef() == "torch.derefine" &&
       op->getNumOperands() == 1;
       op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

static bool isDefinedBy(Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  return op && op->getName().getStringRef() == name;
}

/// The attribute `value` of the constant op `name` that defines `value`. In an
/// op from bytecode, the properties as a whole are this attribute.
static Attribute getConstant(Value value, StringRef name) {
  value = skipDerefine(value);
  if (!isDefinedBy(value, name))
    return {};
  Operation *op = value.getDefiningOp();
  if (Attribute attribute = getAttribute(op, "value"))
    return attribute;
  return op->getPropertiesAsAttribute();
}

static std::optional<bool> getConstantBool(Value value) {
  Attribute attribute = getConstant(value, "torch.constant.bool");
  if (auto boolean = dyn_cast_or_null<BoolAttr>(attribute))
    return boolean.getValue();
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attribute))
    return !integer.getValue().isZero();
  return std::nullopt;
}

namespace {
/// The operands of an op that computes all three gradients. Its other operands
/// do not affect them.
struct GradientSignature {
  StringLiteral name;
  unsigned numOperands;
  unsigned gradOutput, input;
  // weight is operand 2; operands 3 to 6 are the running statistics and the
  // statistics that the forward pass saved.
  std::optional<unsigned> train; // none in training
  unsigned epsilon;
  std::optional<unsigned> outputMask; // none if all results
};
} // namespace

/// PyTorch, native_functions.yaml. In all of them, the variance that the
/// forward pass saves is an inverse standard deviation (Normalization.cpp,
/// BatchNorm.cpp of cuDNN, BatchNorm_miopen.cpp).
static constexpr GradientSignature kGradients[] = {
    {"aten.native_batch_norm_backward", 10, 0, 1, 7, 8, 9},
    {"aten.batch_norm_backward", 11, 0, 1, 7, 8, 9},
    {"aten.cudnn_batch_norm_backward", 9, 1, 0, std::nullopt, 7, std::nullopt},
    {"aten.miopen_batch_norm_backward", 8, 1, 0, std::nullopt, 7, std::nullopt},
};
static constexpr StringLiteral kReduce = "aten.batch_norm_backward_reduce";
static constexpr StringLiteral kElemt = "aten.batch_norm_backward_elemt";

StringRef mlir::bngrad::getOperatorName(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (name != "torch.operator")
    return name;
  // In an op from bytecode, the properties as a whole are the name.
  Attribute attribute = getAttribute(op, "name");
  if (!attribute)
    attribute = op->getPropertiesAsAttribute();
  auto text = dyn_cast_or_null<StringAttr>(attribute);
  return text ? text.getValue() : StringRef();
}

std::optional<StringRef> mlir::bngrad::getTorchName(Operation *op) {
  StringRef name = getOperatorName(op);
  if (!name.consume_front("torch."))
    return std::nullopt;
  return name;
}

namespace {
/// Imports one gradient of torch.
class TorchGradientImporter : TorchImporter {
public:
  using TorchImporter::TorchImporter;

  LogicalResult importGradient(const GradientSignature &signature);
  LogicalResult importReduce();
  LogicalResult importElemt();

private:
  /// The values of the operands that are constants.
  struct Options {
    bool train = true;
    double epsilon = 0;
    std::array<bool, 3> outputMask = {true, true, true};
  };

  FailureOr<Options> readOptions(const GradientSignature &signature);
  LogicalResult readTensors(const GradientSignature &signature,
                            const Options &options, ForeignGradient &gradient);
  /// The sum of the elements of `counts`, as an i64.
  Value addCounts(Value counts);
};
} // namespace

FailureOr<bool> TorchImporter::readBool(unsigned operand, StringRef name) {
  std::optional<bool> value = getConstantBool(op->getOperand(operand));
  if (!value)
    return op->emitOpError() << "expected " << name
                             << " to be a torch.constant.bool, got another "
                                "value";
  return *value;
}

FailureOr<double> TorchImporter::readFloat(unsigned operand, StringRef name) {
  auto value = dyn_cast_or_null<FloatAttr>(
      getConstant(op->getOperand(operand), "torch.constant.float"));
  if (!value)
    return op->emitOpError() << "expected " << name
                             << " to be a torch.constant.float, got another "
                                "value";
  return value.getValueAsDouble();
}

LogicalResult TorchImporter::verifyUnused(unsigned result,
                                          const Twine &reason) {
  if (op->getResult(result).use_empty())
    return success();
  return op->emitOpError() << "expected result " << result
                           << " to be unused, as " << reason << ", got a use";
}

LogicalResult TorchImporter::verifyNotUpdated(unsigned operand,
                                              StringRef name) {
  FailureOr<Value> running = readTensor(operand, name);
  if (failed(running))
    return failure();
  if (!*running)
    return success();
  return op->emitOpError() << "expected " << name
                           << " to be None, as this op updates it in place"
                           << ", got a tensor";
}

LogicalResult TorchImporter::copyToOperand(unsigned operand, StringRef name,
                                           Value value) {
  Value target = skipDerefine(op->getOperand(operand));
  if (!isVTensor(target.getType()))
    return op->emitOpError()
           << "expected " << name
           << " to be None or a !torch.vtensor, as this op updates it in "
              "place, got "
           << target.getType();
  Location loc = op->getLoc();
  OperationState flag(loc, "torch.constant.bool");
  flag.addTypes(parseType("!torch.bool", op->getContext()));
  flag.addAttribute("value", b.getBoolAttr(false));
  Value isNonBlocking = b.create(flag)->getResult(0);
  OperationState state(loc, "torch.aten.copy_");
  state.addOperands({target,
                     castTorchTensor(b, loc, value, target.getType(), casts),
                     isNonBlocking});
  state.addTypes(target.getType());
  Operation *copy = b.create(state);
  target.replaceUsesWithIf(copy->getResult(0), [&](OpOperand &use) {
    Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return user && op->isBeforeInBlock(user) && user != copy;
  });
  return success();
}

FailureOr<TorchGradientImporter::Options>
TorchGradientImporter::readOptions(const GradientSignature &signature) {
  Options options;
  if (signature.train) {
    FailureOr<bool> train = readBool(*signature.train, "train");
    if (failed(train))
      return failure();
    options.train = *train;
  }
  FailureOr<double> epsilon = readFloat(signature.epsilon, "eps");
  if (failed(epsilon))
    return failure();
  options.epsilon = *epsilon;
  if (!signature.outputMask)
    return options;
  Value list = skipDerefine(op->getOperand(*signature.outputMask));
  if (!isDefinedBy(list, "torch.prim.ListConstruct") ||
      list.getDefiningOp()->getNumOperands() != 3)
    return op->emitOpError() << "expected output_mask to be a "
                                "torch.prim.ListConstruct of three values";
  for (auto [i, value] : llvm::enumerate(list.getDefiningOp()->getOperands())) {
    std::optional<bool> flag = getConstantBool(value);
    std::string name = ("output_mask[" + Twine(i) + "]").str();
    if (!flag)
      return op->emitOpError()
             << "expected " << name
             << " to be a torch.constant.bool, got another value";
    options.outputMask[i] = *flag;
    if (!*flag && failed(verifyUnused(i, name + " is false")))
      return failure();
  }
  return options;
}

FailureOr<Value> TorchImporter::readTensor(unsigned operand, StringRef name) {
  Value value = skipDerefine(op->getOperand(operand));
  if (isDefinedBy(value, "torch.constant.none"))
    return Value();
  if (RankedTensorType tensor = getBuiltinTensor(value.getType())) {
    if (failed(verifyTensor(op, name, tensor)))
      return failure();
    return castTorchTensor(b, op->getLoc(), value, tensor, casts);
  }
  if (!isa<TensorType>(value.getType()))
    return op->emitOpError()
           << "expected " << name
           << " to be a tensor of f16, bf16, f32 or f64 and known rank, or "
              "None, got "
           << value.getType();
  if (failed(verifyTensor(op, name, value.getType())))
    return failure();
  return value;
}

LogicalResult TorchImporter::readTensor(unsigned operand, StringRef name,
                                        Value &value, StringRef condition) {
  FailureOr<Value> tensor = readTensor(operand, name);
  if (failed(tensor))
    return failure();
  if (!*tensor)
    return op->emitOpError() << "expected " << name << " to be a tensor"
                             << condition << ", got None";
  value = *tensor;
  return success();
}

/// Reads the tensors among the operands: in training the saved mean and inverse
/// standard deviation of the batch, else the running mean and variance.
LogicalResult
TorchGradientImporter::readTensors(const GradientSignature &signature,
                                   const Options &options,
                                   ForeignGradient &gradient) {
  FailureOr<Value> weight = readTensor(2, "weight");
  if (failed(weight) ||
      failed(
          readTensor(signature.gradOutput, "grad_out", gradient.gradOutput)) ||
      failed(readTensor(signature.input, "input", gradient.input)))
    return failure();
  gradient.scale = *weight;
  // The saved inverse standard deviation includes eps already.
  if (options.train)
    return success(succeeded(readTensor(5, "save_mean", gradient.mean,
                                        " with train = true")) &&
                   succeeded(readTensor(6, "save_invstd", gradient.invStd,
                                        " with train = true")));
  gradient.epsilon = options.epsilon;
  gradient.statistics = Statistics::Global;
  return success(succeeded(readTensor(3, "running_mean", gradient.mean,
                                      " with train = false")) &&
                 succeeded(readTensor(4, "running_var", gradient.variance,
                                      " with train = false")));
}

FailureOr<RankedTensorType> TorchImporter::readResultType(unsigned result) {
  Type type = op->getResult(result).getType();
  if (RankedTensorType tensor = getBuiltinTensor(type))
    type = tensor;
  if (failed(verifyTensor(op, ("result " + Twine(result)).str(), type)))
    return failure();
  return cast<RankedTensorType>(type);
}

LogicalResult TorchImporter::replaceResult(unsigned result, Value value) {
  Value replaced = op->getResult(result);
  if (replaced.use_empty())
    return success();
  FailureOr<RankedTensorType> type = readResultType(result);
  if (failed(type))
    return failure();
  auto given = cast<RankedTensorType>(value.getType());
  if (failed(
          verifyShape(op, "result " + Twine(result), *type, given.getShape())))
    return failure();
  Location loc = op->getLoc();
  value = convertElements(b, loc, value, type->getElementType());
  if (value.getType() != *type)
    value = tensor::CastOp::create(b, loc, *type, value);
  if (replaced.getType() != *type)
    value = castTorchTensor(b, loc, value, replaced.getType(), casts);
  replaced.replaceAllUsesWith(value);
  return success();
}

/// Whether `op` only creates its results, so that it can be erased if they are
/// unused. Ops of torch may be unregistered and lack an interface to ask.
static bool makesValues(Operation *op) {
  static constexpr StringLiteral kNames[] = {
      "torch.aten.detach",        "torch.derefine",
      "torch.prim.ListConstruct", "torch.symbolic_int",
      "torch.tensor.literal",     "torch.tensor_static_info_cast",
      "torch.vtensor.literal"};
  StringRef name = op->getName().getStringRef();
  return llvm::is_contained(kNames, name) ||
         name.starts_with("torch.constant.");
}

/// Whether `op` only relates sizes to the symbols of a PyTorch graph. All sizes
/// are checked when a function is called.
static bool describesSizes(Operation *op) {
  return op->getName().getStringRef() == "torch.bind_symbolic_shape";
}

void mlir::bngrad::eraseDeadTorchValues(Operation *root) {
  // Users come before their operands.
  SmallVector<Operation *> ops;
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (makesValues(op) || describesSizes(op))
      ops.push_back(op);
  });
  for (Operation *op : ops)
    if (op->use_empty())
      op->erase();
}

/// In training, the statistics are those saved by the forward pass; otherwise
/// the running ones, which are constants.
LogicalResult
TorchGradientImporter::importGradient(const GradientSignature &signature) {
  if (failed(verifyArity(op, signature.numOperands, 3)))
    return failure();
  FailureOr<Options> options = readOptions(signature);
  ForeignGradient gradient;
  if (failed(options) || failed(readTensors(signature, *options, gradient)))
    return failure();
  Type *types[] = {&gradient.gradInput, &gradient.gradScale,
                   &gradient.gradOffset};
  for (auto [i, type] : llvm::enumerate(types)) {
    if (!options->outputMask[i])
      continue;
    FailureOr<RankedTensorType> read = readResultType(i);
    if (failed(read))
      return failure();
    *type = *read;
  }
  FailureOr<BatchNormBackwardOp> imported = buildGradient(b, op, gradient);
  if (failed(imported))
    return failure();
  for (auto [i, value] : llvm::enumerate((*imported)->getResults()))
    if (failed(replaceResult(i, value)))
      return failure();
  return success();
}

/// batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g,
/// weight_g, bias_g): sum_dy, sum_dy_xmu, grad_weight, grad_bias.
LogicalResult TorchGradientImporter::importReduce() {
  if (failed(verifyArity(op, 8, 4)))
    return failure();
  ForeignGradient gradient;
  if (failed(readTensor(0, "grad_out", gradient.gradOutput)) ||
      failed(readTensor(1, "input", gradient.input)) ||
      failed(readTensor(2, "mean", gradient.mean)) ||
      failed(readTensor(3, "invstd", gradient.invStd)))
    return failure();
  std::pair<unsigned, StringRef> masks[] = {
      {5, "input_g"}, {5, "input_g"}, {6, "weight_g"}, {7, "bias_g"}};
  for (auto [result, mask] : llvm::enumerate(masks)) {
    FailureOr<bool> isComputed = readBool(mask.first, mask.second);
    if (failed(isComputed) ||
        (!*isComputed &&
         failed(verifyUnused(result, mask.second + " is false"))))
      return failure();
  }
  FailureOr<SumRows> sums = buildSums(b, op, gradient);
  if (failed(sums))
    return failure();
  Location loc = op->getLoc();
  Type sumType = getElementTypeOrSelf(sums->dyXmu);
  Value gradWeight = arith::MulFOp::create(
      b, loc, sums->dyXmu, convertElements(b, loc, gradient.invStd, sumType));
  Value values[] = {sums->dy, sums->dyXmu, gradWeight, sums->dy};
  for (auto [result, value] : llvm::enumerate(values))
    if (failed(replaceResult(result, value)))
      return failure();
  return success();
}

Value TorchGradientImporter::addCounts(Value counts) {
  Location loc = op->getLoc();
  auto type = RankedTensorType::get({}, b.getI64Type());
  Value zero = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getI64IntegerAttr(0)));
  AffineMap ofCount = b.getDimIdentityMap();
  AffineMap ofSum = AffineMap::get(1, 0, b.getContext());
  return linalg::GenericOp::create(
             b, loc, type, counts, zero, ArrayRef<AffineMap>{ofCount, ofSum},
             utils::IteratorType::reduction,
             [](OpBuilder &nested, Location nestedLoc, ValueRange args) {
               Value count = args[0];
               if (count.getType() != args[1].getType())
                 count = arith::ExtSIOp::create(nested, nestedLoc,
                                                args[1].getType(), count);
               Value sum =
                   arith::AddIOp::create(nested, nestedLoc, args[1], count);
               linalg::YieldOp::create(nested, nestedLoc, sum);
             })
      .getResult(0);
}

/// batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy,
/// sum_dy_xmu, count): grad_input. `count` has an element for each process: its
/// number of elements per channel.
LogicalResult TorchGradientImporter::importElemt() {
  if (failed(verifyArity(op, 8, 1)))
    return failure();
  ForeignGradient gradient;
  Value sumDy, sumDyXmu;
  FailureOr<Value> weight = readTensor(4, "weight");
  if (failed(weight) ||
      failed(readTensor(0, "grad_out", gradient.gradOutput)) ||
      failed(readTensor(1, "input", gradient.input)) ||
      failed(readTensor(2, "mean", gradient.mean)) ||
      failed(readTensor(3, "invstd", gradient.invStd)) ||
      failed(readTensor(5, "sum_dy", sumDy)) ||
      failed(readTensor(6, "sum_dy_xmu", sumDyXmu)))
    return failure();
  gradient.scale = *weight;
  Value count = skipDerefine(op->getOperand(7));
  RankedTensorType type = getBuiltinTensor(count.getType());
  if (type)
    count = castTorchTensor(b, op->getLoc(), count, type, casts);
  else
    type = dyn_cast<RankedTensorType>(count.getType());
  if (!type || type.getRank() != 1 ||
      !(type.getElementType().isInteger(32) ||
        type.getElementType().isInteger(64)))
    return op->emitOpError()
           << "expected count to be a tensor of rank 1 of 32-bit or 64-bit "
              "integers, got "
           << op->getOperand(7).getType();
  FailureOr<RankedTensorType> resultType = readResultType(0);
  if (failed(resultType))
    return failure();
  gradient.gradInput = *resultType;
  FailureOr<Value> gradInput =
      buildElements(b, op, gradient, {sumDy, sumDyXmu}, addCounts(count));
  if (failed(gradInput))
    return failure();
  return replaceResult(0, *gradInput);
}

std::optional<LogicalResult>
mlir::bngrad::importTorchOp(OpBuilder &b, Operation *op, TorchCasts casts) {
  std::optional<StringRef> name = getTorchName(op);
  if (!name)
    return std::nullopt;
  TorchGradientImporter importer(b, op, casts);
  LogicalResult imported = failure();
  const auto *signature = llvm::find_if(
      kGradients, [&](const GradientSignature &s) { return s.name == *name; });
  if (signature != std::end(kGradients))
    imported = importer.importGradient(*signature);
  else if (*name == kReduce)
    imported = importer.importReduce();
  else if (*name == kElemt)
    imported = importer.importElemt();
  else if (auto forward = importTorchForward(b, op, *name, casts))
    imported = *forward;
  else if (auto statistics = importTorchStatistics(b, op, *name, casts))
    imported = *statistics;
  else
    return std::nullopt;
  if (succeeded(imported))
    op->erase();
  return imported;
}
