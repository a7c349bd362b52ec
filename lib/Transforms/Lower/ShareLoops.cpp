//===- ShareLoops.cpp - bngrad-share-loops --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// OpenMP's worksharing loop costs a call that computes the bounds and a barrier
// at its end, together as much as waking the threads. A loop at the end of its
// parallel region needs neither. The next loop needs a barrier, but the threads
// need not be woken again.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-share-loops"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADSHARELOOPSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

/// The OpenMP runtime's function `name`, which returns an i32; null if the
/// module has something else of that name.
static func::FuncOp getRuntimeFunction(ModuleOp module, StringRef name) {
  auto type = FunctionType::get(module.getContext(), {},
                                IntegerType::get(module.getContext(), 32));
  if (Operation *symbol = SymbolTable::lookupSymbolIn(module, name)) {
    auto function = dyn_cast<func::FuncOp>(symbol);
    return function && function.getFunctionType() == type ? function : nullptr;
  }
  auto b = OpBuilder::atBlockBegin(module.getBody());
  auto function = func::FuncOp::create(b, module.getLoc(), name, type);
  function.setPrivate();
  return function;
}

/// Moves the iterations of `loop` that are the share of this thread to the
/// builder's insertion point.
static void emitShare(OpBuilder &b, scf::ParallelOp loop, Value number,
                      Value count) {
  Location loc = loop.getLoc();
  Value from = loop.getLowerBound()[0], to = loop.getUpperBound()[0];
  Value step = loop.getStep()[0];
  auto add = [&](Value l, Value r) {
    return b.createOrFold<arith::AddIOp>(loc, l, r);
  };
  auto sub = [&](Value l, Value r) {
    return b.createOrFold<arith::SubIOp>(loc, l, r);
  };
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value iterations = b.createOrFold<arith::DivSIOp>(
      loc, add(sub(to, from), sub(step, one)), step);
  auto startOf = [&](Value thread) -> Value {
    Value before = arith::DivSIOp::create(
        b, loc, b.createOrFold<arith::MulIOp>(loc, iterations, thread), count);
    return add(from, b.createOrFold<arith::MulIOp>(loc, before, step));
  };
  // The last one ends where the loop does.
  Value end =
      b.createOrFold<arith::MinSIOp>(loc, startOf(add(number, one)), to);
  auto share = scf::ForOp::create(b, loc, startOf(number), end, step);
  Operation *yield = share.getBody()->getTerminator();
  Operation *reduce = loop.getBody()->getTerminator();
  share.getBody()->getOperations().splice(
      Block::iterator(yield), loop.getBody()->getOperations(),
      loop.getBody()->begin(), Block::iterator(reduce));
  loop.getBody()->getArgument(0).replaceAllUsesWith(share.getInductionVar());
  loop.erase();
}

/// Whether `loop` has a second iteration.
static Value hasSecondIteration(OpBuilder &b, scf::ParallelOp loop) {
  Location loc = loop.getLoc();
  Value second = b.createOrFold<arith::AddIOp>(loc, loop.getLowerBound()[0],
                                               loop.getStep()[0]);
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, second,
                                       loop.getUpperBound()[0]);
}

/// Replaces `loop`, an iteration of which may end where memory runs out, by a
/// worksharing loop, whose body says where that is.
static void shareIterations(scf::ParallelOp loop) {
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  omp::ParallelOperands clauses;
  Value isWork = hasSecondIteration(b, loop);
  if (!matchPattern(isWork, m_One()))
    clauses.ifExpr = isWork;
  auto parallel = omp::ParallelOp::create(b, loc, clauses);
  b.createBlock(&parallel.getRegion());
  auto shared = omp::WsloopOp::create(b, loc, omp::WsloopOperands());
  omp::TerminatorOp::create(b, loc);
  b.createBlock(&shared.getRegion());
  omp::LoopNestOperands bounds;
  bounds.loopLowerBounds.push_back(loop.getLowerBound()[0]);
  bounds.loopUpperBounds.push_back(loop.getUpperBound()[0]);
  bounds.loopSteps.push_back(loop.getStep()[0]);
  auto nest = omp::LoopNestOp::create(b, loc, bounds);
  nest.getRegion().takeBody(loop.getRegion());
  Operation *reduce = nest.getRegion().front().getTerminator();
  b.setInsertionPoint(reduce);
  omp::YieldOp::create(b, loc, ValueRange());
  reduce->erase();
  loop.erase();
}

