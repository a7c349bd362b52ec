//===- FunctionEntries.cpp - C entries of a function ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionEntries.h"

#include "BNGrad/Transforms/CAbi/ExportC.h"
#include "BNGrad/Transforms/CAbi/Status.h"
#include "BNGrad/Transforms/CAbi/Threads.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// A workspace of at most this many bytes is allocated on the stack. This is
/// enough for most static shapes.
static constexpr int64_t kMostFrameBytes = 16384;

/// The descriptor of a buffer of static `type` whose data starts at `pointer`.
static Value createDescriptor(OpBuilder &b, Location loc,
                              const LLVMTypeConverter &converter,
                              MemRefType type, Value pointer) {
  if (type.getLayout().isIdentity())
    type = MemRefType::get(
        type.getShape(), type.getElementType(),
        StridedLayoutAttr::get(type.getContext(), /*offset=*/0,
                               computeSuffixProduct(type.getShape())));
  return MemRefDescriptor::fromStaticShape(b, loc, converter, type, pointer);
}

Type FunctionEntries::getCType(Type type) {
  MLIRContext *context = type.getContext();
  if (isa<MemRefType>(type))
    return LLVM::LLVMPointerType::get(context);
  if (type.isInteger(1))
    return IntegerType::get(context, 8);
  if (type.isIndex())
    return IntegerType::get(context, 64);
  if (type.isF16() || type.isBF16())
    return IntegerType::get(context, 16);
  return type;
}

/// Converts `value`, a scalar as C passes it, to `type`.
static Value fromC(OpBuilder &b, Location loc, Value value, Type type) {
  if (type.isInteger(1)) {
    Value zero = arith::ConstantIntOp::create(b, loc, 0, 8);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
  }
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  if (type.isF16() || type.isBF16())
    return arith::BitcastOp::create(b, loc, type, value);
  return value;
}

static Value castToMemRef(OpBuilder &b, Location loc, Type type,
                          Value descriptor) {
  return UnrealizedConversionCastOp::create(b, loc, type, descriptor)
      .getResult(0);
}

FunctionEntries::FunctionEntries(func::FuncOp function, StringRef name,
                                 func::FuncOp status)
    : function(function), status(status), name(name),
      parameters(function.getArgumentTypes()),
      converter(std::make_shared<LLVMTypeConverter>(function.getContext())) {
  auto module = function->getParentOfType<ModuleOp>();
  auto lookup = [&](StringRef attribute) -> func::FuncOp {
    auto symbol = function->getAttrOfType<FlatSymbolRefAttr>(attribute);
    return symbol ? module.lookupSymbol<func::FuncOp>(symbol.getAttr())
                  : func::FuncOp();
  };
  workspace = lookup(kWorkspaceAttrName);
  shapes = lookup(kShapesAttrName);
  unsigned last = parameters.size() - 1;
  hasThreads = !parameters.empty() &&
               function.getArgAttr(last, kThreadsAttrName) != nullptr;
  parameters.pop_back_n(hasThreads + (workspace != nullptr));
}

unsigned FunctionEntries::getNumArguments() const {
  // A shape function takes the arguments of the function, the memory for an
  // error, and possibly threads.
  unsigned last = shapes.getNumArguments() - 1;
  return last - (shapes.getArgAttr(last, kThreadsAttrName) != nullptr);
}

std::string FunctionEntries::getParameterName(unsigned i) const {
  auto names = function->getAttrOfType<ArrayAttr>(kParametersAttrName);
  if (!names || i >= names.size())
    return "argument " + std::to_string(i);
  return cast<StringAttr>(names[i]).str();
}

bool FunctionEntries::hasPointerForm() const {
  return llvm::all_of(parameters, [](Type type) {
    auto buffer = dyn_cast<MemRefType>(type);
    return !buffer || isKnownFromPointer(buffer);
  });
}

/// The size that `workspace` computes, if it is a constant small enough for the
/// stack.
static std::optional<int64_t> getFrameBytes(func::FuncOp workspace) {
  APInt bytes;
  Value size = workspace.front().getTerminator()->getOperand(0);
  if (!matchPattern(size, m_ConstantInt(&bytes)) || bytes.sgt(kMostFrameBytes))
    return std::nullopt;
  return bytes.getSExtValue();
}

bool FunctionEntries::mapsWorkspace() const {
  return workspace && !getFrameBytes(workspace);
}

