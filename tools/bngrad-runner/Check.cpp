//===- Check.cpp - --check ------------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Diagnostics.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Runtime/Reference.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;
using ::bngrad::ElementType;

static constexpr StringLiteral kCheck = "bngrad_runner_check";
static constexpr StringLiteral kReference = "bngrad_runner_reference";

namespace {
/// One bngrad op and what the reference said of it.
struct Evaluation {
  ::bngrad::ReferenceProblem problem; // but for the sizes and pointers
  int64_t rank = 0;
  ::bngrad::ReferenceResults results;
};

/// Where a result of the function comes from.
struct Origin {
  std::string name;
  int64_t evaluation = -1; // -1: from no bngrad op
  unsigned result = 0;     // of the op
};
} // namespace

/// By op; generated code calls a plain function, so there is one set at a time.
static std::vector<Evaluation> evaluations;

static ElementType getElementType(Value value) {
  Type type = getElementTypeOrSelf(value);
  return type.isF16()    ? ElementType::F16
         : type.isBF16() ? ElementType::BF16
         : type.isF64()  ? ElementType::F64
                         : ElementType::F32;
}

/// Called by generated code: evaluates op `number`. `table` holds the addresses
/// of grad_output, input, scale, mean, statistic and mask (0 if absent) and of
/// the three results, then the sizes of input.
static void evaluateReference(int64_t number, int64_t tableAddress) {
  Evaluation &evaluation = evaluations[number];
  auto *table = reinterpret_cast<const int64_t *>(tableAddress);
  ::bngrad::ReferenceProblem &problem = evaluation.problem;
  auto pointer = [&](unsigned i) { return reinterpret_cast<void *>(table[i]); };
  problem.gradOutput = pointer(0);
  problem.input = pointer(1);
  problem.scale = pointer(2);
  problem.mean = pointer(3);
  problem.statistic = pointer(4);
  problem.mask = static_cast<const uint8_t *>(pointer(5));
  problem.shape.assign(table + 9, table + 9 + evaluation.rank);
  evaluation.results = ::bngrad::computeReference(problem);

  auto store = [&](const ::bngrad::ReferenceResult &result, ElementType type,
                   void *data) {
    for (auto [i, value] : llvm::enumerate(result.value))
      ::bngrad::storeRounded(type, data, i, value);
  };
  store(evaluation.results.gradInput, problem.gradInputType, pointer(6));
  store(evaluation.results.gradScale, problem.gradScaleType, pointer(7));
  store(evaluation.results.gradOffset, problem.gradOffsetType, pointer(8));
}

/// Replaces `op` by a call of kReference.
static void callReference(BatchNormBackwardOp op, func::FuncOp reference) {
  Evaluation &evaluation = evaluations.emplace_back();
  evaluation.rank = op.getInput().getType().getRank();
  ::bngrad::ReferenceProblem &problem = evaluation.problem;
  llvm::append_range(problem.featureDims, op.getFeatureDims());
  problem.epsilon = op.getEpsilon().convertToDouble();
  problem.globalStatistics = op.getStatistics() == Statistics::Global;
  problem.statisticIsInvStd = op.getInvStd() != nullptr;
  problem.dataType = getElementType(op.getInput());
  problem.parameterType = getElementType(op.getMean());
  problem.gradInputType = getElementType(op.getGradInput());
  problem.gradScaleType = getElementType(op.getGradScale());
  problem.gradOffsetType = getElementType(op.getGradOffset());

  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> table;
  auto toI64 = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  };
  auto addAddress = [&](Value buffer) {
    table.push_back(
        toI64(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer)));
  };
  for (Value operand :
       {Value(op.getGradOutput()), Value(op.getInput()), Value(op.getScale()),
        Value(op.getMean()), op.getStatistic(), Value(op.getMask())}) {
    if (!operand) {
      table.push_back(arith::ConstantIntOp::create(b, loc, 0, 64));
      continue;
    }
    auto type = cast<RankedTensorType>(operand.getType());
    addAddress(bufferization::ToBufferOp::create(
        b, loc, MemRefType::get(type.getShape(), type.getElementType()),
        operand, /*read_only=*/true));
  }
  SmallVector<Value> sizes;
  for (int64_t dim : llvm::seq(evaluation.rank))
    sizes.push_back(tensor::DimOp::create(b, loc, op.getInput(), dim));
  SmallVector<Value> channelSizes;
  for (int64_t dim : op.getFeatureDims())
    channelSizes.push_back(sizes[dim]);
  SmallVector<Value> buffers;
  for (OpResult result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<Value> dynamicSizes;
    for (int64_t dim : llvm::seq(type.getRank()))
      if (type.isDynamicDim(dim))
        dynamicSizes.push_back(
            result.getResultNumber() == 0 ? sizes[dim] : channelSizes[dim]);
    buffers.push_back(memref::AllocOp::create(
        b, loc, MemRefType::get(type.getShape(), type.getElementType()),
        dynamicSizes));
    addAddress(buffers.back());
  }
  for (Value size : sizes)
    table.push_back(toI64(size));

  int64_t length = table.size();
  Value memory = memref::AllocaOp::create(
      b, loc, MemRefType::get({length}, b.getI64Type()));
  for (auto [i, value] : llvm::enumerate(table)) {
    Value index = arith::ConstantIndexOp::create(b, loc, i);
    memref::StoreOp::create(b, loc, value, memory, index);
  }
  Value number =
      arith::ConstantIntOp::create(b, loc, evaluations.size() - 1, 64);
  Value address =
      toI64(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memory));
  func::CallOp::create(b, loc, reference, ValueRange{number, address});
  for (auto [result, buffer] : llvm::zip_equal(op->getResults(), buffers))
    result.replaceAllUsesWith(bufferization::ToTensorOp::create(
        b, loc, result.getType(), buffer, /*restrict=*/true));
  op.erase();
}

