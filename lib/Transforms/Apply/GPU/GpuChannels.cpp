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

#include "GpuChannels.h"
#include "Apply/ElementCloner.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bngrad;

SmallVector<OpOperand *> mlir::bngrad::getChannelResults(const GpuGroup &gpu) {
  SmallVector<OpOperand *> results;
  linalg::GenericOp reduction = gpu.current.reduction;
  for (auto [result, term] : gpu.values.terms)
    results.push_back(reduction.getDpsInitOperand(result));
  for (linalg::GenericOp generic : gpu.current.channelwise)
    for (OpOperand &init : generic.getDpsInitsMutable())
      results.push_back(&init);
  return results;
}

SmallVector<OpOperand *> mlir::bngrad::getChannelInputs(const GpuGroup &gpu) {
  SmallVector<OpOperand *> inputs;
  DenseSet<Value> computed; // viewed memrefs
  linalg::GenericOp reduction = gpu.current.reduction;
  for (auto [result, term] : gpu.values.terms) {
    OpOperand *init = reduction.getDpsInitOperand(result);
    if (!gpu.buffers.getInitialValue(gpu.stageNumber, result))
      inputs.push_back(init);
    computed.insert(getViewed(init->get()));
  }
  for (linalg::GenericOp generic : gpu.current.channelwise) {
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

bool mlir::bngrad::isRead(const GpuGroup &gpu, OpOperand &result) {
  if (!gpu.buffers.isTemporary(result.get()))
    return true;
  SmallVector<linalg::GenericOp> readers = gpu.group.elementwise;
  for (const Stage &later :
       ArrayRef(gpu.group.stages).drop_front(gpu.stageNumber + 1)) {
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

/// The element of a per-channel operand.
static SmallVector<Value> locateChannel(OpBuilder &b, const GpuGroup &gpu,
                                        OpOperand &operand,
                                        const Indices &indices) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = generic.getIndexingMapsArray()[operand.getOperandNumber()];
  if (!isParallel(generic))
    return applyMap(b, gpu.loc, map, indices);
  return applyMap(b, gpu.loc, map, pick(indices, gpu.group.features));
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

bool mlir::bngrad::mayChange(const GpuGroup &gpu, Value memref) {
  return isWritten(gpu.group, memref, [&](Value output) {
    return getViewed(output) != getViewed(memref);
  });
}

bool mlir::bngrad::isOfEarlierStage(const GpuGroup &gpu, Value memref) {
  auto writes = [&](linalg::GenericOp generic) {
    return llvm::any_of(generic.getDpsInits(), [&](Value output) {
      return getViewed(output) == getViewed(memref);
    });
  };
  return llvm::any_of(ArrayRef(gpu.group.stages).take_front(gpu.stageNumber),
                      [&](const Stage &stage) {
                        return (stage.reduction && writes(stage.reduction)) ||
                               llvm::any_of(stage.channelwise, writes);
                      });
}

void mlir::bngrad::storeChannel(OpBuilder &b, const GpuGroup &gpu,
                                OpOperand &result, Value value,
                                const Indices &indices) {
  memref::StoreOp::create(b, gpu.loc, value, result.get(),
                          locateChannel(b, gpu, result, indices));
}

DenseMap<OpOperand *, Value>
mlir::bngrad::loadChannelInputs(OpBuilder &b, const GpuGroup &gpu,
                                const Indices &indices, bool storesAtOnce) {
  // Whether the group writes to the memory of `memref`.
  auto isChanged = [&](Value memref) {
    return isWritten(gpu.group, memref, [](Value) { return true; });
  };
  DenseMap<OpOperand *, Value> loaded;
  for (OpOperand *operand : getChannelInputs(gpu)) {
    Value memref = operand->get();
    if (isOfEarlierStage(gpu, memref) ||
        (storesAtOnce ? isChanged(memref) : mayChange(gpu, memref)))
      continue;
    loaded[operand] = memref::LoadOp::create(
        b, gpu.loc, memref, locateChannel(b, gpu, *operand, indices));
  }
  return loaded;
}

void mlir::bngrad::computeChannel(OpBuilder &b, const GpuGroup &gpu,
                                  const Indices &indices, ValueRange totals,
                                  const DenseMap<OpOperand *, Value> &loaded,
                                  DenseMap<Value, Value> computed,
                                  ResultBody body) {
  Location loc = gpu.loc;
  auto read = [&](OpBuilder &nested, OpOperand &operand) -> Value {
    Value memref = operand.get();
    if (!isa<MemRefType>(memref.getType()))
      return memref; // a scalar input
    if (Value value = computed.lookup(getViewed(memref)))
      return value;
    if (Value value = loaded.lookup(&operand))
      return value;
    return memref::LoadOp::create(nested, loc, memref,
                                  locateChannel(nested, gpu, operand, indices));
  };
  auto add = [&](OpOperand &init, Value value) {
    computed[getViewed(init.get())] = value;
    body(b, init, value);
  };
  linalg::GenericOp reduction = gpu.current.reduction;
  for (auto [i, total] : llvm::enumerate(totals)) {
    unsigned result = gpu.values.terms[i].first;
    OpOperand *init = reduction.getDpsInitOperand(result);
    Value before = gpu.buffers.getInitialValue(gpu.stageNumber, result);
    if (!before)
      before = read(b, *init);
    add(*init, arith::AddFOp::create(b, loc, before, total));
  }
  SmallVector<Value> features = pick(indices, gpu.group.features);
  for (linalg::GenericOp generic : gpu.current.channelwise) {
    IRMapping mapping = cloneElement(
        b, generic,
        {read, [&](OpBuilder &, unsigned loop) { return features[loop]; }});
    Operation *yield = generic.getBody()->getTerminator();
    for (auto [init, value] :
         llvm::zip_equal(generic.getDpsInitsMutable(), yield->getOperands()))
      add(init, mapping.lookupOrDefault(value));
  }
}
