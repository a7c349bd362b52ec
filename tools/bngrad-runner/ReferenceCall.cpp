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

static constexpr StringLiteral kReference = "bngrad_runner_reference";

namespace {
/// The arguments of generated code: addresses by role (0 if absent), and sizes.
struct ReferenceTable {
  void *operands[kNumRoles];
  double *operandErrors[kNumRoles];
  void *results[kNumRoles];
  double *resultErrors[kNumRoles]; // how far a computed result may be from it
  int64_t sizes[1];                // of input, as many as it has dims
};
static_assert(sizeof(ReferenceTable) == (4 * kNumRoles + 1) * sizeof(int64_t),
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

/// Adds the sizes and pointers of a call.
static void readTable(const ReferenceTable &table, int64_t rank,
                      ReferenceProblem &problem) {
  for (unsigned i : llvm::seq(kNumRoles)) {
    problem.tensors[i].data = table.operands[i];
    problem.tensors[i].error = table.operandErrors[i];
  }
  problem.shape.assign(table.sizes, table.sizes + rank);
}

static bool isExact(const ReferenceOutput &output) {
  return getInfo(output.role).type == RoleType::Integer;
}

static int64_t computeCount(const ReferenceProblem &problem) {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(problem.shape))
    if (!llvm::is_contained(problem.featureDims, dim))
      count *= size;
  return count;
}

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
  ::bngrad::Reference reference(evaluation.problem);
  evaluation.results.clear();
  for (const ReferenceOutput &output : evaluation.outputs) {
    unsigned entry = static_cast<unsigned>(output.role);
    void *values = table.results[entry];
    std::shared_ptr<const ReferenceResult> result;
    if (isExact(output)) {
      *static_cast<int64_t *>(values) = computeCount(evaluation.problem);
    } else {
      result = reference.compute(output.role);
      storeResult(*result, output.type, values, table.resultErrors[entry]);
    }
    evaluation.results.push_back(std::move(result));
  }
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

static ElementType getElementType(Value value) {
  return *getElementType(getElementTypeOrSelf(value));
}

/// Describes `op` to the reference.
static std::unique_ptr<Evaluation> describe(BatchNormOpInterface op) {
  auto evaluation = std::make_unique<Evaluation>();
  ReferenceProblem &problem = evaluation->problem;
  evaluation->rank = op.getDataShape().size();
  llvm::append_range(problem.featureDims, op.getFeatureDims());
  problem.epsilon = op.getEpsilon().convertToDouble();
  problem.globalStatistics = op.getStatistics() == Statistics::Global;
  for (OpOperand &operand : op->getOpOperands())
    problem[op.getOperandRole(operand)].type = getElementType(operand.get());
  for (auto [role, result] :
       llvm::zip_equal(op.getResultRoles(), op->getResults())) {
    ElementType type = getElementType(result);
    evaluation->outputs.push_back({role, type});
    problem[role].type = type;
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
  TableBuilder(OpBuilder &b, Location loc, BatchNormOpInterface op)
      : b(b), loc(loc), op(op),
        entries(4 * kNumRoles, arith::ConstantIntOp::create(b, loc, 0, 64)) {}

  /// Adds the operands, and the errors of operands in which the op is linear.
  void addOperands(function_ref<Value(Value)> getError);
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
    entries[column * kNumRoles + static_cast<unsigned>(role)] =
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
  BatchNormOpInterface op;
  SmallVector<Value> entries;
  /// By result, each with its errors.
  SmallVector<std::pair<Value, Value>> buffers;
};
} // namespace

void TableBuilder::addOperands(function_ref<Value(Value)> getError) {
  for (OpOperand &operand : op->getOpOperands()) {
    Role role = op.getOperandRole(operand);
    setTensor(Operands, role, operand.get());
    Value error = getError(operand.get());
    if (error && getInfo(role).takesErrors)
      setTensor(OperandErrors, role, error);
  }
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
    results.push_back(
        {toTensor(values), isExact(output) ? Value() : toTensor(errors)});
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
ReferenceCalls::replace(BatchNormOpInterface op,
                        function_ref<Value(Value)> getError) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  TableBuilder table(b, loc, op);
  table.addOperands(getError);
  if (failed(table.addResults()))
    return failure();
  table.addSizes();
  Value address = table.store();
  const Evaluation &evaluation = *evaluations.emplace_back(describe(op));
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