/// True if `value` depends on a bngrad op.
static bool dependsOnGradient(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  (void)getBackwardSlice(value, &slice, options);
  return llvm::any_of(slice, llvm::IsaPred<BatchNormBackwardOp>);
}

/// Where result `i` of the function comes from; failure if that gives no bound.
static FailureOr<Origin> findOrigin(unsigned i, Value value,
                                    ArrayRef<BatchNormBackwardOp> ops) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto fail = [&](const Twine &what) {
    return reportError(printLocation(value.getLoc()) + ": result " + Twine(i) +
                       ": expected a bound that can be derived, got " + what);
  };
  auto op = value.getDefiningOp<BatchNormBackwardOp>();
  if (!op) {
    if (dependsOnGradient(value))
      return fail("a value computed from a gradient by '" +
                  value.getDefiningOp()->getName().getStringRef() + "'");
    return Origin{"value", -1, 0};
  }
  if (llvm::any_of(op->getOperands(), dependsOnGradient))
    return fail("a gradient whose operand is computed from another gradient");
  static constexpr StringLiteral kNames[] = {"grad_input", "grad_scale",
                                             "grad_offset"};
  unsigned result = cast<OpResult>(value).getResultNumber();
  return Origin{kNames[result].str(), llvm::find(ops, op) - ops.begin(),
                result};
}

/// Compiles and runs the plain form of the program; its results.
static FailureOr<std::vector<Array>>
evaluatePlainly(ModuleOp module, Program &program,
                MutableArrayRef<Array> arguments,
                ArrayRef<BatchNormBackwardOp> ops) {
  MLIRContext *context = module.getContext();
  OpBuilder b(module.getBodyRegion());
  auto reference = func::FuncOp::create(
      b, module.getLoc(), kReference,
      b.getFunctionType({b.getI64Type(), b.getI64Type()}, {}));
  reference.setPrivate();
  evaluations.clear();
  for (BatchNormBackwardOp op : ops)
    callReference(op, reference);
  auto function = module.lookupSymbol<func::FuncOp>(program.getEntry());
  function.setName(kCheck);
  function.setPublic();
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    UnitAttr::get(context));

  OneLineDiagnostics diagnostics(context);
  PassManager pm(context);
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  addBufferizePasses(pm);
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  addCpuLowerPasses(pm);
  if (failed(pm.run(module)))
    return failure();
  std::unique_ptr<Jit> jit = Jit::create(
      module, {{kReference, reinterpret_cast<void *>(&evaluateReference)}});
  if (!jit)
    return failure();
  FailureOr<std::vector<Array>> results = program.prepareResults(arguments);
  if (failed(results) || failed(jit->call(kCheck, arguments, *results)))
    return failure();
  return results;
}

LogicalResult mlir::bngrad::checkResults(Program &program,
                                         MutableArrayRef<Array> arguments,
                                         MutableArrayRef<Array> results) {
  OwningOpRef<ModuleOp> module = program.getModule().clone();
  auto function = module->lookupSymbol<func::FuncOp>(program.getEntry());
  SmallVector<BatchNormBackwardOp> ops;
  function.walk([&](BatchNormBackwardOp op) { ops.push_back(op); });
  std::vector<Origin> origins;
  Operation *returnOp = function.back().getTerminator();
  for (auto [i, value] : llvm::enumerate(returnOp->getOperands())) {
    FailureOr<Origin> origin = findOrigin(i, value, ops);
    if (failed(origin))
      return failure();
    origins.push_back(*origin);
  }
  FailureOr<std::vector<Array>> expected =
      evaluatePlainly(*module, program, arguments, ops);
  if (failed(expected))
    return failure();

  bool ok = true;
  for (auto [i, origin] : llvm::enumerate(origins)) {
    const Array &result = results[i];
    ::bngrad::CheckSummary summary;
    if (origin.evaluation >= 0) {
      const ::bngrad::ReferenceResults &reference =
          evaluations[origin.evaluation].results;
      const ::bngrad::ReferenceResult *byResult[] = {
          &reference.gradInput, &reference.gradScale, &reference.gradOffset};
      summary = ::bngrad::checkResult(result.type, result.data.data(),
                                      *byResult[origin.result]);
    } else {
      summary.ok = std::memcmp(result.data.data(), (*expected)[i].data.data(),
                               result.data.size()) == 0;
      summary.maxError =
          summary.ok ? 0 : std::numeric_limits<double>::infinity();
    }
    llvm::outs() << "result " << i << " " << origin.name << " max_error "
                 << llvm::format("%.3g", summary.maxError) << " bound "
                 << llvm::format("%.3g", summary.bound)
                 << (summary.ok ? " ok" : " FAILED") << "\n";
    ok &= summary.ok;
  }
  return success(ok);
}
