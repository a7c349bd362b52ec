//===- PlainProgram.cpp - the program without our passes ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlainProgram.h"
#include "ErrorBounds.h"
#include "SumBounds.h"
#include "common/Diagnostics.h"
#include "common/ResultName.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;
using ::bngrad::ElementType;

static constexpr StringLiteral kCheck = "bngrad_runner_check";
static constexpr StringLiteral kReference = "bngrad_runner_reference";

namespace {
/// One bngrad op and the reference of its results.
struct Evaluation {
  ::bngrad::ReferenceProblem problem; // but for the sizes and pointers
  int64_t rank = 0;
  /// By result; null where a result is exact (the count).
  std::vector<std::shared_ptr<const ::bngrad::ReferenceResult>> results;
  std::vector<ElementType> resultTypes;
};

/// Where the expectation of one result of the function comes from.
struct Source {
  std::string name, location;
  int64_t evaluation = -1;  // of the bngrad op it is a result of; -1: of none
  unsigned result = 0;      // of that op
  int64_t errorResult = -1; // result of kCheck with its bounds; -1: exact
};

/// The arguments from generated code: addresses (0: absent) and sizes.
struct ReferenceTable {
  static constexpr unsigned kMaxResults = 3;
  enum {
    GradOutput,
    Input,
    Scale,
    Mean,
    Statistic,
    Mask,
    Sums,
    Count,
    GradOutputError,
    SumsError
  };
  static constexpr unsigned kNumOperands = SumsError + 1;
  void *operands[kNumOperands];
  void *results[kMaxResults];
  double *errors[kMaxResults]; // how far a computed result may be from it
  int64_t sizes[1];            // of input, as many as it has dims
};
static_assert(sizeof(ReferenceTable) == (ReferenceTable::kNumOperands +
                                         2 * ReferenceTable::kMaxResults + 1) *
                                            sizeof(int64_t),
              "generated code fills the table as an array of i64");
} // namespace

/// By op; generated code calls a plain function, so there is one set at a time.
static std::vector<Evaluation> evaluations;

static ElementType getElementType(Value value) {
  return *getElementType(getElementTypeOrSelf(value));
}

/// How far any result that is accepted for `exact` may be from `stored`, its
/// rounding. 0 where they are the same infinity, or NaN.
static double getGreatestError(ElementType type, double stored, double exact,
                               double bound) {
  double low = ::bngrad::roundTo(type, exact - bound);
  double high = ::bngrad::roundTo(type, exact + bound);
  if (low == high || !std::isfinite(exact))
    return 0;
  return std::max(high - stored, stored - low);
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
  if (auto *count =
          static_cast<const int64_t *>(table->operands[ReferenceTable::Count]))
    problem.count = *count;
  problem.gradOutputError = static_cast<const double *>(
      table->operands[ReferenceTable::GradOutputError]);
  problem.sumsError =
      static_cast<const double *>(table->operands[ReferenceTable::SumsError]);
  problem.shape.assign(table->sizes, table->sizes + evaluation.rank);

  evaluation.results.clear();
  auto addResult = [&](::bngrad::ReferenceResult result) {
    evaluation.results.push_back(
        std::make_shared<const ::bngrad::ReferenceResult>(std::move(result)));
  };
  switch (evaluation.resultTypes.size()) {
  case 3: {
    ::bngrad::ReferenceResults results = ::bngrad::computeReference(problem);
    addResult(std::move(results.gradInput));
    addResult(std::move(results.gradScale));
    addResult(std::move(results.gradOffset));
    break;
  }
  case 2: {
    addResult(
        ::bngrad::computeReferenceSums(problem, evaluation.resultTypes[0]));
    evaluation.results.push_back(nullptr);
    int64_t count = 1;
    for (auto [dim, size] : llvm::enumerate(problem.shape))
      if (!llvm::is_contained(problem.featureDims, dim))
        count *= size;
    *static_cast<int64_t *>(table->results[1]) = count;
    break;
  }
  default:
    addResult(::bngrad::computeReference(problem).gradInput);
  }
  for (auto [i, result] : llvm::enumerate(evaluation.results)) {
    if (!result)
      continue;
    ElementType type = evaluation.resultTypes[i];
    for (auto [j, value] : llvm::enumerate(result->value)) {
      ::bngrad::storeRounded(type, table->results[i], j, value);
      // Further ops use the rounded value.
      double stored = ::bngrad::loadAsDouble(type, table->results[i], j);
      table->errors[i][j] =
          getGreatestError(type, stored, value, result->bound[j]);
    }
  }
}

