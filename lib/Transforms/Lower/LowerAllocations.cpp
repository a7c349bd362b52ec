//===- LowerAllocations.cpp - bngrad-lower-allocations --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function that runs out of memory frees its buffers and returns. Which
// buffers exist at that point is only known at run time, because buffers are
// allocated in loops, carried by loops, and freed under conditions. Each call
// therefore keeps a list of its buffers, whose nodes are stored in front of the
// data. In a parallel op, each thread has its own list; a thread that runs out
// of memory leaves its phase, and the function returns after the op.
//
//===----------------------------------------------------------------------===//

#include "CAbi/HelperFunctions.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/Status.h"
#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#include <deque>

#define DEBUG_TYPE "bngrad-lower-allocations"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADLOWERALLOCATIONSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

static constexpr StringLiteral kAllocate = "bngrad_allocate";
static constexpr StringLiteral kFree = "bngrad_free";
static constexpr StringLiteral kFreeAll = "bngrad_free_all";
static constexpr StringLiteral kAbort = "abort";

/// A node consists of pointers to the next and the previous node, followed by
/// the data. The list is circular, and its head is a node without data. A size
/// above the constant %most is treated as an overflow.
static constexpr StringLiteral kAllocationHelpers = R"mlir(
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)
llvm.func internal @bngrad_allocate(%bytes: i64, %head: !llvm.ptr) -> !llvm.ptr {
  %most = llvm.mlir.constant(9223372036854771711 : i64) : i64
  %node_bytes = llvm.mlir.constant(16 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %is_too_many = llvm.icmp "ugt" %bytes, %most : i64
  llvm.cond_br %is_too_many, ^return(%null : !llvm.ptr), ^allocate
^allocate:
  %total = llvm.add %bytes, %node_bytes : i64
  %node = llvm.call @malloc(%total) : (i64) -> !llvm.ptr
  %is_null = llvm.icmp "eq" %node, %null : !llvm.ptr
  llvm.cond_br %is_null, ^return(%null : !llvm.ptr), ^link
^link:
  %next = llvm.load %head : !llvm.ptr -> !llvm.ptr
  %node_previous = llvm.getelementptr %node[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %next_previous = llvm.getelementptr %next[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %next, %node : !llvm.ptr, !llvm.ptr
  llvm.store %head, %node_previous : !llvm.ptr, !llvm.ptr
  llvm.store %node, %next_previous : !llvm.ptr, !llvm.ptr
  llvm.store %node, %head : !llvm.ptr, !llvm.ptr
  %data = llvm.getelementptr %node[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.br ^return(%data : !llvm.ptr)
^return(%result: !llvm.ptr):
  llvm.return %result : !llvm.ptr
}
llvm.func internal @bngrad_free(%data: !llvm.ptr) {
  %node = llvm.getelementptr %data[-2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %node_previous = llvm.getelementptr %node[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %next = llvm.load %node : !llvm.ptr -> !llvm.ptr
  %previous = llvm.load %node_previous : !llvm.ptr -> !llvm.ptr
  %next_previous = llvm.getelementptr %next[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %next, %previous : !llvm.ptr, !llvm.ptr
  llvm.store %previous, %next_previous : !llvm.ptr, !llvm.ptr
  llvm.call @free(%node) : (!llvm.ptr) -> ()
  llvm.return
}
llvm.func internal @bngrad_free_all(%head: !llvm.ptr) {
  %first = llvm.load %head : !llvm.ptr -> !llvm.ptr
  llvm.br ^test(%first : !llvm.ptr)
^test(%node: !llvm.ptr):
  %is_end = llvm.icmp "eq" %node, %head : !llvm.ptr
  llvm.cond_br %is_end, ^return, ^free
^free:
  %next = llvm.load %node : !llvm.ptr -> !llvm.ptr
  llvm.call @free(%node) : (!llvm.ptr) -> ()
  llvm.br ^test(%next : !llvm.ptr)
^return:
  llvm.return
}
)mlir";

/// The alignment of malloc in bytes, and so of the data after a node.
static constexpr int64_t kMallocAlignment = 16;

static bool isHostMemory(BaseMemRefType type) { return !type.getMemorySpace(); }

static void callHelper(OpBuilder &b, Location loc, StringRef name,
                       ValueRange operands) {
  LLVM::CallOp::create(b, loc, TypeRange(), name, operands);
}

namespace {
/// The code that is exited when memory runs out in it: a function, or a phase
/// of a parallel op.
struct Scope {
  /// The head of the list of its buffers, or null if the function allocates
  /// none.
  Value head;
  /// The block that leaves the scope. Its argument is the status, an i32.
  Block *failure = nullptr;
};

/// Lowers the allocations of one function.
class AllocationLowering {
public:
  explicit AllocationLowering(func::FuncOp function)
      : function(function), converter(function.getContext()),
        pointerType(LLVM::LLVMPointerType::get(function.getContext())),
        statusType(IntegerType::get(function.getContext(), 32)) {}

  /// Finds the ops to lower. Returns whether they need the helper functions.
  bool find();
  LogicalResult run();

private:
  FailureOr<Scope> getScope(Operation *op);
  Value createHead(Region &region);
  FailureOr<Block *> createFailure(Value head);
  FailureOr<Block *> createFailure(Region &phase, Value head);

  /// Splits the block before `op`, and branches to `failure` if `isFailure` is
  /// true.
  void branch(Operation *op, Value isFailure, Block *failure, Value status);
  void lower(memref::AllocOp op, const Scope &scope);
  void lower(memref::DeallocOp op);
  void check(func::CallOp op, const Scope &scope);

  Value constant(OpBuilder &b, Location loc, int64_t value, Type type) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }
  Value computeBytes(OpBuilder &b, memref::AllocOp op,
                     MutableArrayRef<Value> sizes);

  func::FuncOp function;
  LLVMTypeConverter converter;
  Type pointerType, statusType;
  DenseMap<Region *, Scope> scopes;
  SmallVector<memref::AllocOp> allocs;
  SmallVector<memref::DeallocOp> deallocs;
  /// The calls whose status must be checked.
  SmallVector<func::CallOp> calls;
};
} // namespace

FailureOr<Scope> AllocationLowering::getScope(Operation *op) {
  Region &region = *op->getParentRegion();
  if (auto found = scopes.find(&region); found != scopes.end())
    return found->second;
  Operation *owner = region.getParentOp();
  if (owner != function && !isa<ParallelOp>(owner))
    return op->emitOpError()
           << "expected parent op to be a function or bngrad.parallel, because "
              "memory may run out here, got '"
           << owner->getName() << "'";
  Scope scope;
  if (!allocs.empty())
    scope.head = createHead(region);
  FailureOr<Block *> block = owner == function
                                 ? createFailure(scope.head)
                                 : createFailure(region, scope.head);
  if (failed(block))
    return failure();
  scope.failure = *block;
  scopes[&region] = scope;
  return scope;
}

/// Creates an empty list on the stack of each thread that runs `region`.
Value AllocationLowering::createHead(Region &region) {
  OpBuilder b = OpBuilder::atBlockBegin(&region.front());
  Location loc = region.getLoc();
  Value two = constant(b, loc, 2, b.getI64Type());
  Value head = LLVM::AllocaOp::create(b, loc, pointerType, pointerType, two);
  Value previous = LLVM::GEPOp::create(b, loc, pointerType, pointerType, head,
                                       LLVM::GEPArg(1));
  LLVM::StoreOp::create(b, loc, head, head);
  LLVM::StoreOp::create(b, loc, head, previous);
  return head;
}

/// Creates the block that leaves the function. A function without a status
/// could not report the failure to its caller, so it aborts.
FailureOr<Block *> AllocationLowering::createFailure(Value head) {
  OpBuilder b(function.getContext());
  Location loc = function.getLoc();
  Region &body = function.getBody();
  Block *block = b.createBlock(&body, body.end(), statusType, loc);
  if (!returnsStatus(function)) {
    LDBG() << "aborts if memory runs out, because it returns no status: @"
           << function.getSymName();
    auto module = function->getParentOfType<ModuleOp>();
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(function.getContext()), {});
    if (Operation *there = module.lookupSymbol(kAbort)) {
      if (failed(verifyLibraryFunction(there, type, "end the process")))
        return failure();
    } else {
      OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
      LLVM::LLVMFuncOp::create(atStart, module.getLoc(), kAbort, type);
    }
    callHelper(b, loc, kAbort, {});
    LLVM::UnreachableOp::create(b, loc);
    return block;
  }
  if (head)
    callHelper(b, loc, kFreeAll, head);
  SmallVector<Value> results;
  for (Type type : function.getResultTypes().drop_back()) {
    Value zero = LLVM::ZeroOp::create(b, loc, converter.convertType(type));
    results.push_back(
        UnrealizedConversionCastOp::create(b, loc, type, zero).getResult(0));
  }
  results.push_back(block->getArgument(0));
  func::ReturnOp::create(b, loc, results);
  return block;
}

/// Creates the block that leaves `phase`, and a branch after the parallel op
/// that leaves the enclosing scope if a thread has failed.
FailureOr<Block *> AllocationLowering::createFailure(Region &phase,
                                                     Value head) {
  Operation *parallel = phase.getParentOp();
  FailureOr<Scope> outer = getScope(parallel);
  if (failed(outer))
    return failure();

  Location loc = parallel->getLoc();
  OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
  Value one = constant(b, loc, 1, b.getI64Type());
  Value shared = LLVM::AllocaOp::create(b, loc, pointerType, statusType, one);
  b.setInsertionPoint(parallel);
  LLVM::StoreOp::create(b, loc, constant(b, loc, 0, statusType), shared);
  b.setInsertionPointAfter(parallel);
  Value status = LLVM::LoadOp::create(b, loc, statusType, shared);
  Value isFailure =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, status,
                            constant(b, loc, 0, statusType));
  branch(isFailure.getDefiningOp()->getNextNode(), isFailure, outer->failure,
         status);

  Block *block = b.createBlock(&phase, phase.end(), statusType, loc);
  LLVM::StoreOp::create(b, loc, block->getArgument(0), shared, /*alignment=*/4,
                        /*isVolatile=*/false, /*isNonTemporal=*/false,
                        /*isInvariantGroup=*/false,
                        LLVM::AtomicOrdering::monotonic);
  if (head)
    callHelper(b, loc, kFreeAll, head);
  YieldOp::create(b, loc);
  return block;
}

void AllocationLowering::branch(Operation *op, Value isFailure, Block *failure,
                                Value status) {
  Block *before = op->getBlock();
  Block *after = before->splitBlock(op);
  OpBuilder b = OpBuilder::atBlockEnd(before);
  cf::CondBranchOp::create(b, op->getLoc(), isFailure, failure, status, after,
                           ValueRange());
}

/// Emits the size of the buffer in bytes, or a number with all bits set if it
/// overflows an i64. `sizes` are the sizes of the buffer's dims.
Value AllocationLowering::computeBytes(OpBuilder &b, memref::AllocOp op,
                                       MutableArrayRef<Value> sizes) {
  Location loc = op.getLoc();
  Type i64 = b.getI64Type();
  Value null = LLVM::ZeroOp::create(b, loc, pointerType);
  Value end = LLVM::GEPOp::create(
      b, loc, pointerType, converter.convertType(op.getType().getElementType()),
      null, LLVM::GEPArg(1));
  Value bytes = LLVM::PtrToIntOp::create(b, loc, i64, end);
  Value isTooLarge = constant(b, loc, 0, b.getI1Type());
  Value zero = constant(b, loc, 0, i64), none = constant(b, loc, -1, i64);
  // Check every partial product, even if a later size is 0 and makes the buffer
  // empty: the strides are such products and must not overflow either.
  for (Value size : sizes) {
    auto product = arith::MulUIExtendedOp::create(b, loc, bytes, size);
    Value hasHigh = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                          product.getHigh(), zero);
    isTooLarge = arith::OrIOp::create(b, loc, isTooLarge, hasHigh);
    bytes = product.getLow();
  }
  return arith::SelectOp::create(b, loc, isTooLarge, none, bytes);
}

void AllocationLowering::lower(memref::AllocOp op, const Scope &scope) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type i64 = b.getI64Type();
  MemRefType type = op.getType();
  SmallVector<Value> sizes;
  auto dynamicSize = op.getDynamicSizes().begin();
  for (int64_t size : type.getShape())
    sizes.push_back(
        ShapedType::isDynamic(size)
            ? Value(arith::IndexCastOp::create(b, loc, i64, *dynamicSize++))
            : constant(b, loc, size, i64));
  Value bytes = computeBytes(b, op, sizes);
  int64_t alignment = op.getAlignment().value_or(kMallocAlignment);
  if (auto vector = dyn_cast<VectorType>(type.getElementType()))
    alignment = std::max<int64_t>(
        alignment,
        llvm::PowerOf2Ceil(llvm::divideCeil(
            vector.getNumElements() * vector.getElementTypeBitWidth(), 8)));
  bool isAligned = alignment <= kMallocAlignment;
  if (!isAligned) {
    // If the addition overflows, keep the original size, which is too large to
    // be allocated.
    Value padding = constant(b, loc, alignment - kMallocAlignment, i64);
    Value padded = arith::AddIOp::create(b, loc, bytes, padding);
    bytes = arith::MaxUIOp::create(b, loc, bytes, padded);
  }
  Value allocated =
      LLVM::CallOp::create(b, loc, TypeRange(pointerType), kAllocate,
                           ValueRange{bytes, scope.head})
          .getResult();
  Value null = LLVM::ZeroOp::create(b, loc, pointerType);
  Value isNull =
      LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, allocated, null);
  Value status = constant(b, loc, kOutOfMemoryStatus, statusType);
  branch(op, isNull, scope.failure, status);

  b.setInsertionPoint(op);
  Value aligned = allocated;
  if (!isAligned) {
    Value address = LLVM::PtrToIntOp::create(b, loc, i64, allocated);
    address = arith::AddIOp::create(b, loc, address,
                                    constant(b, loc, alignment - 1, i64));
    address = arith::AndIOp::create(b, loc, address,
                                    constant(b, loc, -alignment, i64));
    aligned = LLVM::IntToPtrOp::create(b, loc, pointerType, address);
  }
  SmallVector<Value> strides(sizes.size());
  Value stride = constant(b, loc, 1, i64);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    if (i > 0)
      stride = arith::MulIOp::create(b, loc, stride, sizes[i]);
  }
  auto descriptor =
      MemRefDescriptor::poison(b, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, allocated);
  descriptor.setAlignedPtr(b, loc, aligned);
  descriptor.setOffset(b, loc, constant(b, loc, 0, i64));
  for (auto [i, size] : llvm::enumerate(sizes)) {
    descriptor.setSize(b, loc, i, size);
    descriptor.setStride(b, loc, i, strides[i]);
  }
  Value memref = UnrealizedConversionCastOp::create(
                     b, loc, type, static_cast<Value>(descriptor))
                     .getResult(0);
  op.replaceAllUsesWith(memref);
  op.erase();
}

