//===- ReferenceCall.cpp - calls of the float64 reference -----------------===//
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

static constexpr StringLiteral kReference = "bngrad_runner_reference";

namespace {
/// The arguments from generated code: addresses by role (0: absent), and sizes.
struct ReferenceTable {
  static constexpr unsigned kNumRoles = getMaxEnumValForRole() + 1;
  void *operands[kNumRoles];
  double *operandErrors[kNumRoles];
  void *results[kNumRoles];
  double *resultErrors[kNumRoles]; // how far a computed result may be from it
  int64_t sizes[1];                // of input, as many as it has dims

  void *getOperand(Role role) const {
    return operands[static_cast<unsigned>(role)];
  }
  const double *getOperandError(Role role) const {
    return operandErrors[static_cast<unsigned>(role)];
  }
};
static_assert(sizeof(ReferenceTable) ==
                  (4 * ReferenceTable::kNumRoles + 1) * sizeof(int64_t),
              "generated code fills the table as an array of i64");
} // namespace

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

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

/// Adds the sizes and pointers of a call.
static void readTable(const ReferenceTable &table, int64_t rank,
                      ::bngrad::ReferenceProblem &problem) {
  problem.gradOutput = table.getOperand(Role::GradOutput);
  problem.input = table.getOperand(Role::Input);
  problem.scale = table.getOperand(Role::Scale);
  problem.mean = table.getOperand(Role::Mean);
  problem.statistic = table.getOperand(
      problem.statisticIsInvStd ? Role::InvStd : Role::Variance);
  problem.mask = static_cast<const uint8_t *>(table.getOperand(Role::Mask));
  problem.sums = table.getOperand(Role::Sums);
  if (void *count = table.getOperand(Role::Count))
    problem.count = *static_cast<const int64_t *>(count);
  problem.gradOutputError = table.getOperandError(Role::GradOutput);
  problem.sumsError = table.getOperandError(Role::Sums);
  problem.shape.assign(table.sizes, table.sizes + rank);
}

static int64_t computeCount(const ::bngrad::ReferenceProblem &problem) {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(problem.shape))
    if (!llvm::is_contained(problem.featureDims, dim))
      count *= size;
  return count;
}

/// The results that are inexact, by role.
static DenseMap<Role, ::bngrad::ReferenceResult>
computeResults(const Evaluation &evaluation) {
  const ::bngrad::ReferenceProblem &problem = evaluation.problem;
  DenseMap<Role, ::bngrad::ReferenceResult> results;
  for (auto [role, type] : llvm::zip_equal(evaluation.roles, evaluation.types))
    switch (role) {
    case Role::Sums:
      results[role] = ::bngrad::computeReferenceSums(problem, type);
      break;
    case Role::GradInput:
    case Role::GradScale:
    case Role::GradOffset:
      // All three at once.
      if (!results.contains(role)) {
        ::bngrad::ReferenceResults gradients =
            ::bngrad::computeReference(problem);
        results[Role::GradInput] = std::move(gradients.gradInput);
        results[Role::GradScale] = std::move(gradients.gradScale);
        results[Role::GradOffset] = std::move(gradients.gradOffset);
      }
      break;
    default:
      break;
    }
  return results;
}