func::FuncOp FunctionEntries::addFunction(OpBuilder &b, func::FuncOp exported,
                                          const Twine &name,
                                          ArrayRef<Type> types, Type result) {
  auto module = exported->getParentOfType<ModuleOp>();
  b.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(b, exported.getLoc(), name.str(),
                                       b.getFunctionType(types, result));
  b.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

func::FuncOp FunctionEntries::addEntry(OpBuilder &b, const Twine &entryName,
                                       ArrayRef<Type> more, Type result) const {
  SmallVector<Type> types = llvm::map_to_vector(parameters, getCType);
  llvm::append_range(types, more);
  return addFunction(b, function, entryName, types, result);
}

SmallVector<Value> FunctionEntries::fromPointers(OpBuilder &b,
                                                 ValueRange values) const {
  Location loc = function.getLoc();
  SmallVector<Value> operands;
  for (auto [type, value] : llvm::zip_equal(parameters, values)) {
    auto buffer = dyn_cast<MemRefType>(type);
    operands.push_back(
        buffer
            ? castToMemRef(b, loc, type,
                           createDescriptor(b, loc, *converter, buffer, value))
            : fromC(b, loc, value, type));
  }
  return operands;
}

SmallVector<Value> FunctionEntries::fromDescriptors(OpBuilder &b,
                                                    ValueRange values) const {
  Location loc = function.getLoc();
  SmallVector<Value> operands;
  for (auto [type, value] : llvm::zip_equal(parameters, values)) {
    if (!isa<MemRefType>(type)) {
      operands.push_back(fromC(b, loc, value, type));
      continue;
    }
    Value descriptor =
        LLVM::LoadOp::create(b, loc, converter->convertType(type), value);
    operands.push_back(castToMemRef(b, loc, type, descriptor));
  }
  return operands;
}

SmallVector<Value> FunctionEntries::getPointers(OpBuilder &b,
                                                ValueRange values) const {
  Location loc = function.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Value> pointers;
  for (auto [type, value] : llvm::zip_equal(parameters, values)) {
    if (!isa<MemRefType>(type)) {
      pointers.push_back(value);
      continue;
    }
    // The aligned pointer is the second field of a descriptor.
    Value slot =
        LLVM::GEPOp::create(b, loc, pointer, pointer, value, LLVM::GEPArg(1));
    pointers.push_back(LLVM::LoadOp::create(b, loc, pointer, slot));
  }
  return pointers;
}

Value FunctionEntries::call(OpBuilder &b, ArrayRef<Value> operands,
                            Value memory, Value threads) const {
  Location loc = function.getLoc();
  SmallVector<Value> all(operands);
  if (workspace) {
    Type type = function.getArgumentTypes()[parameters.size()];
    Type i64 = b.getI64Type();
    Value zero = LLVM::ConstantOp::create(b, loc, i64, 0);
    Value one = LLVM::ConstantOp::create(b, loc, i64, 1);
    auto descriptor =
        MemRefDescriptor::poison(b, loc, converter->convertType(type));
    descriptor.setAllocatedPtr(b, loc, memory);
    descriptor.setAlignedPtr(b, loc, memory);
    descriptor.setOffset(b, loc, zero);
    // The function never reads the size of its workspace.
    descriptor.setSize(b, loc, 0, zero);
    descriptor.setStride(b, loc, 0, one);
    all.push_back(castToMemRef(b, loc, type, descriptor));
  }
  if (hasThreads)
    all.push_back(threads);
  auto call = func::CallOp::create(b, loc, function, all);
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
  Value result = returnsStatus(function) ? call.getResults().back() : zero;
  if (!status)
    return result;
  // Call the status function even if the function failed: the call also clears
  // the stored status, which the next call would otherwise return.
  Value taken = func::CallOp::create(b, loc, status, ValueRange()).getResult(0);
  if (!returnsStatus(function))
    return taken;
  Value isFailure =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, result, zero);
  return arith::SelectOp::create(b, loc, isFailure, result, taken);
}

Value FunctionEntries::callAlone(OpBuilder &b, ArrayRef<Value> operands) const {
  Location loc = function.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value null = LLVM::ZeroOp::create(b, loc, pointer);
  if (!workspace)
    return call(b, operands, null, null);

  if (std::optional<int64_t> bytes = getFrameBytes(workspace)) {
    Value count = LLVM::ConstantOp::create(b, loc, b.getI64Type(), *bytes);
    Value memory = LLVM::AllocaOp::create(b, loc, pointer, b.getI8Type(), count,
                                          kBufferAlignment);
    return call(b, operands, memory, null);
  }
  Value size = func::CallOp::create(b, loc, workspace, operands).getResult(0);
  Value memory = LLVM::CallOp::create(b, loc, TypeRange(pointer),
                                      "bngrad_take_workspace", size)
                     .getResult();
  Value isNull =
      LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, memory, null);
  auto choice = scf::IfOp::create(
      b, loc, isNull,
      [](OpBuilder &nested, Location loc) {
        Value failed =
            arith::ConstantIntOp::create(nested, loc, kOutOfMemoryStatus, 32);
        scf::YieldOp::create(nested, loc, failed);
      },
      [&](OpBuilder &nested, Location loc) {
        Value result = call(nested, operands, memory, null);
        LLVM::CallOp::create(nested, loc, TypeRange(), "bngrad_keep_workspace",
                             memory);
        scf::YieldOp::create(nested, loc, result);
      });
  return choice.getResult(0);
}
