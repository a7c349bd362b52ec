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
/// One bngrad op and what the reference said of its results.
struct Evaluation {
  ::bngrad::ReferenceProblem problem; // but for the sizes and pointers
  int64_t rank = 0;
  /// By result; nothing where a result is exact (the count).
  std::vector<std::optional<::bngrad::ReferenceResult>> results;
  std::vector<ElementType> resultTypes;
};

/// Where a result of the function comes from.
struct Origin {
  std::string name;
  int64_t evaluation = -1; // -1: from no bngrad op
  unsigned result = 0;     // of the op
};

/// What generated code hands over: addresses (0: absent) and sizes.
struct ReferenceTable {
  static constexpr unsigned kMaxResults = 3;
  enum { GradOutput, Input, Scale, Mean, Statistic, Mask, Sums, Count };
  static constexpr unsigned kNumOperands = Count + 1;
  void *operands[kNumOperands];
  void *results[kMaxResults];
  int64_t sizes[1]; // of input, as many as it has dims
};
static_assert(sizeof(ReferenceTable) == 12 * sizeof(int64_t),
              "generated code fills the table as an array of i64");
} // namespace

/// By op; generated code calls a plain function, so there is one set at a time.
static std::vector<Evaluation> evaluations;

static ElementType getElementType(Value value) {
  Type type = getElementTypeOrSelf(value);
  return type.isF16()         ? ElementType::F16
         : type.isBF16()      ? ElementType::BF16
         : type.isF64()       ? ElementType::F64
         : type.isInteger(64) ? ElementType::I64
                              : ElementType::F32;
}

/// Called by generated code: evaluates op `number`.
static void evaluateReference(int64_t number, int64_t tableAddress) {
  Evaluation &evaluation = evaluations[number];
  auto *table = reinterpret_cast<const ReferenceTable *>(tableAddress);
  ::bngrad::ReferenceProblem &problem = evaluation.problem;
  problem.gradOutput = table->operands[ReferenceTable::GradOutput];
  problem.input = table->operands[ReferenceTable::Input];
  problem.scale = table->operands[ReferenceTable::Scale];
  problem.mean = table->operands[ReferenceTable::Mean];
  problem.statistic = table->operands[ReferenceTable::Statistic];
  problem.mask =
      static_cast<const uint8_t *>(table->operands[ReferenceTable::Mask]);
  problem.sums = table->operands[ReferenceTable::Sums];
  if (auto *count = static_cast<const int64_t *>(
          table->operands[ReferenceTable::Count]))
    problem.count = *count;
  problem.shape.assign(table->sizes, table->sizes + evaluation.rank);

  evaluation.results.clear();
  switch (evaluation.resultTypes.size()) {
  case 3: {
    ::bngrad::ReferenceResults results = ::bngrad::computeReference(problem);
    evaluation.results.push_back(std::move(results.gradInput));
    evaluation.results.push_back(std::move(results.gradScale));
    evaluation.results.push_back(std::move(results.gradOffset));
    break;
  }
  case 2: {
    evaluation.results.push_back(
        ::bngrad::computeReferenceSums(problem, evaluation.resultTypes[0]));
    evaluation.results.push_back(std::nullopt);
    int64_t count = 1;
    for (auto [dim, size] : llvm::enumerate(problem.shape))
      if (!llvm::is_contained(problem.featureDims, dim))
        count *= size;
    *static_cast<int64_t *>(table->results[1]) = count;
    break;
  }
  default:
    evaluation.results.push_back(
        ::bngrad::computeReference(problem).gradInput);
  }
  for (auto [i, result] : llvm::enumerate(evaluation.results))
    if (result)
      for (auto [j, value] : llvm::enumerate(result->value))
        ::bngrad::storeRounded(evaluation.resultTypes[i], table->results[i], j,
                               value);
}

/// What the reference has to know of `op`; its operands in table order.
static SmallVector<Value> describe(Operation *op, Evaluation &evaluation) {
  ::bngrad::ReferenceProblem &problem = evaluation.problem;
  SmallVector<Value> operands(ReferenceTable::kNumOperands);
  auto describeCommon = [&](auto typedOp) {
    operands[ReferenceTable::GradOutput] = typedOp.getGradOutput();
    operands[ReferenceTable::Input] = typedOp.getInput();
    operands[ReferenceTable::Mean] = typedOp.getMean();
    operands[ReferenceTable::Mask] = typedOp.getMask();
    llvm::append_range(problem.featureDims, typedOp.getFeatureDims());
    problem.dataType = getElementType(typedOp.getInput());
    problem.parameterType = getElementType(typedOp.getMean());
    evaluation.rank = typedOp.getInput().getType().getRank();
  };
  auto describeStatistic = [&](auto typedOp) {
    operands[ReferenceTable::Scale] = typedOp.getScale();
    operands[ReferenceTable::Statistic] = typedOp.getStatistic();
    problem.epsilon = typedOp.getEpsilon().convertToDouble();
    problem.statisticIsInvStd = typedOp.getInvStd() != nullptr;
    problem.gradInputType = getElementType(typedOp.getGradInput());
  };
  if (auto gradient = dyn_cast<BatchNormBackwardOp>(op)) {
    describeCommon(gradient);
    describeStatistic(gradient);
    problem.globalStatistics = gradient.getStatistics() == Statistics::Global;
    problem.gradScaleType = getElementType(gradient.getGradScale());
    problem.gradOffsetType = getElementType(gradient.getGradOffset());
  } else if (auto elemt = dyn_cast<BatchNormBackwardElemtOp>(op)) {
    describeCommon(elemt);
    describeStatistic(elemt);
    operands[ReferenceTable::Sums] = elemt.getSums();
    operands[ReferenceTable::Count] = elemt.getCount();
    problem.globalStatistics = !elemt.getSums();
    if (elemt.getSums())
      problem.sumsType = getElementType(elemt.getSums());
  } else {
    describeCommon(cast<BatchNormBackwardReduceOp>(op));
  }
  for (Value result : op->getResults())
    evaluation.resultTypes.push_back(getElementType(result));
  return operands;
}

