//===- CpuScalarLoops.cpp - the schedule loops ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuScalarLoops.h"
#include "Apply/ElementCloner.h"
#include "Apply/Sums.h"
#include "Utils/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Terms that are added one by one. The error bound allows a term about 16 +
/// 4*log2(M + 1) roundings on its way into a result, up to 20 of them outside
/// the sum: 7 additions in a block and 2 outside fit for every M
/// (docs/numerics.md, section 4).
static constexpr int64_t kSumBlock = 8;

namespace {
/// Emits `#bngrad.schedule<loops>` for one generic: parallel loops outside,
/// scalar loops inside.
class ScalarLoops {
public:
  explicit ScalarLoops(linalg::GenericOp generic)
      : generic(generic), loc(generic.getLoc()), cloner(generic),
        ivs(generic.getNumLoops()) {}

  void emitElementwise(OpBuilder &b);
  void emitReduction(OpBuilder &b, ReductionValues reduction);

private:
  IndexBuilder at(OpBuilder &b) const { return {b, loc}; }
  Value constantZero(OpBuilder &b, unsigned i) {
    return arith::ConstantOp::create(
        b, loc, b.getZeroAttr(values.terms[i].second.getType()));
  }
  void createRanges(OpBuilder &b);
  /// Emits `body` in scf.parallel over `dims`, or directly if there are none.
  void emitParallel(OpBuilder &b, ArrayRef<unsigned> dims,
                    function_ref<void(OpBuilder &)> body);
  void emitElement(OpBuilder &b);
  /// Emits loops over `dims`, outermost first, that carry sums.
  Accumulators emitSumLoops(OpBuilder &b, ArrayRef<unsigned> dims,
                            ArrayRef<Accumulator> sums);
  /// Adds the terms of `dim` in [from, to), at most kSumBlock, to `sums`.
  Accumulators emitSumBlock(OpBuilder &b, unsigned dim, Value from, Value to,
                            ArrayRef<Accumulator> sums);

  linalg::GenericOp generic;
  Location loc;
  ElementCloner cloner;
  SmallVector<Value> ivs;   // by loop, null until its loop exists
  SmallVector<Value> sizes; // by loop
  ReductionValues values;   // of a reduction
};
} // namespace

void ScalarLoops::createRanges(OpBuilder &b) {
  auto op = cast<linalg::LinalgOp>(generic.getOperation());
  for (Range range : op.createLoopRanges(b, loc))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
}

void ScalarLoops::emitParallel(OpBuilder &b, ArrayRef<unsigned> dims,
                               function_ref<void(OpBuilder &)> body) {
  if (dims.empty())
    return body(b);
  Value zero = at(b).constant(0), one = at(b).constant(1);
  SmallVector<Value> lower(dims.size(), zero), upper, steps(dims.size(), one);
  for (unsigned dim : dims)
    upper.push_back(sizes[dim]);
  scf::ParallelOp::create(
      b, loc, lower, upper, steps,
      [&](OpBuilder &nested, Location, ValueRange parallelIvs) {
        for (auto [dim, iv] : llvm::zip_equal(dims, parallelIvs))
          ivs[dim] = iv;
        cloner.load(nested, ivs);
        body(nested);
      });
}

void ScalarLoops::emitElement(OpBuilder &b) {
  IRMapping mapping = cloner.clone(b, ivs);
  Operation *yield = generic.getBody()->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    cloner.store(b, ivs, i, mapping.lookupOrDefault(value));
}

/// The innermost loop is a plain loop, for LLVM to vectorize. A generic with
/// one loop is per channel and too small to be worth threads.
void ScalarLoops::emitElementwise(OpBuilder &b) {
  createRanges(b);
  unsigned inner = generic.getNumLoops() - 1;
  emitParallel(b, llvm::to_vector(llvm::seq<unsigned>(inner)),
               [&](OpBuilder &nested) {
                 Value zero = at(nested).constant(0);
                 Value one = at(nested).constant(1);
                 scf::ForOp::create(
                     nested, loc, zero, sizes[inner], one, ValueRange(),
                     [&](OpBuilder &innermost, Location, Value iv, ValueRange) {
                       ivs[inner] = iv;
                       emitElement(innermost);
                       scf::YieldOp::create(innermost, loc);
                     });
               });
}

