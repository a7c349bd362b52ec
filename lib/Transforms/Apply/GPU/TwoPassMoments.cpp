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

#include "TwoPassKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

SmallVector<linalg::GenericOp> TwoPass::getReductions() const {
  if (moments)
    return group.getReductions();
  return {current.reduction};
}

DenseMap<Value, Value> TwoPass::computeFirst(OpBuilder &b,
                                             const Indices &indices) const {
  DenseMap<Value, Value> known;
  GpuGroup stage(*this);
  stage.enterStage(0);
  computeChannel(b, stage, indices, /*totals=*/{},
                 DenseMap<OpOperand *, Value>(), DenseMap<Value, Value>(),
                 [&](OpBuilder &, OpOperand &result, Value value) {
                   known[getViewed(result.get())] = value;
                 });
  return known;
}

Value TwoPass::loadFirst(OpBuilder &b, const Indices &indices,
                         int64_t lanes) const {
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
                                     const ThreadPieces &threadPieces) const {
  Pieces pieces(*this, lanes);
  if (moments) {
    OpOperand *first = moments->first;
    auto reduction = cast<linalg::GenericOp>(first->getOwner());
    pieces.kept[{first->get(), reduction.getMatchingIndexingMap(first)}] =
        loadFirst(b, indices, lanes);
  }
  return emitSums(b, pieces, walk, indices, threadPieces);
}

DenseMap<OpOperand *, Value>
TwoPass::loadMomentInputs(OpBuilder &b, const Indices &indices) const {
  DenseMap<OpOperand *, Value> loaded;
  GpuGroup stage(*this);
  for (unsigned number : {moments->sum, moments->sum + 1}) {
    stage.enterStage(number);
    loaded.insert_range(
        loadChannelInputs(b, stage, indices, /*storesAtOnce=*/true));
  }
  return loaded;
}

void TwoPass::finishMoments(OpBuilder &b, const Indices &indices,
                            ValueRange totals,
                            const DenseMap<OpOperand *, Value> &loaded,
                            DenseMap<Value, Value> known) const {
  if (known.empty())
    known = computeFirst(b, indices);
  SmallVector<std::pair<OpOperand *, Value>> results;
  for (linalg::GenericOp generic : group.stages[0].channelwise)
    for (OpOperand &init : generic.getDpsInitsMutable())
      results.push_back({&init, known.at(getViewed(init.get()))});
  computeMoments(b, *this, indices, totals, loaded, known,
                 [&](OpBuilder &, OpOperand &result, Value value) {
                   results.push_back({&result, value});
                 });
  // Later stages have read all values of the others.
  for (auto [result, value] : results)
    if (isRead(*this, *result))
      storeChannel(b, *this, *result, value, indices);
}
