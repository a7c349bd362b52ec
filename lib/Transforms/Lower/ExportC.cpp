//===- ExportC.cpp - bngrad-export-c --------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entry points are functions on buffers, before those become descriptors: a
// cast creates a buffer from the values that C passes, and the lowering to LLVM
// folds the cast.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/ExportC.h"

#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Lower/Status.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-export-c"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADEXPORTCPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

bool mlir::bngrad::isExportedElementType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() &&
           llvm::is_contained({1, 8, 16, 32, 64}, integer.getWidth());
  return isa<IndexType, Float16Type, BFloat16Type, Float32Type, Float64Type>(
      type);
}

/// A buffer with strides, in memory that C can address.
static bool isBuffer(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  return buffer && buffer.isStrided() && !buffer.getMemorySpace() &&
         isExportedElementType(buffer.getElementType());
}

static LogicalResult verify(func::FuncOp function) {
  std::string error = findExportNameError(function.getSymName());
  if (!error.empty()) {
    // On one line, whatever is in it, and not too long for one.
    constexpr size_t kMost = 80;
    StringRef name = function.getSymName();
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::printEscapedString(name.take_front(kMost), os);
    os << (name.size() > kMost ? "..." : "");
    return function.emitError() << "expected a name that C can call, got '"
                                << text << "' (" << error << ")";
  }
  if (function.getNumResults() != 0)
    return function.emitError()
           << "expected results of '" << function.getSymName()
           << "' to be out-parameters, got a result of type "
           << function.getResultTypes().front();
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!isBuffer(type) && !isExportedElementType(type))
      return function.emitError()
             << "expected argument " << i << " of '" << function.getSymName()
             << "' to be a strided memref, or a scalar, of index, i1, i8, i16, "
                "i32, i64, f16, bf16, f32 or f64, got "
             << type;
  return success();
}

bool mlir::bngrad::isKnownFromPointer(MemRefType type) {
  if (!type.hasStaticShape())
    return false;
  // Upstream has no strides for the identity where a size is 0.
  if (type.getLayout().isIdentity())
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         !ShapedType::isDynamic(offset) &&
         !llvm::any_of(strides, ShapedType::isDynamic);
}

/// The descriptor of a buffer of `type`, which is known from `pointer`.
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

/// The type that C passes for an argument of `type`.
static Type getCType(Type type) {
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

/// `value`, which C passes, as a scalar of `type`.
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

/// Calls `function`; the i32 is its status.
static Value callForStatus(OpBuilder &b, Location loc, func::FuncOp function,
                           ValueRange operands) {
  auto call = func::CallOp::create(b, loc, function, operands);
  if (returnsStatus(function))
    return call.getResults().back();
  return arith::ConstantIntOp::create(b, loc, 0, 32);
}

/// Makes symbols of other dialects internal, too.
static void hideRest(ModuleOp module) {
  for (auto global : module.getOps<memref::GlobalOp>())
    if (!global.isExternal())
      SymbolTable::setSymbolVisibility(global,
                                       SymbolTable::Visibility::Private);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      function.setLinkage(LLVM::Linkage::Internal);
  for (auto global : module.getOps<LLVM::GlobalOp>())
    if (global.getLinkage() == LLVM::Linkage::External &&
        (global.getValueAttr() || global.getInitializerBlock()))
      global.setLinkage(LLVM::Linkage::Internal);
}

namespace {
class BNGradExportCPass
    : public bngrad::impl::BNGradExportCPassBase<BNGradExportCPass> {
public:
  using BNGradExportCPassBase::BNGradExportCPassBase;

  void runOnOperation() override;

private:
  /// Adds the public function `name` with the C types of `function`'s
  /// arguments, and sets the insertion point of `b` into it.
  func::FuncOp addEntry(OpBuilder &b, func::FuncOp function, const Twine &name,
                        ArrayRef<Type> results);
  void addPointerEntry(func::FuncOp function, StringRef name,
                       func::FuncOp status);
  void addDescriptorEntry(func::FuncOp function, StringRef name,
                          const LLVMTypeConverter &converter);
};
} // namespace

func::FuncOp BNGradExportCPass::addEntry(OpBuilder &b, func::FuncOp function,
                                         const Twine &name,
                                         ArrayRef<Type> results) {
  b.setInsertionPointToEnd(getOperation().getBody());
  SmallVector<Type> arguments =
      llvm::map_to_vector(function.getArgumentTypes(), getCType);
  auto entry = func::FuncOp::create(b, function.getLoc(), name.str(),
                                    b.getFunctionType(arguments, results));
  b.setInsertionPointToStart(entry.addEntryBlock());
  return entry;
}

/// int32_t NAME(a pointer per buffer, scalars by value).
void BNGradExportCPass::addPointerEntry(func::FuncOp function, StringRef name,
                                        func::FuncOp status) {
  OpBuilder b(&getContext());
  Location loc = function.getLoc();
  Type i32 = b.getI32Type();
  LLVMTypeConverter converter(&getContext());
  func::FuncOp entry = addEntry(b, function, name, i32);

  Value isNull;
  for (auto [type, value] :
       llvm::zip(function.getArgumentTypes(), entry.getArguments())) {
    auto buffer = dyn_cast<MemRefType>(type);
    if (!buffer || buffer.getNumElements() == 0)
      continue;
    Value null = LLVM::ZeroOp::create(b, loc, value.getType());
    Value same =
        LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, value, null);
    isNull = isNull ? Value(arith::OrIOp::create(b, loc, isNull, same)) : same;
  }
  auto call = [&](OpBuilder &nested) -> Value {
    SmallVector<Value> operands;
    for (auto [type, value] :
         llvm::zip(function.getArgumentTypes(), entry.getArguments())) {
      auto buffer = dyn_cast<MemRefType>(type);
      if (!buffer) {
        operands.push_back(fromC(nested, loc, value, type));
        continue;
      }
      Value descriptor =
          createDescriptor(nested, loc, converter, buffer, value);
      operands.push_back(
          UnrealizedConversionCastOp::create(nested, loc, type, descriptor)
              .getResult(0));
    }
    Value result = callForStatus(nested, loc, function, operands);
    if (!status)
      return result;
    // Taken in any case, or the next call would return it.
    Value taken =
        func::CallOp::create(nested, loc, status, ValueRange()).getResult(0);
    if (!returnsStatus(function))
      return taken;
    Value zero = arith::ConstantIntOp::create(nested, loc, 0, 32);
    Value isFailure = arith::CmpIOp::create(
        nested, loc, arith::CmpIPredicate::ne, result, zero);
    return arith::SelectOp::create(nested, loc, isFailure, result, taken);
  };
  Value result;
  if (!isNull) {
    result = call(b);
  } else {
    auto choice = scf::IfOp::create(
        b, loc, isNull,
        [](OpBuilder &nested, Location loc) {
          Value failed =
              arith::ConstantIntOp::create(nested, loc, kNullPointerStatus, 32);
          scf::YieldOp::create(nested, loc, failed);
        },
        [&](OpBuilder &nested, Location loc) {
          Value returned = call(nested);
          scf::YieldOp::create(nested, loc, returned);
        });
    result = choice.getResult(0);
  }
  func::ReturnOp::create(b, loc, result);
}

