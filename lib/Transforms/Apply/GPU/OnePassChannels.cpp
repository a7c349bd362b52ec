//===- OnePassChannels.cpp - the channels of a tile -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every block of a cluster adds the slots of all blocks, in an order that the
// schedule determines, and computes the per-channel results of the tile, which
// its elements then read from shared memory. The first block of the cluster
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

bool OnePass::isNeeded(Value memref) const {
  if (!buffers.isTemporary(memref))
    return true;
  return llvm::any_of(group.elementwise, [&](linalg::GenericOp generic) {
    return llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
      return getViewed(operand->get()) == getViewed(memref) &&
             !generic.getMatchingBlockArgument(operand).use_empty();
    });
  });
}

void OnePass::planChannels() {
  auto add = [&](Value memref, AffineMap map) {
    if (isNeeded(memref) && !isResult(memref))
      results.push_back({memref, map, planArray(getElementTypeOrSelf(memref))});
  };
  linalg::GenericOp reduction = group.reduction;
  for (auto [i, term] : llvm::enumerate(values.terms)) {
    slots.push_back(planArray(sumType(i)));
    add(reduction.getDpsInitOperand(term.first)->get(), channelMap);
  }
  for (linalg::GenericOp generic : group.channelwise)
    for (OpOperand &init : generic.getDpsInitsMutable())
      add(init.get(), generic.getMatchingIndexingMap(&init));
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
    onChip[getViewed(result.memref)] = {
        result.array.buffer, featureMap, {first}};
  }
}

bool OnePass::isResult(Value memref) const {
  return llvm::any_of(results, [&](const ChannelResult &result) {
    return getViewed(result.memref) == getViewed(memref);
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
  SmallVector<Value> sums = zeroSums(b);
  for (const SmallVector<Value> &ofBlock : addends)
    sums = addCompensated(b, loc, sums, ofBlock);
  SmallVector<Value> totals = joinErrors(b, sums);
  for (Value &total : totals)
    total = addAcrossWarp(b, total, parts);
  return totals;
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
  Value channel = at(b).add(firstChannel, slot);
  DenseMap<Value, Value> current; // by viewed memref: of results so far
  auto read = [&](Value memref, AffineMap map) -> Value {
    if (!isa<MemRefType>(memref.getType()))
      return memref; // a scalar input
    if (Value value = current.lookup(getViewed(memref)))
      return value;
    readsResults |= isResult(memref);
    return memref::LoadOp::create(b, loc, memref,
                                  applyMap(b, loc, map, channel));
  };
  linalg::GenericOp reduction = group.reduction;
  for (auto [i, total] : llvm::enumerate(totals)) {
    unsigned result = values.terms[i].first;
    Value memref = reduction.getDpsInitOperand(result)->get();
    Value before = buffers.getInitialValue(result);
    if (!before)
      before = read(memref, channelMap);
    current[getViewed(memref)] = arith::AddFOp::create(b, loc, before, total);
  }
  for (linalg::GenericOp generic : group.channelwise) {
    IRMapping mapping = cloneElement(
        b, generic,
        {[&](OpBuilder &, OpOperand &operand) {
           return read(operand.get(), generic.getMatchingIndexingMap(&operand));
         },
         [&](OpBuilder &, unsigned) { return channel; }});
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [init, value] :
         llvm::zip_equal(generic.getDpsInits(), yield->getOperands()))
      current[getViewed(init)] = mapping.lookupOrDefault(value);
  }
  for (const ChannelResult &result : results)
    storeEntry(b, current.at(getViewed(result.memref)), result.array, slot);
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
        Value channel = at(store).add(firstChannel, slot);
        for (const ChannelResult &result : results)
          if (!buffers.isTemporary(result.memref))
            memref::StoreOp::create(
                store, loc, loadEntry(store, result.array, slot), result.memref,
                applyMap(store, loc, result.map, channel));
      });
    });
  });
}
