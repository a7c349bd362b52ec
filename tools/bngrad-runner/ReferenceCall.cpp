//===- ReferenceCall.cpp - calls of the reference -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceCall.h"
#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::ElementType;
using ::bngrad::ReferenceProblem;
using ::bngrad::ReferenceResult;
using ::bngrad::ReferenceResults;

static constexpr StringLiteral kReference = "bngrad_runner_reference";

namespace {
/// The arguments of generated code: addresses by role (0 if absent), and sizes.
struct ReferenceTable {
  static constexpr unsigned kNumRoles = getMaxEnumValForRole() + 1;
  void *operands[kNumRoles];
  double *operandErrors[kNumRoles];
  void *results[kNumRoles];
  double *resultErrors[kNumRoles]; // how far a computed result may be from it
  int64_t sizes[1];                // of input, as many as it has dims
};
static_assert(sizeof(ReferenceTable) ==
                  (4 * ReferenceTable::kNumRoles + 1) * sizeof(int64_t),
              "generated code fills the table as an array of i64");
} // namespace

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// How far any result that is accepted for `exact` may be from `stored`, its
/// rounding. 0 if both are the same infinity, or NaN.
static double getGreatestError(ElementType type, double stored, double exact,
                               double bound) {
  double low = ::bngrad::roundTo(type, exact - bound);
  double high = ::bngrad::roundTo(type, exact + bound);
  if (low == high || !std::isfinite(exact))
    return 0;
  return std::max(high - stored, stored - low);
}

/// Sets the operand of `role` to the elements `data`, each computed with at
/// most the error in `error` (null if exact).
static void setOperand(ReferenceProblem &problem, Role role, const void *data,
                       const double *error) {
  switch (role) {
  case Role::GradOutput:
    problem.gradOutput = data;
    problem.gradOutputError = error;
    return;
  case Role::Input:
    problem.input = data;
    return;
  case Role::Mask:
    problem.mask = static_cast<const uint8_t *>(data);
    return;
  case Role::Scale:
    problem.scale = data;
    return;
  case Role::Mean:
    problem.mean = data;
    return;
  case Role::Variance:
  case Role::InvStd:
    problem.statistic = data;
    return;
  case Role::Sums:
    problem.sums = data;
    problem.sumsError = error;
    return;
  case Role::Count:
    problem.count = *static_cast<const int64_t *>(data);
    return;
  case Role::GradInput:
  case Role::GradScale:
  case Role::GradOffset:
    break;
  }
  llvm_unreachable("expected the role of an operand");
}

/// True if setOperand supports errors of an operand of `role`.
static bool takesError(Role role) {
  return role == Role::GradOutput || role == Role::Sums;
}

/// Adds the sizes and pointers of a call.
static void readTable(const ReferenceTable &table, int64_t rank,
                      ReferenceProblem &problem) {
  for (unsigned i : llvm::seq(ReferenceTable::kNumRoles))
    if (const void *data = table.operands[i])
      setOperand(problem, static_cast<Role>(i), data, table.operandErrors[i]);
  problem.shape.assign(table.sizes, table.sizes + rank);
}

static int64_t computeCount(const ReferenceProblem &problem) {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(problem.shape))
    if (!llvm::is_contained(problem.featureDims, dim))
      count *= size;
  return count;
}

namespace {
/// The formulas of one problem. The three gradients are computed at once.
class FormulaEvaluator {
public:
  explicit FormulaEvaluator(const ReferenceProblem &problem)
      : problem(problem) {}

  /// The result of `formula` as a value of `type`; null if it is exact.
  std::shared_ptr<const ReferenceResult> evaluate(ReferenceFormula formula,
                                                  ElementType type) {
    switch (formula) {
    case ReferenceFormula::GradInput:
      return getGradient(&ReferenceResults::gradInput);
    case ReferenceFormula::GradScale:
      return getGradient(&ReferenceResults::gradScale);
    case ReferenceFormula::GradOffset:
      return getGradient(&ReferenceResults::gradOffset);
    case ReferenceFormula::Sums:
      return std::make_shared<const ReferenceResult>(
          ::bngrad::computeReferenceSums(problem, type));
    case ReferenceFormula::Count:
      return nullptr;
    }
    llvm_unreachable("unknown formula");
  }

private:
  std::shared_ptr<const ReferenceResult>
  getGradient(ReferenceResult ReferenceResults::*member) {
    if (!gradients)
      gradients = std::make_shared<ReferenceResults>(
          ::bngrad::computeReference(problem));
    return {gradients, &(*gradients.*member)};
  }

  const ReferenceProblem &problem;
  std::shared_ptr<ReferenceResults> gradients;
};
} // namespace

/// Stores the rounded values of `result` in `values`, and how far a computed
/// value may be from each in `errors`.
static void storeResult(const ReferenceResult &result, ElementType type,
                        void *values, double *errors) {
  for (auto [i, value] : llvm::enumerate(result.value)) {
    ::bngrad::storeRounded(type, values, i, value);
    // Later ops use the rounded value.
    double stored = ::bngrad::loadAsDouble(type, values, i);
    errors[i] = getGreatestError(type, stored, value, result.bound[i]);
  }
}

