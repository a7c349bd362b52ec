//===- Program.cpp - an IR file, ready to run -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Besides the function, a second one is compiled that computes only shapes: it
// reports sizes that disagree and the sizes of the results. Upstream's run-time
// verification and shape resolution derive it from the function, so that it
// covers any op with those interfaces.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Call.h"
#include "Processes.h"
#include "SumBounds.h"

#include "common/Diagnostics.h"
#include "common/Input.h"

#include "BNGrad/Compiler/Interface.h"
#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/ShapeFunction.h"
#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <cstdlib>

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;
using ::bngrad::ElementType;

static constexpr StringLiteral kShapes = "bngrad_runner_shapes";
static constexpr StringLiteral kReportMismatch = "bngrad_runner_mismatch";
static constexpr StringLiteral kReportSize = "bngrad_runner_size";

std::optional<ElementType> mlir::bngrad::getElementType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  for (ElementType known : ::bngrad::kElementTypes)
    if (text == ::bngrad::name(known))
      return known;
  return std::nullopt;
}

static std::optional<ArrayType> getArrayType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getEncoding())
    return std::nullopt;
  std::optional<ElementType> elementType =
      getElementType(tensor.getElementType());
  if (!elementType)
    return std::nullopt;
  return ArrayType{*elementType, tensor.getShape().vec()};
}

/// Reduces `module` to one function, `entry`, at the bngrad level.
static LogicalResult isolate(ModuleOp module, StringRef entry,
                             const ImportOptions &options) {
  for (auto function : module.getOps<func::FuncOp>())
    function.setVisibility(function.getSymName() == entry
                               ? SymbolTable::Visibility::Public
                               : SymbolTable::Visibility::Private);
  OneLineDiagnostics diagnostics(module.getContext());
  if (failed(importModule(module, options)))
    return failure();
  // Unlike SymbolTable::rename this does not visit the rest of the file.
  // Nothing refers to the function, as it does not call itself.
  module.lookupSymbol<func::FuncOp>(entry).setName(Program::kSymbol);
  return success();
}

/// The function named `entry`, or the only public one.
static FailureOr<func::FuncOp> findEntry(ModuleOp module, StringRef path,
                                         StringRef entry) {
  SmallVector<func::FuncOp> candidates;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    if (function.getSymName() == entry)
      return function;
    if (entry.empty() && function.isPublic())
      candidates.push_back(function);
  }
  if (!entry.empty())
    return reportError(path + ": expected a function " + printSymbol(entry) +
                       " with a body, got none");
  if (candidates.size() != 1)
    return reportError(path + ": expected exactly one public function, got " +
                       Twine(candidates.size()) +
                       (candidates.empty() ? "" : "; choose one with --entry"));
  return candidates.front();
}

FailureOr<Program> Program::load(MLIRContext *context, StringRef path,
                                 StringRef entry,
                                 const ImportOptions &options) {
  // The dialects of the shape function.
  context->loadDialect<arith::ArithDialect, scf::SCFDialect,
                       tensor::TensorDialect>();
  Program program;
  program.source = readModule(context, path);
  if (!program.source)
    return failure();
  FailureOr<func::FuncOp> function = findEntry(*program.source, path, entry);
  if (failed(function))
    return failure();
  program.entry = function->getSymName().str();
  if (failed(isolate(*program.source, program.entry, options)))
    return failure();

  if (failed(program.setTypes(*function)))
    return failure();
  return program;
}

LogicalResult Program::setTypes(func::FuncOp function) {
  argumentTypes.clear();
  resultTypes.clear();
  auto addType = [&](StringRef what, unsigned i, Type type,
                     std::vector<ArrayType> &types) -> LogicalResult {
    std::optional<ArrayType> arrayType = getArrayType(type);
    if (!arrayType) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << " to be a ranked tensor of ";
      llvm::interleaveComma(
          ::bngrad::kElementTypes, os,
          [&](ElementType known) { os << ::bngrad::name(known); });
      os << ", got '" << type << "'";
      return reportError(printSymbol(entry) + ": expected " + what + " " +
                         Twine(i) + text);
    }
    types.push_back(std::move(*arrayType));
    return success();
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(addType("argument", i, type, argumentTypes)))
      return failure();
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(addType("result", i, type, resultTypes)))
      return failure();
  return success();
}

/// Removes shard annotations, which are the identity on whole arrays.
static void removeAnnotations(ModuleOp module) {
  SmallVector<Operation *> annotations;
  module.walk([&](Operation *op) {
    if (auto annotation = dyn_cast<shard::ShardOp>(op))
      annotation.getResult().replaceAllUsesWith(annotation.getSrc());
    if (isa<shard::ShardOp, shard::ShardingOp, shard::GridOp>(op))
      annotations.push_back(op);
  });
  // Users come after the ops that they use.
  for (Operation *op : llvm::reverse(annotations))
    op->erase();
}

