//===- ShapeFunction.cpp - bngrad-add-shape-functions ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Made from the function by upstream's run-time verification and shape
// resolution, so that any op with those interfaces takes part.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/ShapeFunction.h"

#include "SizeChecks.h"
#include "Utils/Utils.h"

#include "BNGrad/Transforms/Lower/ExportC.h"
#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Lower/Status.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-add-shape-functions"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADADDSHAPEFUNCTIONSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// On ops of reports, while a shape function is made.
static constexpr StringLiteral kReportAttrName = "bngrad.report";

/// Replaces each run-time check of `function` by a report.
static void replaceChecks(func::FuncOp function, EmitSizeError emitError,
                          std::vector<SizeError> &errors) {
  SmallVector<cf::AssertOp> asserts;
  function.walk([&](cf::AssertOp op) { asserts.push_back(op); });
  for (cf::AssertOp op : asserts) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    Value sizes[2];
    if (auto compare = op.getArg().getDefiningOp<arith::CmpIOp>();
        compare && compare.getLhs().getType().isIndex()) {
      sizes[0] = compare.getLhs();
      sizes[1] = compare.getRhs();
    }
    // Upstream puts the op and its location around the message of the check.
    StringRef message = op.getMsg();
    if (size_t start = message.find("\n^ "); start != StringRef::npos)
      message = message.substr(start + 3).split('\n').first;
    int64_t number = errors.size();
    errors.push_back({loc, message.str(), sizes[0] != nullptr});

    Value isTrue = arith::ConstantIntOp::create(b, loc, 1, 1);
    Value isWrong = arith::XOrIOp::create(b, loc, op.getArg(), isTrue);
    scf::IfOp::create(b, loc, isWrong, [&](OpBuilder &nested, Location) {
      auto toI64 = [&](Value value) -> Value {
        if (!value)
          return arith::ConstantIntOp::create(nested, loc, -1, 64);
        return arith::IndexCastOp::create(nested, loc, nested.getI64Type(),
                                          value);
      };
      emitError(nested, loc, number, toI64(sizes[0]), toI64(sizes[1]));
      nested.getInsertionBlock()->walk([&](Operation *report) {
        report->setAttr(kReportAttrName, nested.getUnitAttr());
      });
      scf::YieldOp::create(nested, loc);
    });
    op.erase();
  }
}

/// Whether `op` may write to memory, or has unknown effects.
static bool mayWrite(Operation *op) {
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
      op->hasTrait<OpTrait::IsTerminator>())
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return true;
  SmallVector<MemoryEffects::EffectInstance> found;
  effects.getEffects(found);
  return llvm::any_of(found, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Write>(effect.getEffect());
  });
}

/// Removes the ops of `function` that may write to memory and are no reports.
/// Whether there were any; nothing if their results are used.
static std::optional<bool> removeWrites(func::FuncOp function) {
  SmallVector<Operation *> writes;
  function.walk([&](Operation *op) {
    if (op != function && !op->hasAttr(kReportAttrName) && mayWrite(op))
      writes.push_back(op);
  });
  for (Operation *op : llvm::reverse(writes)) {
    if (!op->use_empty())
      return std::nullopt;
    op->erase();
  }
  return !writes.empty();
}

/// Whether `function` loads from memory.
static bool readsMemory(func::FuncOp function) {
  WalkResult result =
      function.walk([](memref::LoadOp) { return WalkResult::interrupt(); });
  return result.wasInterrupted();
}

/// Makes `op` return the dynamic sizes of its operands instead of these.
static void returnSizes(func::ReturnOp op) {
  OpBuilder b(op);
  SmallVector<Value> sizes;
  for (Value value : op.getOperands()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    for (int64_t dim : llvm::seq(type ? type.getRank() : 0))
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, op.getLoc(), value, dim));
  }
  op->setOperands(sizes);
}

/// Makes the results of `function` those of its terminator.
static void updateType(func::FuncOp function) {
  for (func::ReturnOp op : function.getOps<func::ReturnOp>())
    function.setFunctionType(FunctionType::get(function.getContext(),
                                               function.getArgumentTypes(),
                                               op.getOperandTypes()));
  function.setResAttrsAttr(nullptr);
}

