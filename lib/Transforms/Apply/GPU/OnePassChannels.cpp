//===- OnePassChannels.cpp - the channels of a tile -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every block of a cluster adds the slots of all blocks, in their order, and
// computes the per-channel results of the tile, which its elements then read
// from shared memory. The first block of the cluster stores them.
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "Apply/Sums.h"
#include "OnePassKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::bngrad;

SmallVector<OnePass::ChannelOutput> OnePass::getChannelOutputs() const {
  SmallVector<ChannelOutput> outputs;
  auto add = [&](Value memref, AffineMap map) {
    if (llvm::none_of(outputs, [&](const ChannelOutput &output) {
          return getViewed(output.first) == getViewed(memref);
        }))
      outputs.push_back({memref, map});
  };
  linalg::GenericOp reduction = group.reduction;
  AffineMap channelMap =
      AffineMap::getMultiDimIdentityMap(1, reduction.getContext());
  for (auto [result, term] : values.terms)
    add(reduction.getDpsInitOperand(result)->get(), channelMap);
  for (linalg::GenericOp generic : group.channelwise)
    for (OpOperand &init : generic.getDpsInitsMutable())
      add(init.get(), generic.getMatchingIndexingMap(&init));
  return outputs;
}

void OnePass::createResults(OpBuilder &b, ValueRange shared) {
  AffineMap featureMap =
      getFeatureMap(b.getContext(), group.numLoops, group.features);
  results.clear();
  for (auto [output, copy] : llvm::zip_equal(getChannelOutputs(), shared)) {
    auto [memref, map] = output;
    results.push_back({memref, map, copy});
    onChip[getViewed(memref)] = {copy, featureMap, {firstChannel}};
  }
}

void OnePass::arrive(OpBuilder &b) const {
  if (cluster > 1)
    NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
}

void OnePass::wait(OpBuilder &b) const {
  if (cluster > 1)
    NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

Value OnePass::loadSlot(OpBuilder &b, unsigned sum, Value slot,
                        Value block) const {
  if (cluster == 1)
    return memref::LoadOp::create(b, loc, slots[sum], slot);
  IndexBuilder index = at(b);
  Value bytes = index.constant(sumType(sum).getWidth() / 8);
  Value address = index.add(getAddress(b, slots[sum]), index.mul(slot, bytes));
  Value own = toPointer(b, address, NVVM::NVVMMemorySpace::Shared);
  Value number = arith::IndexCastOp::create(b, loc, b.getI32Type(), block);
  Value other = NVVM::MapaOp::create(
      b, loc, getPointerType(b, NVVM::NVVMMemorySpace::SharedCluster), own,
      number);
  return LLVM::LoadOp::create(b, loc, sumType(sum), other);
}

void OnePass::forEachSlot(OpBuilder &b, const Kernel &kernel,
                          SlotBody body) const {
  // The last tile may have fewer channels.
  Value most = at(b).min(constant(b, tile),
                         at(b).sub(constant(b, layout.channels), firstChannel));
  scf::ForOp::create(b, loc, kernel.thread, most, constant(b, threads),
                     ValueRange(),
                     [&](OpBuilder &nested, Location, Value slot, ValueRange) {
                       body(nested, slot);
                       scf::YieldOp::create(nested, loc);
                     });
}

void OnePass::finishChannels(OpBuilder &b, const Kernel &kernel) const {
  forEachSlot(b, kernel, [&](OpBuilder &nested, Value slot) {
    IndexBuilder index = at(nested);
    auto blocks = scf::ForOp::create(
        nested, loc, index.constant(0), index.constant(cluster),
        index.constant(1), zeroSums(nested),
        [&](OpBuilder &body, Location, Value block, ValueRange sums) {
          SmallVector<Value> addends;
          for (unsigned i : llvm::seq(numSums()))
            addends.push_back(loadSlot(body, i, slot, block));
          scf::YieldOp::create(body, loc,
                               addCompensated(body, loc, sums, addends));
        });
    finishChannel(nested, slot, joinErrors(nested, blocks.getResults()));
  });
}

void OnePass::finishChannel(OpBuilder &b, Value slot, ValueRange totals) const {
  Value channel = at(b).add(firstChannel, slot);
  DenseMap<Value, Value> current; // by viewed memref: of results so far
  auto read = [&](Value memref, AffineMap map) -> Value {
    if (!isa<MemRefType>(memref.getType()))
      return memref; // a scalar input
    if (Value value = current.lookup(getViewed(memref)))
      return value;
    return memref::LoadOp::create(b, loc, memref,
                                  applyMap(b, loc, map, channel));
  };
  linalg::GenericOp reduction = group.reduction;
  for (auto [i, total] : llvm::enumerate(totals)) {
    unsigned result = values.terms[i].first;
    Value memref = reduction.getDpsInitOperand(result)->get();
    Value before = buffers.getInitialValue(result);
    if (!before)
      before = read(memref, AffineMap::getMultiDimIdentityMap(
                                1, reduction.getContext()));
    current[getViewed(memref)] =
        arith::AddFOp::create(b, loc, before, total);
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
    memref::StoreOp::create(b, loc, current.at(getViewed(result.memref)),
                            result.copy, slot);
}

void OnePass::storeChannels(OpBuilder &b, const Kernel &kernel) const {
  IndexBuilder index = at(b);
  Value isFirstBlock =
      index.compare(arith::CmpIPredicate::eq, rank, index.constant(0));
  emitIf(b, isFirstBlock, [&](OpBuilder &first) {
    forEachSlot(first, kernel, [&](OpBuilder &nested, Value slot) {
      Value channel = at(nested).add(firstChannel, slot);
      for (const ChannelResult &result : results) {
        if (buffers.isTemporary(result.memref))
          continue;
        Value value = memref::LoadOp::create(nested, loc, result.copy, slot);
        memref::StoreOp::create(nested, loc, value, result.memref,
                                applyMap(nested, loc, result.map, channel));
      }
    });
  });
}
