//===- GpuPieces.cpp - memory and elements of a piece ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuPieces.h"
#include "Apply/ElementCloner.h"
#include "Layout/StridedData.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

bool mlir::bngrad::isContiguous(const GpuGroup &gpu, linalg::GenericOp generic,
                                OpOperand &operand) {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  return map.isProjectedPermutation() && map.getNumResults() > 0 &&
         map.getDimPosition(map.getNumResults() - 1) == gpu.inner &&
         cast<MemRefType>(operand.get().getType()).getLayout().isIdentity();
}

/// The alignment of a piece of `lanes` elements of `memref`, in bytes.
static llvm::MaybeAlign getAlignment(Value memref, int64_t lanes) {
  int64_t bits = getElementTypeOrSelf(memref).getIntOrFloatBitWidth();
  return llvm::Align(
      std::min<int64_t>(16, lanes * std::max<int64_t>(bits, 8) / 8));
}

std::pair<Value, SmallVector<Value>>
Pieces::locate(OpBuilder &b, Value memref, AffineMap map,
               const Indices &indices) const {
  SmallVector<Value> position = applyMap(b, loc, map, indices);
  // A tile on chip has only the elements of this block.
  auto tile = onChip.find(getViewed(memref));
  if (tile == onChip.end() || tile->second.map != map)
    return {memref, position};
  for (auto [index, first] : llvm::zip_equal(position, tile->second.first))
    index = at(b).sub(index, first);
  return {tile->second.memref, position};
}

Value Pieces::load(OpBuilder &b, linalg::GenericOp generic, OpOperand &operand,
                   const Indices &indices) const {
  if (!isa<MemRefType>(operand.get().getType()))
    return operand.get(); // a scalar input
  return loadLanes(b, generic, operand, indices);
}

Value Pieces::loadLanes(OpBuilder &b, linalg::GenericOp generic,
                        OpOperand &operand, const Indices &indices) const {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  auto [memref, position] = locate(b, operand.get(), map, indices);
  if (lanes == 1 || !map.isFunctionOfDim(gpu.inner))
    return memref::LoadOp::create(b, loc, memref, position);
  bool isTile = memref != operand.get();
  if (isTile || isContiguous(gpu, generic, operand))
    return loadVector(b, memref, position);
  SmallVector<Value> elements;
  Indices lane(indices);
  for (int64_t i : llvm::seq(lanes)) {
    lane[gpu.inner] = at(b).add(indices[gpu.inner], gpu.constant(b, i));
    elements.push_back(
        memref::LoadOp::create(b, loc, memref, applyMap(b, loc, map, lane)));
  }
  auto type = VectorType::get({lanes}, getElementTypeOrSelf(memref));
  return vector::FromElementsOp::create(b, loc, type, elements);
}

Value LinearPieces::loadLanes(OpBuilder &b, linalg::GenericOp generic,
                              OpOperand &operand,
                              const Indices &indices) const {
  if (!isDataMap(generic.getMatchingIndexingMap(&operand)))
    return Pieces::loadLanes(b, generic, operand, indices);
  Value memref = onChip.at(getViewed(operand.get())).linear;
  Value element = indices[gpu.inner];
  if (lanes == 1)
    return memref::LoadOp::create(b, loc, memref, element);
  return loadVector(b, memref, element);
}

Value Pieces::loadVector(OpBuilder &b, Value memref,
                         ValueRange position) const {
  Value bytes = castToStorage(b, loc, memref);
  auto type = VectorType::get({lanes}, getElementTypeOrSelf(bytes));
  Value value =
      vector::LoadOp::create(b, loc, type, bytes, position,
                             /*nontemporal=*/false, getAlignment(bytes, lanes));
  if (bytes == memref)
    return value;
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zeros);
}

std::pair<Value, SmallVector<Value>>
Pieces::locateOutput(OpBuilder &b, linalg::GenericOp generic, OpOperand &output,
                     const Indices &indices) const {
  AffineMap map = generic.getMatchingIndexingMap(&output);
  return {output.get(), applyMap(b, loc, map, indices)};
}

void Pieces::store(OpBuilder &b, linalg::GenericOp generic, OpOperand &output,
                   Value value, const Indices &indices) const {
  auto [memref, position] = locateOutput(b, generic, output, indices);
  if (lanes == 1) {
    memref::StoreOp::create(b, loc, value, memref, position);
    return;
  }
  value = broadcastTo(b, loc, value, lanes);
  Value bytes = castToStorage(b, loc, memref);
  if (bytes != memref)
    value = arith::ExtUIOp::create(
        b, loc, VectorType::get({lanes}, b.getI8Type()), value);
  vector::StoreOp::create(b, loc, value, bytes, position,
                          /*nontemporal=*/isStreaming,
                          getAlignment(bytes, lanes));
}

