//===- ShareLoops.cpp - bngrad-share-loops --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Waking the threads takes as long as a small loop. Adjacent loops therefore
// become phases of one op, which wakes the threads only once.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-share-loops"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADSHARELOOPSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Replaces `loop` by a sequential loop at the insertion point that runs this
/// thread's share of the iterations. `number` is the index of the thread, and
/// `count` the number of threads.
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
  // The last share ends where the loop ends.
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

/// Emits whether `loop` has at least two iterations.
static Value hasSecondIteration(OpBuilder &b, scf::ParallelOp loop) {
  Location loc = loop.getLoc();
  Value second = b.createOrFold<arith::AddIOp>(loc, loop.getLowerBound()[0],
                                               loop.getStep()[0]);
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, second,
                                       loop.getUpperBound()[0]);
}

/// Replaces the adjacent `loops` by the phases of one parallel op. In each
/// phase, every thread runs its share of a loop.
static void shareLoops(MutableArrayRef<scf::ParallelOp> loops) {
  Location loc = loops.front().getLoc();
  OpBuilder b(loops.front());
  Value isWork = arith::ConstantIntOp::create(b, loc, 0, 1);
  for (scf::ParallelOp loop : loops) {
    isWork =
        b.createOrFold<arith::OrIOp>(loc, isWork, hasSecondIteration(b, loop));
  }
  if (matchPattern(isWork, m_One()))
    isWork = nullptr;
  auto parallel = ParallelOp::create(b, loc, isWork, loops.size());
  Type i32 = b.getI32Type(), index = b.getIndexType();
  for (auto [loop, phase] : llvm::zip_equal(loops, parallel.getPhases())) {
    Block *block = b.createBlock(&phase, phase.end(), {i32, i32}, {loc, loc});
    Value number =
        arith::IndexCastOp::create(b, loc, index, block->getArgument(0));
    Value count =
        arith::IndexCastOp::create(b, loc, index, block->getArgument(1));
    emitShare(b, loop, number, count);
    YieldOp::create(b, loc);
  }
}

/// Whether memory may run out in an iteration of `loop`, after which the next
/// loop must not run.
static bool mayFail(scf::ParallelOp loop) {
  WalkResult result = loop.walk([](Operation *op) {
    return isa<memref::AllocOp, func::CallOp>(op) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Appends the loops of `block` that can be shared to `runs`. Loops are in the
/// same run if the ops between them can be moved before its first loop, and
/// these ops are moved. A loop in which memory may run out is the last of its
/// run.
static void findRuns(Block &block,
                     SmallVectorImpl<SmallVector<scf::ParallelOp>> &runs) {
  SmallVector<Operation *> between;
  bool isOpen = false;
  for (Operation &op : block) {
    auto loop = dyn_cast<scf::ParallelOp>(op);
    if (loop && loop.getNumLoops() == 1 && loop.getNumResults() == 0) {
      if (!isOpen)
        runs.emplace_back();
      for (Operation *early : between)
        early->moveBefore(runs.back().front());
      between.clear();
      runs.back().push_back(loop);
      isOpen = !mayFail(loop);
    } else if (isOpen && op.getNumRegions() == 0 && isMemoryEffectFree(&op)) {
      between.push_back(&op);
    } else {
      between.clear();
      isOpen = false;
    }
  }
}

/// Collapses the dims of `loop` to one.
static void collapse(scf::ParallelOp loop) {
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  auto dims = llvm::to_vector(llvm::seq<unsigned>(0, loop.getNumLoops()));
  collapseParallelLoops(rewriter, loop,
                        std::vector<unsigned>(dims.begin(), dims.end()));
}

namespace {
struct BNGradShareLoopsPass
    : bngrad::impl::BNGradShareLoopsPassBase<BNGradShareLoopsPass> {
  void runOnOperation() override {
    // Skip loops inside of other parallel loops, which are run sequentially,
    // and loops with results, because the order of their sums is fixed.
    SmallVector<scf::ParallelOp> several;
    getOperation()->walk<WalkOrder::PreOrder>([&](scf::ParallelOp loop) {
      if (loop.getNumLoops() > 1 && loop.getNumResults() == 0)
        several.push_back(loop);
      return WalkResult::skip();
    });
    llvm::for_each(several, collapse);
    SmallVector<SmallVector<scf::ParallelOp>> runs;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<scf::ParallelOp, ParallelOp>(op))
        return WalkResult::skip();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          findRuns(block, runs);
      return WalkResult::advance();
    });
    for (MutableArrayRef<scf::ParallelOp> loops : runs)
      shareLoops(loops);
  }
};
} // namespace
