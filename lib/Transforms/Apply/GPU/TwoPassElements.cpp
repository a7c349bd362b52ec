//===- TwoPassElements.cpp - the second of two passes ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Adjacent threads compute adjacent elements. Without vectors, each thread has
// elements of one channel if rows are long or have few channels.
//
//===----------------------------------------------------------------------===//

#include "TwoPassKernel.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The least number of elements per thread for a block to take one row.
static constexpr int64_t kLeastRowThreads = 2;
/// The most chunks of a thread that computes elements of one channel.
static constexpr int64_t kMostRowChunks = 2;

Value TwoPass::getNumberFromEnd(OpBuilder &b, const Kernel &kernel,
                                Value blocks) const {
  IndexBuilder index = at(b);
  return index.sub(index.sub(blocks, index.constant(1)), kernel.block);
}

bool TwoPass::takesRows(int64_t lanes) const {
  std::optional<int64_t> length = getConstantIntValue(sizes[inner]);
  return lanes == 1 && group.numLoops > 1 && !group.isFeature(inner) &&
         length && *length >= kLeastRowThreads * threads;
}

void TwoPass::emitRows(OpBuilder &b, linalg::GenericOp generic,
                       const Pieces &pieces) const {
  IndexBuilder index = at(b);
  Value stride = index.constant(threads);
  Walk walk = createWalk(b, {inner}, stride, /*lanes=*/1);
  Value most = index.constant(threads * kUnroll * kMostRowChunks);
  Value parts = index.ceilDiv(sizes[inner], most);
  Value length = index.ceilDiv(sizes[inner], parts);
  auto outer = llvm::to_vector(llvm::seq<unsigned>(0, inner));
  Value rows = index.product(pick(sizes, outer));
  Value blocks = index.mul(rows, parts);
  launch(b, "apply", {blocks, threads}, [&](OpBuilder &nested, Kernel kernel) {
    IndexBuilder inside = at(nested);
    Value number = getNumberFromEnd(nested, kernel, blocks);
    Indices first(group.numLoops, inside.constant(0));
    delinearize(nested, inside.div(number, parts), outer, first);
    Value from = inside.mul(inside.rem(number, parts), length);
    Value to = inside.min(inside.add(from, length), sizes[inner]);
    pieces.emitElements(nested, generic, walk, first,
                        {from, kernel.thread, stride, to});
  });
}

bool TwoPass::takesColumns(int64_t lanes) const {
  std::optional<int64_t> columns = getConstantIntValue(sizes[inner]);
  return lanes == 1 && group.numLoops == 2 && group.isFeature(inner) &&
         !group.isFeature(0) && columns && *columns > 0 && *columns <= threads;
}

void TwoPass::emitColumns(OpBuilder &b, linalg::GenericOp generic,
                          const Pieces &pieces) const {
  IndexBuilder index = at(b);
  int64_t columns = *getConstantIntValue(sizes[inner]);
  int64_t rowsOfThreads = threads / columns;
  Value stride = index.constant(rowsOfThreads);
  Walk walk = createWalk(b, {0}, stride, /*lanes=*/1);
  Value length = index.constant(rowsOfThreads * kUnroll * kMostRowChunks);
  Value blocks = index.ceilDiv(sizes[0], length);
  launch(b, "apply", {blocks, threads}, [&](OpBuilder &nested, Kernel kernel) {
    IndexBuilder inside = at(nested);
    Value number = getNumberFromEnd(nested, kernel, blocks);
    Value from = inside.mul(number, length);
    Value to = inside.min(inside.add(from, length), sizes[0]);
    Value width = inside.constant(columns);
    Value row = inside.div(kernel.thread, width);
    Indices first = {inside.constant(0), inside.rem(kernel.thread, width)};
    Value isActive = isBelow(inside, row, stride);
    emitIf(nested, isActive, [&](OpBuilder &active) {
      pieces.emitElements(active, generic, walk, first,
                          {from, row, stride, to});
    });
  });
}

void TwoPass::emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                              const Pieces &pieces) const {
  if (takesRows(pieces.lanes))
    return emitRows(b, generic, pieces);
  if (takesColumns(pieces.lanes))
    return emitColumns(b, generic, pieces);
  IndexBuilder index = at(b);
  Value stride = index.constant(threads);
  Walk walk =
      createWalk(b, llvm::to_vector(llvm::seq<unsigned>(0, group.numLoops)),
                 stride, pieces.lanes);
  Value count = walk.countPieces(index);
  Value chunk = index.constant(threads * kUnroll);
  Value blocks = index.ceilDiv(count, chunk);
  bool isWhole = matchPattern(index.rem(count, chunk), m_Zero());
  launch(b, "apply", {blocks, threads}, [&](OpBuilder &nested, Kernel kernel) {
    IndexBuilder inside = at(nested);
    Value number = getNumberFromEnd(nested, kernel, blocks);
    Value from = inside.mul(number, chunk);
    Value to = inside.min(inside.add(from, chunk), count);
    pieces.emitElements(nested, generic, walk, Indices(),
                        {from, kernel.thread, stride, to, isWhole});
  });
}
