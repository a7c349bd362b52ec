//===- GpuKernels.cpp - base of the schedules for GPUs --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuKernels.h"
#include "Apply/ElementCloner.h"
#include "Apply/Sums.h"
#include "Layout/StridedData.h"
#include "Schedule/OnePassLayout.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// A symbol for the kernels of another group of `function`. No other symbol
/// begins with it, as embedding kernels creates `<symbol>_module` and the like.
static std::string createModuleName(func::FuncOp function) {
  unsigned number = 0;
  function.walk([&](gpu::LaunchOp launch) {
    if (auto module = launch.getModuleAttr())
      if (unsigned other;
          !module.getValue().rsplit('_').second.getAsInteger(10, other))
        number = std::max(number, other + 1);
  });
  auto makeName = [&] {
    return (function.getSymName() + "_group_" + Twine(number)).str();
  };
  auto isTaken = [&](Operation &op) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    return symbol && symbol.getName().starts_with(makeName());
  };
  while (llvm::any_of(*function->getBlock(), isTaken))
    ++number;
  return makeName();
}

GpuKernels::GpuKernels(OpBuilder &b, const ScheduledGroup &group,
                       const GpuSchedule &schedule, DeviceBuffers &buffers)
    : GroupEmitter(b, group), schedule(schedule), buffers(buffers),
      threads(schedule.blockThreads), inner(group.numLoops - 1) {
  channels = at(b).product(pick(sizes, group.features));
  module = createModuleName(
      group.getDataGenerics().front()->getParentOfType<func::FuncOp>());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void GpuKernels::launch(OpBuilder &b, StringRef name, const LaunchShape &shape,
                        function_ref<void(OpBuilder &, Kernel)> body) {
  Value one = constant(b, 1), bytes, clusterX, clusterYZ;
  if (shape.dynamicSharedBytes > 0)
    bytes = arith::ConstantIntOp::create(b, loc, shape.dynamicSharedBytes,
                                         /*width=*/32);
  if (shape.cluster > 1) {
    clusterX = constant(b, shape.cluster);
    clusterYZ = one;
  }
  auto symbol = [&](const Twine &text) {
    return FlatSymbolRefAttr::get(b.getStringAttr(text));
  };
  auto launchOp = gpu::LaunchOp::create(
      b, loc, shape.blocks, one, one, constant(b, shape.threads), one, one,
      bytes, buffers.getStream().getType(), buffers.getStream(), shape.shared,
      /*privateAttributions=*/TypeRange(), clusterX, clusterYZ, clusterYZ,
      symbol(module), symbol(name));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&launchOp.getBody().front());
  // The builder omits the arguments for numbers and sizes of clusters.
  constexpr unsigned kBlockArguments = 12, kClusterArguments = 6;
  if (shape.cluster > 1)
    for (unsigned i : llvm::seq(kClusterArguments))
      launchOp.getBody().insertArgument(kBlockArguments + i, b.getIndexType(),
                                        loc);
  if (shape.startsNext)
    NVVM::GriddepcontrolOp::create(b, loc,
                                   NVVM::GridDepActionKind::launch_dependents);
  SmallVector<Value> attributions(
      launchOp.getBody().getArguments().take_back(shape.shared.size()));
  body(b, {launchOp.getBlockIds().x, launchOp.getThreadIds().x, shape.threads,
           attributions});
  gpu::TerminatorOp::create(b, loc);
}

MemRefType GpuKernels::getSharedType(int64_t elements, Type type) const {
  auto space = gpu::AddressSpaceAttr::get(type.getContext(),
                                          gpu::AddressSpace::Workgroup);
  return MemRefType::get({elements}, type, MemRefLayoutAttrInterface(), space);
}

void GpuKernels::barrier(OpBuilder &b) const { gpu::BarrierOp::create(b, loc); }

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

Walk GpuKernels::createWalk(OpBuilder &b, ArrayRef<unsigned> loops,
                            Value stride, int64_t lanes) const {
  Walk walk;
  walk.loops.assign(loops.begin(), loops.end());
  for (unsigned loop : loops)
    walk.sizes.push_back(loop == inner
                             ? at(b).div(sizes[loop], constant(b, lanes))
                             : sizes[loop]);
  walk.strides = delinearize(b, walk, stride);
  return walk;
}