/// int32_t _mlir_ciface_NAME(a pointer to a descriptor per buffer, scalars by
/// value).
void BNGradExportCPass::addDescriptorEntry(func::FuncOp function,
                                           StringRef name,
                                           const LLVMTypeConverter &converter) {
  OpBuilder b(&getContext());
  Location loc = function.getLoc();
  func::FuncOp entry =
      addEntry(b, function, "_mlir_ciface_" + name, b.getI32Type());
  SmallVector<Value> operands;
  for (auto [type, value] :
       llvm::zip(function.getArgumentTypes(), entry.getArguments())) {
    if (!isa<MemRefType>(type)) {
      operands.push_back(fromC(b, loc, value, type));
      continue;
    }
    Value descriptor =
        LLVM::LoadOp::create(b, loc, converter.convertType(type), value);
    operands.push_back(
        UnrealizedConversionCastOp::create(b, loc, type, descriptor)
            .getResult(0));
  }
  func::ReturnOp::create(b, loc, callForStatus(b, loc, function, operands));
}

void BNGradExportCPass::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<func::FuncOp> functions, exported;
  bool hasFailed = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    functions.push_back(function);
    if (!function.isPublic())
      continue;
    exported.push_back(function);
    hasFailed |= failed(verify(function));
  }
  if (hasFailed)
    return signalPassFailure();
  addStatuses(module);

  // No function keeps a name that another library could have, or that the
  // lowering looks for: malloc, exp.
  SymbolTable symbols(module);
  SmallVector<std::string> names;
  for (func::FuncOp function : functions) {
    if (function.isPublic())
      names.push_back(function.getSymName().str());
    std::string name = (function.getSymName() + ".impl").str();
    while (symbols.lookup(name))
      name += ".impl";
    if (failed(symbols.rename(function, name)))
      return signalPassFailure();
    function.setPrivate();
    function->setAttr(
        "llvm.linkage",
        LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
    function->removeAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName());
  }

  hideRest(module);
  // Symbols of other dialects have kept their names.
  for (StringRef name : names) {
    std::string entry = ("_mlir_ciface_" + name).str();
    if (Operation *other = symbols.lookup(entry)) {
      emitError(other->getLoc())
          << "expected no symbol called '" << entry << "' beside @" << name
          << ", which C calls so";
      return signalPassFailure();
    }
  }
  func::FuncOp status;
  if (!statusFunction.empty() && !exported.empty()) {
    Operation *other = symbols.lookup(statusFunction);
    status = dyn_cast_if_present<func::FuncOp>(other);
    if (other && !status) {
      emitError(other->getLoc())
          << "expected '" << statusFunction << "' to be a func.func, got '"
          << other->getName() << "'";
      return signalPassFailure();
    }
    if (!status) {
      OpBuilder b(module.getBodyRegion());
      status = func::FuncOp::create(b, module.getLoc(), statusFunction,
                                    b.getFunctionType({}, b.getI32Type()));
      status.setPrivate();
    }
  }
  LLVMTypeConverter converter(&getContext());
  for (auto [function, name] : llvm::zip_equal(exported, names)) {
    bool hasPointers = llvm::all_of(function.getArgumentTypes(), [](Type type) {
      auto buffer = dyn_cast<MemRefType>(type);
      return !buffer || isKnownFromPointer(buffer);
    });
    if (hasPointers)
      addPointerEntry(function, name, status);
    else
      LDBG() << "for descriptors alone: expected memrefs of static shape, "
                "strides and offset: @"
             << name;
    addDescriptorEntry(function, name, converter);
  }
}
