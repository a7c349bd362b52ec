//===- Import.cpp - bngrad-import: ops of other dialects ------------------===//
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
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Threading.h"

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

LogicalResult mlir::bngrad::verifyShape(Operation *op, const Twine &name,
                                        Type type, ArrayRef<int64_t> shape) {
  auto tensor = cast<RankedTensorType>(type);
  if (succeeded(verifyCompatibleShape(tensor.getShape(), shape)))
    return success();
  return op->emitOpError() << "expected the shape of " << name
                           << " to be compatible with that of "
                           << RankedTensorType::get(shape,
                                                    tensor.getElementType())
                           << ", got " << tensor;
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

Value mlir::bngrad::convertElements(OpBuilder &b, Location loc, Value tensor,
                                    Type type) {
  auto given = cast<RankedTensorType>(tensor.getType());
  Type from = given.getElementType();
  if (from == type)
    return tensor;
  unsigned fromWidth = from.getIntOrFloatBitWidth();
  unsigned toWidth = type.getIntOrFloatBitWidth();
  if (fromWidth < toWidth)
    return arith::ExtFOp::create(b, loc, given.clone(type), tensor);
  // f16 to bf16, or bf16 to f16.
  if (fromWidth == toWidth)
    tensor = arith::ExtFOp::create(b, loc, given.clone(b.getF32Type()), tensor);
  return arith::TruncFOp::create(b, loc, given.clone(type), tensor);
}

/// Converts the per-channel operands to one element type: frameworks keep
/// statistics in a wider type than the scale.
static LogicalResult unifyParameters(OpBuilder &b, Operation *op,
                                     ArrayRef<Value *> parameters) {
  Type widest;
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
    *parameter = convertElements(b, op->getLoc(), *parameter, widest);
  }
  return success();
}

static LogicalResult unifyParameters(OpBuilder &b, Operation *op,
                                     ForeignGradient &gradient) {
  return unifyParameters(
      b, op,
      {&gradient.scale, &gradient.mean, &gradient.variance, &gradient.invStd});
}

static LogicalResult verifyFeatureDim(Operation *op, Value input,
                                      int64_t featureDim) {
  int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
  if (featureDim >= 0 && featureDim < rank)
    return success();
  return op->emitOpError() << "expected the feature dim to be in [0, " << rank
                           << "), got " << featureDim;
}

/// Verifies `result`, which replaces `op`, and reports its errors at `op`.
static LogicalResult verifyImported(Operation *op, Operation *result) {
  std::string text;
  {
    // Other threads may import other functions of the context.
    uint64_t thread = llvm::get_threadid();
    ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &error) {
      if (llvm::get_threadid() != thread)
        return failure();
      if (text.empty())
        text = error.str();
      return success();
    });
    if (succeeded(verify(result)))
      return success();
  }
  StringRef reason = text;
  reason.consume_front(
      ("'" + result->getName().getStringRef() + "' op ").str());
  InFlightDiagnostic error = op->emitOpError() << reason;
  error.attachNote() << "imported as " << result->getName().getStringRef()
                     << ", with its names of operands";
  return error;
}

FailureOr<BatchNormBackwardOp>
mlir::bngrad::buildGradient(OpBuilder &b, Operation *op,
                            ForeignGradient gradient) {
  if (failed(verifyFeatureDim(op, gradient.input, gradient.featureDim)) ||
      failed(unifyParameters(b, op, gradient)))
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
  if (failed(verifyImported(op, result)))
    return failure();
  return result;
}

FailureOr<BatchNormTrainingOp>
mlir::bngrad::buildTraining(OpBuilder &b, Operation *op, ForeignForward forward,
                            Type mean, Type variance) {
  if (failed(verifyFeatureDim(op, forward.input, forward.featureDim)) ||
      failed(unifyParameters(b, op, {&forward.scale, &forward.offset})))
    return failure();
  SmallVector<Value> operands = {forward.input};
  for (Value parameter : {forward.scale, forward.offset})
    if (parameter)
      operands.push_back(parameter);
  auto inputType = cast<RankedTensorType>(forward.input.getType());
  Type statistic = RankedTensorType::get(
      inputType.getDimSize(forward.featureDim), getAccumulatorType(operands));
  auto result = BatchNormTrainingOp::create(
      b, op->getLoc(), forward.output, mean ? mean : statistic,
      variance ? variance : statistic, statistic, forward.input, forward.scale,
      forward.offset, b.getDenseI64ArrayAttr({forward.featureDim}),
      b.getF64FloatAttr(forward.epsilon));
  if (failed(verifyImported(op, result)))
    return failure();
  return result;
}

