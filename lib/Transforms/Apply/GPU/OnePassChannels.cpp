//===- OnePassChannels.cpp - the channels of a tile -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every block of a cluster adds the slots of all blocks, in an order that the
// schedule determines, and computes the per-channel results of the tile. Its
// elements then read them from shared memory. The first block of the cluster
// stores them.
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "Apply/Sums.h"
#include "OnePassKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::bngrad;

OnePass::ChannelArray OnePass::planArray(Type type) {
  int64_t offset = channelBuffers[type];
  channelBuffers[type] += tile;
  return {type, offset, Value()};
}

void OnePass::planChannels() {
  for (unsigned i : llvm::seq(numSums()))
    slots.push_back(planArray(sumType(i)));
  for (OpOperand *result : getChannelResults())
    if (isRead(*result) && !isResult(result->get()))
      results.push_back(
          {result, planArray(getElementTypeOrSelf(result->get()))});
  for (OpOperand *input : getChannelInputs())
    readsResults |= isResult(input->get());
  linalg::GenericOp reduction = current.reduction;
  for (Value input : reduction.getDpsInputs())
    readsResults |= isResult(input);
}

void OnePass::createChannels(OpBuilder &b, ValueRange shared) {
  auto setBuffer = [&](ChannelArray &array) {
    array.buffer = *llvm::find_if(shared, [&](Value buffer) {
      return getElementTypeOrSelf(buffer) == array.type;
    });
  };
  llvm::for_each(slots, setBuffer);
  for (ChannelResult &result : results)
    setBuffer(result.array);
}

void OnePass::readResultsOnChip(OpBuilder &b) {
  IndexBuilder index = at(b);
  AffineMap featureMap =
      getFeatureMap(b.getContext(), group.numLoops, group.features);
  for (const ChannelResult &result : results) {
    Value first = index.sub(firstChannel, index.constant(result.array.offset));
    onChip[getViewed(result.operand->get())] = {
        result.array.buffer, featureMap, {first}};
  }
}

bool OnePass::isResult(Value memref) const {
  return llvm::any_of(results, [&](const ChannelResult &result) {
    return getViewed(result.operand->get()) == getViewed(memref);
  });
}

Value OnePass::loadEntry(OpBuilder &b, const ChannelArray &array,
                         Value slot) const {
  return memref::LoadOp::create(b, loc, array.buffer,
                                at(b).add(slot, constant(b, array.offset)));
}

void OnePass::storeEntry(OpBuilder &b, Value value, const ChannelArray &array,
                         Value slot) const {
  memref::StoreOp::create(b, loc, value, array.buffer,
                          at(b).add(slot, constant(b, array.offset)));
}

void OnePass::storeSlots(OpBuilder &b, ValueRange totals, Value slot) const {
  for (auto [array, total] : llvm::zip_equal(slots, totals))
    storeEntry(b, total, array, slot);
}

void OnePass::arrive(OpBuilder &b, bool isRelaxed) const {
  if (cluster == 1)
    return;
  if (isRelaxed)
    NVVM::ClusterArriveRelaxedOp::create(b, loc, b.getUnitAttr());
  else
    NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
}

void OnePass::wait(OpBuilder &b) const {
  if (cluster > 1)
    NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

SmallVector<Value> OnePass::loadSlot(OpBuilder &b, Value slot,
                                     Value block) const {
  if (cluster == 1)
    return llvm::map_to_vector(slots, [&](const ChannelArray &array) {
      return loadEntry(b, array, slot);
    });
  IndexBuilder index = at(b);
  Value number = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), block);
  DenseMap<Type, Value> mapped; // the entry at offset 0, by type
  SmallVector<Value> sums;
  for (const ChannelArray &array : slots) {
    int64_t bytes = array.type.getIntOrFloatBitWidth() / 8;
    Value &first = mapped[array.type];
    if (!first)
      first = NVVM::MapaOp::create(
          b, loc, getPointerType(b, NVVM::NVVMMemorySpace::SharedCluster),
          toPointer(b,
                    index.add(getAddress(b, array.buffer),
                              index.mul(slot, index.constant(bytes))),
                    NVVM::NVVMMemorySpace::Shared),
          number);
    Value entry = LLVM::GEPOp::create(b, loc, first.getType(), array.type,
                                      first, LLVM::GEPArg(array.offset));
    sums.push_back(LLVM::LoadOp::create(b, loc, array.type, entry));
  }
  return sums;
}

