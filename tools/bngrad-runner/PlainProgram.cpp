//===- PlainProgram.cpp - the program without our passes ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlainProgram.h"
#include "Call.h"
#include "ErrorBounds.h"
#include "ReferenceCall.h"
#include "RegionBounds.h"
#include "SumBounds.h"
#include "common/Diagnostics.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;
using ::bngrad::ElementType;

static constexpr StringLiteral kCheck = "bngrad_runner_check";

namespace {
/// Where the expectation of one result of the function comes from.
struct Source {
  std::string name, location;
  int64_t evaluation = -1;  // of its bngrad op; -1 if none
  unsigned result = 0;      // of that op
  int64_t errorResult = -1; // the result with its bounds; -1 if exact
};

/// The program without our passes: bngrad ops become calls of the reference,
/// and each value is accompanied by a bound of how far the compiled program's
/// value may be from it.
class PlainProgram {
public:
  PlainProgram(ModuleOp module, func::FuncOp function, SumOrder sumOrder)
      : module(module), function(function), sumOrder(sumOrder), calls(module) {}

  /// Rewrites the function. It then returns its results, followed by the bounds
  /// that the expectations refer to.
  ///
  /// Errors: one line and failure for a result whose bound does not follow.
  LogicalResult build();

  /// Compiles the function and runs it.
  FailureOr<std::vector<Expectation>> run(Program &program,
                                          MutableArrayRef<Array> arguments);

private:
  LogicalResult visit(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitRegions(Operation *op);
  LogicalResult visitGradient(BatchNormOpInterface op, std::string reason);
  LogicalResult visitSums(Operation *op);
  LogicalResult visitBounded(Operation *op);
  FailureOr<Source> findSource(unsigned i, Value value);

  ModuleOp module;
  func::FuncOp function;
  SumOrder sumOrder;
  ReferenceCalls calls;
  std::vector<Source> sources; // by result
  SmallVector<Value> returnedErrors;

  /// Values of the original program that get a bound.
  DenseSet<Value> inexact;
  // By value; absent if exact.
  DenseMap<Value, Value> errors;
  /// The reason why a value has no bound.
  DenseMap<Value, std::string> unknown;
  /// The call of the reference and the number of its result, by value.
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

/// Replaces `op` by a call of the reference. `reason`: why operands lack
/// bounds.
LogicalResult PlainProgram::visitGradient(BatchNormOpInterface op,
                                          std::string reason) {
  for (OpOperand &operand : op->getOpOperands())
    if (errors.contains(operand.get()) &&
        !getInfo(op.getOperandRole(operand)).takesErrors && reason.empty())
      reason = "'" + op->getName().getStringRef().str() +
               "' of an operand that was computed from another op of bngrad or "
               "a sum in any order";
  ArrayRef<Role> roles = op.getResultRoles();
  FailureOr<SmallVector<BoundedValue>> results =
      calls.replace(op, [&](Value value) { return errors.lookup(value); });
  if (failed(results))
    return failure();
  for (auto [i, result] : llvm::enumerate(*results)) {
    gradients[result.value] = {calls.getEvaluations().size() - 1, i};
    names[result.value] = stringifyRole(roles[i]).str();
    if (!reason.empty())
      unknown[result.value] = reason;
    else if (result.error)
      errors[result.value] = result.error;
  }
  return success();
}

/// Adds the bounds of the results of `op`, which follow from its operands'.
LogicalResult PlainProgram::visitBounded(Operation *op) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  FailureOr<SmallVector<Value>> bounds = buildErrorBounds(
      b, op, [&](Value value) { return errors.lookup(value); });
  if (failed(bounds))
    return failure();
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
  return success();
}

/// Replaces a branch or loop by one that computes the bounds of its results,
/// too.
LogicalResult PlainProgram::visitRegions(Operation *op) {
  std::string reason;
  auto findReason = [&](ValueRange values) {
    for (Value value : values)
      if (auto found = unknown.find(value); found != unknown.end())
        reason = found->second;
  };
  findReason(op->getOperands());
  if (isSumInAnyOrder(op))
    reason =
        "a sum in any order by '" + op->getName().getStringRef().str() + "'";
  else if (llvm::any_of(getControl(op),
                        [&](Value value) { return inexact.contains(value); }))
    reason = "a branch or loop of '" + op->getName().getStringRef().str() +
             "' that depends on an op of bngrad or a sum in any order";
  else if (!areBoundable(op,
                         [&](Value value) { return inexact.contains(value); }))
    reason =
        "a value other than a tensor, computed from an op of bngrad, of '" +
        op->getName().getStringRef().str() + "'";
  bool isLoop = isa<LoopLikeOpInterface>(op);
  SmallVector<Block *> blocks;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      blocks.push_back(&block);
  RegionErrors regionErrors = {
      [&](Value value) { return reason.empty() && inexact.contains(value); },
      [&](OpBuilder &b, Value value) {
        return getErrorOrZero(b, value,
                              [&](Value v) { return errors.lookup(v); });
      },
      [&](Value value, Value error) {
        inexact.insert(value);
        errors[value] = error;
      },
      [&](Block &block) {
        if (!reason.empty())
          for (Value argument : block.getArguments())
            unknown[argument] = reason;
        return visit(block);
      }};
  FailureOr<SmallVector<Value>> results = buildRegionBounds(op, regionErrors);
  if (failed(results))
    return failure();
  for (Block *block : blocks) {
    ValueRange given = block->getTerminator()->getOperands();
    // Another iteration may change it to any value.
    if (isLoop)
      findReason(given);
    else
      for (auto [value, result] : llvm::zip(given, *results))
        if (auto found = unknown.find(value); found != unknown.end())
          unknown[result] = std::string(found->second);
  }
  if (!reason.empty())
    for (Value result : *results)
      unknown[result] = reason;
  return success();
}

LogicalResult PlainProgram::visit(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops)
    if (failed(visit(op)))
      return failure();
  return success();
}

/// Visits `op`, whose operands have been visited.
///
/// Errors: a diagnostic and failure for a gradient that the reference cannot
///         compute.
LogicalResult PlainProgram::visit(Operation *op) {
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
  if (auto gradient = dyn_cast<BatchNormOpInterface>(op))
    return visitGradient(gradient, reason);
  if (hasBoundedRegions(op))
    return visitRegions(op);

  // A size does not depend on the values.
  bool isSum = isOrderFree(op);
  if ((isExact && reason.empty() && !isSum) || isa<tensor::DimOp>(op))
    return success();
  if (reason.empty()) {
    if (succeeded(isSum ? visitSums(op) : visitBounded(op)))
      return success();
    reason = (isSum ? "a sum in any order by '"
                    : "a value computed from an op of bngrad by '") +
             op->getName().getStringRef().str() + "'";
  }
  for (Value result : op->getResults())
    unknown[result] = reason;
  return success();
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
  WalkResult nested = function.walk([&](Operation *op) {
    if (!isa<BatchNormOpInterface>(op))
      return WalkResult::advance();
    Operation *parent = op->getParentOp();
    while (parent != function && hasBoundedRegions(parent))
      parent = parent->getParentOp();
    if (parent == function)
      return WalkResult::advance();
    op->emitError() << "--check: expected ops of bngrad outside of regions, or "
                       "in those of scf.if, index_switch, for, while and an "
                       "execute_region of one block, got one in '"
                    << parent->getName() << "'";
    return WalkResult::interrupt();
  });
  if (nested.wasInterrupted())
    return failure();
  // Convert tensor arithmetic and named ops to generics, which have bounds.
  PassManager pm(module.getContext());
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  pm.addNestedPass<func::FuncOp>(createLinalgGeneralizeNamedOpsPass());
  if (failed(pm.run(module)))
    return failure();

  inexact = findInexactValues(function);
  if (failed(visit(function.front())))
    return failure();
  auto returnOp = cast<func::ReturnOp>(function.back().getTerminator());
  for (auto [i, value] : llvm::enumerate(returnOp.getOperands())) {
    FailureOr<Source> source = findSource(i, value);
    if (failed(source))
      return failure();
    sources.push_back(std::move(*source));
  }
  returnOp->insertOperands(returnOp->getNumOperands(), returnedErrors);
  Builder b(module.getContext());
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(),
                                             returnOp.getOperandTypes()));
  function.setResAttrsAttr(nullptr);
  function.setName(kCheck);
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  return success();
}

/// Converts values and their bounds to a result of the reference.
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
  pm.addNestedPass<func::FuncOp>(createBNGradLinalgToLoopsPass());
  pm.addPass(createBNGradReturnStatusPass());
  addCpuLowerPasses(pm);
  if (failed(pm.run(module)))
    return failure();
  FailureOr<CompiledProgram> code =
      CompiledProgram::create(module, {ReferenceCalls::getSymbol()});
  if (failed(code))
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
  if (failed(call(*code, kCheck, arguments, *results)))
    return failure();

  std::vector<Expectation> expectations;
  for (auto [i, source] : llvm::enumerate(sources)) {
    Expectation &expectation = expectations.emplace_back();
    expectation.name = source.name;
    expectation.location = source.location;
    if (source.evaluation >= 0)
      expectation.reference =
          calls.getEvaluations()[source.evaluation]->results[source.result];
    else if (source.errorResult >= 0)
      expectation.reference =
          makeReferenceResult((*results)[i], (*results)[source.errorResult]);
    expectation.value = std::move((*results)[i]);
  }
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
