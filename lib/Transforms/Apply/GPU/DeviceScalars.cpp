//===- DeviceScalars.cpp - scalars that kernels read ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceScalars.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// The host ops from loads of arguments to a value, in topological order.
using Slice = llvm::SetVector<Operation *>;
} // namespace

/// True if `load` reads one element of an argument that is never written.
static bool isScalarOfArgument(memref::LoadOp load) {
  if (!isArgument(load.getMemRef()) ||
      !llvm::all_of(load.getIndices(),
                    [](Value i) { return getConstantIntValue(i); }))
    return false;
  SmallVector<Operation *> users;
  collectUsers(getMemory(load.getMemRef()), users);
  return llvm::none_of(users, [](Operation *user) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    return effects && effects.hasEffect<MemoryEffects::Write>();
  });
}

/// Adds the ops between loads of arguments and `value` to `slice`. Returns
/// whether there are any.
static bool collectSlice(Value value, Slice &slice) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (slice.contains(op))
    return true;
  auto load = dyn_cast<memref::LoadOp>(op);
  if (load ? !isScalarOfArgument(load)
           : !isMemoryEffectFree(op) || op->getNumRegions() > 0)
    return false;
  bool dependsOnLoad = bool(load);
  if (!load)
    for (Value operand : op->getOperands())
      dependsOnLoad |= collectSlice(operand, slice);
  if (dependsOnLoad)
    slice.insert(op);
  return dependsOnLoad;
}

/// The map from all loops to the element that `load` reads.
static AffineMap getMap(memref::LoadOp load, unsigned numLoops) {
  SmallVector<AffineExpr> element;
  for (Value index : load.getIndices())
    element.push_back(
        getAffineConstantExpr(*getConstantIntValue(index), load.getContext()));
  return AffineMap::get(numLoops, 0, element, load.getContext());
}

/// Clones `slice` to the start of the body of `generic` and uses the clones
/// there. Argument `firstArgument` is the first one that stands for a load.
static void cloneIntoBody(RewriterBase &rewriter, linalg::GenericOp generic,
                          const Slice &slice, unsigned firstArgument) {
  Block *body = generic.getBody();
  rewriter.setInsertionPointToStart(body);
  IRMapping mapping;
  for (Operation *op : slice) {
    if (isa<memref::LoadOp>(op))
      mapping.map(op->getResult(0), body->getArgument(firstArgument++));
    else
      rewriter.clone(*op, mapping);
    for (Value result : op->getResults())
      rewriter.replaceUsesWithIf(
          result, mapping.lookup(result), [&](OpOperand &use) {
            return generic->isProperAncestor(use.getOwner());
          });
  }
}

linalg::GenericOp
mlir::bngrad::readScalarsAsOperands(RewriterBase &rewriter,
                                    linalg::GenericOp generic) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(generic->getRegions(), captured);
  Slice slice;
  for (Value value : captured)
    collectSlice(value, slice);
  if (slice.empty())
    return generic;

  rewriter.setInsertionPoint(generic);
  SmallVector<Value> inputs = generic.getInputs();
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  unsigned firstArgument = inputs.size();
  for (Operation *op : slice)
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      maps.insert(maps.begin() + inputs.size(),
                  getMap(load, generic.getNumLoops()));
      inputs.push_back(load.getMemRef());
    }
  auto replacement = linalg::GenericOp::create(
      rewriter, generic.getLoc(), generic.getResultTypes(), inputs,
      generic.getOutputs(), maps, generic.getIteratorTypesArray());
  replacement->setDiscardableAttrs(generic->getDiscardableAttrDictionary());
  replacement.getRegion().takeBody(generic.getRegion());
  for (auto [i, input] :
       llvm::enumerate(ArrayRef(inputs).drop_front(firstArgument)))
    replacement.getBody()->insertArgument(
        firstArgument + i, getElementTypeOrSelf(input), generic.getLoc());
  cloneIntoBody(rewriter, replacement, slice, firstArgument);
  rewriter.eraseOp(generic);
  for (Operation *op : llvm::reverse(slice))
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  return replacement;
}