SmallVector<Value> GpuKernels::delinearize(OpBuilder &b, const Walk &walk,
                                           Value position) const {
  IndexBuilder index = at(b);
  SmallVector<Value> result(walk.loops.size());
  for (size_t i = walk.loops.size(); i-- > 1;) {
    // A loop without iterations has no positions.
    Value size = index.max(walk.sizes[i], index.constant(1));
    result[i] = index.rem(position, size);
    position = index.div(position, size);
  }
  result[0] = position;
  return result;
}

SmallVector<Value> GpuKernels::advance(OpBuilder &b, const Walk &walk,
                                       ValueRange position) const {
  IndexBuilder index = at(b);
  SmallVector<Value> result(walk.loops.size());
  Value carry = index.constant(0);
  for (size_t i = walk.loops.size(); i-- > 1;) {
    Value next = index.add(index.add(position[i], walk.strides[i]), carry);
    Value wraps = index.compare(arith::CmpIPredicate::uge, next, walk.sizes[i]);
    result[i] = index.select(wraps, index.sub(next, walk.sizes[i]), next);
    carry = index.select(wraps, index.constant(1), index.constant(0));
  }
  result[0] = index.add(index.add(position[0], walk.strides[0]), carry);
  return result;
}

Indices GpuKernels::getIndices(OpBuilder &b, const Walk &walk, Indices indices,
                               ValueRange position, int64_t lanes) const {
  for (auto [loop, value] : llvm::zip_equal(walk.loops, position))
    indices[loop] =
        loop == inner ? at(b).mul(value, constant(b, lanes)) : value;
  return indices;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

bool GpuKernels::isContiguous(linalg::GenericOp generic,
                              OpOperand &operand) const {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  return map.isProjectedPermutation() && map.getNumResults() > 0 &&
         map.getDimPosition(map.getNumResults() - 1) == inner &&
         cast<MemRefType>(operand.get().getType()).getLayout().isIdentity();
}

llvm::MaybeAlign GpuKernels::getAlignment(Value memref, int64_t lanes) {
  int64_t bits = getElementTypeOrSelf(memref).getIntOrFloatBitWidth();
  return llvm::Align(
      std::min<int64_t>(16, lanes * std::max<int64_t>(bits, 8) / 8));
}

std::pair<Value, SmallVector<Value>>
GpuKernels::locate(OpBuilder &b, Value memref, AffineMap map,
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

Value GpuKernels::loadPiece(OpBuilder &b, linalg::GenericOp generic,
                            OpOperand &operand, const Indices &indices,
                            int64_t lanes) const {
  Value memref = operand.get();
  if (!isa<MemRefType>(memref.getType()))
    return memref; // a scalar input
  if (flat)
    return loadFlatPiece(b, generic, operand, indices, lanes);
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  SmallVector<Value> position;
  if (isLinear && isDataMap(map)) {
    memref = onChip.at(getViewed(memref)).linear;
    position.push_back(indices[inner]);
  } else {
    std::tie(memref, position) = locate(b, memref, map, indices);
  }
  if (lanes == 1 || !map.isFunctionOfDim(inner))
    return memref::LoadOp::create(b, loc, memref, position);
  bool isTile = memref != operand.get();
  if (!isTile && !isContiguous(generic, operand)) {
    SmallVector<Value> elements;
    Indices lane(indices);
    for (int64_t i : llvm::seq(lanes)) {
      lane[inner] = at(b).add(indices[inner], constant(b, i));
      elements.push_back(
          memref::LoadOp::create(b, loc, memref, applyMap(b, loc, map, lane)));
    }
    auto type = VectorType::get({lanes}, getElementTypeOrSelf(memref));
    return vector::FromElementsOp::create(b, loc, type, elements);
  }
  return loadVector(b, memref, position, lanes);
}

Value GpuKernels::loadVector(OpBuilder &b, Value memref, ValueRange position,
                             int64_t lanes) const {
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

void GpuKernels::storePiece(OpBuilder &b, linalg::GenericOp generic,
                            OpOperand &operand, Value value,
                            const Indices &indices, int64_t lanes) const {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  Value memref = operand.get();
  SmallVector<Value> position;
  if (flat)
    std::tie(memref, position) = locateFlatPiece(b, memref, indices);
  else
    position = applyMap(b, loc, map, indices);
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

DenseMap<OpOperand *, Value> GpuKernels::loadCommon(OpBuilder &b,
                                                    linalg::GenericOp generic,
                                                    const Indices &indices,
                                                    int64_t lanes) const {
  DenseMap<OpOperand *, Value> common;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (generic.getMatchingBlockArgument(operand).use_empty())
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
      common[operand] = loadPiece(b, generic, *operand, indices, lanes);
  }
  return common;
}

IRMapping GpuKernels::clonePiece(OpBuilder &b, linalg::GenericOp generic,
                                 const DenseMap<OpOperand *, Value> &common,
                                 const Indices &indices, int64_t lanes) const {
  auto readOperand = [&](OpBuilder &, OpOperand &operand) -> Value {
    if (Value value = common.lookup(&operand))
      return value;
    if (!isParallel(generic) && generic.isDpsInit(&operand) &&
        !isDataMap(generic.getMatchingIndexingMap(&operand)))
      return {}; // the accumulator of a sum
    return loadPiece(b, generic, operand, indices, lanes);
  };
  auto readIndex = [&](OpBuilder &, unsigned loop) -> Value {
    if (flat && loop > 0)
      return getFlatIndices(b, loop);
    if (loop != inner || lanes == 1)
      return indices[loop];
    auto type = VectorType::get({lanes}, b.getIndexType());
    // Kernels have no vector.step.
    auto steps = llvm::to_vector(llvm::seq<int64_t>(lanes));
    return arith::AddIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, type, indices[loop]),
        arith::ConstantOp::create(b, loc, b.getIndexVectorAttr(steps)));
  };
  return cloneElement(b, generic, {readOperand, readIndex}, lanes,
                      schedule.fma);
}

void GpuKernels::storeResults(OpBuilder &b, linalg::GenericOp generic,
                              const IRMapping &mapping, const Indices &indices,
                              int64_t lanes) const {
  Operation *yield = generic.getBody()->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    OpOperand *init = generic.getDpsInitOperand(i);
    if (isDataMap(generic.getMatchingIndexingMap(init)))
      storePiece(b, generic, *init, mapping.lookupOrDefault(value), indices,
                 lanes);
  }
}

