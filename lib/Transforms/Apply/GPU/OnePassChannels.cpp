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
#include "OnePassKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The entries of `memref` among the results of `stage`; null if there are
/// none.
static const ChannelArray *findResult(const StageArrays &stage, Value memref) {
  for (const auto &[operand, array] : stage.results)
    if (getViewed(operand->get()) == getViewed(memref))
      return &array;
  return nullptr;
}

void OnePass::planChannels() {
  auto planArray = [&](Type type) -> ChannelArray {
    int64_t offset = channelBuffers[type];
    channelBuffers[type] += tile;
    return {type, offset};
  };
  for (unsigned number : llvm::seq(group.stages.size())) {
    enterStage(number);
    StageArrays &stage = arrays.emplace_back();
    for (unsigned i : llvm::seq(numSums()))
      stage.slots.push_back(planArray(sumType(i)));
    for (OpOperand *result : getChannelResults(*this))
      if (isRead(*this, *result) && !findResult(stage, result->get()))
        stage.results.push_back(
            {result, planArray(getElementTypeOrSelf(result->get()))});
  }
  for (unsigned number : llvm::seq(group.stages.size())) {
    enterStage(number);
    readsResults |= readsOwnResults();
  }
  enterStage(0);
}

bool OnePass::readsOwnResults() {
  SmallVector<Value> inputs;
  for (OpOperand *input : getChannelInputs(*this))
    inputs.push_back(input->get());
  if (linalg::GenericOp reduction = current.reduction)
    llvm::append_range(inputs, reduction.getDpsInputs());
  return llvm::any_of(inputs, [&](Value input) {
    return isResult(input) && !findEarlierResult(input);
  });
}

Value TileChannels::getBuffer(const ChannelArray &array) const {
  return *llvm::find_if(block.kernel.shared, [&](Value buffer) {
    return getElementTypeOrSelf(buffer) == array.type;
  });
}

void TileChannels::readResultsOnChip(OpBuilder &b, Pieces &pieces,
                                     unsigned number) const {
  IndexBuilder index = at(b);
  AffineMap featureMap =
      getFeatureMap(b.getContext(), gpu.group.numLoops, gpu.group.features);
  for (const auto &[operand, array] : gpu.arrays[number].results) {
    Value first = index.sub(block.firstChannel, index.constant(array.offset));
    pieces.onChip[getViewed(operand->get())] = {
        getBuffer(array), featureMap, {first}};
  }
}

bool OnePass::isResult(Value memref) const {
  return llvm::any_of(arrays, [&](const StageArrays &stage) {
    return findResult(stage, memref) != nullptr;
  });
}

const ChannelArray *OnePass::findEarlierResult(Value memref) const {
  for (const StageArrays &stage :
       llvm::reverse(ArrayRef(arrays).take_front(stageNumber)))
    if (const ChannelArray *array = findResult(stage, memref))
      return array;
  return nullptr;
}

Value TileChannels::loadEntry(OpBuilder &b, const ChannelArray &array,
                              Value slot) const {
  return memref::LoadOp::create(b, loc, getBuffer(array),
                                at(b).add(slot, constant(b, array.offset)));
}

void TileChannels::storeEntry(OpBuilder &b, Value value,
                              const ChannelArray &array, Value slot) const {
  memref::StoreOp::create(b, loc, value, getBuffer(array),
                          at(b).add(slot, constant(b, array.offset)));
}

void TileChannels::storeSlots(OpBuilder &b, ValueRange totals,
                              Value slot) const {
  for (auto [array, total] : llvm::zip_equal(gpu.ofStage().slots, totals))
    storeEntry(b, total, array, slot);
}

SmallVector<Value> TileChannels::loadSlot(OpBuilder &b, Value slot,
                                          Value number) const {
  if (gpu.cluster == 1)
    return llvm::map_to_vector(
        gpu.ofStage().slots,
        [&](const ChannelArray &array) { return loadEntry(b, array, slot); });
  IndexBuilder index = at(b);
  number = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), number);
  DenseMap<Type, Value> mapped; // the entry at offset 0, by type
  SmallVector<Value> sums;
  for (const ChannelArray &array : gpu.ofStage().slots) {
    int64_t bytes = array.type.getIntOrFloatBitWidth() / 8;
    Value &first = mapped[array.type];
    if (!first)
      first = NVVM::MapaOp::create(
          b, loc, getPointerType(b, NVVM::NVVMMemorySpace::SharedCluster),
          toPointer(b,
                    index.add(getAddress(b, getBuffer(array)),
                              index.mul(slot, index.constant(bytes))),
                    NVVM::NVVMMemorySpace::Shared),
          number);
    Value entry = LLVM::GEPOp::create(b, loc, first.getType(), array.type,
                                      first, LLVM::GEPArg(array.offset));
    sums.push_back(LLVM::LoadOp::create(b, loc, array.type, entry));
  }
  return sums;
}

