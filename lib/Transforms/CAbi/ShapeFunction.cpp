//===- ShapeFunction.cpp - bngrad-add-shape-functions ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shape function is a copy of the function, transformed by upstream's
// run-time verification and shape resolution. Any op that implements their
// interfaces is therefore supported.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CAbi/ShapeFunction.h"

#include "IndexingMapChecks.h"
#include "SizeChecks.h"
#include "Utils/Utils.h"
#include "Writes.h"

#include "BNGrad/Transforms/CAbi/ExportC.h"
#include "BNGrad/Transforms/CAbi/Passes.h"
#include "BNGrad/Transforms/CAbi/Status.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADADDSHAPEFUNCTIONSPASS
#include "BNGrad/Transforms/CAbi/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Marks the cf.asserts of the program, and the reports that replace them.
static constexpr StringLiteral kAssertAttrName = "bngrad.assert";

/// Replaces each run-time check of `function` by a report.
static void replaceChecks(func::FuncOp function, EmitSizeError emitError,
                          std::vector<SizeError> &errors) {
  SmallVector<cf::AssertOp> asserts;
  function.walk([&](cf::AssertOp op) { asserts.push_back(op); });
  for (cf::AssertOp op : asserts) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    Value sizes[2];
    bool isOfProgram = op->hasAttr(kAssertAttrName);
    if (auto compare = op.getArg().getDefiningOp<arith::CmpIOp>();
        !isOfProgram && compare && compare.getLhs().getType().isIndex()) {
      sizes[0] = compare.getLhs();
      sizes[1] = compare.getRhs();
    }
    // Upstream prints the op before the message of a check, and its location
    // after it.
    StringRef message = op.getMsg();
    if (size_t start = message.find(kUpstreamMessage);
        !isOfProgram && start != StringRef::npos)
      message =
          message.substr(start + kUpstreamMessage.size()).split('\n').first;
    int64_t number = errors.size();
    bool hasSizes = sizes[0] != nullptr;
    // The expected size follows the message, as in "to be at least 0" and "to
    // be that of source, 5".
    bool needsComma = hasSizes && !message.ends_with(" at least") &&
                      !message.ends_with(" at most");
    errors.push_back({loc, message.str() + (needsComma ? "," : ""), hasSizes});

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
        if (isOfProgram)
          report->setAttr(kAssertAttrName, nested.getUnitAttr());
      });
      scf::YieldOp::create(nested, loc);
    });
    op.erase();
  }
}

/// Reports a cf.assert whose condition the shape function cannot evaluate.
static LogicalResult emitAssertError(Location loc) {
  return emitError(loc, "expected the condition of cf.assert to follow from "
                        "the arguments, got one that depends on memory that "
                        "the function writes");
}

/// Whether `op` contains a report with the attribute `name`.
static bool hasReport(scf::IfOp op, StringRef name) {
  return llvm::any_of(op.thenBlock()->without_terminator(),
                      [&](Operation &in) { return in.hasAttr(name); });
}

/// Finds the result, and its dim, that has dynamic size number `i` of the
/// results `types`.
static std::pair<unsigned, int64_t> findSize(TypeRange types, unsigned i) {
  for (auto [number, type] : llvm::enumerate(types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    for (int64_t dim : llvm::seq(tensor ? tensor.getRank() : 0))
      if (tensor.isDynamicDim(dim) && i-- == 0)
        return {number, dim};
  }
  llvm_unreachable("a size of a result");
}

/// Removes the reports that depend on data that `function` writes, and then the
/// ops that write. `results` are the types of the program's results.
///
/// Errors: a diagnostic and failure if a cf.assert of the program or a size of
///         a result depends on such data.
static LogicalResult removeWrites(func::FuncOp function, TypeRange results) {
  SmallVector<scf::IfOp> reports;
  function.walk([&](scf::IfOp op) {
    if (hasReport(op, kReportAttrName))
      reports.push_back(op);
  });
  Writes writes(function);
  if (!writes.areThereAny())
    return success();
  for (scf::IfOp op : reports) {
    if (!writes.decideOn(op))
      continue;
    if (hasReport(op, kAssertAttrName))
      return emitAssertError(op.getLoc());
    op.erase();
  }
  for (func::ReturnOp op : function.getOps<func::ReturnOp>())
    for (auto [i, size] : llvm::enumerate(op.getOperands())) {
      if (!writes.decideOn(size))
        continue;
      auto [number, dim] = findSize(results, i);
      return op.emitError("expected size of dim ")
             << dim << " of result " << number
             << " to follow from the arguments, got one that depends on memory "
                "that the function writes";
    }
  return writes.remove();
}

/// Reports calls, because the shape function would lack the checks of the
/// callee.
static LogicalResult verifyNoCalls(func::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) -> WalkResult {
    if (!isa<func::CallOp, func::CallIndirectOp>(op))
      return success();
    return op->emitError("expected calls to be inlined, got '")
           << op->getName() << "'";
  });
  return failure(result.wasInterrupted());
}

