//===- TorchToBuiltin.cpp - bngrad-torch-to-builtin -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TorchTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-torch-to-builtin"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADTORCHTOBUILTINPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The unused arguments of `function` that have a torch type without a builtin
/// one, such as the reserve space of cuDNN. Nothing calls the function.
static BitVector findForeignArguments(func::FuncOp function, Operation *root) {
  BitVector found(function.getNumArguments());
  if (function.isExternal() ||
      !SymbolTable::symbolKnownUseEmpty(function, root))
    return found;
  for (BlockArgument argument : function.getArguments())
    if (isTorchType(argument.getType()) &&
        !getBuiltinTensor(argument.getType()) && argument.use_empty())
      found.set(argument.getArgNumber());
  return found;
}

/// The results of `function` that are always None, such as the gradients of
/// inputs that need none. Nothing calls the function.
static BitVector findResultsOfNone(func::FuncOp function, Operation *root) {
  BitVector found(function.getNumResults());
  if (function.isExternal() || !function.getBody().hasOneBlock() ||
      !SymbolTable::symbolKnownUseEmpty(function, root))
    return found;
  Operation *end = function.front().getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    Operation *value = operand.get().getDefiningOp();
    if (value && value->getName().getStringRef() == "torch.constant.none")
      found.set(operand.getOperandNumber());
  }
  return found;
}

/// Whether `op` may take builtin tensors instead of vtensors. A vtensor without
/// a builtin tensor type, such as one of unknown rank, remains.
static bool isConvertible(Operation *op) {
  return isa<func::FuncOp, func::CallOp, func::ReturnOp,
             UnrealizedConversionCastOp>(op) ||
         (llvm::none_of(op->getOperandTypes(), isVTensor) &&
          llvm::none_of(op->getResultTypes(), isVTensor));
}

static SmallVector<Type> convert(TypeRange types) {
  return llvm::map_to_vector(types, [](Type type) -> Type {
    RankedTensorType tensor = getBuiltinTensor(type);
    return tensor ? tensor : type;
  });
}

static Value castTo(OpBuilder &b, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return castTorchTensor(b, value.getLoc(), value, type, TorchCasts::Builtin);
}

/// Converts the operands of a call or a return.
static void convertOperands(Operation *op) {
  OpBuilder b(op);
  SmallVector<Type> types = convert(op->getOperandTypes());
  for (auto [operand, type] : llvm::zip_equal(op->getOpOperands(), types))
    operand.set(castTo(b, operand.get(), type));
}

/// Gives `values` builtin types; casts at `b` keep vtensors for their users.
static void convertValues(OpBuilder &b, ValueRange values) {
  for (Value value : values) {
    Type given = value.getType();
    RankedTensorType type = getBuiltinTensor(given);
    if (!type)
      continue;
    value.setType(type);
    Value cast = castTo(b, value, given);
    value.replaceAllUsesExcept(cast, cast.getDefiningOp());
  }
}

/// Folds casts to a vtensor and back, and erases unused casts.
static void foldCasts(ModuleOp module) {
  SmallVector<UnrealizedConversionCastOp> casts;
  module.walk([&](UnrealizedConversionCastOp cast) {
    if (llvm::any_of(cast.getOperandTypes(), isVTensor) ||
        llvm::any_of(cast.getResultTypes(), isVTensor))
      casts.push_back(cast);
  });
  reconcileUnrealizedCasts(casts);
}

namespace {
struct BNGradTorchToBuiltinPass
    : bngrad::impl::BNGradTorchToBuiltinPassBase<BNGradTorchToBuiltinPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    WalkResult walk = module.walk([](Operation *op) {
      if (isConvertible(op))
        return WalkResult::advance();
      LDBG() << "left to torch-mlir, which has to convert " << op->getName();
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return;
    module.walk([&](Operation *op) {
      if (auto function = dyn_cast<func::FuncOp>(op)) {
        omitForeignArguments(function);
        omitResultsOfNone(function);
        convertFunction(function);
      }
      if (isa<func::CallOp, func::ReturnOp>(op))
        convertOperands(op);
      if (isa<func::CallOp>(op)) {
        OpBuilder b(op->getContext());
        b.setInsertionPointAfter(op);
        convertValues(b, op->getResults());
      }
    });
    foldCasts(module);
  }

private:
  void omitForeignArguments(func::FuncOp function) {
    BitVector omitted = findForeignArguments(function, getOperation());
    for (unsigned i : omitted.set_bits())
      function.emitWarning()
          << "omitted argument " << i << ", which has no use and whose type "
          << function.getArgument(i).getType() << " has no builtin one";
    (void)function.eraseArguments(omitted);
  }

  void omitResultsOfNone(func::FuncOp function) {
    BitVector omitted = findResultsOfNone(function, getOperation());
    if (omitted.none())
      return;
    Operation *end = function.front().getTerminator();
    SetVector<Operation *> nones;
    for (unsigned i : omitted.set_bits()) {
      function.emitWarning() << "omitted result " << i << ", which is None";
      nones.insert(end->getOperand(i).getDefiningOp());
    }
    end->eraseOperands(omitted);
    (void)function.eraseResults(omitted);
    for (Operation *none : nones)
      if (none->use_empty())
        none->erase();
  }

  static void convertFunction(func::FuncOp function) {
    function.setFunctionType(FunctionType::get(
        function.getContext(), convert(function.getArgumentTypes()),
        convert(function.getResultTypes())));
    if (function.isExternal())
      return;
    OpBuilder b = OpBuilder::atBlockBegin(&function.front());
    convertValues(b, function.getArguments());
  }
};
} // namespace