Value TileChannels::countSlots(OpBuilder &b) const {
  Value most = constant(b, gpu.tile);
  if (layout.channels % gpu.tile == 0)
    return most;
  return at(b).min(most,
                   at(b).sub(constant(b, layout.channels), block.firstChannel));
}

SmallVector<Value> TileChannels::addSlots(OpBuilder &b, Value slot, Value part,
                                          int64_t parts) const {
  // All loads come first, as those from other blocks take long.
  SmallVector<SmallVector<Value>> addends;
  for (int64_t first = 0; first < gpu.cluster; first += parts)
    addends.push_back(loadSlot(b, slot, at(b).add(part, constant(b, first))));
  Accumulators sums = gpu.zeroSums(b);
  for (const SmallVector<Value> &ofBlock : addends)
    sums = addCompensated(b, loc, sums, ofBlock);
  SmallVector<Value> totals = gpu.joinErrors(b, sums);
  for (Value &total : totals)
    total = addAcrossWarp(b, loc, total, parts);
  return totals;
}

void TileChannels::load(OpBuilder &b) {
  std::optional<Value> slot =
      block.kernel.getSharedNumber(b, gpu.tile, countSharers());
  if (!slot)
    return;
  // Threads past the last slot load the first one.
  IndexBuilder index = at(b);
  Value isSlot = isBelow(index, *slot, countSlots(b));
  loaded.insert_range(loadChannelInputs(
      b, gpu, getChannel(b, index.select(isSlot, *slot, index.constant(0))),
      /*storesAtOnce=*/false));
}

Indices TileChannels::getChannel(OpBuilder &b, Value slot) const {
  Indices indices(gpu.group.numLoops);
  indices[gpu.group.features.front()] = at(b).add(block.firstChannel, slot);
  return indices;
}

void TileChannels::finish(OpBuilder &b) const {
  bool hasSums = !gpu.ofStage().slots.empty();
  int64_t parts = hasSums ? countSharers() : 1;
  block.kernel.forEachShared(
      b, gpu.tile, parts, [&](OpBuilder &nested, Value slot, Value part) {
        IndexBuilder index = at(nested);
        // The last tile may have fewer channels.
        Value isSlot = isBelow(index, slot, countSlots(nested));
        Value first = index.constant(0);
        SmallVector<Value> totals;
        if (hasSums)
          totals =
              addSlots(nested, index.select(isSlot, slot, first), part, parts);
        gpu.emitIf(
            nested, index.bitAnd(isSlot, isZero(index, part)),
            [&](OpBuilder &inside) { finishChannel(inside, slot, totals); });
      });
}

void TileChannels::finishChannel(OpBuilder &b, Value slot,
                                 ValueRange totals) const {
  DenseMap<Value, Value> earlier, computed; // by viewed memref
  auto store = [&](unsigned number) {
    for (const auto &[operand, array] : gpu.arrays[number].results)
      storeEntry(b, computed.at(getViewed(operand->get())), array, slot);
  };
  auto add = [&](OpBuilder &, OpOperand &result, Value value) {
    computed[getViewed(result.get())] = value;
  };
  if (gpu.computesMoments()) {
    for (const auto &[operand, array] : gpu.arrays[0].results)
      earlier[getViewed(operand->get())] = loadEntry(b, array, slot);
    computeMoments(b, gpu, getChannel(b, slot), totals, loaded, earlier, add);
    store(gpu.moments->sum);
    return store(gpu.stageNumber);
  }
  for (OpOperand *input : getChannelInputs(gpu))
    if (const ChannelArray *array = gpu.findEarlierResult(input->get()))
      earlier[getViewed(input->get())] = loadEntry(b, *array, slot);
  computeChannel(b, gpu, getChannel(b, slot), totals, loaded, earlier, add);
  store(gpu.stageNumber);
}

void TileChannels::store(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value isFirstBlock = isZero(index, block.rank);
  gpu.emitIf(b, isFirstBlock, [&](OpBuilder &first) {
    block.kernel.forEach(first, gpu.tile, [&](OpBuilder &nested, Value slot) {
      Value isSlot = isBelow(at(nested), slot, countSlots(nested));
      gpu.emitIf(nested, isSlot, [&](OpBuilder &inside) {
        Indices indices = getChannel(inside, slot);
        for (const StageArrays &stage : gpu.arrays)
          for (const auto &[operand, array] : stage.results)
            if (!gpu.buffers.isTemporary(operand->get()))
              storeChannel(inside, gpu, *operand,
                           loadEntry(inside, array, slot), indices);
      });
    });
  });
}