/// Replaces `op`, a bngrad op, by a call of kReference.
static void callReference(Operation *op, func::FuncOp reference) {
  Evaluation &evaluation = evaluations.emplace_back();
  SmallVector<Value> operands = describe(op, evaluation);

  OpBuilder b(op);
  Location loc = op->getLoc();
  auto toI64 = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  };
  auto addressOf = [&](Value buffer) {
    return toI64(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer));
  };
  auto toBufferType = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return MemRefType::get(type.getShape(), type.getElementType());
  };
  Value null = arith::ConstantIntOp::create(b, loc, 0, 64);
  SmallVector<Value> table;
  for (Value operand : operands)
    table.push_back(operand ? addressOf(bufferization::ToBufferOp::create(
                                  b, loc, toBufferType(operand), operand,
                                  /*read_only=*/true))
                            : null);
  ReifiedRankedShapedTypeDims shapes;
  (void)cast<ReifyRankedShapedTypeOpInterface>(op).reifyResultShapes(b, shapes);
  SmallVector<Value> buffers;
  for (auto [result, shape] : llvm::zip_equal(op->getResults(), shapes)) {
    SmallVector<Value> dynamicSizes;
    for (OpFoldResult size : shape)
      if (auto value = dyn_cast<Value>(size))
        dynamicSizes.push_back(value);
    buffers.push_back(
        memref::AllocOp::create(b, loc, toBufferType(result), dynamicSizes));
    table.push_back(addressOf(buffers.back()));
  }
  table.resize(ReferenceTable::kNumOperands + ReferenceTable::kMaxResults,
               null);
  Value input = operands[ReferenceTable::Input];
  for (int64_t dim : llvm::seq(evaluation.rank))
    table.push_back(toI64(tensor::DimOp::create(b, loc, input, dim)));

  int64_t length = table.size();
  Value memory = memref::AllocaOp::create(
      b, loc, MemRefType::get({length}, b.getI64Type()));
  for (auto [i, value] : llvm::enumerate(table)) {
    Value index = arith::ConstantIndexOp::create(b, loc, i);
    memref::StoreOp::create(b, loc, value, memory, index);
  }
  Value number =
      arith::ConstantIntOp::create(b, loc, evaluations.size() - 1, 64);
  func::CallOp::create(b, loc, reference,
                       ValueRange{number, addressOf(memory)});
  for (auto [result, buffer] : llvm::zip_equal(op->getResults(), buffers))
    result.replaceAllUsesWith(bufferization::ToTensorOp::create(
        b, loc, result.getType(), buffer, /*restrict=*/true));
  op->erase();
}

static bool isGradientOp(Operation *op) {
  return isa_and_present<BNGradDialect>(op->getDialect());
}

/// True if `value` depends on a bngrad op.
static bool dependsOnGradient(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  (void)getBackwardSlice(value, &slice, options);
  return llvm::any_of(slice, isGradientOp);
}

/// Where result `i` of the function comes from; failure if that gives no bound.
static FailureOr<Origin> findOrigin(unsigned i, Value value,
                                    ArrayRef<Operation *> ops) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto fail = [&](const Twine &what) {
    return reportError(printLocation(value.getLoc()) + ": result " + Twine(i) +
                       ": expected a bound that can be derived, got " + what);
  };
  Operation *op = value.getDefiningOp();
  if (!op || !isGradientOp(op)) {
    if (dependsOnGradient(value))
      return fail("a value computed from a gradient by '" +
                  op->getName().getStringRef() + "'");
    return Origin{"value", -1, 0};
  }
  if (llvm::any_of(op->getOperands(), dependsOnGradient))
    return fail("a gradient whose operand is computed from another gradient");
  // Names of several results are part of the assembly; one result has none.
  std::string name = "grad_input";
  if (auto named = dyn_cast<OpAsmOpInterface>(op))
    named.getAsmResultNames([&](Value result, StringRef resultName) {
      if (result == value)
        name = resultName.str();
    });
  return Origin{name, llvm::find(ops, op) - ops.begin(),
                cast<OpResult>(value).getResultNumber()};
}

/// Compiles and runs the plain form of the program; its results.
static FailureOr<std::vector<Array>>
evaluatePlainly(ModuleOp module, Program &program,
                MutableArrayRef<Array> arguments,
                ArrayRef<Operation *> ops) {
  MLIRContext *context = module.getContext();
  OpBuilder b(module.getBodyRegion());
  auto reference = func::FuncOp::create(
      b, module.getLoc(), kReference,
      b.getFunctionType({b.getI64Type(), b.getI64Type()}, {}));
  reference.setPrivate();
  evaluations.clear();
  for (Operation *op : ops)
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
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isGradientOp(op))
      ops.push_back(op);
  });
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
    const ::bngrad::ReferenceResult *reference = nullptr;
    if (origin.evaluation >= 0)
      if (auto &found = evaluations[origin.evaluation].results[origin.result])
        reference = &*found;
    if (reference) {
      summary = ::bngrad::checkResult(result.type, result.data.data(),
                                      *reference);
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
