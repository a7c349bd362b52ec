//===- Import.cpp - bngrad-import: gradients of other dialects ------------===//
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

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADIMPORTPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The attribute `name` of an unregistered op, written `<{...}>` or `{...}`.
static Attribute getAttribute(Operation *op, StringRef name) {
  if (auto properties =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    if (Attribute attribute = properties.get(name))
      return attribute;
  return op->getAttr(name);
}

static LogicalResult verifyArity(Operation *op, unsigned numOperands,
                                 unsigned numResults) {
  if (op->getNumOperands() != numOperands)
    return op->emitOpError() << "expected " << numOperands << " operands, got "
                             << op->getNumOperands();
  if (op->getNumResults() != numResults)
    return op->emitOpError() << "expected " << numResults << " results, got "
                             << op->getNumResults();
  return success();
}

static bool isSupportedFloat(Type type) {
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
}

/// Checks that `type` is a tensor that bngrad computes with.
static LogicalResult verifyTensor(Operation *op, StringRef name, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return op->emitOpError()
           << "expected " << name << " to be a ranked tensor, got " << type;
  if (!isSupportedFloat(tensor.getElementType()))
    return op->emitOpError()
           << "expected element type of " << name
           << " to be f16, bf16, f32 or f64, got " << tensor.getElementType();
  return success();
}

namespace {
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
} // namespace

/// `value` in float type `type`, if that is exact.
static Value widen(OpBuilder &b, Location loc, Value value, Type type) {
  if (!value || getElementTypeOrSelf(value) == type)
    return value;
  auto tensor = cast<RankedTensorType>(value.getType());
  return arith::ExtFOp::create(b, loc, tensor.clone(type), value);
}

/// The per-channel operands in one element type: frameworks keep statistics
/// wider than the scale.
static LogicalResult unifyParameters(OpBuilder &b, Operation *op,
                                     ForeignGradient &gradient) {
  Type widest;
  Value *parameters[] = {&gradient.scale, &gradient.mean, &gradient.variance,
                         &gradient.invStd};
  for (Value *parameter : parameters) {
    if (!*parameter)
      continue;
    Type type = getElementTypeOrSelf(*parameter);
    if (!widest ||
        type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = type;
  }
  for (Value *parameter : parameters) {
    if (!*parameter)
      continue;
    Type type = getElementTypeOrSelf(*parameter);
    if (type != widest &&
        type.getIntOrFloatBitWidth() == widest.getIntOrFloatBitWidth())
      return op->emitOpError()
             << "expected per-channel operands of one element type, got "
             << widest << " and " << type;
    *parameter = widen(b, op->getLoc(), *parameter, widest);
  }
  return success();
}

/// Builds the bngrad op of `gradient` before `op`. The results have the given
/// types; those that are not computed get the type of mean.
static FailureOr<BatchNormBackwardOp> build(OpBuilder &b, Operation *op,
                                            ForeignGradient gradient) {
  auto rank = cast<RankedTensorType>(gradient.input.getType()).getRank();
  if (gradient.featureDim < 0 || gradient.featureDim >= rank)
    return op->emitOpError() << "expected the feature dim to be in [0, " << rank
                             << "), got " << gradient.featureDim;
  if (failed(unifyParameters(b, op, gradient)))
    return failure();
  Type absent = gradient.mean.getType();
  Value variance = gradient.variance, invStd = gradient.invStd;
  auto result = BatchNormBackwardOp::create(
      b, op->getLoc(),
      gradient.gradInput ? gradient.gradInput : gradient.input.getType(),
      gradient.gradScale ? gradient.gradScale : absent,
      gradient.gradOffset ? gradient.gradOffset : absent, gradient.gradOutput,
      gradient.input, gradient.scale, gradient.mean, variance, invStd,
      /*mask=*/Value(), b.getDenseI64ArrayAttr({gradient.featureDim}),
      b.getF64FloatAttr(gradient.epsilon),
      StatisticsAttr::get(b.getContext(), gradient.statistics));
  // Shapes that disagree are the verifier's to report, at the op's location.
  if (failed(verify(result)))
    return failure();
  return result;
}

//===----------------------------------------------------------------------===//
// StableHLO and MHLO
//===----------------------------------------------------------------------===//

/// stablehlo.batch_norm_grad(operand, scale, mean, variance, grad_output) with
/// epsilon and feature_index: training, biased variance (StableHLO
/// specification, batch_norm_grad). MHLO's op is the same.
static LogicalResult importBatchNormGrad(OpBuilder &b, Operation *op) {
  if (failed(verifyArity(op, 5, 3)))
    return failure();
  static constexpr StringLiteral kNames[] = {"operand", "scale", "mean",
                                             "variance", "grad_output"};
  for (auto [name, type] : llvm::zip_equal(kNames, op->getOperandTypes()))
    if (failed(verifyTensor(op, name, type)))
      return failure();
  static constexpr StringLiteral kResultNames[] = {"grad_operand", "grad_scale",
                                                   "grad_offset"};
  for (auto [name, type] : llvm::zip_equal(kResultNames, op->getResultTypes()))
    if (failed(verifyTensor(op, name, type)))
      return failure();
  auto epsilon = dyn_cast_or_null<FloatAttr>(getAttribute(op, "epsilon"));
  if (!epsilon)
    return op->emitOpError() << "expected a float attribute 'epsilon'";
  auto featureIndex =
      dyn_cast_or_null<IntegerAttr>(getAttribute(op, "feature_index"));
  if (!featureIndex)
    return op->emitOpError() << "expected an integer attribute 'feature_index'";
  const APInt &index = featureIndex.getValue();
  if (featureIndex.getType().isUnsignedInteger() ? !index.isIntN(63)
                                                 : !index.isSignedIntN(64))
    return op->emitOpError()
           << "expected feature_index to fit in an i64, got " << featureIndex;

  ForeignGradient gradient;
  gradient.input = op->getOperand(0);
  gradient.scale = op->getOperand(1);
  gradient.mean = op->getOperand(2);
  gradient.variance = op->getOperand(3);
  gradient.gradOutput = op->getOperand(4);
  gradient.featureDim = index.getSExtValue();
  gradient.epsilon = epsilon.getValueAsDouble();
  gradient.gradInput = op->getResult(0).getType();
  gradient.gradScale = op->getResult(1).getType();
  gradient.gradOffset = op->getResult(2).getType();
  FailureOr<BatchNormBackwardOp> result = build(b, op, gradient);
  if (failed(result))
    return failure();
  op->replaceAllUsesWith((*result)->getResults());
  op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// torch
//===----------------------------------------------------------------------===//

/// The builtin tensor type of `!torch.vtensor<[d0,?,...],dtype>`, which is
/// unregistered here; null for anything else.
static RankedTensorType parseVTensor(Type type) {
  auto opaque = dyn_cast<OpaqueType>(type);
  if (!opaque || opaque.getDialectNamespace() != "torch")
    return {};
  StringRef text = opaque.getTypeData();
  if (!text.consume_front("vtensor<[") || !text.consume_back(">"))
    return {};
  auto [dims, elementName] = text.split("],");
  SmallVector<int64_t> shape;
  SmallVector<StringRef> sizes;
  if (!dims.empty())
    dims.split(sizes, ',');
  for (StringRef size : sizes) {
    int64_t value = ShapedType::kDynamic;
    if (size != "?" && (size.getAsInteger(10, value) || value < 0))
      return {};
    shape.push_back(value);
  }
  MLIRContext *context = type.getContext();
  Type elementType = llvm::StringSwitch<Type>(elementName)
                         .Case("f16", Float16Type::get(context))
                         .Case("bf16", BFloat16Type::get(context))
                         .Case("f32", Float32Type::get(context))
                         .Case("f64", Float64Type::get(context))
                         .Default(Type());
  return elementType ? RankedTensorType::get(shape, elementType)
                     : RankedTensorType();
}

static bool isDefinedBy(Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  return op && op->getName().getStringRef() == name;
}

/// The attribute `value` of the constant op `name` that defines `value`.
static Attribute getConstant(Value value, StringRef name) {
  return isDefinedBy(value, name) ? getAttribute(value.getDefiningOp(), "value")
                                  : Attribute();
}

static std::optional<bool> getConstantBool(Value value) {
  Attribute attribute = getConstant(value, "torch.constant.bool");
  if (auto boolean = dyn_cast_or_null<BoolAttr>(attribute))
    return boolean.getValue();
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attribute))
    return !integer.getValue().isZero();
  return std::nullopt;
}

/// The operand as a builtin tensor, by a cast from a !torch.vtensor; null for
/// None.
static FailureOr<Value> getTensor(OpBuilder &b, Operation *op, StringRef name,
                                  Value value) {
  if (isDefinedBy(value, "torch.constant.none"))
    return Value();
  Type type = value.getType();
  if (RankedTensorType tensor = parseVTensor(type))
    return UnrealizedConversionCastOp::create(b, op->getLoc(), tensor, value)
        .getResult(0);
  if (isa<OpaqueType>(type))
    return op->emitOpError()
           << "expected " << name
           << " to be a tensor of f16, bf16, f32 or f64 and known rank, or "
              "None, got "
           << type;
  if (failed(verifyTensor(op, name, type)))
    return failure();
  return value;
}

/// torch.aten.native_batch_norm_backward(grad_out, input, weight, running_mean,
/// running_var, save_mean, save_invstd, train, eps, output_mask): in training
/// the saved mean and inverse standard deviation of the batch, else the running
/// mean and variance, which are constants (PyTorch, native_functions.yaml and
/// Normalization.cpp).
static LogicalResult importNativeBatchNormBackward(OpBuilder &b,
                                                   Operation *op) {
  if (failed(verifyArity(op, 10, 3)))
    return failure();
  std::optional<bool> train = getConstantBool(op->getOperand(7));
  if (!train)
    return op->emitOpError()
           << "expected train to be a torch.constant.bool, got another value";
  auto epsilon = dyn_cast_or_null<FloatAttr>(
      getConstant(op->getOperand(8), "torch.constant.float"));
  if (!epsilon)
    return op->emitOpError()
           << "expected eps to be a torch.constant.float, got another value";
  Value list = op->getOperand(9);
  if (!isDefinedBy(list, "torch.prim.ListConstruct") ||
      list.getDefiningOp()->getNumOperands() != 3)
    return op->emitOpError() << "expected output_mask to be a "
                                "torch.prim.ListConstruct of three values";
  bool isComputed[3];
  for (auto [i, value] : llvm::enumerate(list.getDefiningOp()->getOperands())) {
    std::optional<bool> flag = getConstantBool(value);
    if (!flag)
      return op->emitOpError()
             << "expected output_mask[" << i
             << "] to be a torch.constant.bool, got another value";
    isComputed[i] = *flag;
    if (!*flag && !op->getResult(i).use_empty())
      return op->emitOpError()
             << "expected result " << i << " to be unused, as output_mask[" << i
             << "] is false, got a use";
  }

  static constexpr StringLiteral kNames[] = {
      "grad_out",    "input",     "weight",     "running_mean",
      "running_var", "save_mean", "save_invstd"};
  Value tensors[7];
  for (auto [i, name] : llvm::enumerate(kNames)) {
    // Statistics of the other mode are not looked at.
    bool isUsed = i < 3 || (*train ? i >= 5 : i < 5);
    if (!isUsed)
      continue;
    FailureOr<Value> tensor = getTensor(b, op, name, op->getOperand(i));
    if (failed(tensor))
      return failure();
    bool isOptional = name == "weight";
    if (!*tensor && !isOptional)
      return op->emitOpError()
             << "expected " << name << " to be a tensor with "
             << (*train ? "train = true" : "train = false") << ", got None";
    tensors[i] = *tensor;
  }

  ForeignGradient gradient;
  gradient.gradOutput = tensors[0];
  gradient.input = tensors[1];
  gradient.scale = tensors[2];
  if (*train) {
    // save_invstd holds eps already.
    gradient.mean = tensors[5];
    gradient.invStd = tensors[6];
  } else {
    gradient.mean = tensors[3];
    gradient.variance = tensors[4];
    gradient.epsilon = epsilon.getValueAsDouble();
    gradient.statistics = Statistics::Global;
  }
  Type *types[] = {&gradient.gradInput, &gradient.gradScale,
                   &gradient.gradOffset};
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    if (!isComputed[i])
      continue;
    Type type = result.getType();
    if (RankedTensorType tensor = parseVTensor(type))
      type = tensor;
    else if (failed(verifyTensor(op, "result " + std::to_string(i), type)))
      return failure();
    *types[i] = type;
  }
  FailureOr<BatchNormBackwardOp> imported = build(b, op, gradient);
  if (failed(imported))
    return failure();
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), (*imported)->getResults())) {
    if (result.use_empty())
      continue;
    Value replacement = value;
    if (value.getType() != result.getType())
      replacement = UnrealizedConversionCastOp::create(b, op->getLoc(),
                                                       result.getType(), value)
                        .getResult(0);
    result.replaceAllUsesWith(replacement);
  }
  // The constants of a torch op have no further use: lists first, then their
  // elements.
  llvm::SmallSetVector<Operation *, 8> lists, constants;
  auto collect = [&](Value value) {
    Operation *def = value.getDefiningOp();
    if (!def)
      return;
    if (def->getName().getStringRef() == "torch.prim.ListConstruct")
      lists.insert(def);
    else if (def->getName().getStringRef().starts_with("torch.constant."))
      constants.insert(def);
  };
  llvm::for_each(op->getOperands(), collect);
  for (Operation *list : lists)
    llvm::for_each(list->getOperands(), collect);
  op->erase();
  for (ArrayRef<Operation *> defs :
       {lists.getArrayRef(), constants.getArrayRef()})
    for (Operation *def : defs)
      if (def->use_empty())
        def->erase();
  return success();
}

namespace {
struct BNGradImportPass : bngrad::impl::BNGradImportPassBase<BNGradImportPass> {
  void runOnOperation() override {
    using ImportFn = LogicalResult (*)(OpBuilder &, Operation *);
    SmallVector<std::pair<Operation *, ImportFn>> found;
    getOperation().walk([&](Operation *op) {
      ImportFn import =
          llvm::StringSwitch<ImportFn>(op->getName().getStringRef())
              .Cases({"stablehlo.batch_norm_grad", "mhlo.batch_norm_grad"},
                     importBatchNormGrad)
              .Case("torch.aten.native_batch_norm_backward",
                    importNativeBatchNormBackward)
              .Default(nullptr);
      if (import)
        found.push_back({op, import});
    });
    for (auto [op, import] : found) {
      OpBuilder b(op);
      if (failed(import(b, op)))
        signalPassFailure();
    }
  }
};
} // namespace