/// Stores the rounded values of `result` in `values`, and how far a computed
/// value may be from each in `errors`.
static void storeResult(const ::bngrad::ReferenceResult &result,
                        ElementType type, void *values, double *errors) {
  for (auto [i, value] : llvm::enumerate(result.value)) {
    ::bngrad::storeRounded(type, values, i, value);
    // Further ops use the rounded value.
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
  auto results = computeResults(evaluation);
  evaluation.results.clear();
  for (auto [role, type] :
       llvm::zip_equal(evaluation.roles, evaluation.types)) {
    unsigned entry = static_cast<unsigned>(role);
    auto &result = evaluation.results.emplace_back();
    if (role == Role::Count) {
      *static_cast<int64_t *>(table.results[entry]) =
          computeCount(evaluation.problem);
      continue;
    }
    storeResult(results[role], type, table.results[entry],
                table.resultErrors[entry]);
    result = std::make_shared<const ::bngrad::ReferenceResult>(
        std::move(results[role]));
  }
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

static ElementType getElementType(Value value) {
  return *getElementType(getElementTypeOrSelf(value));
}

/// Describes `op` to the reference.
static std::unique_ptr<Evaluation> describe(GradientOpInterface op) {
  auto evaluation = std::make_unique<Evaluation>();
  ::bngrad::ReferenceProblem &problem = evaluation->problem;
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
    ElementType type = getElementType(result);
    evaluation->roles.push_back(role);
    evaluation->types.push_back(type);
    if (role == Role::GradInput)
      problem.gradInputType = type;
    else if (role == Role::GradScale)
      problem.gradScaleType = type;
    else if (role == Role::GradOffset)
      problem.gradOffsetType = type;
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

  /// Adds the operands, and the errors of those that the op is linear in.
  void addOperands(function_ref<Value(Value)> getError);
  /// Allocates the results and their errors.
  void addResults();
  void addSizes();
  /// Stores the table. Returns its address.
  Value store();
  /// The results and their errors, after the call.
  SmallVector<BoundedValue> getResults();

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

void TableBuilder::addOperands(function_ref<Value(Value)> getError) {
  for (OpOperand &operand : op->getOpOperands()) {
    Role role = op.getOperandRole(operand);
    setTensor(Operands, role, operand.get());
    if (Value error = getError(operand.get()); error && op.isLinearIn(role))
      setTensor(OperandErrors, role, error);
  }
}

void TableBuilder::addResults() {
  ReifiedRankedShapedTypeDims shapes;
  auto reifying = cast<ReifyRankedShapedTypeOpInterface>(op.getOperation());
  (void)reifying.reifyResultShapes(b, shapes);
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
}

void TableBuilder::addSizes() {
  Value input = op.getOperandOf(Role::Input);
  for (int64_t dim :
       llvm::seq(cast<RankedTensorType>(input.getType()).getRank()))
    entries.push_back(toI64(tensor::DimOp::create(b, loc, input, dim)));
}

Value TableBuilder::store() {
  int64_t length = entries.size();
  Value table = memref::AllocaOp::create(
      b, loc, MemRefType::get({length}, b.getI64Type()));
  for (auto [i, entry] : llvm::enumerate(entries)) {
    Value index = arith::ConstantIndexOp::create(b, loc, i);
    memref::StoreOp::create(b, loc, entry, table, index);
  }
  return addressOf(table);
}

SmallVector<BoundedValue> TableBuilder::getResults() {
  SmallVector<BoundedValue> results;
  for (auto [role, buffer] : llvm::zip_equal(op.getResultRoles(), buffers)) {
    auto [values, errors] = buffer;
    results.push_back(
        {toTensor(values), role == Role::Count ? Value() : toTensor(errors)});
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

Jit::Symbol ReferenceCalls::getSymbol() {
  return {kReference, reinterpret_cast<void *>(&evaluateReference)};
}

SmallVector<BoundedValue>
ReferenceCalls::replace(GradientOpInterface op,
                        function_ref<Value(Value)> getError) {
  evaluations.push_back(describe(op));
  OpBuilder b(op);
  Location loc = op.getLoc();
  TableBuilder table(b, loc, op);
  table.addOperands(getError);
  table.addResults();
  table.addSizes();
  Value address = table.store();
  Value evaluation = arith::ConstantIntOp::create(
      b, loc, reinterpret_cast<int64_t>(evaluations.back().get()), 64);
  func::CallOp::create(b, loc, reference, ValueRange{evaluation, address});
  SmallVector<BoundedValue> results = table.getResults();
  for (auto [result, replacement] : llvm::zip_equal(op->getResults(), results))
    result.replaceAllUsesWith(replacement.value);
  op->erase();
  return results;
}