Value OnePass::countSlots(OpBuilder &b) const {
  Value most = constant(b, tile);
  if (layout.channels % tile == 0)
    return most;
  return at(b).min(most, at(b).sub(constant(b, layout.channels), firstChannel));
}

SmallVector<Value> OnePass::addSlots(OpBuilder &b, Value slot, Value part,
                                     int64_t parts) const {
  // All loads come first, as those from other blocks take long.
  SmallVector<SmallVector<Value>> addends;
  for (int64_t first = 0; first < cluster; first += parts)
    addends.push_back(loadSlot(b, slot, at(b).add(part, constant(b, first))));
  Accumulators sums = zeroSums(b);
  for (const SmallVector<Value> &ofBlock : addends)
    sums = addCompensated(b, loc, sums, ofBlock);
  SmallVector<Value> totals = joinErrors(b, sums);
  for (Value &total : totals)
    total = addAcrossWarp(b, total, parts);
  return totals;
}

void OnePass::loadChannels(OpBuilder &b, const Kernel &kernel) {
  loaded.clear();
  int64_t parts = countSharers(kernel, tile, cluster);
  std::optional<Value> slot = getSharedNumber(b, kernel, tile, parts);
  if (!slot)
    return;
  // Threads past the last slot load the first one.
  IndexBuilder index = at(b);
  Value isSlot = index.compare(arith::CmpIPredicate::ult, *slot, countSlots(b));
  loaded = loadChannelInputs(
      b, getChannel(b, index.select(isSlot, *slot, index.constant(0))),
      /*storesAtOnce=*/false);
}

Indices OnePass::getChannel(OpBuilder &b, Value slot) const {
  Indices indices(group.numLoops);
  indices[group.features.front()] = at(b).add(firstChannel, slot);
  return indices;
}

void OnePass::finishChannels(OpBuilder &b, const Kernel &kernel) {
  int64_t parts = countSharers(kernel, tile, cluster);
  forEachShared(
      b, kernel, tile, parts, [&](OpBuilder &nested, Value slot, Value part) {
        IndexBuilder index = at(nested);
        // The last tile may have fewer channels.
        Value isSlot =
            index.compare(arith::CmpIPredicate::ult, slot, countSlots(nested));
        Value first = index.constant(0);
        SmallVector<Value> totals =
            addSlots(nested, index.select(isSlot, slot, first), part, parts);
        Value isFirst = index.compare(arith::CmpIPredicate::eq, part, first);
        emitIf(nested, index.bitAnd(isSlot, isFirst),
               [&](OpBuilder &inside) { finishChannel(inside, slot, totals); });
      });
}

void OnePass::finishChannel(OpBuilder &b, Value slot, ValueRange totals) {
  DenseMap<Value, Value> computed; // by viewed memref
  computeChannel(b, getChannel(b, slot), totals, loaded,
                 [&](OpBuilder &, OpOperand &result, Value value) {
                   computed[getViewed(result.get())] = value;
                 });
  for (const ChannelResult &result : results)
    storeEntry(b, computed.at(getViewed(result.operand->get())), result.array,
               slot);
}

void OnePass::storeChannels(OpBuilder &b, const Kernel &kernel) const {
  IndexBuilder index = at(b);
  Value isFirstBlock =
      index.compare(arith::CmpIPredicate::eq, rank, index.constant(0));
  emitIf(b, isFirstBlock, [&](OpBuilder &first) {
    forEachOfBlock(first, kernel, tile, [&](OpBuilder &nested, Value slot) {
      Value isSlot = at(nested).compare(arith::CmpIPredicate::ult, slot,
                                        countSlots(nested));
      emitIf(nested, isSlot, [&](OpBuilder &store) {
        Indices indices = getChannel(store, slot);
        for (const ChannelResult &result : results)
          if (Value memref = result.operand->get();
              !buffers.isTemporary(memref))
            memref::StoreOp::create(
                store, loc, loadEntry(store, result.array, slot), memref,
                locateChannel(store, *result.operand, indices));
      });
    });
  });
}