/// Expands ops that write and also have a result, or a region that may contain
/// checked indices, so that removeWrites can remove the write alone.
static void expandWrites(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<bufferization::CloneOp, memref::GenericAtomicRMWOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    Location loc = op->getLoc();
    OpBuilder b(op);
    if (auto clone = dyn_cast<bufferization::CloneOp>(op)) {
      auto type = cast<MemRefType>(clone.getType());
      SmallVector<Value> sizes;
      for (int64_t dim : llvm::seq(type.getRank()))
        if (type.isDynamicDim(dim))
          sizes.push_back(memref::DimOp::create(b, loc, clone.getInput(), dim));
      auto layout = MemRefType::get(type.getShape(), type.getElementType(),
                                    AffineMap(), type.getMemorySpace());
      Value copy = memref::AllocOp::create(b, loc, layout, sizes);
      memref::CopyOp::create(b, loc, clone.getInput(), copy);
      if (layout != type)
        copy = memref::CastOp::create(b, loc, type, copy);
      clone.replaceAllUsesWith(copy);
      clone.erase();
      continue;
    }
    auto atomic = cast<memref::GenericAtomicRMWOp>(op);
    Value before =
        memref::LoadOp::create(b, loc, atomic.getMemref(), atomic.getIndices());
    IRMapping mapping;
    mapping.map(atomic.getBody()->getArgument(0), before);
    for (Operation &in : atomic.getBody()->without_terminator())
      b.clone(in, mapping);
    Value after = mapping.lookupOrDefault(
        atomic.getBody()->getTerminator()->getOperand(0));
    memref::StoreOp::create(b, loc, after, atomic.getMemref(),
                            atomic.getIndices());
    atomic.replaceAllUsesWith(after);
    atomic.erase();
  }
}

/// For each tensor.pad whose region computes the padding, adds a
/// tensor.generate with a copy of the region. The tensor.pad is removed later,
/// but the reports in its region must stay. Like the tensor.generate,
/// bufferized code runs the region for every element.
static void generatePaddings(func::FuncOp function) {
  function.walk([](tensor::PadOp op) {
    if (op.getConstantPaddingValue())
      return;
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    SmallVector<Value> sizes;
    for (int64_t dim : llvm::seq(op.getResultType().getRank()))
      if (op.getResultType().isDynamicDim(dim))
        sizes.push_back(
            tensor::DimOp::create(b, op.getLoc(), op.getResult(), dim));
    auto generated =
        tensor::GenerateOp::create(b, op.getLoc(), op.getResultType(), sizes);
    IRMapping mapping;
    op.getRegion().cloneInto(&generated.getBody(), mapping);
  });
}

/// Takes the sizes of linalg results from their inits. Upstream would take them
/// from the loops, whose sizes may come from another operand.
static void useSizesOfInits(func::FuncOp function) {
  function.walk([](tensor::DimOp op) {
    for (;;) {
      auto result = dyn_cast<OpResult>(op.getSource());
      auto destination =
          result ? dyn_cast<DestinationStyleOpInterface>(result.getOwner())
                 : DestinationStyleOpInterface();
      if (!destination || !isa<linalg::LinalgOp>(result.getOwner()))
        return;
      op.getSourceMutable().assign(destination.getTiedOpOperand(result)->get());
    }
  });
}

