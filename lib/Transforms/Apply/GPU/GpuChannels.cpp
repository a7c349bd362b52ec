//===- GpuChannels.cpp - the per-channel results of a group ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread computes the results of a channel from its sums. Other inputs are
// loaded before the sums are ready, as loads take long.
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "GpuKernels.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bngrad;

SmallVector<OpOperand *> GpuKernels::getChannelResults() const {
  SmallVector<OpOperand *> results;
  linalg::GenericOp reduction = current.reduction;
  for (auto [result, term] : values.terms)
    results.push_back(reduction.getDpsInitOperand(result));
  for (linalg::GenericOp generic : current.channelwise)
    for (OpOperand &init : generic.getDpsInitsMutable())
      results.push_back(&init);
  return results;
}

SmallVector<OpOperand *> GpuKernels::getChannelInputs() const {
  SmallVector<OpOperand *> inputs;
  DenseSet<Value> computed; // viewed memrefs
  linalg::GenericOp reduction = current.reduction;
  for (auto [result, term] : values.terms) {
    OpOperand *init = reduction.getDpsInitOperand(result);
    if (!buffers.getInitialValue(stageNumber, result))
      inputs.push_back(init);
    computed.insert(getViewed(init->get()));
  }
  for (linalg::GenericOp generic : current.channelwise) {
    for (OpOperand &operand : generic->getOpOperands())
      if (isa<MemRefType>(operand.get().getType()) &&
          !generic.getMatchingBlockArgument(&operand).use_empty() &&
          !computed.contains(getViewed(operand.get())))
        inputs.push_back(&operand);
    for (Value init : generic.getDpsInits())
      computed.insert(getViewed(init));
  }
  return inputs;
}

bool GpuKernels::isRead(OpOperand &result) const {
  if (!buffers.isTemporary(result.get()))
    return true;
  SmallVector<linalg::GenericOp> readers = group.elementwise;
  for (const Stage &later :
       ArrayRef(group.stages).drop_front(stageNumber + 1)) {
    if (later.reduction)
      readers.push_back(later.reduction);
    llvm::append_range(readers, later.channelwise);
  }
  return llvm::any_of(readers, [&](linalg::GenericOp generic) {
    return llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
      return getViewed(operand->get()) == getViewed(result.get()) &&
             !generic.getMatchingBlockArgument(operand).use_empty();
    });
  });
}

SmallVector<Value> GpuKernels::locateChannel(OpBuilder &b, OpOperand &operand,
                                             const Indices &indices) const {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = generic.getIndexingMapsArray()[operand.getOperandNumber()];
  if (!isParallel(generic))
    return applyMap(b, loc, map, indices);
  return applyMap(b, loc, map, pick(indices, group.features));
}

/// Whether a member of `group` has an output in the memory of `memref` for
/// which `isIncluded` holds.
static bool isWritten(const ScheduledGroup &group, Value memref,
                      function_ref<bool(Value)> isIncluded) {
  return llvm::any_of(group.getMembers(), [&](linalg::GenericOp generic) {
    return llvm::any_of(generic.getDpsInits(), [&](Value output) {
      return getMemory(output) == getMemory(memref) && isIncluded(output) &&
             !areDisjoint(output, memref);
    });
  });
}

bool GpuKernels::mayChange(Value memref) const {
  return isWritten(group, memref, [&](Value output) {
    return getViewed(output) != getViewed(memref);
  });
}

bool GpuKernels::isChanged(Value memref) const {
  return isWritten(group, memref, [](Value) { return true; });
}

DenseMap<OpOperand *, Value>
GpuKernels::loadChannelInputs(OpBuilder &b, const Indices &indices,
                              bool storesAtOnce) const {
  DenseMap<OpOperand *, Value> loaded;
  for (OpOperand *operand : getChannelInputs())
    if (storesAtOnce ? !isChanged(operand->get()) : !mayChange(operand->get()))
      loaded[operand] = memref::LoadOp::create(
          b, loc, operand->get(), locateChannel(b, *operand, indices));
  return loaded;
}

void GpuKernels::computeChannel(OpBuilder &b, const Indices &indices,
                                ValueRange totals,
                                const DenseMap<OpOperand *, Value> &loaded,
                                ResultBody body) const {
  DenseMap<Value, Value> computed; // by viewed memref
  auto read = [&](OpBuilder &nested, OpOperand &operand) -> Value {
    Value memref = operand.get();
    if (!isa<MemRefType>(memref.getType()))
      return memref; // a scalar input
    if (Value value = computed.lookup(getViewed(memref)))
      return value;
    if (Value value = loaded.lookup(&operand))
      return value;
    return memref::LoadOp::create(nested, loc, memref,
                                  locateChannel(nested, operand, indices));
  };
  auto add = [&](OpOperand &init, Value value) {
    computed[getViewed(init.get())] = value;
    body(b, init, value);
  };
  linalg::GenericOp reduction = current.reduction;
  for (auto [i, total] : llvm::enumerate(totals)) {
    unsigned result = values.terms[i].first;
    OpOperand *init = reduction.getDpsInitOperand(result);
    Value before = buffers.getInitialValue(stageNumber, result);
    if (!before)
      before = read(b, *init);
    add(*init, arith::AddFOp::create(b, loc, before, total));
  }
  SmallVector<Value> features = pick(indices, group.features);
  for (linalg::GenericOp generic : current.channelwise) {
    IRMapping mapping = cloneElement(
        b, generic,
        {read, [&](OpBuilder &, unsigned loop) { return features[loop]; }});
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [init, value] :
         llvm::zip_equal(generic.getDpsInitsMutable(), yield->getOperands()))
      add(init, mapping.lookupOrDefault(value));
  }
}