/// Called by generated code with the addresses of an Evaluation and of its
/// ReferenceTable.
static void evaluateReference(int64_t evaluationAddress, int64_t tableAddress) {
  Evaluation &evaluation = *reinterpret_cast<Evaluation *>(evaluationAddress);
  const auto &table = *reinterpret_cast<const ReferenceTable *>(tableAddress);
  readTable(table, evaluation.rank, evaluation.problem);
  FormulaEvaluator evaluator(evaluation.problem);
  evaluation.results.clear();
  for (const ReferenceOutput &output : evaluation.outputs) {
    unsigned entry = static_cast<unsigned>(output.role);
    auto result = evaluator.evaluate(output.formula, output.type);
    if (result)
      storeResult(*result, output.type, table.results[entry],
                  table.resultErrors[entry]);
    else
      *static_cast<int64_t *>(table.results[entry]) =
          computeCount(evaluation.problem);
    evaluation.results.push_back(std::move(result));
  }
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

static ElementType getElementType(Value value) {
  return *getElementType(getElementTypeOrSelf(value));
}

/// Sets the type of the results of `formula` if it affects the bounds.
static void setResultType(ReferenceProblem &problem, ReferenceFormula formula,
                          ElementType type) {
  switch (formula) {
  case ReferenceFormula::GradInput:
    problem.gradInputType = type;
    return;
  case ReferenceFormula::GradScale:
    problem.gradScaleType = type;
    return;
  case ReferenceFormula::GradOffset:
    problem.gradOffsetType = type;
    return;
  case ReferenceFormula::Sums:
  case ReferenceFormula::Count:
    return;
  }
  llvm_unreachable("unknown formula");
}

/// Describes `op` to the reference.
///
/// Errors: a diagnostic and failure for a result without a formula.
static FailureOr<std::unique_ptr<Evaluation>> describe(GradientOpInterface op) {
  auto evaluation = std::make_unique<Evaluation>();
  ReferenceProblem &problem = evaluation->problem;
  Value input = op.getOperandOf(Role::Input);
  evaluation->rank = cast<RankedTensorType>(input.getType()).getRank();
  llvm::append_range(problem.featureDims, op.getFeatureDims());
  problem.dataType = getElementType(input);
  problem.epsilon = op.getEpsilon().convertToDouble();
  problem.globalStatistics = op.getStatistics() == Statistics::Global;
  problem.statisticIsInvStd = op.getOperandOf(Role::InvStd) != nullptr;
  if (Value mean = op.getOperandOf(Role::Mean))
    problem.parameterType = getElementType(mean);
  if (Value sums = op.getOperandOf(Role::Sums))
    problem.sumsType = getElementType(sums);
  for (auto [role, result] :
       llvm::zip_equal(op.getResultRoles(), op->getResults())) {
    FailureOr<ReferenceFormula> formula = op.getReferenceFormula(role);
    if (failed(formula))
      return op.emitError() << "--check: expected a formula of the reference "
                               "for "
                            << stringifyRole(role) << ", got none";
    ElementType type = getElementType(result);
    evaluation->outputs.push_back({role, *formula, type});
    setResultType(problem, *formula, type);
  }
  return evaluation;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {
/// The entries of a ReferenceTable, i64 values.
class TableBuilder {
public:
  TableBuilder(OpBuilder &b, Location loc, GradientOpInterface op)
      : b(b), loc(loc), op(op),
        entries(4 * ReferenceTable::kNumRoles,
                arith::ConstantIntOp::create(b, loc, 0, 64)) {}

  /// Adds the operands, and the errors of operands in which the op is linear.
  ///
  /// Errors: a diagnostic and failure for an error that the reference does not
  ///         support.
  LogicalResult addOperands(function_ref<Value(Value)> getError);
  /// Allocates the results and their errors.
  ///
  /// Errors: a diagnostic and failure if their sizes cannot be reified.
  LogicalResult addResults();
  void addSizes();
  /// Stores the table. Returns its address.
  Value store();
  /// The results, described by `outputs`, and their errors, after the call.
  SmallVector<BoundedValue> getResults(ArrayRef<ReferenceOutput> outputs);

private:
  enum Column { Operands, OperandErrors, Results, ResultErrors };

  Value toI64(Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  }
  Value addressOf(Value buffer) {
    return toI64(
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer));
  }
  MemRefType getBufferType(Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return MemRefType::get(type.getShape(), type.getElementType());
  }
  void setAddress(Column column, Role role, Value buffer) {
    entries[column * ReferenceTable::kNumRoles + static_cast<unsigned>(role)] =
        addressOf(buffer);
  }
  /// The address of a tensor that is only read.
  void setTensor(Column column, Role role, Value tensor) {
    setAddress(column, role,
               bufferization::ToBufferOp::create(b, loc, getBufferType(tensor),
                                                 tensor, /*read_only=*/true));
  }
  Value toTensor(Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    return bufferization::ToTensorOp::create(
        b, loc, RankedTensorType::get(type.getShape(), type.getElementType()),
        buffer, /*restrict=*/true);
  }

  OpBuilder &b;
  Location loc;
  GradientOpInterface op;
  SmallVector<Value> entries;
  /// By result, each with its errors.
  SmallVector<std::pair<Value, Value>> buffers;
};
} // namespace

LogicalResult TableBuilder::addOperands(function_ref<Value(Value)> getError) {
  for (OpOperand &operand : op->getOpOperands()) {
    Role role = op.getOperandRole(operand);
    setTensor(Operands, role, operand.get());
    Value error = getError(operand.get());
    if (!error || !op.isLinearIn(role))
      continue;
    if (!takesError(role))
      return op.emitError() << "--check: expected " << stringifyRole(role)
                            << " without errors, got one that was computed";
    setTensor(OperandErrors, role, error);
  }
  return success();
}

LogicalResult TableBuilder::addResults() {
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(b, op, shapes)))
    return op.emitError() << "--check: expected the sizes of the results to "
                             "follow from the operands";
  for (auto [role, result, shape] :
       llvm::zip_equal(op.getResultRoles(), op->getResults(), shapes)) {
    SmallVector<Value> dynamicSizes;
    for (OpFoldResult size : shape)
      if (auto value = dyn_cast<Value>(size))
        dynamicSizes.push_back(value);
    MemRefType type = getBufferType(result);
    auto errorType = MemRefType::get(type.getShape(), b.getF64Type());
    Value buffer = memref::AllocOp::create(b, loc, type, dynamicSizes);
    Value errors = memref::AllocOp::create(b, loc, errorType, dynamicSizes);
    setAddress(Results, role, buffer);
    setAddress(ResultErrors, role, errors);
    buffers.push_back({buffer, errors});
  }
  return success();
}

