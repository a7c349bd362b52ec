//===- Import.cpp - bngrad-import: gradients of other dialects ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Import.h"

#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADIMPORTPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

Attribute mlir::bngrad::getAttribute(Operation *op, StringRef name) {
  if (auto properties =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    if (Attribute attribute = properties.get(name))
      return attribute;
  return op->getAttr(name);
}

LogicalResult mlir::bngrad::verifyArity(Operation *op, unsigned numOperands,
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

LogicalResult mlir::bngrad::verifyTensor(Operation *op, StringRef name,
                                         Type type) {
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

FailureOr<BatchNormBackwardOp>
mlir::bngrad::buildGradient(OpBuilder &b, Operation *op,
                            ForeignGradient gradient) {
  auto rank = cast<RankedTensorType>(gradient.input.getType()).getRank();
  if (gradient.featureDim < 0 || gradient.featureDim >= rank)
    return op->emitOpError() << "expected the feature dim to be in [0, " << rank
                             << "), got " << gradient.featureDim;
  if (failed(unifyParameters(b, op, gradient)))
    return failure();
  Type absent = gradient.mean.getType();
  auto result = BatchNormBackwardOp::create(
      b, op->getLoc(),
      gradient.gradInput ? gradient.gradInput : gradient.input.getType(),
      gradient.gradScale ? gradient.gradScale : absent,
      gradient.gradOffset ? gradient.gradOffset : absent, gradient.gradOutput,
      gradient.input, gradient.scale, gradient.mean, gradient.variance,
      gradient.invStd,
      /*mask=*/Value(), b.getDenseI64ArrayAttr({gradient.featureDim}),
      b.getF64FloatAttr(gradient.epsilon),
      StatisticsAttr::get(b.getContext(), gradient.statistics));
  // Shapes that disagree are the verifier's to report, at the op's location.
  if (failed(verify(result)))
    return failure();
  return result;
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
