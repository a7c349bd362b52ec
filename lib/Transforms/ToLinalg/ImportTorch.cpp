//===- ImportTorch.cpp - gradients of torch -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Import.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

#include <array>

using namespace mlir;
using namespace mlir::bngrad;

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

namespace {
/// The constant operands of a native_batch_norm_backward.
struct NativeOptions {
  bool train;
  double epsilon;
  std::array<bool, 3> outputMask; // by result: it is computed
};
} // namespace

static FailureOr<NativeOptions> readOptions(Operation *op) {
  NativeOptions options;
  std::optional<bool> train = getConstantBool(op->getOperand(7));
  if (!train)
    return op->emitOpError()
           << "expected train to be a torch.constant.bool, got another value";
  options.train = *train;
  auto epsilon = dyn_cast_or_null<FloatAttr>(
      getConstant(op->getOperand(8), "torch.constant.float"));
  if (!epsilon)
    return op->emitOpError()
           << "expected eps to be a torch.constant.float, got another value";
  options.epsilon = epsilon.getValueAsDouble();
  Value list = op->getOperand(9);
  if (!isDefinedBy(list, "torch.prim.ListConstruct") ||
      list.getDefiningOp()->getNumOperands() != 3)
    return op->emitOpError() << "expected output_mask to be a "
                                "torch.prim.ListConstruct of three values";
  for (auto [i, value] : llvm::enumerate(list.getDefiningOp()->getOperands())) {
    std::optional<bool> flag = getConstantBool(value);
    if (!flag)
      return op->emitOpError()
             << "expected output_mask[" << i
             << "] to be a torch.constant.bool, got another value";
    options.outputMask[i] = *flag;
    if (!*flag && !op->getResult(i).use_empty())
      return op->emitOpError()
             << "expected result " << i << " to be unused, as output_mask[" << i
             << "] is false, got a use";
  }
  return options;
}

/// Reads the tensors among the operands: in training the saved mean and inverse
/// standard deviation of the batch, else the running mean and variance.
static LogicalResult readTensors(OpBuilder &b, Operation *op,
                                 const NativeOptions &options,
                                 ForeignGradient &gradient) {
  auto read = [&](unsigned i, StringRef name, Value &value) -> LogicalResult {
    FailureOr<Value> tensor = getTensor(b, op, name, op->getOperand(i));
    if (failed(tensor))
      return failure();
    bool isOptional = name == "weight";
    if (!*tensor && !isOptional)
      return op->emitOpError()
             << "expected " << name << " to be a tensor with "
             << (options.train ? "train = true" : "train = false")
             << ", got None";
    value = *tensor;
    return success();
  };
  if (failed(read(0, "grad_out", gradient.gradOutput)) ||
      failed(read(1, "input", gradient.input)) ||
      failed(read(2, "weight", gradient.scale)))
    return failure();
  if (options.train) // save_invstd holds eps already
    return success(succeeded(read(5, "save_mean", gradient.mean)) &&
                   succeeded(read(6, "save_invstd", gradient.invStd)));
  gradient.epsilon = options.epsilon;
  gradient.statistics = Statistics::Global;
  return success(succeeded(read(3, "running_mean", gradient.mean)) &&
                 succeeded(read(4, "running_var", gradient.variance)));
}

/// Reads the builtin types of the results that are computed.
static LogicalResult readResultTypes(Operation *op,
                                     const NativeOptions &options,
                                     ForeignGradient &gradient) {
  Type *types[] = {&gradient.gradInput, &gradient.gradScale,
                   &gradient.gradOffset};
  for (auto [i, type] : llvm::enumerate(op->getResultTypes())) {
    if (!options.outputMask[i])
      continue;
    *types[i] = type;
    if (RankedTensorType tensor = parseVTensor(type))
      *types[i] = tensor;
    else if (failed(verifyTensor(op, "result " + std::to_string(i), type)))
      return failure();
  }
  return success();
}

/// Replaces the results of `op` by those of `gradient`, with casts to
/// !torch.vtensor.
static void replaceResults(OpBuilder &b, Operation *op,
                           BatchNormBackwardOp gradient) {
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), gradient->getResults())) {
    if (result.use_empty())
      continue;
    Value replacement = value;
    if (value.getType() != result.getType())
      replacement = UnrealizedConversionCastOp::create(b, op->getLoc(),
                                                       result.getType(), value)
                        .getResult(0);
    result.replaceAllUsesWith(replacement);
  }
}

/// Erases `op`, and the lists and constants that only it uses.
static void eraseWithConstants(Operation *op) {
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
  // Lists before their elements.
  for (ArrayRef<Operation *> defs :
       {lists.getArrayRef(), constants.getArrayRef()})
    for (Operation *def : defs)
      if (def->use_empty())
        def->erase();
}

/// torch.aten.native_batch_norm_backward(grad_out, input, weight, running_mean,
/// running_var, save_mean, save_invstd, train, eps, output_mask): in training
/// the saved mean and inverse standard deviation of the batch, else the running
/// mean and variance, which are constants (PyTorch, native_functions.yaml and
/// Normalization.cpp).
LogicalResult mlir::bngrad::importNativeBatchNormBackward(OpBuilder &b,
                                                          Operation *op) {
  if (failed(verifyArity(op, 10, 3)))
    return failure();
  FailureOr<NativeOptions> options = readOptions(op);
  if (failed(options))
    return failure();
  ForeignGradient gradient;
  if (failed(readTensors(b, op, *options, gradient)) ||
      failed(readResultTypes(op, *options, gradient)))
    return failure();
  FailureOr<BatchNormBackwardOp> imported = buildGradient(b, op, gradient);
  if (failed(imported))
    return failure();
  replaceResults(b, op, *imported);
  eraseWithConstants(op);
  return success();
}