void TableBuilder::addSizes() {
  Value input = op.getOperandOf(Role::Input);
  for (int64_t dim :
       llvm::seq(cast<RankedTensorType>(input.getType()).getRank()))
    entries.push_back(toI64(tensor::DimOp::create(b, loc, input, dim)));
}

Value TableBuilder::store() {
  int64_t length = entries.size();
  // Outside of loops, where each iteration would take more of the stack.
  OpBuilder entry = OpBuilder::atBlockBegin(
      &op->getParentOfType<func::FuncOp>().getBody().front());
  Value table = memref::AllocaOp::create(
      entry, loc, MemRefType::get({length}, b.getI64Type()));
  for (auto [i, entry] : llvm::enumerate(entries)) {
    Value index = arith::ConstantIndexOp::create(b, loc, i);
    memref::StoreOp::create(b, loc, entry, table, index);
  }
  return addressOf(table);
}

SmallVector<BoundedValue>
TableBuilder::getResults(ArrayRef<ReferenceOutput> outputs) {
  SmallVector<BoundedValue> results;
  for (auto [output, buffer] : llvm::zip_equal(outputs, buffers)) {
    auto [values, errors] = buffer;
    bool isExact = output.formula == ReferenceFormula::Count;
    results.push_back({toTensor(values), isExact ? Value() : toTensor(errors)});
  }
  return results;
}

ReferenceCalls::ReferenceCalls(ModuleOp module) {
  OpBuilder b(module.getBodyRegion());
  reference = func::FuncOp::create(
      b, module.getLoc(), kReference,
      b.getFunctionType({b.getI64Type(), b.getI64Type()}, {}));
  reference.setPrivate();
}

CompiledProgram::Symbol ReferenceCalls::getSymbol() {
  return {kReference, reinterpret_cast<void *>(&evaluateReference)};
}

FailureOr<SmallVector<BoundedValue>>
ReferenceCalls::replace(GradientOpInterface op,
                        function_ref<Value(Value)> getError) {
  FailureOr<std::unique_ptr<Evaluation>> description = describe(op);
  if (failed(description))
    return failure();
  OpBuilder b(op);
  Location loc = op.getLoc();
  TableBuilder table(b, loc, op);
  if (failed(table.addOperands(getError)) || failed(table.addResults()))
    return failure();
  table.addSizes();
  Value address = table.store();
  const Evaluation &evaluation =
      *evaluations.emplace_back(std::move(*description));
  Value evaluationAddress = arith::ConstantIntOp::create(
      b, loc, reinterpret_cast<int64_t>(&evaluation), 64);
  func::CallOp::create(b, loc, reference,
                       ValueRange{evaluationAddress, address});
  SmallVector<BoundedValue> results = table.getResults(evaluation.outputs);
  for (auto [result, replacement] : llvm::zip_equal(op->getResults(), results))
    result.replaceAllUsesWith(replacement.value);
  op->erase();
  return results;
}