/// Describes `op` to the reference. Returns its operands in table order.
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

/// Replaces `op`, a bngrad op, by a call of kReference. Returns the
/// replacements of its results and the f64 tensors of their errors (null:
/// exact); `errors` are those of the operands.
static SmallVector<std::pair<Value, Value>>
callReference(Operation *op, const DenseMap<Value, Value> &errors,
              func::FuncOp reference) {
  Evaluation &evaluation = evaluations.emplace_back();
  SmallVector<Value> operands = describe(op, evaluation);
  operands[ReferenceTable::GradOutputError] =
      errors.lookup(operands[ReferenceTable::GradOutput]);
  if (Value sums = operands[ReferenceTable::Sums])
    operands[ReferenceTable::SumsError] = errors.lookup(sums);

  OpBuilder b(op);
  Location loc = op->getLoc();
  auto toI64 = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  };
  auto addressOf = [&](Value buffer) {
    return toI64(
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer));
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
  SmallVector<Value> buffers, errorBuffers, errorAddresses;
  for (auto [result, shape] : llvm::zip_equal(op->getResults(), shapes)) {
    SmallVector<Value> dynamicSizes;
    for (OpFoldResult size : shape)
      if (auto value = dyn_cast<Value>(size))
        dynamicSizes.push_back(value);
    MemRefType type = toBufferType(result);
    buffers.push_back(memref::AllocOp::create(b, loc, type, dynamicSizes));
    table.push_back(addressOf(buffers.back()));
    errorBuffers.push_back(memref::AllocOp::create(
        b, loc, MemRefType::get(type.getShape(), b.getF64Type()),
        dynamicSizes));
    errorAddresses.push_back(addressOf(errorBuffers.back()));
  }
  table.resize(ReferenceTable::kNumOperands + ReferenceTable::kMaxResults,
               null);
  llvm::append_range(table, errorAddresses);
  table.resize(ReferenceTable::kNumOperands + 2 * ReferenceTable::kMaxResults,
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
  auto toTensor = [&](Value buffer) -> Value {
    auto type = cast<MemRefType>(buffer.getType());
    return bufferization::ToTensorOp::create(
        b, loc, RankedTensorType::get(type.getShape(), type.getElementType()),
        buffer, /*restrict=*/true);
  };
  SmallVector<std::pair<Value, Value>> replacements;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Value tensor = toTensor(buffers[i]);
    bool isExact = evaluation.resultTypes[i] == ElementType::I64;
    replacements.push_back(
        {tensor, isExact ? Value() : toTensor(errorBuffers[i])});
    result.replaceAllUsesWith(tensor);
  }
  op->erase();
  return replacements;
}

static bool isGradientOp(Operation *op) {
  return isa_and_present<BNGradDialect>(op->getDialect());
}

/// True if the results of a bngrad op are linear in this operand, so that the
/// reference can bound the effect of its error.
static bool isLinearIn(OpOperand &operand) {
  auto elemt = dyn_cast<BatchNormBackwardElemtOp>(operand.getOwner());
  return operand.getOperandNumber() == 0 || // grad_output
         (elemt && elemt.getSums() &&
          &operand == elemt.getSumsMutable().begin());
}

namespace {
/// The program without our passes: bngrad ops become calls of the reference,
/// and beside each value goes a bound of how far the compiled program's may be
/// from it.
class PlainProgram {
public:
  PlainProgram(ModuleOp module, func::FuncOp function, SumOrder sumOrder)
      : module(module), function(function), sumOrder(sumOrder) {}

  /// Rewrites the function. It then returns its results and after them the
  /// bounds that the expectations refer to.
  ///
  /// Errors: one line and failure for a result whose bound does not follow.
  LogicalResult build();

  /// Compiles the function and runs it.
  FailureOr<std::vector<Expectation>> run(Program &program,
                                          MutableArrayRef<Array> arguments);

private:
  void visit(Operation *op, func::FuncOp reference);
  LogicalResult visitSums(Operation *op);
  FailureOr<Source> findSource(unsigned i, Value value);

  ModuleOp module;
  func::FuncOp function;
  SumOrder sumOrder;
  std::vector<Source> sources; // by result
  SmallVector<Value> returnedErrors;