FailureOr<std::optional<Program>> Program::partition() {
  OneLineDiagnostics diagnostics(source->getContext());
  std::optional<Program> part;
  part.emplace();
  part->source = source->clone();
  part->entry = entry;
  auto function = part->source->lookupSymbol<func::FuncOp>(kSymbol);
  // Errors use the function's name in the file.
  function.setName(entry);
  PassManager pm(source->getContext());
  addCpuStages(pm, Stage::Partition, Stage::Partition, {});
  if (failed(pm.run(*part->source)))
    return failure();
  function.setName(kSymbol);
  part->sharding = Sharding::get(function);
  removeAnnotations(*source);
  isOfAll = true;
  if (part->sharding.grid.empty())
    return std::optional<Program>();
  if (failed(part->setTypes(function)))
    return failure();
  return part;
}

ArgumentRole Program::getRole(unsigned argument) {
  auto function = source->lookupSymbol<func::FuncOp>(kSymbol);
  SmallVector<Value> worklist = {function.getArgument(argument)};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (auto cast = dyn_cast<tensor::CastOp>(user))
        worklist.push_back(cast.getResult());
      if (auto gradient = dyn_cast<BatchNormOpInterface>(user);
          gradient && gradient.getStatistic() == value)
        return ArgumentRole::Statistic;
    }
  }
  return ArgumentRole::Data;
}

/// Declares a function of the runner that generated code calls with integers.
static func::FuncOp declare(ModuleOp module, StringRef name,
                            unsigned numArguments) {
  OpBuilder b(module.getBodyRegion());
  SmallVector<Type> types(numArguments, b.getI64Type());
  auto function = func::FuncOp::create(b, module.getLoc(), name,
                                       b.getFunctionType(types, {}));
  function.setPrivate();
  return function;
}

/// Adds kShapes to `module`: a copy of `function` that computes no data.
static LogicalResult addShapeFunction(ModuleOp module, func::FuncOp function,
                                      std::vector<SizeErrorText> &texts) {
  func::FuncOp reportMismatch = declare(module, kReportMismatch, 3);
  func::FuncOp reportSize = declare(module, kReportSize, 3);
  func::FuncOp shapes = function.clone();
  shapes.setName(kShapes);
  module.push_back(shapes);

  auto emitError = [&](OpBuilder &b, Location loc, int64_t number, Value actual,
                       Value expected) {
    Value which = arith::ConstantIntOp::create(b, loc, number, 64);
    func::CallOp::create(b, loc, reportMismatch,
                         ValueRange{which, actual, expected});
  };
  SmallVector<Type> resultTypes(function.getResultTypes());
  auto emitSizes = [&](OpBuilder &b, func::ReturnOp returnOp) {
    Location loc = returnOp.getLoc();
    auto size = returnOp.getOperands().begin();
    for (auto [i, type] : llvm::enumerate(resultTypes)) {
      auto tensor = cast<RankedTensorType>(type);
      for (int64_t dim : llvm::seq(tensor.getRank())) {
        if (!tensor.isDynamicDim(dim))
          continue;
        Value args[] = {
            arith::ConstantIntOp::create(b, loc, i, 64),
            arith::ConstantIntOp::create(b, loc, dim, 64),
            arith::IndexCastOp::create(b, loc, b.getI64Type(), *size++)};
        func::CallOp::create(b, loc, reportSize, args);
      }
    }
    returnOp->setOperands(ValueRange());
  };
  std::vector<SizeError> errors;
  if (failed(makeShapeFunction(shapes, emitError, emitSizes, errors)))
    return failure();
  for (const SizeError &error : errors)
    texts.push_back(
        {printLocation(error.loc) + ": " + error.message, error.hasSizes});
  return success();
}

namespace {
/// The report of the running shape function. Generated code calls plain
/// functions, so there is only one at a time.
struct ShapeReport {
  ArrayRef<SizeErrorText> errors;            // of the checks, by number
  std::vector<std::array<int64_t, 3>> sizes; // result, dim, size
  bool isOfAll = false;                      // of all processes
};
} // namespace

static ShapeReport shapeReport;

static void reportMismatch(int64_t number, int64_t actual, int64_t expected) {
  auto [text, hasSizes] = shapeReport.errors[number];
  if (hasSizes)
    text += " " + std::to_string(expected) + ", got " + std::to_string(actual);
  (void)reportError(text);
  Processes::printErrors(shapeReport.isOfAll);
  // The rest of the function might access memory out of bounds or take long.
  std::_Exit(1);
}

static void reportSize(int64_t result, int64_t dim, int64_t size) {
  shapeReport.sizes.push_back({result, dim, size});
}

/// The kinds of the schedules that a function's ops carry, each once, in order.
static std::string collectSchedules(func::FuncOp function) {
  llvm::SmallSetVector<StringRef, 2> found;
  function.walk([&](Operation *op) {
    if (auto schedule =
            op->getAttrOfType<ScheduleAttr>(ScheduleAttr::kAttrName))
      found.insert(stringifyScheduleKind(schedule.getKind()));
  });
  return found.empty() ? "none" : llvm::join(found, ",");
}