FailureOr<Value> mlir::bngrad::buildInference(OpBuilder &b, Operation *op,
                                              ForeignForward forward) {
  if (failed(verifyFeatureDim(op, forward.input, forward.featureDim)) ||
      failed(unifyParameters(b, op,
                             {&forward.scale, &forward.offset, &forward.mean,
                              &forward.variance, &forward.invStd})))
    return failure();
  auto result = BatchNormInferenceOp::create(
      b, op->getLoc(), forward.output, forward.input, forward.scale,
      forward.offset, forward.mean, forward.variance, forward.invStd,
      b.getDenseI64ArrayAttr({forward.featureDim}),
      b.getF64FloatAttr(forward.epsilon));
  if (failed(verifyImported(op, result)))
    return failure();
  return result.getOutput();
}

/// M, an i64.
static Value buildCount(OpBuilder &b, Location loc,
                        const ForeignForward &forward) {
  Value count = arith::ConstantIndexOp::create(b, loc, 1);
  auto type = cast<RankedTensorType>(forward.input.getType());
  for (int64_t dim : llvm::seq(type.getRank()))
    if (dim != forward.featureDim)
      count = b.createOrFold<arith::MulIOp>(
          loc, count, b.createOrFold<tensor::DimOp>(loc, forward.input, dim));
  return b.createOrFold<arith::IndexCastOp>(loc, b.getI64Type(), count);
}

/// M / (M - 1).
static Value buildBesselFactor(OpBuilder &b, Location loc, Value count,
                               FloatType type) {
  Value all = arith::SIToFPOp::create(b, loc, type, count);
  Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 1.0));
  return arith::DivFOp::create(b, loc, all,
                               arith::SubFOp::create(b, loc, all, one));
}

FailureOr<Value> mlir::bngrad::buildRunning(OpBuilder &b, Operation *op,
                                            const ForeignForward &forward,
                                            StringRef name, Value running,
                                            Value batch, RunningUpdate update) {
  if (failed(verifyShape(op, name, running.getType(),
                         cast<RankedTensorType>(batch.getType()).getShape())))
    return failure();
  Location loc = op->getLoc();
  Value count = buildCount(b, loc, forward);
  std::optional<int64_t> known = getConstantIntValue(count);
  if (known == 0)
    return running;
  FloatType type = getAccumulatorType({running, batch});
  running = convertElements(b, loc, running, type);
  batch = convertElements(b, loc, batch, type);
  Value factor, isEmpty;
  if (update.isUnbiased)
    factor = buildBesselFactor(b, loc, count, type);
  if (!known)
    isEmpty =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count,
                              arith::ConstantIntOp::create(b, loc, 0, 64));
  auto body = [&](OpBuilder &nested, Location, ValueRange args) {
    auto scaled = [&](Value value, double by) -> Value {
      Value constant =
          arith::ConstantOp::create(nested, loc, nested.getFloatAttr(type, by));
      return arith::MulFOp::create(nested, loc, value, constant);
    };
    Value ofBatch = args[1];
    if (factor)
      ofBatch = arith::MulFOp::create(nested, loc, ofBatch, factor);
    Value sum = arith::AddFOp::create(nested, loc, scaled(args[0], update.keep),
                                      scaled(ofBatch, update.add));
    if (isEmpty)
      sum = arith::SelectOp::create(nested, loc, isEmpty, args[0], sum);
    linalg::YieldOp::create(nested, loc, sum);
  };
  Value init = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, batch), type);
  SmallVector<AffineMap> maps(3, b.getDimIdentityMap());
  return linalg::GenericOp::create(b, loc, init.getType(),
                                   ValueRange{running, batch}, init, maps,
                                   utils::IteratorType::parallel, body)
      .getResult(0);
}

FailureOr<SumRows> mlir::bngrad::buildSums(OpBuilder &b, Operation *op,
                                           const ForeignGradient &gradient) {
  Location loc = op->getLoc();
  Type type =
      getAccumulatorType({gradient.gradOutput, gradient.input, gradient.mean});
  auto rowType = cast<RankedTensorType>(gradient.mean.getType()).clone(type);
  if (rowType.getRank() != 1)
    return op->emitOpError()
           << "expected mean to have rank 1, got " << gradient.mean.getType();
  int64_t channels = rowType.getDimSize(0);
  auto reduce = BatchNormBackwardReduceOp::create(
      b, loc, RankedTensorType::get({2, channels}, type),
      RankedTensorType::get({}, b.getI64Type()), gradient.gradOutput,
      gradient.input, gradient.mean, /*mask=*/Value(),
      b.getDenseI64ArrayAttr({gradient.featureDim}));
  if (failed(verifyImported(op, reduce)))
    return failure();
  OpFoldResult one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes = {
      one, tensor::getMixedSize(b, loc, gradient.mean, 0)};
  auto getRow = [&](int64_t row) -> Value {
    SmallVector<OpFoldResult> offsets = {b.getIndexAttr(row),
                                         b.getIndexAttr(0)};
    return tensor::ExtractSliceOp::create(b, loc, rowType, reduce.getSums(),
                                          offsets, sizes,
                                          ArrayRef<OpFoldResult>{one, one});
  };
  Value dy = getRow(0), dyXmu = getRow(1);
  return SumRows{dy, dyXmu};
}