  // By value; absent: exact.
  DenseMap<Value, Value> errors;
  /// No bound follows, because of this.
  DenseMap<Value, std::string> unknown;
  /// Which evaluation and which of its results.
  DenseMap<Value, std::pair<int64_t, unsigned>> gradients;
  DenseMap<Value, std::string> names;
};
} // namespace

/// Replaces the sums of `op`, whose order is free.
LogicalResult PlainProgram::visitSums(Operation *op) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  FailureOr<SmallVector<BoundedValue>> sums = buildSums(
      b, op, sumOrder, [&](Value value) { return errors.lookup(value); });
  if (failed(sums))
    return failure();
  for (auto [result, sum] : llvm::zip_equal(op->getResults(), *sums)) {
    if (sum.value != result)
      result.replaceAllUsesWith(sum.value);
    if (sum.error)
      errors[sum.value] = sum.error;
  }
  return success();
}

void PlainProgram::visit(Operation *op, func::FuncOp reference) {
  SmallVector<Value> operands(op->getOperands());
  mlir::visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *use) {
    operands.push_back(use->get());
  });
  std::string reason;
  bool isExact = true;
  for (Value operand : operands) {
    if (auto found = unknown.find(operand); found != unknown.end())
      reason = found->second;
    isExact &= !errors.contains(operand);
  }

  if (isGradientOp(op)) {
    for (OpOperand &operand : op->getOpOperands())
      if (errors.contains(operand.get()) && !isLinearIn(operand) &&
          reason.empty())
        reason = "a gradient by '" + op->getName().getStringRef().str() +
                 "' of an operand that was computed from another gradient or a "
                 "sum in any order";
    SmallVector<std::string> resultNames;
    for (OpResult result : op->getResults())
      resultNames.push_back(getResultName(result));
    auto replacements = callReference(op, errors, reference);
    for (auto [i, replacement] : llvm::enumerate(replacements)) {
      auto [value, error] = replacement;
      gradients[value] = {evaluations.size() - 1, i};
      names[value] = resultNames[i];
      if (!reason.empty())
        unknown[value] = reason;
      else if (error)
        errors[value] = error;
    }
    return;
  }

  // A size does not depend on the values.
  bool isSum = isOrderFree(op);
  if ((isExact && reason.empty() && !isSum) || isa<tensor::DimOp>(op))
    return;
  if (reason.empty() && isSum) {
    if (succeeded(visitSums(op)))
      return;
    reason =
        "a sum in any order by '" + op->getName().getStringRef().str() + "'";
  }
  if (reason.empty()) {
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    FailureOr<SmallVector<Value>> bounds = buildErrorBounds(
        b, op, [&](Value value) { return errors.lookup(value); });
    if (succeeded(bounds)) {
      for (auto [result, bound] : llvm::zip_equal(op->getResults(), *bounds))
        errors[result] = bound;
      if (isa<tensor::CastOp>(op)) {
        Value source = op->getOperand(0);
        if (auto found = gradients.find(source); found != gradients.end()) {
          auto gradient = found->second;
          gradients[op->getResult(0)] = gradient;
          names[op->getResult(0)] = names.lookup(source);
        }
      }
      return;
    }
    reason = "a value computed from a gradient by '" +
             op->getName().getStringRef().str() + "'";
  }
  for (Value result : op->getResults())
    unknown[result] = reason;
}

FailureOr<Source> PlainProgram::findSource(unsigned i, Value value) {
  if (auto found = unknown.find(value); found != unknown.end())
    return reportError(printLocation(value.getLoc()) + ": result " + Twine(i) +
                       ": expected a bound that can be derived, got " +
                       found->second);
  Source source;
  source.name = "value";
  source.location = printLocation(value.getLoc());
  if (auto found = gradients.find(value); found != gradients.end()) {
    source.name = names.lookup(value);
    std::tie(source.evaluation, source.result) = found->second;
  } else if (Value error = errors.lookup(value)) {
    source.errorResult = function.getNumResults() + returnedErrors.size();
    returnedErrors.push_back(error);
  }
  return source;
}

