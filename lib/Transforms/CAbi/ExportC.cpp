//===- ExportC.cpp - bngrad-export-c --------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entry points are functions on buffers, because this pass runs before the
// lowering turns buffers into descriptors. A cast creates a buffer from the
// values that C passes, and the lowering to LLVM folds the cast.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CAbi/ExportC.h"

#include "FunctionEntries.h"
#include "HelperFunctions.h"

#include "BNGrad/Transforms/CAbi/Passes.h"
#include "BNGrad/Transforms/CAbi/Status.h"
#include "BNGrad/Transforms/CAbi/Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-export-c"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADEXPORTCPASS
#include "BNGrad/Transforms/CAbi/Passes.h.inc"
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

/// Whether `type` is a strided buffer in memory that C can address.
static bool isBuffer(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  return buffer && buffer.isStrided() && !buffer.getMemorySpace() &&
         isExportedElementType(buffer.getElementType());
}

static LogicalResult verify(func::FuncOp function) {
  std::string error = findExportNameError(function.getSymName());
  if (!error.empty()) {
    // Escape and truncate the name, so that the error stays on one line.
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
  // getStridesAndOffset fails for an identity layout with a size of 0.
  if (type.getLayout().isIdentity())
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         !ShapedType::isDynamic(offset) &&
         !llvm::any_of(strides, ShapedType::isDynamic);
}

/// Manages workspaces for calls that are not given one. A mapping starts with
/// its size in bytes, and the workspace follows 64 bytes later. After a call,
/// its workspace is kept in one of 16 slots for the next call, or unmapped if
/// all slots are full. A destructor unmaps the workspaces in the slots. Large
/// workspaces ask for huge pages, because transposing copies access many pages
/// at once.
static_assert(kBufferAlignment == 64, "the distance in kExportHelpers");
static constexpr StringLiteral kExportHelpers = R"mlir(
llvm.func @mmap(!llvm.ptr, i64, i32, i32, i32, i64) -> !llvm.ptr
llvm.func @munmap(!llvm.ptr, i64) -> i32
llvm.func @madvise(!llvm.ptr, i64, i32) -> i32
llvm.mlir.global internal @bngrad_workspaces() : !llvm.array<16 x ptr> {
  %none = llvm.mlir.zero : !llvm.array<16 x ptr>
  llvm.return %none : !llvm.array<16 x ptr>
}
llvm.func internal @bngrad_unmap_workspace(%workspace: !llvm.ptr) {
  %null = llvm.mlir.zero : !llvm.ptr
  %is_null = llvm.icmp "eq" %workspace, %null : !llvm.ptr
  llvm.cond_br %is_null, ^return, ^unmap
^unmap:
  %bytes = llvm.load %workspace : !llvm.ptr -> i64
  %status = llvm.call @munmap(%workspace, %bytes) : (!llvm.ptr, i64) -> i32
  llvm.br ^return
^return:
  llvm.return
}
llvm.func internal @bngrad_take_workspace(%size: i64) -> !llvm.ptr attributes {passthrough = ["noinline"]} {
  %most = llvm.mlir.constant(281474976710656 : i64) : i64
  %head = llvm.mlir.constant(64 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %slots = llvm.mlir.constant(16 : i64) : i64
  %no_file = llvm.mlir.constant(-1 : i32) : i32
  %read_write = llvm.mlir.constant(3 : i32) : i32
  %private_anonymous = llvm.mlir.constant(34 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %table = llvm.mlir.addressof @bngrad_workspaces : !llvm.ptr
  %bytes = llvm.add %size, %head : i64
  %is_too_many = llvm.icmp "uge" %size, %most : i64
  llvm.cond_br %is_too_many, ^return(%null : !llvm.ptr), ^slot(%zero : i64)
^slot(%i: i64):
  %slot = llvm.getelementptr %table[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %kept = llvm.atomicrmw xchg %slot, %null acq_rel {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  %is_kept = llvm.icmp "ne" %kept, %null : !llvm.ptr
  llvm.cond_br %is_kept, ^kept, ^next
^kept:
  %kept_bytes = llvm.load %kept : !llvm.ptr -> i64
  %is_enough = llvm.icmp "uge" %kept_bytes, %bytes : i64
  %kept_memory = llvm.getelementptr %kept[64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.cond_br %is_enough, ^return(%kept_memory : !llvm.ptr), ^too_small
^too_small:
  llvm.call @bngrad_unmap_workspace(%kept) : (!llvm.ptr) -> ()
  llvm.br ^map
^next:
  %i_next = llvm.add %i, %one : i64
  %is_last = llvm.icmp "eq" %i_next, %slots : i64
  llvm.cond_br %is_last, ^map, ^slot(%i_next : i64)
^map:
  %mapped = llvm.call @mmap(%null, %bytes, %read_write, %private_anonymous, %no_file, %zero) : (!llvm.ptr, i64, i32, i32, i32, i64) -> !llvm.ptr
  %address = llvm.ptrtoint %mapped : !llvm.ptr to i64
  %failed = llvm.mlir.constant(-1 : i64) : i64
  %is_failed = llvm.icmp "eq" %address, %failed : i64
  llvm.cond_br %is_failed, ^return(%null : !llvm.ptr), ^mapped
^mapped:
  %memory = llvm.getelementptr %mapped[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %two_huge_pages = llvm.mlir.constant(4194304 : i64) : i64
  %is_long = llvm.icmp "uge" %bytes, %two_huge_pages : i64
  llvm.cond_br %is_long, ^advise, ^mapped_memory
^advise:
  %use_huge_pages = llvm.mlir.constant(14 : i32) : i32
  %status = llvm.call @madvise(%mapped, %bytes, %use_huge_pages) : (!llvm.ptr, i64, i32) -> i32
  llvm.br ^mapped_memory
^mapped_memory:
  llvm.store %bytes, %mapped : i64, !llvm.ptr
  llvm.br ^return(%memory : !llvm.ptr)
^return(%result: !llvm.ptr):
  llvm.return %result : !llvm.ptr
}
llvm.func internal @bngrad_keep_workspace(%memory: !llvm.ptr) attributes {passthrough = ["noinline"]} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %slots = llvm.mlir.constant(16 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %table = llvm.mlir.addressof @bngrad_workspaces : !llvm.ptr
  %workspace = llvm.getelementptr %memory[-64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.br ^slot(%zero, %workspace : i64, !llvm.ptr)
^slot(%i: i64, %given: !llvm.ptr):
  %slot = llvm.getelementptr %table[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %other = llvm.atomicrmw xchg %slot, %given acq_rel {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  %is_free = llvm.icmp "eq" %other, %null : !llvm.ptr
  llvm.cond_br %is_free, ^return, ^next
^next:
  %i_next = llvm.add %i, %one : i64
  %is_last = llvm.icmp "eq" %i_next, %slots : i64
  llvm.cond_br %is_last, ^unmap, ^slot(%i_next, %other : i64, !llvm.ptr)
^unmap:
  llvm.call @bngrad_unmap_workspace(%other) : (!llvm.ptr) -> ()
  llvm.br ^return
^return:
  llvm.return
}
llvm.func internal @bngrad_unmap_workspaces() {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %slots = llvm.mlir.constant(16 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %table = llvm.mlir.addressof @bngrad_workspaces : !llvm.ptr
  llvm.br ^slot(%zero : i64)
^slot(%i: i64):
  %slot = llvm.getelementptr %table[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %kept = llvm.atomicrmw xchg %slot, %null acq_rel {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.call @bngrad_unmap_workspace(%kept) : (!llvm.ptr) -> ()
  %i_next = llvm.add %i, %one : i64
  %is_last = llvm.icmp "eq" %i_next, %slots : i64
  llvm.cond_br %is_last, ^return, ^slot(%i_next : i64)
^return:
  llvm.return
}
llvm.mlir.global_dtors dtors = [@bngrad_unmap_workspaces], priorities = [65535 : i32], data = [#llvm.zero]
)mlir";

/// Makes the symbols that are not func.func internal as well.
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
  FailureOr<func::FuncOp> getStatusFunction();
};
} // namespace

/// Adds int32_t NAME(a data pointer for each buffer, scalars by value).
static func::FuncOp addPointerEntry(const FunctionEntries &exported) {
  OpBuilder b(exported.getFunction().getContext());
  Location loc = exported.getLoc();
  func::FuncOp entry =
      exported.addEntry(b, exported.getName(), {}, b.getI32Type());
  Value isNull = arith::ConstantIntOp::create(b, loc, 0, 1);
  for (auto [type, value] :
       llvm::zip_equal(exported.getParameters(), entry.getArguments())) {
    auto buffer = dyn_cast<MemRefType>(type);
    if (!buffer || buffer.getNumElements() == 0)
      continue;
    Value null = LLVM::ZeroOp::create(b, loc, value.getType());
    Value same =
        LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, value, null);
    isNull = b.createOrFold<arith::OrIOp>(loc, isNull, same);
  }
  auto choice = scf::IfOp::create(
      b, loc, isNull,
      [](OpBuilder &nested, Location loc) {
        Value failed =
            arith::ConstantIntOp::create(nested, loc, kNullPointerStatus, 32);
        scf::YieldOp::create(nested, loc, failed);
      },
      [&](OpBuilder &nested, Location loc) {
        SmallVector<Value> operands =
            exported.fromPointers(nested, entry.getArguments());
        scf::YieldOp::create(nested, loc, exported.callAlone(nested, operands));
      });
  func::ReturnOp::create(b, loc, choice.getResult(0));
  return entry;
}

/// Adds int32_t _mlir_ciface_NAME(a pointer to a descriptor for each buffer,
/// scalars by value). If `pointerEntry` is not null, the entry calls that
/// function, otherwise the exported function.
static void addDescriptorEntry(const FunctionEntries &exported,
                               func::FuncOp pointerEntry) {
  OpBuilder b(exported.getFunction().getContext());
  func::FuncOp entry = exported.addEntry(
      b, "_mlir_ciface_" + exported.getName(), {}, b.getI32Type());
  Location loc = exported.getLoc();
  if (pointerEntry) {
    SmallVector<Value> pointers = exported.getPointers(b, entry.getArguments());
    auto call = func::CallOp::create(b, loc, pointerEntry, pointers);
    func::ReturnOp::create(b, loc, call.getResults());
    return;
  }
  SmallVector<Value> operands =
      exported.fromDescriptors(b, entry.getArguments());
  func::ReturnOp::create(b, loc, exported.callAlone(b, operands));
}

/// Loads the parameters from `packed`, an array of pointers to descriptors and
/// scalars.
static SmallVector<Value>
loadPacked(OpBuilder &b, const FunctionEntries &exported, Value packed) {
  Location loc = exported.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Value> parameters;
  for (auto [i, type] : llvm::enumerate(exported.getParameters())) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, packed,
                                     LLVM::GEPArg(static_cast<int32_t>(i)));
    Value address = LLVM::LoadOp::create(b, loc, pointer, slot);
    bool isDescriptor = isa<MemRefType>(type);
    parameters.push_back(
        isDescriptor ? address
                     : LLVM::LoadOp::create(
                           b, loc, FunctionEntries::getCType(type), address));
  }
  return exported.fromDescriptors(b, parameters);
}

/// Adds int32_t NAME_packed(void *const *parameters, void *workspace, const
/// bngrad_threads_t *threads), which checks nothing, and size_t
/// NAME_packed_workspace(void *const *parameters).
static void addPackedEntries(const FunctionEntries &exported) {
  OpBuilder b(exported.getFunction().getContext());
  Location loc = exported.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  func::FuncOp entry = FunctionEntries::addFunction(
      b, exported.getFunction(), exported.getName() + "_packed",
      {pointer, pointer, pointer}, b.getI32Type());
  ValueRange arguments = entry.getArguments();
  func::ReturnOp::create(b, loc,
                         exported.call(b, loadPacked(b, exported, arguments[0]),
                                       arguments[1], arguments[2]));

  entry = FunctionEntries::addFunction(b, exported.getFunction(),
                                       exported.getName() + "_packed_workspace",
                                       {pointer}, b.getI64Type());
  Value size = arith::ConstantIntOp::create(b, loc, 0, 64);
  if (func::FuncOp workspace = exported.getWorkspaceFunction())
    size = func::CallOp::create(b, loc, workspace,
                                loadPacked(b, exported, entry.getArgument(0)))
               .getResult(0);
  func::ReturnOp::create(b, loc, size);
}

/// Makes `functions` internal, and renames them so that they cannot collide
/// with functions of a library or of the lowering, such as exp or malloc.
static LogicalResult hide(ArrayRef<func::FuncOp> functions,
                          SymbolTable &symbols) {
  for (func::FuncOp function : functions) {
    std::string name = (function.getSymName() + ".impl").str();
    while (symbols.lookup(name))
      name += ".impl";
    if (failed(symbols.rename(function, name)))
      return failure();
    function.setPrivate();
    function->setAttr(
        "llvm.linkage",
        LLVM::LinkageAttr::get(function.getContext(), LLVM::Linkage::Internal));
    function->removeAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName());
  }
  return success();
}

/// Checks that no other symbol has the name of an entry of the functions
/// `names`. Symbols that are not func.func have not been renamed.
static LogicalResult verifyEntryNames(ModuleOp module, SymbolTable &symbols,
                                      ArrayRef<std::string> names, bool packed,
                                      bool infer) {
  for (const std::string &name : names) {
    SmallVector<std::string> entries = {"_mlir_ciface_" + name,
                                        name + "_checked", name + "_diagnose",
                                        name + "_workspace"};
    if (infer)
      entries.push_back(name + "_infer");
    if (packed)
      entries = {name + "_packed", name + "_packed_workspace"};
    for (const std::string &entry : entries) {
      Operation *other = symbols.lookup(entry);
      if (other || llvm::is_contained(names, entry))
        return emitError(other ? other->getLoc() : module.getLoc())
               << "expected no symbol called '" << entry
               << "', the name of a C entry of @" << name;
    }
  }
  return success();
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
  addThreads(module);
  addStatuses(module);

  SmallVector<std::string> names;
  for (func::FuncOp function : exported)
    names.push_back(function.getSymName().str());
  SymbolTable symbols(module);
  if (failed(hide(functions, symbols)))
    return signalPassFailure();
  hideRest(module);
  if (failed(verifyEntryNames(module, symbols, names, packed, infer)))
    return signalPassFailure();
  FailureOr<func::FuncOp> status = func::FuncOp();
  if (!statusFunction.empty() && !exported.empty())
    status = getStatusFunction();
  if (failed(status))
    return signalPassFailure();
  SmallVector<FunctionEntries> all;
  for (auto [function, name] : llvm::zip_equal(exported, names))
    all.emplace_back(function, name, *status);
  bool hasMapped = llvm::any_of(all, [](const FunctionEntries &entries) {
    return entries.mapsWorkspace();
  });
  if (!packed &&
      ((hasMapped && failed(addHelperFunctions(module, kExportHelpers,
                                               "allocate workspaces"))) ||
       (!all.empty() && failed(addCheckHelpers(module)))))
    return signalPassFailure();
  for (const FunctionEntries &entries : all) {
    if (packed) {
      addPackedEntries(entries);
      continue;
    }
    func::FuncOp pointerEntry;
    if (entries.hasPointerForm())
      pointerEntry = addPointerEntry(entries);
    else
      LDBG() << "no pointer entry: expected memrefs of static shape, strides "
                "and offset: @"
             << entries.getName();
    addDescriptorEntry(entries, pointerEntry);
    addCheckedEntries(entries, infer);
  }
  // Remove attributes that the lowering rejects.
  for (func::FuncOp function : exported)
    for (StringRef attribute : {kParametersAttrName, kShapesAttrName,
                                kSizeErrorsAttrName, kWorkspaceAttrName})
      function->removeAttr(attribute);
}

/// Finds or declares the function that the option `status-function` names.
FailureOr<func::FuncOp> BNGradExportCPass::getStatusFunction() {
  ModuleOp module = getOperation();
  Operation *other = module.lookupSymbol(statusFunction);
  if (auto function = dyn_cast_if_present<func::FuncOp>(other))
    return function;
  if (other)
    return other->emitError()
           << "expected '" << statusFunction << "' to be a func.func, got '"
           << other->getName() << "'";
  OpBuilder b(module.getBodyRegion());
  auto function = func::FuncOp::create(b, module.getLoc(), statusFunction,
                                       b.getFunctionType({}, b.getI32Type()));
  function.setPrivate();
  return function;
}
