//===- CopyTargets.cpp - elimination of copies of sums --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyTargets.h"
#include "Schedule/ScheduledGroup.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// A temporary that is written, copied to its target, and freed.
struct Detour {
  memref::AllocOp temporary;
  memref::CopyOp copy;
  SmallVector<Operation *> deallocs;
  Operation *first = nullptr; // the first op in the block that uses it
};
} // namespace

/// Returns the detour of the values written to `output`, if there is one whose
/// ops are all in one block and whose copy follows all other uses.
static std::optional<Detour> findDetour(Value output,
                                        ArrayRef<linalg::GenericOp> members) {
  Detour detour;
  detour.temporary = output.getDefiningOp<memref::AllocOp>();
  if (!detour.temporary)
    return std::nullopt;
  Block *block = detour.temporary->getBlock();
  SmallVector<Operation *> writers;
  for (Operation *user : output.getUsers()) {
    if (auto copy = dyn_cast<memref::CopyOp>(user);
        copy && !detour.copy && copy.getSource() == output &&
        copy->getBlock() == block)
      detour.copy = copy;
    else if (isa<memref::DeallocOp>(user))
      detour.deallocs.push_back(user);
    else if (isa<linalg::FillOp>(user) || llvm::is_contained(members, user))
      writers.push_back(user);
    else
      return std::nullopt;
  }
  for (Operation *user : writers) {
    Operation *inBlock = block->findAncestorOpInBlock(*user);
    if (!inBlock || !detour.copy || !inBlock->isBeforeInBlock(detour.copy))
      return std::nullopt;
    if (!detour.first || inBlock->isBeforeInBlock(detour.first))
      detour.first = inBlock;
  }
  return detour.copy ? std::optional(detour) : std::nullopt;
}

/// Whether `memory`, which is not a view, cannot overlap other distinct memory.
static bool isDistinct(Value memory) {
  if (auto argument = dyn_cast<BlockArgument>(memory))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp());
  return isa<memref::AllocOp, memref::GetGlobalOp>(memory.getDefiningOp());
}

/// Whether no op from `detour.first` to the copy can observe that the target is
/// written earlier than before.
static bool isUntouched(const Detour &detour) {
  memref::CopyOp copy = detour.copy;
  Value target = copy.getTarget(), memory = getMemory(target);
  if (!isDistinct(memory))
    return false;
  auto mayTouch = [&](Operation *op) {
    if (isMemoryEffectFree(op))
      return false;
    // The walk visits nested ops separately.
    if (!isa<MemoryEffectOpInterface>(op) &&
        !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return true;
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      if (!isa<BaseMemRefType>(operand.getType()))
        return false;
      Value other = getMemory(operand);
      return !isDistinct(other) ||
             (other == memory && !areDisjoint(operand, target));
    });
  };
  for (Operation *op = detour.first; op != copy; op = op->getNextNode())
    if (op->walk([&](Operation *nested) {
            return mayTouch(nested) ? WalkResult::interrupt()
                                    : WalkResult::advance();
          }).wasInterrupted())
      return false;
  return true;
}

/// Makes the target of the copy dominate the first user of the temporary.
/// Returns false if that is impossible.
static bool hoistTarget(RewriterBase &rewriter, const Detour &detour) {
  memref::CopyOp copy = detour.copy;
  Value target = copy.getTarget();
  DominanceInfo dominance;
  if (dominance.properlyDominates(target, detour.first))
    return true;
  auto view = target.getDefiningOp<memref::SubViewOp>();
  if (!view || !llvm::all_of(view->getOperands(), [&](Value operand) {
        return dominance.properlyDominates(operand, detour.first);
      }))
    return false;
  rewriter.moveOpBefore(view, detour.first);
  return true;
}

void mlir::bngrad::writeToCopyTargets(RewriterBase &rewriter,
                                      ArrayRef<linalg::GenericOp> members) {
  unsigned numLoops = 0; // the number of loops over the data
  for (linalg::GenericOp member : members)
    numLoops = std::max(numLoops, member.getNumLoops());
  llvm::SmallSetVector<Value, 4> outputs;
  for (linalg::GenericOp member : members)
    for (OpOperand &init : member.getDpsInitsMutable())
      if (member.getNumLoops() < numLoops ||
          !isDataMap(member.getMatchingIndexingMap(&init)))
        outputs.insert(init.get());
  for (Value output : outputs) {
    std::optional<Detour> detour = findDetour(output, members);
    if (!detour || !isUntouched(*detour) || !hoistTarget(rewriter, *detour))
      continue;
    Value target = detour->copy.getTarget();
    rewriter.eraseOp(detour->copy);
    for (Operation *dealloc : detour->deallocs)
      rewriter.eraseOp(dealloc);
    rewriter.replaceAllUsesWith(output, target);
    rewriter.eraseOp(detour->temporary);
  }
}