static bool areSumsScheduled(func::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    return isa<linalg::LinalgOp>(op) && isOrderFree(op) &&
                   !op->hasAttr(ScheduleAttr::kAttrName)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// Adds the stages of the target from `first` to `last`.
static void addStages(PassManager &pm, const Execution &execution, Stage first,
                      Stage last) {
  if (execution.chip.empty())
    return addCpuStages(pm, first, last,
                        {execution.schedule, execution.target});
  CudaOptions options;
  options.schedule = execution.schedule;
  options.kernels.chip = execution.chip;
  options.activeClusters = execution.activeClusters;
  addCudaStages(pm, first, last, options);
}

LogicalResult Program::addEntryPoints(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>(kSymbol);
  if (failed(addShapeFunction(module, function, sizeErrors)))
    return failure();
  for (StringRef name : {kSymbol, kShapes})
    module.lookupSymbol(name)->setAttr(
        LLVM::LLVMDialect::getEmitCWrapperAttrName(),
        UnitAttr::get(module.getContext()));
  return success();
}

LogicalResult Program::chooseSchedules(ModuleOp module,
                                       const Execution &execution) {
  PassManager pm(module.getContext());
  // As in all compilations, only the result is verified.
  pm.enableVerifier(false);
  addStages(pm, execution, Stage::Decompose, Stage::Group);
  if (failed(pm.run(module)))
    return failure();
  auto function = module.lookupSymbol<func::FuncOp>(kSymbol);
  schedules = collectSchedules(function);
  scheduledSums = areSumsScheduled(function);
  return success();
}

/// Lowers `module`, whose groups have schedules.
static LogicalResult lowerModule(ModuleOp module, const Execution &execution) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  addStages(pm, execution, Stage::Bufferize, Stage::Apply);
  pm.addPass(createBNGradReturnStatusPass());
  addStages(pm, execution, Stage::Lower, Stage::Lower);
  if (failed(pm.run(module)) || failed(verify(module)))
    return failure();
  // Only the C wrappers are called. The engine would wrap them again.
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function.getSymName() == Program::kSymbol ||
        function.getSymName() == kShapes)
      function.setLinkage(LLVM::Linkage::Internal);
  return success();
}

LogicalResult Program::generateCode(ModuleOp module, StringRef library) {
  FailureOr<CompiledProgram> created = CompiledProgram::create(
      module,
      {{kReportMismatch, reinterpret_cast<void *>(&reportMismatch)},
       {kReportSize, reinterpret_cast<void *>(&reportSize)}},
      library);
  if (failed(created))
    return failure();
  code = std::move(*created);
  return success();
}

LogicalResult Program::compile(const Execution &execution) {
  auto start = std::chrono::steady_clock::now();
  OneLineDiagnostics diagnostics(source->getContext());
  OwningOpRef<ModuleOp> module = source->clone();
  if (failed(addEntryPoints(*module)) ||
      failed(chooseSchedules(*module, execution)) ||
      failed(lowerModule(*module, execution)) ||
      failed(generateCode(*module, execution.library)) ||
      // Compile now rather than at the first call.
      !code->lookup(getWrapperName(kSymbol)))
    return failure();
  compileMilliseconds = std::chrono::duration<double, std::milli>(
                            std::chrono::steady_clock::now() - start)
                            .count();
  return success();
}

LogicalResult Program::compileShapes(const Program &other) {
  scheduledSums = other.scheduledSums;
  OneLineDiagnostics diagnostics(source->getContext());
  OwningOpRef<ModuleOp> module = source->clone();
  if (failed(addEntryPoints(*module)))
    return failure();
  module->lookupSymbol(kSymbol)->erase();
  Execution execution;
  PassManager pm(module->getContext());
  addStages(pm, execution, Stage::Decompose, Stage::Group);
  if (failed(pm.run(*module)) || failed(lowerModule(*module, execution)))
    return failure();
  return generateCode(*module, "");
}

FailureOr<ArrayRef<ArrayType>>
Program::computeResultTypes(MutableArrayRef<Array> arguments) {
  shapeReport = ShapeReport();
  shapeReport.errors = sizeErrors;
  shapeReport.isOfAll = isOfAll;
  if (failed(call(*code, kShapes, arguments)))
    return failure();
  for (auto [result, dim, size] : shapeReport.sizes)
    resultTypes[result].shape[dim] = size;
  return ArrayRef<ArrayType>(resultTypes);
}

FailureOr<std::vector<Array>>
Program::prepareResults(MutableArrayRef<Array> arguments) {
  if (failed(computeResultTypes(arguments)))
    return failure();
  std::vector<Array> results;
  for (auto [i, type] : llvm::enumerate(resultTypes)) {
    std::string error;
    if (!allocateArray(type.elementType, type.shape, results.emplace_back(),
                       error))
      return reportError("result " + Twine(i) + ": " + error);
    // All bits set is NaN in every float type, so missing writes are noticed.
    std::memset(results.back().data.data(), 0xff, results.back().data.size());
  }
  return results;
}

LogicalResult Program::run(MutableArrayRef<Array> arguments,
                           MutableArrayRef<Array> results) {
  return call(*code, kSymbol, arguments, results);
}