int64_t GpuKernels::getLanes(ArrayRef<linalg::GenericOp> generics) const {
  if (!llvm::all_of(generics, isVectorizable))
    return 1;
  return getMostLanes(generics, schedule.accessBits);
}

GpuKernels::Chunks GpuKernels::planChunks(OpBuilder &b,
                                          const ThreadPieces &pieces) const {
  IndexBuilder index = at(b);
  Chunks chunks;
  chunks.size = index.mul(pieces.stride, index.constant(kUnroll));
  // All threads have a whole chunk if the last thread has its last piece.
  Value to = pieces.to;
  if (pieces.width)
    to = index.add(to, index.sub(pieces.stride, index.constant(pieces.width)));
  chunks.count =
      pieces.isChunk
          ? index.constant(1)
          : index.div(index.sub(index.max(to, pieces.from), pieces.from),
                      chunks.size);
  chunks.start = index.add(pieces.from, pieces.thread);
  return chunks;
}

void GpuKernels::emitElements(OpBuilder &b, linalg::GenericOp generic,
                              const Walk &walk, const Indices &first,
                              const ThreadPieces &pieces, int64_t lanes) const {
  IndexBuilder index = at(b);
  // Loops outside of the walk have one iteration.
  Indices known(first);
  known.resize(group.numLoops);
  for (unsigned loop : walk.loops)
    known[loop] = Value();
  DenseMap<OpOperand *, Value> common = loadCommon(b, generic, known, lanes);
  auto locate = [&](OpBuilder &nested, ValueRange position) {
    Indices indices = getIndices(nested, walk, known, position, lanes);
    if (!first.empty())
      for (unsigned loop : walk.loops)
        indices[loop] = at(nested).add(indices[loop], first[loop]);
    return indices;
  };
  Chunks chunks = planChunks(b, pieces);
  // In whole chunks, all loads come before the first store.
  auto body = scf::ForOp::create(
      b, loc, index.constant(0), chunks.count, index.constant(1),
      delinearize(b, walk, chunks.start),
      [&](OpBuilder &nested, Location, Value, ValueRange args) {
        SmallVector<Value> position(args);
        SmallVector<std::pair<Indices, IRMapping>> clones;
        for (int64_t step = 0; step < kUnroll; ++step) {
          Indices here = locate(nested, position);
          clones.push_back(
              {here, clonePiece(nested, generic, common, here, lanes)});
          position = advance(nested, walk, position);
        }
        for (auto &[here, mapping] : clones)
          storeResults(nested, generic, mapping, here, lanes);
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
        IRMapping mapping = clonePiece(nested, generic, common, here, lanes);
        storeResults(nested, generic, mapping, here, lanes);
        scf::YieldOp::create(nested, loc, advance(nested, walk, position));
      });
  keepLoop(tail);
}