DenseMap<OpOperand *, Value> Pieces::loadCommon(OpBuilder &b,
                                                linalg::GenericOp generic,
                                                const Indices &indices,
                                                OpOperand *other) const {
  DenseMap<OpOperand *, Value> common;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (operand == other ||
        generic.getMatchingBlockArgument(operand).use_empty())
      continue;
    AffineMap map = generic.getMatchingIndexingMap(operand);
    if (Value value = kept.lookup({operand->get(), map})) {
      common[operand] = value;
      continue;
    }
    bool differs = llvm::any_of(llvm::enumerate(indices), [&](auto index) {
      return !index.value() && map.isFunctionOfDim(index.index());
    });
    if (!differs)
      common[operand] = load(b, generic, *operand, indices);
  }
  return common;
}

IRMapping Pieces::clone(OpBuilder &b, linalg::GenericOp generic,
                        const DenseMap<OpOperand *, Value> &common,
                        const Indices &indices) const {
  auto readOperand = [&](OpBuilder &, OpOperand &operand) -> Value {
    if (Value value = common.lookup(&operand))
      return value;
    if (!isParallel(generic) && generic.isDpsInit(&operand) &&
        !isDataMap(generic.getMatchingIndexingMap(&operand)))
      return {}; // the accumulator of a sum
    return load(b, generic, operand, indices);
  };
  auto readIndex = [&](OpBuilder &, unsigned loop) {
    return getIndex(b, loop, indices);
  };
  return cloneElement(b, generic, {readOperand, readIndex}, lanes,
                      gpu.schedule.fma);
}

Value Pieces::getIndex(OpBuilder &b, unsigned loop,
                       const Indices &indices) const {
  if (loop != gpu.inner || lanes == 1)
    return indices[loop];
  auto type = VectorType::get({lanes}, b.getIndexType());
  // Kernels have no vector.step.
  auto steps = llvm::to_vector(llvm::seq<int64_t>(lanes));
  return arith::AddIOp::create(
      b, loc, vector::BroadcastOp::create(b, loc, type, indices[loop]),
      arith::ConstantOp::create(b, loc, b.getIndexVectorAttr(steps)));
}

void Pieces::storeResults(OpBuilder &b, linalg::GenericOp generic,
                          const IRMapping &mapping,
                          const Indices &indices) const {
  Operation *yield = generic.getBody()->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    OpOperand *init = generic.getDpsInitOperand(i);
    if (isDataMap(generic.getMatchingIndexingMap(init)))
      store(b, generic, *init, mapping.lookupOrDefault(value), indices);
  }
}

int64_t mlir::bngrad::countLanes(const GpuGroup &gpu,
                                 ArrayRef<linalg::GenericOp> generics) {
  if (!llvm::all_of(generics, isVectorizable))
    return 1;
  return getMostLanes(generics, gpu.schedule.accessBits);
}

void Pieces::keepLoop(Operation *loop) const {
  if (hasDataOnChip)
    disableUnrolling(loop);
}

void Pieces::emitElements(OpBuilder &b, linalg::GenericOp generic,
                          const Walk &walk, const Indices &first,
                          const ThreadPieces &pieces) const {
  IndexBuilder index = at(b);
  // Loops outside of the walk have one iteration.
  Indices known(first);
  known.resize(gpu.group.numLoops);
  for (unsigned loop : walk.loops)
    known[loop] = Value();
  DenseMap<OpOperand *, Value> common = loadCommon(b, generic, known);
  auto locate = [&](OpBuilder &nested, ValueRange position) {
    Indices indices = walk.getIndices(at(nested), known, position);
    if (!first.empty())
      for (unsigned loop : walk.loops)
        indices[loop] = at(nested).add(indices[loop], first[loop]);
    return indices;
  };
  Chunks chunks(index, pieces);
  // In whole chunks, all loads come before the first store.
  auto body = scf::ForOp::create(
      b, loc, index.constant(0), chunks.count, index.constant(1),
      walk.delinearize(index, chunks.start),
      [&](OpBuilder &nested, Location, Value, ValueRange args) {
        SmallVector<Value> position(args);
        SmallVector<std::pair<Indices, IRMapping>> clones;
        for (int64_t step = 0; step < kUnroll; ++step) {
          Indices here = locate(nested, position);
          clones.push_back({here, clone(nested, generic, common, here)});
          position = walk.advance(at(nested), position);
        }
        for (auto &[here, mapping] : clones)
          storeResults(nested, generic, mapping, here);
        scf::YieldOp::create(nested, loc, position);
      });
  keepLoop(body);
  if (pieces.isChunk)
    return;
  auto tail = scf::ForOp::create(
      b, loc, chunks.getRest(index), pieces.to, pieces.stride,
      body.getResults(),
      [&](OpBuilder &nested, Location, Value, ValueRange position) {
        Indices here = locate(nested, position);
        IRMapping mapping = clone(nested, generic, common, here);
        storeResults(nested, generic, mapping, here);
        scf::YieldOp::create(nested, loc, walk.advance(at(nested), position));
      });
  keepLoop(tail);
}