Accumulators ScalarLoops::emitSumBlock(OpBuilder &b, unsigned dim, Value from,
                                       Value to,
                                       ArrayRef<Accumulator> carried) {
  SmallVector<Value> zeros;
  for (unsigned i : llvm::seq<unsigned>(values.terms.size()))
    zeros.push_back(constantZero(b, i));
  auto block = scf::ForOp::create(
      b, loc, from, to, at(b).constant(1), zeros,
      [&](OpBuilder &nested, Location, Value iv, ValueRange partials) {
        ivs[dim] = iv;
        IRMapping mapping = cloner.clone(nested, ivs);
        SmallVector<Value> sums;
        for (auto [partial, term] : llvm::zip_equal(partials, values.terms))
          sums.push_back(arith::AddFOp::create(
              nested, loc, partial, mapping.lookupOrDefault(term.second)));
        for (auto [i, value] : values.stores)
          cloner.store(nested, ivs, i, mapping.lookupOrDefault(value));
        scf::YieldOp::create(nested, loc, sums);
      });
  ivs[dim] = Value();
  return addCompensated(b, loc, carried, block.getResults());
}

Accumulators ScalarLoops::emitSumLoops(OpBuilder &b, ArrayRef<unsigned> dims,
                                       ArrayRef<Accumulator> carried) {
  unsigned dim = dims.front();
  Value zero = at(b).constant(0), one = at(b).constant(1);
  if (dims.size() > 1) {
    auto loop = scf::ForOp::create(
        b, loc, zero, sizes[dim], one, toCarried(carried),
        [&](OpBuilder &nested, Location, Value iv, ValueRange sums) {
          ivs[dim] = iv;
          scf::YieldOp::create(nested, loc,
                               toCarried(emitSumLoops(nested, dims.drop_front(),
                                                      fromCarried(sums))));
        });
    return fromCarried(loop.getResults());
  }
  Value blockSize = at(b).constant(kSumBlock);
  Value rest = arith::RemUIOp::create(b, loc, sizes[dim], blockSize);
  Value blocksEnd = arith::SubIOp::create(b, loc, sizes[dim], rest);
  auto blocks = scf::ForOp::create(
      b, loc, zero, blocksEnd, blockSize, toCarried(carried),
      [&](OpBuilder &nested, Location, Value iv, ValueRange sums) {
        Value to = arith::AddIOp::create(nested, loc, iv, blockSize);
        scf::YieldOp::create(
            nested, loc,
            toCarried(emitSumBlock(nested, dim, iv, to, fromCarried(sums))));
      });
  Accumulators sums = fromCarried(blocks.getResults());
  return emitSumBlock(b, dim, blocksEnd, sizes[dim], sums);
}

void ScalarLoops::emitReduction(OpBuilder &b, ReductionValues reduction) {
  values = std::move(reduction);
  createRanges(b);
  SmallVector<unsigned> parallelDims, reductionDims;
  generic.getParallelDims(parallelDims);
  generic.getReductionDims(reductionDims);
  emitParallel(b, parallelDims, [&](OpBuilder &nested) {
    // The loops carry the sums, which start from the outputs' values.
    Accumulators carried;
    for (auto [i, term] : llvm::enumerate(values.terms)) {
      Value before = cloner.loadOutput(nested, ivs, term.first);
      carried.push_back({before, constantZero(nested, i)});
      cloner.leaveOutOutput(term.first);
    }
    Accumulators sums = emitSumLoops(nested, reductionDims, carried);
    for (auto [term, sum] : llvm::zip_equal(values.terms, sums)) {
      Value total = arith::AddFOp::create(nested, loc, sum.sum, sum.error);
      cloner.store(nested, ivs, term.first, total);
    }
  });
}

LogicalResult mlir::bngrad::emitScalarLoops(linalg::GenericOp generic,
                                            std::string &reason) {
  if (!generic.hasPureBufferSemantics()) {
    reason = "expected memrefs";
    return failure();
  }
  if (generic.getNumLoops() == 0) {
    reason = "expected at least one loop";
    return failure();
  }
  OpBuilder b(generic);
  if (generic.getNumReductionLoops() == 0) {
    ScalarLoops(generic).emitElementwise(b);
    generic.erase();
    return success();
  }
  std::optional<ReductionValues> values = getReductionValues(generic);
  if (!values) {
    reason = kNotSums.str();
    return failure();
  }
  ScalarLoops(generic).emitReduction(b, std::move(*values));
  generic.erase();
  return success();
}