void AllocationLowering::lower(memref::DeallocOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<BaseMemRefType>(op.getMemref().getType());
  Value descriptor = UnrealizedConversionCastOp::create(
                         b, loc, converter.convertType(type), op.getMemref())
                         .getResult(0);
  Value allocated;
  if (isa<UnrankedMemRefType>(type))
    allocated = UnrankedMemRefDescriptor::allocatedPtr(
        b, loc, UnrankedMemRefDescriptor(descriptor).memRefDescPtr(b, loc),
        cast<LLVM::LLVMPointerType>(pointerType));
  else
    allocated = MemRefDescriptor(descriptor).allocatedPtr(b, loc);
  callHelper(b, loc, kFree, allocated);
  op.erase();
}

void AllocationLowering::check(func::CallOp op, const Scope &scope) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Value status = op.getResults().back();
  Value isFailure =
      arith::CmpIOp::create(b, op.getLoc(), arith::CmpIPredicate::ne, status,
                            constant(b, op.getLoc(), 0, statusType));
  branch(isFailure.getDefiningOp()->getNextNode(), isFailure, scope.failure,
         status);
}

bool AllocationLowering::find() {
  auto module = function->getParentOfType<ModuleOp>();
  function.walk([&](Operation *op) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      if (isHostMemory(alloc.getType()) &&
          alloc.getType().getLayout().isIdentity())
        allocs.push_back(alloc);
      else
        LDBG() << "left to upstream's patterns: expected host memory with "
                  "identity layout: "
               << alloc;
    } else if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
      if (isHostMemory(cast<BaseMemRefType>(dealloc.getMemref().getType())))
        deallocs.push_back(dealloc);
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      // A caller that uses the status handles the failure itself.
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee && returnsStatus(callee) &&
          call.getResults().back().use_empty())
        calls.push_back(call);
    }
  });
  return !allocs.empty() || !deallocs.empty();
}

