//===- ShareLoops.cpp - bngrad-share-loops --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// OpenMP's worksharing loop costs a call that works out the bounds and a
// barrier at its end, together as much as waking the threads. A loop that ends
// where its parallel region ends needs neither.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADSHARELOOPSPASS
#include "BNGrad/Transforms/Passes.h.inc"
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

/// Replaces `loop` by a parallel region in which each thread runs a part of it.
static void shareLoop(scf::ParallelOp loop, func::FuncOp threadNumber,
                      func::FuncOp threadCount) {
  Location loc = loop.getLoc();
  Value from = loop.getLowerBound()[0], to = loop.getUpperBound()[0];
  Value step = loop.getStep()[0];
  OpBuilder b(loop);
  Value second = b.createOrFold<arith::AddIOp>(loc, from, step);
  Value hasSecond =
      b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, second, to);
  omp::ParallelOperands clauses;
  if (!matchPattern(hasSecond, m_One()))
    clauses.ifExpr = hasSecond;
  auto parallel = omp::ParallelOp::create(b, loc, clauses);
  b.createBlock(&parallel.getRegion());
  auto call = [&](func::FuncOp function) -> Value {
    Value result =
        func::CallOp::create(b, loc, function, ValueRange()).getResult(0);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), result);
  };
  Value number = call(threadNumber), count = call(threadCount);
  auto sub = [&](Value l, Value r) {
    return b.createOrFold<arith::SubIOp>(loc, l, r);
  };
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value iterations = b.createOrFold<arith::DivSIOp>(
      loc, b.createOrFold<arith::AddIOp>(loc, sub(to, from), sub(step, one)),
      step);
  auto startOf = [&](Value thread) -> Value {
    Value before = arith::DivSIOp::create(
        b, loc, b.createOrFold<arith::MulIOp>(loc, iterations, thread), count);
    return b.createOrFold<arith::AddIOp>(
        loc, from, b.createOrFold<arith::MulIOp>(loc, before, step));
  };
  Value next = arith::AddIOp::create(b, loc, number, one);
  // The last one ends where the loop does.
  Value end = b.createOrFold<arith::MinSIOp>(loc, startOf(next), to);
  auto part = scf::ForOp::create(b, loc, startOf(number), end, step);
  omp::TerminatorOp::create(b, loc);
  Operation *yield = part.getBody()->getTerminator();
  Operation *reduce = loop.getBody()->getTerminator();
  part.getBody()->getOperations().splice(
      Block::iterator(yield), loop.getBody()->getOperations(),
      loop.getBody()->begin(), Block::iterator(reduce));
  loop.getBody()->getArgument(0).replaceAllUsesWith(part.getInductionVar());
  loop.erase();
}

namespace {
struct BNGradShareLoopsPass
    : bngrad::impl::BNGradShareLoopsPassBase<BNGradShareLoopsPass> {
  void runOnOperation() override {
    SmallVector<scf::ParallelOp> loops;
    getOperation()->walk([&](scf::ParallelOp loop) {
      if (loop.getNumLoops() == 1 && loop.getNumResults() == 0)
        loops.push_back(loop);
    });
    if (loops.empty())
      return;
    func::FuncOp number =
        getRuntimeFunction(getOperation(), "omp_get_thread_num");
    func::FuncOp count =
        getRuntimeFunction(getOperation(), "omp_get_num_threads");
    if (!number || !count)
      return;
    for (scf::ParallelOp loop : loops)
      shareLoop(loop, number, count);
  }
};
} // namespace