LogicalResult PlainProgram::build() {
  OneLineDiagnostics diagnostics(module.getContext());
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError()
           << "--check: expected a function of one block, got "
           << function.getBody().getBlocks().size();
  WalkResult nested =
      function.walk(
          [&](Operation *op) {
            if (!isGradientOp(op) || op->getParentOp() == function)
              return WalkResult::advance();
            op->emitError()
                << "--check: expected gradients outside of regions, got one "
                   "in '"
                << op->getParentOp()->getName() << "'";
            return WalkResult::interrupt();
          });
  if (nested.wasInterrupted())
    return failure();
  // Tensor arithmetic and named ops as generics, whose bounds follow.
  PassManager pm(module.getContext());
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  pm.addNestedPass<func::FuncOp>(createLinalgGeneralizeNamedOpsPass());
  if (failed(pm.run(module)))
    return failure();

  OpBuilder b(module.getBodyRegion());
  auto reference = func::FuncOp::create(
      b, module.getLoc(), kReference,
      b.getFunctionType({b.getI64Type(), b.getI64Type()}, {}));
  reference.setPrivate();
  evaluations.clear();
  SmallVector<Operation *> ops;
  for (Operation &op : function.front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops)
    visit(op, reference);
  auto returnOp = cast<func::ReturnOp>(function.back().getTerminator());
  for (auto [i, value] : llvm::enumerate(returnOp.getOperands())) {
    FailureOr<Source> source = findSource(i, value);
    if (failed(source))
      return failure();
    sources.push_back(std::move(*source));
  }
  returnOp->insertOperands(returnOp->getNumOperands(), returnedErrors);
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(),
                                             returnOp.getOperandTypes()));
  function.setResAttrsAttr(nullptr);
  function.setName(kCheck);
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  return success();
}

/// Values with a bound each, as the reference has them.
static std::shared_ptr<const ::bngrad::ReferenceResult>
makeReferenceResult(const Array &values, const Array &bounds) {
  auto result = std::make_shared<::bngrad::ReferenceResult>();
  for (int64_t i = 0, e = values.numElements(); i < e; ++i) {
    result->value.push_back(
        ::bngrad::loadAsDouble(values.type, values.data.data(), i));
    result->bound.push_back(
        ::bngrad::loadAsDouble(bounds.type, bounds.data.data(), i));
  }
  return result;
}

FailureOr<std::vector<Expectation>>
PlainProgram::run(Program &program, MutableArrayRef<Array> arguments) {
  OneLineDiagnostics diagnostics(module.getContext());
  PassManager pm(module.getContext());
  addBufferizePasses(pm);
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  pm.addPass(createBNGradReturnStatusPass());
  addCpuLowerPasses(pm);
  if (failed(pm.run(module)))
    return failure();
  std::unique_ptr<Jit> jit = Jit::create(
      module, {{kReference, reinterpret_cast<void *>(&evaluateReference)}});
  if (!jit)
    return failure();
  FailureOr<std::vector<Array>> results = program.prepareResults(arguments);
  if (failed(results))
    return failure();
  for (auto [i, source] : llvm::enumerate(sources)) {
    if (source.errorResult < 0)
      continue;
    std::string error;
    std::vector<int64_t> shape = (*results)[i].shape;
    if (!allocateArray(ElementType::F64, shape, results->emplace_back(), error))
      return reportError("--check: " + error);
  }
  if (failed(jit->call(kCheck, arguments, *results)))
    return failure();

  std::vector<Expectation> expectations;
  for (auto [i, source] : llvm::enumerate(sources)) {
    Expectation &expectation = expectations.emplace_back();
    expectation.name = source.name;
    expectation.location = source.location;
    if (source.evaluation >= 0)
      expectation.reference =
          evaluations[source.evaluation].results[source.result];
    else if (source.errorResult >= 0)
      expectation.reference =
          makeReferenceResult((*results)[i], (*results)[source.errorResult]);
    expectation.value = std::move((*results)[i]);
  }
  evaluations.clear();
  return expectations;
}

FailureOr<std::vector<Expectation>>
mlir::bngrad::evaluatePlainly(Program &program,
                              MutableArrayRef<Array> arguments) {
  OwningOpRef<ModuleOp> module = program.getModule().clone();
  PlainProgram plain(
      *module, module->lookupSymbol<func::FuncOp>(Program::kSymbol),
      program.hasScheduledSums() ? SumOrder::Scheduled : SumOrder::Any);
  if (failed(plain.build()))
    return failure();
  return plain.run(program, arguments);
}
