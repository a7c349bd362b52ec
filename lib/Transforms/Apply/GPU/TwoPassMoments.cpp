//===- TwoPassMoments.cpp - a mean and squares about it in one reading ----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel adds up distances from the first element of each channel and their
// squares (GpuMoments.h). From their totals, the kernel that finishes computes
// the sums of both stages. Both kernels read the first element themselves.
//
//===----------------------------------------------------------------------===//

#include "Apply/FloatBuilder.h"
#include "TwoPassKernel.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Whether a per-channel generic of `stage` computes the memref of `operand`.
static bool computes(const Stage &stage, OpOperand *operand) {
  return llvm::any_of(stage.channelwise, [&](linalg::GenericOp generic) {
    return llvm::any_of(generic.getDpsInits(), [&](Value output) {
      return getViewed(output) == getViewed(operand->get());
    });
  });
}

std::optional<MomentStages> TwoPass::findMoments() const {
  std::optional<MomentStages> found = MomentStages::get(group);
  if (!found || found->sum != 1 || group.stages.size() != 3 ||
      !computes(group.stages[0], found->first) ||
      !computes(group.stages[1], found->center))
    return std::nullopt;
  return found;
}

void TwoPass::enterMoments() {
  enterStage(moments->sum + 1);
  sumTypes.assign(2, Float64Type::get(group.getMembers().front().getContext()));
}

SmallVector<linalg::GenericOp> TwoPass::getReductions() const {
  if (moments)
    return group.getReductions();
  return {current.reduction};
}

DenseMap<Value, Value> TwoPass::computeFirst(OpBuilder &b,
                                             const Indices &indices) {
  DenseMap<Value, Value> known;
  enterStage(0);
  computeChannel(b, *this, indices, /*totals=*/{},
                 DenseMap<OpOperand *, Value>(), DenseMap<Value, Value>(),
                 [&](OpBuilder &, OpOperand &result, Value value) {
                   known[getViewed(result.get())] = value;
                 });
  enterMoments();
  return known;
}

Value TwoPass::loadFirst(OpBuilder &b, const Indices &indices, int64_t lanes) {
  Value memref = getViewed(moments->first->get());
  if (lanes == 1 || !group.isFeature(inner))
    return computeFirst(b, indices).at(memref);
  SmallVector<Value> values;
  Indices lane(indices);
  for (int64_t i : llvm::seq(lanes)) {
    lane[inner] = at(b).add(indices[inner], constant(b, i));
    values.push_back(computeFirst(b, lane).at(memref));
  }
  auto type = VectorType::get({lanes}, values.front().getType());
  return vector::FromElementsOp::create(b, loc, type, values);
}

Accumulators TwoPass::emitThreadSums(OpBuilder &b, int64_t lanes,
                                     const Walk &walk, const Indices &indices,
                                     const ThreadPieces &threadPieces) {
  Pieces pieces(*this, lanes);
  if (!moments)
    return emitSums(b, pieces, walk, indices, threadPieces);
  return emitMoments(b, pieces, *moments, loadFirst(b, indices, lanes), walk,
                     indices, threadPieces);
}

DenseMap<OpOperand *, Value> TwoPass::loadMomentInputs(OpBuilder &b,
                                                       const Indices &indices) {
  DenseMap<OpOperand *, Value> loaded;
  for (unsigned stage : {moments->sum, moments->sum + 1}) {
    enterStage(stage);
    loaded.insert_range(
        loadChannelInputs(b, *this, indices, /*storesAtOnce=*/true));
  }
  enterMoments();
  return loaded;
}

void TwoPass::finishMoments(OpBuilder &b, const Indices &indices,
                            ValueRange totals,
                            const DenseMap<OpOperand *, Value> &loaded,
                            DenseMap<Value, Value> known) {
  FloatBuilder math = {b, loc};
  if (known.empty())
    known = computeFirst(b, indices);
  SmallVector<std::pair<OpOperand *, Value>> results;
  auto compute = [&](unsigned stage, ValueRange ofStage) {
    enterStage(stage);
    computeChannel(b, *this, indices, ofStage, loaded, known,
                   [&](OpBuilder &, OpOperand &result, Value value) {
                     known[getViewed(result.get())] = value;
                     results.push_back({&result, value});
                   });
  };
  auto get = [&](OpOperand *operand) {
    return math.extend(known.at(getViewed(operand->get())));
  };
  for (linalg::GenericOp generic : group.stages[0].channelwise)
    for (OpOperand &init : generic.getDpsInitsMutable())
      results.push_back({&init, known.at(getViewed(init.get()))});
  Value sum = totals[0], squares = totals[1];
  compute(moments->sum, math.truncate(sum));
  // The sums of the second stage are about the center that the values of the
  // first stage give.
  Value shift = math.sub(get(moments->center), get(moments->first));
  Value elements = math.toDouble(at(b).product(pick(sizes, reduced)));
  Value difference = math.sub(sum, math.mul(elements, shift));
  SmallVector<Value> ofSquares(2);
  ofSquares[moments->difference] = math.truncate(difference);
  ofSquares[moments->square] = math.truncate(
      math.sub(squares, math.mul(shift, math.add(sum, difference))));
  compute(moments->sum + 1, ofSquares);
  for (auto [result, value] : results)
    if (isRead(*this, *result))
      storeChannel(b, *this, *result, value, indices);
  enterMoments();
}