LogicalResult AllocationLowering::run() {
  for (memref::AllocOp op : allocs) {
    if (!converter.convertType(op.getType()))
      return op.emitOpError("expected element type to have an LLVM type, got ")
             << op.getType().getElementType();
    FailureOr<Scope> scope = getScope(op);
    if (failed(scope))
      return failure();
    lower(op, *scope);
  }
  for (func::CallOp op : calls) {
    FailureOr<Scope> scope = getScope(op);
    if (failed(scope))
      return failure();
    check(op, *scope);
  }
  for (memref::DeallocOp op : deallocs)
    lower(op);
  return success();
}

namespace {
struct BNGradLowerAllocationsPass
    : bngrad::impl::BNGradLowerAllocationsPassBase<BNGradLowerAllocationsPass> {
  using BNGradLowerAllocationsPassBase::BNGradLowerAllocationsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    std::deque<AllocationLowering> lowerings(functions.begin(),
                                             functions.end());
    bool isNeeded = false;
    for (AllocationLowering &lowering : lowerings)
      isNeeded |= lowering.find();
    if (isNeeded && failed(addHelperFunctions(module, kAllocationHelpers,
                                              "allocate or free memory")))
      return signalPassFailure();
    for (AllocationLowering &lowering : lowerings)
      if (failed(lowering.run()))
        return signalPassFailure();
    for (func::FuncOp function : functions)
      function->removeAttr(kStatusAttrName);
  }
};
} // namespace