/// Replaces the operands of `op` by their dynamic sizes.
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

/// Updates the result types of `function` to match its return.
static void updateType(func::FuncOp function) {
  for (func::ReturnOp op : function.getOps<func::ReturnOp>())
    function.setFunctionType(FunctionType::get(function.getContext(),
                                               function.getArgumentTypes(),
                                               op.getOperandTypes()));
  function.setResAttrsAttr(nullptr);
}

LogicalResult mlir::bngrad::makeShapeFunction(func::FuncOp function,
                                              EmitSizeError emitError,
                                              EmitSizes emitSizes,
                                              std::vector<SizeError> &errors) {
  auto runOn = [&](std::unique_ptr<Pass> pass) {
    PassManager pm(function.getContext(), func::FuncOp::getOperationName());
    pm.addPass(std::move(pass));
    return pm.run(function);
  };
  function.walk([&](cf::AssertOp op) {
    op->setAttr(kAssertAttrName, UnitAttr::get(op.getContext()));
  });
  if (failed(verifyDimIndices(function)) || failed(verifyNoCalls(function)))
    return failure();
  expandWrites(function);
  if (failed(runOn(createLowerAffinePass())) ||
      failed(runOn(createGenerateRuntimeVerificationPass())) ||
      failed(addIndexingMapChecks(function)) || failed(addSizeChecks(function)))
    return failure();
  replaceChecks(function, emitError, errors);
  generatePaddings(function);

  // Express the sizes of the results by the sizes of the arguments, which
  // leaves the data dead. Linalg ops on buffers become loops, whose writes can
  // be removed.
  SmallVector<Type> results(function.getResultTypes());
  for (func::ReturnOp op : function.getOps<func::ReturnOp>())
    returnSizes(op);
  updateType(function);
  useSizesOfInits(function);
  if (failed(runOn(memref::createResolveRankedShapeTypeResultDimsPass())) ||
      failed(runOn(createConvertLinalgToLoopsPass())) ||
      failed(runOn(createCanonicalizerPass())) ||
      failed(removeWrites(function, results)) ||
      failed(runOn(createCanonicalizerPass())))
    return failure();
  function.walk([](Operation *op) {
    op->removeAttr(kReportAttrName);
    op->removeAttr(kAssertAttrName);
  });

  OpBuilder b(function.getContext());
  for (func::ReturnOp op : function.getOps<func::ReturnOp>()) {
    b.setInsertionPoint(op);
    emitSizes(b, op);
  }
  updateType(function);
  return runOn(createCanonicalizerPass());
}

/// Finds or adds the function that stores an error at its first argument and
/// returns the error's status.
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

/// Turns `text` into a printf format that prints it on one line, with
/// unprintable bytes escaped.
static std::string escapeFormat(StringRef text) {
  std::string format;
  llvm::raw_string_ostream os(format);
  for (char c : text)
    if (c == '%')
      os << "%%";
    else if (llvm::isPrint(c) || static_cast<unsigned char>(c) >= 0x80)
      os << c;
    else
      os << "\\x" << llvm::utohexstr(c, /*LowerCase=*/true, /*Width=*/2);
  return format;
}

/// Adds the shape function of `function`, and attributes that refer to it.
static LogicalResult describe(func::FuncOp function) {
  // The effects of an llvm.call are unknown.
  WalkResult calls = function.walk([](LLVM::CallOp op) -> WalkResult {
    return op->emitError("expected calls to be inlined, got '")
           << op->getName() << "'";
  });
  if (calls.wasInterrupted())
    return failure();
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
  if (failed(makeShapeFunction(shapes, emitError, emitSizes, errors)))
    return failure();
  SmallVector<std::string> texts;
  for (const SizeError &error : errors) {
    std::string &text = texts.emplace_back(escapeFormat(error.message));
    if (error.hasSizes)
      text += " %lld, got %lld";
    // Leave out the file name, so that the message does not depend on the path.
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
