//===- OutlineParallel.cpp - bngrad-outline-parallel ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each phase becomes a function that any thread pool can run. Its arguments are
// a pointer to the values that it uses, which are in a struct on the stack of
// the enclosing function, the index of the thread, and the number of threads.
//
// If the caller gives no pool, the generated code looks for OpenMP at run time.
// It calls the entry points for gcc, which both libgomp and LLVM's libomp have.
//
//===----------------------------------------------------------------------===//

#include "CAbi/HelperFunctions.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/Threads.h"
#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADOUTLINEPARALLELPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

static constexpr StringLiteral kRun = "bngrad_run_phases",
                               kCount = "bngrad_count_threads";

/// bngrad_run_phases runs the phases on the pool `threads`, a bngrad_threads_t,
/// or on OpenMP's threads if that is null. It runs them on the calling thread
/// if `is_work` is false or there is no OpenMP. A pool may run the parts of a
/// phase one after another.
///
/// bngrad_count_threads returns the number of threads of the pool, clamped to
/// [1, `max`].
///
/// bngrad_openmp_state is 0 if OpenMP has not been looked for yet, 1 if it was
/// found, and 2 if there is none. Several threads may look for it at the same
/// time; they find the same library.
static constexpr StringLiteral kThreadHelpers = R"mlir(
llvm.func @getenv(!llvm.ptr) -> !llvm.ptr
llvm.func @dlopen(!llvm.ptr, i32) -> !llvm.ptr
llvm.func @dlsym(!llvm.ptr, !llvm.ptr) -> !llvm.ptr
llvm.mlir.global internal constant @bngrad_openmp_variable("BNGRAD_OPENMP\00")
llvm.mlir.global internal constant @bngrad_openmp_llvm("libomp.so.5\00")
llvm.mlir.global internal constant @bngrad_openmp_gcc("libgomp.so.1\00")
llvm.mlir.global internal constant @bngrad_openmp_fork("GOMP_parallel\00")
llvm.mlir.global internal constant @bngrad_openmp_barrier("GOMP_barrier\00")
llvm.mlir.global internal constant @bngrad_openmp_number("omp_get_thread_num\00")
llvm.mlir.global internal constant @bngrad_openmp_count("omp_get_num_threads\00")
llvm.mlir.global internal constant @bngrad_openmp_most("omp_get_max_threads\00")
llvm.mlir.global internal @bngrad_openmp_state(0 : i32) : i32
llvm.mlir.global internal @bngrad_openmp() : !llvm.array<5 x ptr> {
  %none = llvm.mlir.zero : !llvm.array<5 x ptr>
  llvm.return %none : !llvm.array<5 x ptr>
}
llvm.func internal @bngrad_take_openmp(%library: !llvm.ptr) -> i1 {
  %null = llvm.mlir.zero : !llvm.ptr
  %fork_name = llvm.mlir.addressof @bngrad_openmp_fork : !llvm.ptr
  %barrier_name = llvm.mlir.addressof @bngrad_openmp_barrier : !llvm.ptr
  %number_name = llvm.mlir.addressof @bngrad_openmp_number : !llvm.ptr
  %count_name = llvm.mlir.addressof @bngrad_openmp_count : !llvm.ptr
  %most_name = llvm.mlir.addressof @bngrad_openmp_most : !llvm.ptr
  %fork = llvm.call @dlsym(%library, %fork_name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %barrier = llvm.call @dlsym(%library, %barrier_name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %number = llvm.call @dlsym(%library, %number_name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %count = llvm.call @dlsym(%library, %count_name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %most = llvm.call @dlsym(%library, %most_name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %has_fork = llvm.icmp "ne" %fork, %null : !llvm.ptr
  %has_barrier = llvm.icmp "ne" %barrier, %null : !llvm.ptr
  %has_number = llvm.icmp "ne" %number, %null : !llvm.ptr
  %has_count = llvm.icmp "ne" %count, %null : !llvm.ptr
  %has_2 = llvm.and %has_fork, %has_barrier : i1
  %has_3 = llvm.and %has_2, %has_number : i1
  %has_most = llvm.icmp "ne" %most, %null : !llvm.ptr
  %has_4 = llvm.and %has_3, %has_count : i1
  %has_all = llvm.and %has_4, %has_most : i1
  llvm.cond_br %has_all, ^store, ^return
^store:
  %openmp = llvm.mlir.addressof @bngrad_openmp : !llvm.ptr
  %openmp_1 = llvm.getelementptr %openmp[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %openmp_2 = llvm.getelementptr %openmp[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %openmp_3 = llvm.getelementptr %openmp[3] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %openmp_4 = llvm.getelementptr %openmp[4] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  llvm.store %fork, %openmp atomic monotonic {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.store %barrier, %openmp_1 atomic monotonic {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.store %number, %openmp_2 atomic monotonic {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.store %count, %openmp_3 atomic monotonic {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.store %most, %openmp_4 atomic monotonic {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.br ^return
^return:
  llvm.return %has_all : i1
}
llvm.func internal @bngrad_find_openmp() -> i32 attributes {passthrough = ["cold", "noinline"]} {
  %absent = llvm.mlir.constant(2 : i32) : i32
  %found = llvm.mlir.constant(1 : i32) : i32
  %lazy = llvm.mlir.constant(1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i8) : i8
  %null = llvm.mlir.zero : !llvm.ptr
  %variable = llvm.mlir.addressof @bngrad_openmp_variable : !llvm.ptr
  %given = llvm.call @getenv(%variable) : (!llvm.ptr) -> !llvm.ptr
  %is_given = llvm.icmp "ne" %given, %null : !llvm.ptr
  llvm.cond_br %is_given, ^given, ^process
^given:
  %first = llvm.load %given : !llvm.ptr -> i8
  %is_empty = llvm.icmp "eq" %first, %zero : i8
  llvm.cond_br %is_empty, ^end(%absent : i32), ^last(%given : !llvm.ptr)
^process:
  %in_process = llvm.call @bngrad_take_openmp(%null) : (!llvm.ptr) -> i1
  llvm.cond_br %in_process, ^end(%found : i32), ^llvm
^llvm:
  %llvm_name = llvm.mlir.addressof @bngrad_openmp_llvm : !llvm.ptr
  %gcc_name = llvm.mlir.addressof @bngrad_openmp_gcc : !llvm.ptr
  %llvm = llvm.call @dlopen(%llvm_name, %lazy) : (!llvm.ptr, i32) -> !llvm.ptr
  %has_llvm = llvm.icmp "ne" %llvm, %null : !llvm.ptr
  llvm.cond_br %has_llvm, ^take(%llvm : !llvm.ptr), ^last(%gcc_name : !llvm.ptr)
^last(%path: !llvm.ptr):
  %library = llvm.call @dlopen(%path, %lazy) : (!llvm.ptr, i32) -> !llvm.ptr
  %has_library = llvm.icmp "ne" %library, %null : !llvm.ptr
  llvm.cond_br %has_library, ^take(%library : !llvm.ptr), ^end(%absent : i32)
^take(%handle: !llvm.ptr):
  %is_taken = llvm.call @bngrad_take_openmp(%handle) : (!llvm.ptr) -> i1
  llvm.cond_br %is_taken, ^end(%found : i32), ^end(%absent : i32)
^end(%result: i32):
  %state = llvm.mlir.addressof @bngrad_openmp_state : !llvm.ptr
  llvm.store %result, %state atomic release {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.return %result : i32
}
llvm.func internal @bngrad_has_openmp() -> i1 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %state_slot = llvm.mlir.addressof @bngrad_openmp_state : !llvm.ptr
  %state = llvm.load %state_slot atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
  %is_unknown = llvm.icmp "eq" %state, %zero : i32
  llvm.cond_br %is_unknown, ^find, ^known(%state : i32)
^find:
  %looked_up = llvm.call @bngrad_find_openmp() : () -> i32
  llvm.br ^known(%looked_up : i32)
^known(%known: i32):
  %is_found = llvm.icmp "eq" %known, %one : i32
  llvm.return %is_found : i1
}
llvm.func internal @bngrad_count_threads(%threads: !llvm.ptr, %max: i32) -> i32 attributes {passthrough = ["noinline"]} {
  %one = llvm.mlir.constant(1 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %is_openmp = llvm.icmp "eq" %threads, %null : !llvm.ptr
  llvm.cond_br %is_openmp, ^openmp, ^pool
^pool:
  %context_slot = llvm.getelementptr %threads[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %count_slot = llvm.getelementptr %threads[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %context = llvm.load %context_slot : !llvm.ptr -> !llvm.ptr
  %count = llvm.load %count_slot : !llvm.ptr -> !llvm.ptr
  %n = llvm.call %count(%context) : !llvm.ptr, (!llvm.ptr) -> i32
  llvm.br ^clamp(%n : i32)
^openmp:
  %has_openmp = llvm.call @bngrad_has_openmp() : () -> i1
  llvm.cond_br %has_openmp, ^ask, ^clamp(%one : i32)
^ask:
  %openmp = llvm.mlir.addressof @bngrad_openmp : !llvm.ptr
  %openmp_4 = llvm.getelementptr %openmp[4] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %most = llvm.load %openmp_4 : !llvm.ptr -> !llvm.ptr
  %asked = llvm.call %most() : !llvm.ptr, () -> i32
  llvm.br ^clamp(%asked : i32)
^clamp(%given: i32):
  %positive = llvm.intr.smax(%given, %one) : (i32, i32) -> i32
  %clamped = llvm.intr.smin(%positive, %max) : (i32, i32) -> i32
  llvm.return %clamped : i32
}
llvm.func internal @bngrad_run_openmp(%team: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %openmp = llvm.mlir.addressof @bngrad_openmp : !llvm.ptr
  %openmp_1 = llvm.getelementptr %openmp[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %openmp_2 = llvm.getelementptr %openmp[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %openmp_3 = llvm.getelementptr %openmp[3] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %barrier = llvm.load %openmp_1 : !llvm.ptr -> !llvm.ptr
  %number = llvm.load %openmp_2 : !llvm.ptr -> !llvm.ptr
  %count = llvm.load %openmp_3 : !llvm.ptr -> !llvm.ptr
  %team_1 = llvm.getelementptr %team[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr, i64)>
  %team_2 = llvm.getelementptr %team[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr, i64)>
  %phases = llvm.load %team : !llvm.ptr -> !llvm.ptr
  %captures = llvm.load %team_1 : !llvm.ptr -> !llvm.ptr
  %num_phases = llvm.load %team_2 : !llvm.ptr -> i64
  %thread = llvm.call %number() : !llvm.ptr, () -> i32
  %threads = llvm.call %count() : !llvm.ptr, () -> i32
  llvm.br ^phase(%zero : i64)
^phase(%i: i64):
  %slot = llvm.getelementptr %phases[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %phase = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.call %phase(%captures, %thread, %threads) : !llvm.ptr, (!llvm.ptr, i32, i32) -> ()
  %next = llvm.add %i, %one : i64
  %is_end = llvm.icmp "eq" %next, %num_phases : i64
  llvm.cond_br %is_end, ^return, ^barrier
^barrier:
  llvm.call %barrier() : !llvm.ptr, () -> ()
  llvm.br ^phase(%next : i64)
^return:
  llvm.return
}
llvm.func internal @bngrad_run_phases(%threads: !llvm.ptr, %is_work: i1, %phases: !llvm.ptr, %captures: !llvm.ptr, %num_phases: i64) attributes {passthrough = ["noinline"]} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %first = llvm.mlir.constant(0 : i64) : i64
  %step = llvm.mlir.constant(1 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.cond_br %is_work, ^parallel, ^serial(%first : i64)
^serial(%i: i64):
  %slot = llvm.getelementptr %phases[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %phase = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.call %phase(%captures, %zero, %one) : !llvm.ptr, (!llvm.ptr, i32, i32) -> ()
  %next = llvm.add %i, %step : i64
  %is_end = llvm.icmp "eq" %next, %num_phases : i64
  llvm.cond_br %is_end, ^return, ^serial(%next : i64)
^parallel:
  %is_openmp = llvm.icmp "eq" %threads, %null : !llvm.ptr
  llvm.cond_br %is_openmp, ^openmp, ^pool
^pool:
  %context_slot = llvm.getelementptr %threads[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %count_slot = llvm.getelementptr %threads[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %run_slot = llvm.getelementptr %threads[3] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %context = llvm.load %context_slot : !llvm.ptr -> !llvm.ptr
  %count = llvm.load %count_slot : !llvm.ptr -> !llvm.ptr
  %run = llvm.load %run_slot : !llvm.ptr -> !llvm.ptr
  %n = llvm.call %count(%context) : !llvm.ptr, (!llvm.ptr) -> i32
  %is_several = llvm.icmp "sgt" %n, %one : i32
  llvm.cond_br %is_several, ^pool_phase(%first : i64), ^serial(%first : i64)
^pool_phase(%k: i64):
  %pool_slot = llvm.getelementptr %phases[%k] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %body = llvm.load %pool_slot : !llvm.ptr -> !llvm.ptr
  llvm.call %run(%context, %n, %body, %captures) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> ()
  %pool_next = llvm.add %k, %step : i64
  %is_pool_end = llvm.icmp "eq" %pool_next, %num_phases : i64
  llvm.cond_br %is_pool_end, ^return, ^pool_phase(%pool_next : i64)
^openmp:
  %has_openmp = llvm.call @bngrad_has_openmp() : () -> i1
  llvm.cond_br %has_openmp, ^fork, ^serial(%first : i64)
^fork:
  %team = llvm.alloca %one x !llvm.struct<(ptr, ptr, i64)> : (i32) -> !llvm.ptr
  %team_1 = llvm.getelementptr %team[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr, i64)>
  %team_2 = llvm.getelementptr %team[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr, i64)>
  llvm.store %phases, %team : !llvm.ptr, !llvm.ptr
  llvm.store %captures, %team_1 : !llvm.ptr, !llvm.ptr
  llvm.store %num_phases, %team_2 : i64, !llvm.ptr
  %openmp = llvm.mlir.addressof @bngrad_openmp : !llvm.ptr
  %fork_function = llvm.load %openmp : !llvm.ptr -> !llvm.ptr
  %body_function = llvm.mlir.addressof @bngrad_run_openmp : !llvm.ptr
  llvm.call %fork_function(%body_function, %team, %zero, %zero) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  llvm.br ^return
^return:
  llvm.return
}
)mlir";

/// Outlines `phase` into a function, whose first argument points to the struct
/// of `captures`.
static LLVM::LLVMFuncOp outline(Region &phase, ArrayRef<Value> captures,
                                LLVM::LLVMStructType type,
                                LLVM::LLVMFuncOp parent, SymbolTable &symbols) {
  MLIRContext *context = parent.getContext();
  Location loc = phase.getLoc();
  OpBuilder b(context);
  auto pointerType = LLVM::LLVMPointerType::get(context);
  Type i32 = b.getI32Type();
  auto function = LLVM::LLVMFuncOp::create(
      b, loc, (parent.getSymName() + ".phase").str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                  {pointerType, i32, i32}),
      LLVM::Linkage::Internal);
  symbols.insert(function, Block::iterator(parent->getNextNode()));
  Block *entry = function.addEntryBlock(b);
  for (unsigned i : {0, 1})
    phase.getArgument(i).replaceAllUsesWith(entry->getArgument(i + 1));
  phase.front().eraseArguments(0, 2);

  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(phase, used);
  b.setInsertionPointToStart(entry);
  for (Value value : used) {
    auto isHere = [&](OpOperand &use) {
      return phase.isAncestor(use.getOwner()->getParentRegion());
    };
    Value here;
    if (Operation *op = value.getDefiningOp();
        op && op->hasTrait<OpTrait::ConstantLike>()) {
      here = b.clone(*op)->getResult(cast<OpResult>(value).getResultNumber());
    } else {
      if (is_contained(entry->getArguments(), value))
        continue;
      int32_t i = llvm::find(captures, value) - captures.begin();
      Value slot =
          LLVM::GEPOp::create(b, loc, pointerType, type, entry->getArgument(0),
                              ArrayRef<LLVM::GEPArg>{0, i});
      auto load = LLVM::LoadOp::create(b, loc, value.getType(), slot);
      // The struct is not written while threads run the phases.
      load.setInvariant(true);
      here = load;
    }
    value.replaceUsesWithIf(here, isHere);
  }
  phase.walk([&](YieldOp op) {
    b.setInsertionPoint(op);
    LLVM::ReturnOp::create(b, op.getLoc(), ValueRange());
    op.erase();
  });
  Block *first = &phase.front();
  function.getBody().getBlocks().splice(function.getBody().end(),
                                        phase.getBlocks());
  b.setInsertionPointToEnd(entry);
  LLVM::BrOp::create(b, loc, ValueRange(), first);
  return function;
}

/// Creates the constant table of the phases' functions.
static LLVM::GlobalOp createTable(ArrayRef<LLVM::LLVMFuncOp> functions,
                                  LLVM::LLVMFuncOp parent,
                                  SymbolTable &symbols) {
  MLIRContext *context = parent.getContext();
  Location loc = parent.getLoc();
  OpBuilder b(context);
  auto pointerType = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMArrayType::get(pointerType, functions.size());
  auto table = LLVM::GlobalOp::create(
      b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
      (parent.getSymName() + ".phases").str(), /*value=*/Attribute());
  symbols.insert(table, Block::iterator(parent));
  b.createBlock(&table.getInitializerRegion());
  Value value = LLVM::PoisonOp::create(b, loc, type);
  for (auto [i, function] : llvm::enumerate(functions)) {
    Value address = LLVM::AddressOfOp::create(b, loc, function);
    value = LLVM::InsertValueOp::create(b, loc, value, address, i);
  }
  LLVM::ReturnOp::create(b, loc, value);
  return table;
}

/// The threads argument of the function around `op`, or a null pointer, which
/// stands for OpenMP's threads, if there is none.
static Value getThreads(OpBuilder &b, Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), kThreadsAttrName))
      return argument;
  return LLVM::ZeroOp::create(b, op->getLoc(),
                              LLVM::LLVMPointerType::get(op->getContext()));
}

static void lower(NumThreadsOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value max = LLVM::ConstantOp::create(b, loc, op.getMaxAttr());
  Value threads = getThreads(b, op);
  auto call = LLVM::CallOp::create(b, loc, TypeRange(b.getI32Type()), kCount,
                                   ValueRange{threads, max});
  op.replaceAllUsesWith(call.getResult());
  op.erase();
}

static void lower(ParallelOp op, SymbolTable &symbols) {
  auto parent = op->getParentOfType<LLVM::LLVMFuncOp>();
  MLIRContext *context = op.getContext();
  Location loc = op.getLoc();
  auto pointerType = LLVM::LLVMPointerType::get(context);

  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op.getPhases(), used);
  SmallVector<Value> captures;
  SmallVector<Type> types;
  for (Value value : used)
    if (Operation *definition = value.getDefiningOp();
        !definition || !definition->hasTrait<OpTrait::ConstantLike>()) {
      captures.push_back(value);
      types.push_back(value.getType());
    }
  auto type = LLVM::LLVMStructType::getLiteral(context, types);

  OpBuilder b(op);
  auto constant = [&](Type type, int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, loc, type, value);
  };
  Value data;
  if (captures.empty()) {
    data = LLVM::ZeroOp::create(b, loc, pointerType);
  } else {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&parent.getBody().front());
    data = LLVM::AllocaOp::create(b, loc, pointerType, type,
                                  constant(b.getI32Type(), 1));
  }
  for (auto [i, value] : llvm::enumerate(captures)) {
    Value slot =
        LLVM::GEPOp::create(b, loc, pointerType, type, data,
                            ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
    LLVM::StoreOp::create(b, loc, value, slot);
  }

  Value condition = op.getCondition();
  if (!condition)
    condition = constant(b.getI1Type(), 1);
  SmallVector<LLVM::LLVMFuncOp> functions;
  for (Region &phase : op.getPhases())
    functions.push_back(outline(phase, captures, type, parent, symbols));
  LLVM::GlobalOp table = createTable(functions, parent, symbols);
  Value phases = LLVM::AddressOfOp::create(b, loc, table);
  LLVM::CallOp::create(b, loc, TypeRange(), kRun,
                       ValueRange{getThreads(b, op), condition, phases, data,
                                  constant(b.getI64Type(), functions.size())});
  op.erase();
}

namespace {
struct BNGradOutlineParallelPass
    : bngrad::impl::BNGradOutlineParallelPassBase<BNGradOutlineParallelPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<ParallelOp> ops;
    SmallVector<NumThreadsOp> counts;
    module.walk([&](ParallelOp op) { ops.push_back(op); });
    module.walk([&](NumThreadsOp op) { counts.push_back(op); });
    // Remaining casts mean that an op was not lowered, which is reported later.
    WalkResult casts = module.walk(
        [](UnrealizedConversionCastOp) { return WalkResult::interrupt(); });
    if ((ops.empty() && counts.empty()) || casts.wasInterrupted())
      return;
    if (failed(
            addHelperFunctions(module, kThreadHelpers, "run parallel loops")))
      return signalPassFailure();
    // Lower bngrad.num_threads first, while the ops are still in the function
    // that has the threads argument.
    for (NumThreadsOp op : counts)
      lower(op);
    SymbolTable symbols(module);
    for (ParallelOp op : ops)
      lower(op, symbols);
  }
};
} // namespace
