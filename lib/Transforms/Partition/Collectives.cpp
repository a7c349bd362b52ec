//===- Collectives.cpp - all-reduces of a function ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;
using shard::AllReduceOp;

std::string mlir::bngrad::describeGradient(BatchNormOpInterface op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName();
  for (OpOperand &operand : op->getOpOperands())
    os << " " << stringifyRole(op.getOperandRole(operand)) << "("
       << operand.get().getType() << ")";
  os << " feature_dims=[";
  llvm::interleaveComma(op.getFeatureDims(), os);
  os << "] epsilon=";
  // Prints all digits, since processes compare the text.
  FloatAttr::get(Float64Type::get(op.getContext()),
                 op.getEpsilon().convertToDouble())
      .print(os, /*elideType=*/true);
  os << " statistics=" << stringifyStatistics(op.getStatistics());
  return text;
}

SmallVector<shard::GridAxis> mlir::bngrad::getGridAxesOf(AllReduceOp op,
                                                         shard::GridOp grid) {
  SmallVector<shard::GridAxis> axes(op.getGridAxes());
  if (axes.empty())
    llvm::append_range(axes, llvm::seq<shard::GridAxis>(grid.getRank()));
  llvm::sort(axes);
  return axes;
}

/// Sorts the ops of `block` and appends its levels.
static void sortBlock(Block &block, SmallVectorImpl<CollectiveLevel> &levels) {
  DenseMap<Operation *, unsigned> numWaits;
  unsigned afterEffects = 0;
  SmallVector<SmallVector<Operation *>> sorted;
  for (Operation &op : block.without_terminator()) {
    unsigned waits = 0;
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && def->getBlock() == &block)
          waits = std::max(waits, numWaits[def] + isa<AllReduceOp>(def));
    });
    if (!isMemoryEffectFree(&op))
      waits = afterEffects = std::max(waits, afterEffects);
    numWaits[&op] = waits;
    if (waits >= sorted.size())
      sorted.resize(waits + 1);
    sorted[waits].push_back(&op);
  }
  Operation *end = block.getTerminator();
  for (ArrayRef<Operation *> ops : sorted)
    for (Operation *op : ops)
      op->moveBefore(end);
  DenseMap<Operation *, Operation *> lastOf;
  for (auto [level, ops] : llvm::enumerate(sorted)) {
    CollectiveLevel collectives;
    for (Operation *op : ops) {
      auto collective = dyn_cast<AllReduceOp>(op);
      if (!collective)
        continue;
      collectives.ops.push_back(collective);
      Operation *def = collective.getInput().getDefiningOp();
      if (!def || def->getBlock() != &block || numWaits[def] != level)
        continue;
      // All-reduces of one op stay in order.
      Operation *&last = lastOf.try_emplace(def, def).first->second;
      op->moveAfter(last);
      last = op;
    }
    if (collectives.ops.empty())
      continue;
    collectives.firstUser =
        level + 1 < sorted.size() ? sorted[level + 1].front() : end;
    levels.push_back(std::move(collectives));
  }
}

SmallVector<CollectiveLevel>
mlir::bngrad::sortByCollectives(func::FuncOp function) {
  SmallVector<AllReduceOp> collectives;
  function.walk([&](AllReduceOp op) { collectives.push_back(op); });
  llvm::SmallSetVector<Block *, 4> blocks;
  for (AllReduceOp op : llvm::reverse(collectives)) {
    if (op->use_empty())
      op->erase();
    else
      blocks.insert(op->getBlock());
  }
  SmallVector<CollectiveLevel> levels;
  for (Block *block : llvm::reverse(blocks))
    sortBlock(*block, levels);
  return levels;
}