FailureOr<bool>
mlir::bngrad::makeShapeFunction(func::FuncOp function, EmitSizeError emitError,
                                EmitSizes emitSizes,
                                std::vector<SizeError> &errors) {
  auto runOn = [&](std::unique_ptr<Pass> pass) {
    PassManager pm(function.getContext(), func::FuncOp::getOperationName());
    pm.addPass(std::move(pass));
    return pm.run(function);
  };
  if (failed(verifyReshapes(function)) ||
      failed(runOn(createGenerateRuntimeVerificationPass())))
    return failure();
  addSizeChecks(function);
  replaceChecks(function, emitError, errors);

  // The sizes of the results in terms of the arguments'; the data is dead then.
  for (func::ReturnOp op : function.getOps<func::ReturnOp>())
    returnSizes(op);
  updateType(function);
  if (failed(runOn(memref::createResolveRankedShapeTypeResultDimsPass())) ||
      failed(runOn(createCanonicalizerPass())))
    return failure();
  std::optional<bool> hadWrites = removeWrites(function);
  if (!hadWrites)
    return false;
  function.walk([](Operation *op) { op->removeAttr(kReportAttrName); });

  OpBuilder b(function.getContext());
  for (func::ReturnOp op : function.getOps<func::ReturnOp>()) {
    b.setInsertionPoint(op);
    emitSizes(b, op);
  }
  updateType(function);
  if (failed(runOn(createCanonicalizerPass())))
    return failure();
  // Of memory that was written, or of arguments.
  return !*hadWrites || !readsMemory(function);
}

/// The function that stores an error at its first argument, and returns its
/// status.
static func::FuncOp getReport(ModuleOp module) {
  constexpr StringLiteral kName = "bngrad.size_error";
  if (auto there = module.lookupSymbol<func::FuncOp>(kName))
    return there;
  OpBuilder b(module.getBodyRegion());
  Location loc = module.getLoc();
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto report = func::FuncOp::create(
      b, loc, kName, b.getFunctionType({pointer, i64, i64, i64}, i32));
  report.setPrivate();
  report->setAttr(kStatusAttrName, b.getUnitAttr());
  Block *body = report.addEntryBlock();
  b.setInsertionPointToStart(body);
  for (unsigned i : {0, 1, 2}) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, i64, body->getArgument(0),
                                     LLVM::GEPArg(static_cast<int32_t>(i)));
    LLVM::StoreOp::create(b, loc, body->getArgument(i + 1), slot);
  }
  Value status = arith::ConstantIntOp::create(
      b, loc, static_cast<int64_t>(Status::BadShape), 32);
  func::ReturnOp::create(b, loc, status);
  return report;
}

/// `text` in a format of printf.
static std::string escapeFormat(StringRef text) {
  std::string format;
  for (char c : text) {
    format += c;
    if (c == '%')
      format += c;
  }
  return format;
}

/// Adds the shape function of `function`, and says so in attributes.
static LogicalResult describe(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  OpBuilder b(function);
  func::FuncOp report = getReport(module);
  func::FuncOp shapes = function.clone();
  shapes.setName((function.getSymName() + ".shapes").str());
  shapes.setPrivate();
  shapes->removeAttr(kParametersAttrName);
  b.setInsertionPointAfter(function);
  b.insert(shapes);
  (void)shapes.insertArgument(shapes.getNumArguments(),
                              LLVM::LLVMPointerType::get(b.getContext()), {},
                              function.getLoc());
  Value error = shapes.getArguments().back();
  auto emitError = [&](OpBuilder &b, Location loc, int64_t number, Value actual,
                       Value expected) {
    Value which = arith::ConstantIntOp::create(b, loc, number, 64);
    func::CallOp::create(b, loc, report,
                         ValueRange{error, which, expected, actual});
  };
  auto emitSizes = [](OpBuilder &b, func::ReturnOp op) {};
  std::vector<SizeError> errors;
  FailureOr<bool> isKnown =
      makeShapeFunction(shapes, emitError, emitSizes, errors);
  if (failed(isKnown))
    return failure();
  if (!*isKnown) {
    LDBG() << "its sizes depend on memory that it writes: @"
           << function.getSymName();
    shapes.erase();
    return success();
  }
  SmallVector<std::string> texts;
  for (const SizeError &error : errors) {
    std::string &text = texts.emplace_back(escapeFormat(error.message));
    if (error.hasSizes)
      text += ", %lld, got %lld";
    // The same wherever the file is.
    if (auto place = error.loc->findInstanceOf<FileLineColLoc>();
        place && place.getLine() != 0)
      text += (" (line " + Twine(place.getLine()) + ")").str();
  }
  function->setAttr(kShapesAttrName, FlatSymbolRefAttr::get(shapes));
  function->setAttr(
      kSizeErrorsAttrName,
      b.getStrArrayAttr(SmallVector<StringRef>(texts.begin(), texts.end())));
  return success();
}

namespace {
struct BNGradAddShapeFunctionsPass
    : bngrad::impl::BNGradAddShapeFunctionsPassBase<
          BNGradAddShapeFunctionsPass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.isPublic() && !function.isExternal())
        functions.push_back(function);
    OpBuilder b(&getContext());
    for (func::FuncOp function : functions) {
      std::vector<std::string> names = nameParameters(function);
      function->setAttr(kParametersAttrName,
                        b.getStrArrayAttr(SmallVector<StringRef>(names.begin(),
                                                                 names.end())));
      if (failed(describe(function)))
        return signalPassFailure();
    }
  }
};
} // namespace