FailureOr<Value> mlir::bngrad::buildElements(OpBuilder &b, Operation *op,
                                             ForeignGradient gradient,
                                             SumRows sums, Value count) {
  Location loc = op->getLoc();
  if (failed(unifyParameters(b, op, gradient)))
    return failure();
  Type type = getAccumulatorType({sums.dy, sums.dyXmu});
  SmallVector<OpFoldResult> offsets = {b.getIndexAttr(0), b.getIndexAttr(0)};
  OpFoldResult one = b.getIndexAttr(1);
  Value rows[] = {sums.dy, sums.dyXmu}, both;
  for (auto [row, given] : llvm::enumerate(rows)) {
    auto givenType = cast<RankedTensorType>(given.getType());
    if (givenType.getRank() != 1)
      return op->emitOpError()
             << "expected sums of rank 1, got " << given.getType();
    OpFoldResult size = tensor::getMixedSize(b, loc, given, 0);
    if (!both)
      both = tensor::EmptyOp::create(
          b, loc, ArrayRef<OpFoldResult>{b.getIndexAttr(2), size}, type);
    offsets[0] = b.getIndexAttr(row);
    both = tensor::InsertSliceOp::create(
        b, loc, convertElements(b, loc, given, type), both, offsets,
        ArrayRef<OpFoldResult>{one, size}, ArrayRef<OpFoldResult>{one, one});
  }
  auto elements = BatchNormBackwardElemtOp::create(
      b, loc, gradient.gradInput, gradient.gradOutput, gradient.input,
      gradient.scale, gradient.mean, gradient.variance, gradient.invStd, both,
      count, /*mask=*/Value(), b.getDenseI64ArrayAttr({gradient.featureDim}),
      b.getF64FloatAttr(gradient.epsilon));
  if (failed(verifyImported(op, elements)))
    return failure();
  return elements.getGradInput();
}

/// The name of `op` if it looks like a batch normalization of another dialect,
/// or a gradient of one.
static std::optional<StringRef> getForeignName(Operation *op) {
  if (isa_and_nonnull<BNGradDialect>(op->getDialect()))
    return std::nullopt;
  std::optional<StringRef> torchName = getTorchName(op);
  StringRef name = torchName ? *torchName : op->getName().getStringRef();
  if (name.contains("batch_norm") || isOnnxBatchNorm(op))
    return name;
  return std::nullopt;
}

namespace {
struct BNGradImportPass : bngrad::impl::BNGradImportPassBase<BNGradImportPass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    // torch-mlir's dialect, or generic form that other tools can read.
    if (torchCasts == TorchCasts::TorchConversion &&
        !context->allowsUnregisteredDialects() &&
        !context->getOrLoadDialect("torch_c"))
      return emitError(UnknownLoc::get(context))
             << "expected the dialect 'torch_c' to be registered, or "
                "unregistered dialects to be allowed, with torch-casts=torch_c";
    return success();
  }

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (getForeignName(op))
        ops.push_back(op);
    });
    // Users come first: a gradient does not read all results of its forward
    // pass that are its operands.
    for (Operation *op : llvm::reverse(ops)) {
      OpBuilder b(op);
      if (failed(import(b, op)))
        signalPassFailure();
    }
    if (!ops.empty())
      eraseDeadTorchValues(getOperation());
  }

private:
  LogicalResult import(OpBuilder &b, Operation *op) {
    if (std::optional<LogicalResult> imported = importStableHloOp(b, op))
      return *imported;
    if (std::optional<LogicalResult> imported =
            importTorchOp(b, op, torchCasts))
      return *imported;
    if (std::optional<LogicalResult> imported = importOnnxOp(b, op, torchCasts))
      return *imported;
    // Other compilers lower other forward passes.
    StringRef name = *getForeignName(op);
    if (!name.contains("backward") && !name.contains("grad"))
      return success();
    return op->emitError()
           << "expected a gradient of batch normalization that can be imported "
              "(stablehlo.batch_norm_grad, mhlo.batch_norm_grad, or torch.aten."
              "{native_,cudnn_,miopen_,}batch_norm_backward or "
              "batch_norm_backward_{reduce,elemt}), got '"
           << name << "'";
  }
};
} // namespace