/// Replaces the adjacent `loops` by a parallel region in which each thread runs
/// a share of each.
static void shareLoops(MutableArrayRef<scf::ParallelOp> loops,
                       func::FuncOp threadNumber, func::FuncOp threadCount) {
  Location loc = loops.front().getLoc();
  OpBuilder b(loops.front());
  Value isWork = arith::ConstantIntOp::create(b, loc, 0, 1);
  for (scf::ParallelOp loop : loops) {
    isWork =
        b.createOrFold<arith::OrIOp>(loc, isWork, hasSecondIteration(b, loop));
  }
  omp::ParallelOperands clauses;
  if (!matchPattern(isWork, m_One()))
    clauses.ifExpr = isWork;
  auto parallel = omp::ParallelOp::create(b, loc, clauses);
  b.createBlock(&parallel.getRegion());
  auto call = [&](func::FuncOp function) -> Value {
    Value result =
        func::CallOp::create(b, loc, function, ValueRange()).getResult(0);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), result);
  };
  Value number = call(threadNumber), count = call(threadCount);
  for (scf::ParallelOp loop : loops) {
    if (loop != loops.front())
      omp::BarrierOp::create(b, loc);
    emitShare(b, loop, number, count);
  }
  omp::TerminatorOp::create(b, loc);
}

/// Whether an iteration of `loop` may end where memory runs out. Threads cannot
/// leave a region of ours then, whose barriers others wait at.
static bool mayFail(scf::ParallelOp loop) {
  WalkResult result = loop.walk([](Operation *op) {
    return isa<memref::AllocOp, func::CallOp>(op) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Appends to `runs` the loops of `block` that can be shared. Loops are in one
/// run if all ops between them can be moved before the first, which is done.
static void findRuns(Block &block,
                     SmallVectorImpl<SmallVector<scf::ParallelOp>> &runs) {
  SmallVector<Operation *> between;
  bool isOpen = false;
  for (Operation &op : block) {
    auto loop = dyn_cast<scf::ParallelOp>(op);
    if (loop && loop.getNumLoops() == 1 && loop.getNumResults() == 0 &&
        !mayFail(loop)) {
      if (!isOpen)
        runs.emplace_back();
      for (Operation *early : between)
        early->moveBefore(runs.back().front());
      between.clear();
      runs.back().push_back(loop);
      isOpen = true;
    } else if (isOpen && op.getNumRegions() == 0 && isMemoryEffectFree(&op)) {
      between.push_back(&op);
    } else {
      between.clear();
      isOpen = false;
    }
  }
}

namespace {
struct BNGradShareLoopsPass
    : bngrad::impl::BNGradShareLoopsPassBase<BNGradShareLoopsPass> {
  void runOnOperation() override {
    SmallVector<scf::ParallelOp> alone;
    getOperation()->walk([&](scf::ParallelOp loop) {
      if (loop.getNumLoops() == 1 && loop.getNumResults() == 0 && mayFail(loop))
        alone.push_back(loop);
    });
    for (scf::ParallelOp loop : alone) {
      LDBG() << "alone in its parallel region, as memory may run out in it: "
             << loop.getLoc();
      shareIterations(loop);
    }
    SmallVector<SmallVector<scf::ParallelOp>> runs;
    getOperation()->walk([&](Block *block) { findRuns(*block, runs); });
    if (runs.empty())
      return;
    func::FuncOp number =
        getRuntimeFunction(getOperation(), "omp_get_thread_num");
    func::FuncOp count =
        getRuntimeFunction(getOperation(), "omp_get_num_threads");
    if (!number || !count) {
      LDBG() << "left to upstream: the module has another symbol with the name "
                "of a function of OpenMP's runtime";
      return;
    }
    for (MutableArrayRef<scf::ParallelOp> loops : runs)
      shareLoops(loops, number, count);
  }
};
} // namespace
