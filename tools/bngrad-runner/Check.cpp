//===- Check.cpp - --check ------------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Diagnostics.h"
#include "ErrorBounds.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Runtime/Reference.h"
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

/// What a result of the function is held to.
struct Expectation {
  std::string name;
  int64_t evaluation = -1;  // of the bngrad op it is a result of; -1: of none
  unsigned result = 0;      // of that op
  int64_t errorResult = -1; // result of kCheck with its bounds; -1: exact
  std::string location;
};

/// What generated code hands over: addresses (0: absent) and sizes.
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
  Type type = getElementTypeOrSelf(value);
  return type.isF16()         ? ElementType::F16
         : type.isBF16()      ? ElementType::BF16
         : type.isF64()       ? ElementType::F64
         : type.isInteger(64) ? ElementType::I64
                              : ElementType::F32;
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
    evaluation.results.push_back(::bngrad::computeReference(problem).gradInput);
  }
  for (auto [i, result] : llvm::enumerate(evaluation.results)) {
    if (!result)
      continue;
    ElementType type = evaluation.resultTypes[i];
    for (auto [j, value] : llvm::enumerate(result->value)) {
      ::bngrad::storeRounded(type, table->results[i], j, value);
      // What goes on from here starts at the rounded value.
      double stored = ::bngrad::loadAsDouble(type, table->results[i], j);
      table->errors[i][j] =
          getGreatestError(type, stored, value, result->bound[j]);
    }
  }
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

/// Replaces `op`, a bngrad op, by a call of kReference. Returns what has become
/// of its results and the f64 tensors of their errors (null: exact); `errors`
/// are those of the operands.
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

/// True if the results of a bngrad op are linear in this operand of it, so that
/// the reference knows what an error of it makes of them.
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
  PlainProgram(ModuleOp module, func::FuncOp function)
      : module(module), function(function) {}

  /// Rewrites the function. It then returns its results and after them the
  /// bounds that the expectations refer to.
  ///
  /// Errors: one line and failure for a result whose bound does not follow.
  LogicalResult build();

  ArrayRef<Expectation> getExpectations() const { return expectations; }

  /// Compiles the function and runs it; the results and the bounds.
  FailureOr<std::vector<Array>> run(Program &program,
                                    MutableArrayRef<Array> arguments);

private:
  void visit(Operation *op, func::FuncOp reference);
  FailureOr<Expectation> expect(unsigned i, Value value);

  ModuleOp module;
  func::FuncOp function;
  std::vector<Expectation> expectations;
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

/// The name of a result of a bngrad op.
static std::string getResultName(OpResult result) {
  // Names of several results are part of the assembly; one result has none.
  std::string name = "grad_input";
  if (auto named = dyn_cast<OpAsmOpInterface>(result.getOwner()))
    named.getAsmResultNames([&](Value value, StringRef valueName) {
      if (value == result)
        name = valueName.str();
    });
  return name;
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
                 "' of an operand that was computed from another gradient";
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
  if ((isExact && reason.empty()) || isa<tensor::DimOp>(op))
    return;
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

FailureOr<Expectation> PlainProgram::expect(unsigned i, Value value) {
  if (auto found = unknown.find(value); found != unknown.end())
    return reportError(printLocation(value.getLoc()) + ": result " + Twine(i) +
                       ": expected a bound that can be derived, got " +
                       found->second);
  Expectation expectation;
  expectation.name = "value";
  expectation.location = printLocation(value.getLoc());
  if (auto found = gradients.find(value); found != gradients.end()) {
    expectation.name = names.lookup(value);
    std::tie(expectation.evaluation, expectation.result) = found->second;
  } else if (Value error = errors.lookup(value)) {
    expectation.errorResult = function.getNumResults() + returnedErrors.size();
    returnedErrors.push_back(error);
  }
  return expectation;
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
    FailureOr<Expectation> expectation = expect(i, value);
    if (failed(expectation))
      return failure();
    expectations.push_back(*expectation);
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

FailureOr<std::vector<Array>>
PlainProgram::run(Program &program, MutableArrayRef<Array> arguments) {
  OneLineDiagnostics diagnostics(module.getContext());
  PassManager pm(module.getContext());
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
  if (failed(results))
    return failure();
  for (auto [i, expectation] : llvm::enumerate(expectations)) {
    if (expectation.errorResult < 0)
      continue;
    std::string error;
    std::vector<int64_t> shape = (*results)[i].shape;
    if (!allocateArray(ElementType::F64, shape, results->emplace_back(), error))
      return reportError("--check: " + error);
  }
  if (failed(jit->call(kCheck, arguments, *results)))
    return failure();
  return results;
}

/// What each result is held to; null: equality with `expected`. `derived` owns
/// those that are no result of a bngrad op.
static std::vector<const ::bngrad::ReferenceResult *>
collectReferences(ArrayRef<Expectation> expectations, ArrayRef<Array> expected,
                  std::vector<::bngrad::ReferenceResult> &derived) {
  derived.resize(expectations.size());
  std::vector<const ::bngrad::ReferenceResult *> references;
  for (auto [i, expectation] : llvm::enumerate(expectations)) {
    references.push_back(nullptr);
    if (expectation.evaluation >= 0) {
      const auto &result =
          evaluations[expectation.evaluation].results[expectation.result];
      references.back() = result ? &*result : nullptr;
    } else if (expectation.errorResult >= 0) {
      const Array &values = expected[i];
      const Array &errors = expected[expectation.errorResult];
      for (int64_t j = 0, e = values.numElements(); j < e; ++j) {
        derived[i].value.push_back(
            ::bngrad::loadAsDouble(values.type, values.data.data(), j));
        derived[i].bound.push_back(
            ::bngrad::loadAsDouble(errors.type, errors.data.data(), j));
      }
      references.back() = &derived[i];
    }
  }
  return references;
}

/// The first element that is not checked because its bound overflows; the
/// exact value of an element may.
static std::optional<int64_t>
findWithoutBound(ElementType type, const ::bngrad::ReferenceResult &reference) {
  double largest = ::bngrad::largestFinite(type);
  for (auto [i, bound] : llvm::enumerate(reference.bound))
    if (!(bound <= largest) &&
        std::isfinite(::bngrad::roundTo(type, reference.value[i])))
      return i;
  return std::nullopt;
}

/// |l - r|; infinite if only one is NaN.
static double getDistance(ElementType type, const void *l, const void *r,
                          int64_t index) {
  if (type == ElementType::I64) {
    // As doubles, neighbours above 2^53 are equal.
    int64_t left = static_cast<const int64_t *>(l)[index];
    int64_t right = static_cast<const int64_t *>(r)[index];
    return static_cast<double>(static_cast<uint64_t>(std::max(left, right)) -
                               static_cast<uint64_t>(std::min(left, right)));
  }
  double distance = std::fabs(::bngrad::loadAsDouble(type, l, index) -
                              ::bngrad::loadAsDouble(type, r, index));
  return std::isnan(distance) ? std::numeric_limits<double>::infinity()
                              : distance;
}

/// Compares `result` with what it must be, bit for bit.
static ::bngrad::CheckSummary compareExactly(const Array &result,
                                             const Array &expected) {
  ::bngrad::CheckSummary summary;
  const char *l = result.data.data(), *r = expected.data.data();
  size_t size = ::bngrad::byteSize(result.type);
  for (int64_t i = 0, e = result.numElements(); i < e; ++i) {
    if (std::memcmp(l + i * size, r + i * size, size) == 0)
      continue;
    summary.ok = false;
    summary.maxError =
        std::max(summary.maxError, getDistance(result.type, l, r, i));
  }
  return summary;
}

LogicalResult mlir::bngrad::checkResults(Program &program,
                                         MutableArrayRef<Array> arguments,
                                         MutableArrayRef<Array> results) {
  OwningOpRef<ModuleOp> module = program.getModule().clone();
  PlainProgram plain(*module,
                     module->lookupSymbol<func::FuncOp>(Program::kSymbol));
  if (failed(plain.build()))
    return failure();
  FailureOr<std::vector<Array>> expected = plain.run(program, arguments);
  if (failed(expected))
    return failure();

  std::vector<::bngrad::ReferenceResult> derived;
  std::vector<const ::bngrad::ReferenceResult *> references =
      collectReferences(plain.getExpectations(), *expected, derived);
  for (auto [i, reference] : llvm::enumerate(references)) {
    if (!reference)
      continue;
    if (auto index = findWithoutBound(results[i].type, *reference))
      return reportError(plain.getExpectations()[i].location + ": result " +
                         Twine(i) +
                         ": expected a bound that can be derived, got one "
                         "that overflows at element " +
                         Twine(*index));
  }

  bool ok = true;
  for (auto [i, expectation] : llvm::enumerate(plain.getExpectations())) {
    const Array &result = results[i];
    ::bngrad::CheckSummary summary =
        references[i] ? ::bngrad::checkResult(result.type, result.data.data(),
                                              *references[i])
                      : compareExactly(result, (*expected)[i]);
    llvm::outs() << "result " << i << " " << expectation.name << " max_error "
                 << llvm::format("%.3g", summary.maxError) << " bound "
                 << llvm::format("%.3g", summary.bound)
                 << (summary.ok ? " ok" : " FAILED") << "\n";
    ok &= summary.ok;
  }
  return success(ok);
}
