//===- Writes.cpp - dependences on data that a function writes ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Writes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Whether `op` may write to memory, or has unknown effects.
static bool mayWrite(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  return effects.hasEffect<MemoryEffects::Write>();
}

/// The function argument or the allocation that `buffer` is a part of, or null
/// if unknown.
Value Writes::findMemory(Value buffer) {
  for (;;) {
    Operation *op = buffer.getDefiningOp();
    if (!op) {
      Operation *parent = buffer.getParentBlock()->getParentOp();
      // An argument of any other block may be any buffer.
      return isa<func::FuncOp>(parent) &&
                     buffer.getParentBlock()->isEntryBlock()
                 ? buffer
                 : Value();
    }
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      buffer = view.getViewSource();
    else if (auto toBuffer = dyn_cast<bufferization::ToBufferOp>(op))
      buffer = toBuffer.getTensor();
    else if (auto toTensor = dyn_cast<bufferization::ToTensorOp>(op))
      buffer = toTensor.getBuffer();
    else
      return isa<memref::AllocOp, memref::AllocaOp>(op) ? buffer : Value();
  }
}

Writes::Writes(func::FuncOp function) : function(function) {
  function.walk([&](Operation *op) {
    if (op == function || op->hasAttr(kReportAttrName) || !mayWrite(op))
      return;
    ops.push_back(op);
    SmallVector<MemoryEffects::EffectInstance> effects;
    if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
      interface.getEffects(effects);
    if (effects.empty())
      memory.insert(Value());
    for (const MemoryEffects::EffectInstance &effect : effects)
      if (isa<MemoryEffects::Write>(effect.getEffect()))
        memory.insert(effect.getValue() ? findMemory(effect.getValue())
                                        : Value());
  });
}

/// Whether `op` may read data that the function writes.
bool Writes::mayRead(Operation *op) {
  if (auto toTensor = dyn_cast<bufferization::ToTensorOp>(op))
    return mayWriteTo(toTensor.getBuffer());
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  SmallVector<MemoryEffects::EffectInstance> found;
  effects.getEffects(found);
  return llvm::any_of(found, [&](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Read>(effect.getEffect()) &&
           mayWriteTo(effect.getValue());
  });
}

bool Writes::dependsOn(Value value, bool onSizes) {
  if (Operation *op = value.getDefiningOp())
    return dependsOn(op, onSizes);
  Operation *parent = value.getParentBlock()->getParentOp();
  if (parent == function || !visitedArguments[onSizes].insert(value).second)
    return false;
  auto argument = cast<BlockArgument>(value);
  unsigned i = argument.getArgNumber();
  if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    if (argument.getOwner() == loop.getAfterBody())
      return dependsOn(loop.getConditionOp().getArgs()[i], onSizes);
    return dependsOn(loop.getInits()[i], onSizes) ||
           dependsOn(loop.getYieldOp().getResults()[i], onSizes);
  }
  auto loop = dyn_cast<LoopLikeOpInterface>(parent);
  if (!loop)
    return dependsOn(parent, onSizes);
  // The argument is an induction variable or a value carried by the loop.
  std::optional<SmallVector<Value>> numbers = loop.getLoopInductionVars();
  if (numbers && llvm::is_contained(*numbers, value))
    return runsOf(parent);
  OpOperand *first = loop.getTiedLoopInit(argument);
  OpOperand *next = loop.getTiedLoopYieldedValue(argument);
  if (!first || !next)
    return dependsOn(parent, onSizes);
  return dependsOn(first->get(), onSizes) || dependsOn(next->get(), onSizes);
}

bool Writes::runsOf(Operation *op) {
  auto depends = [&](Value value) { return dependsOn(value, false); };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](scf::IfOp op) { return depends(op.getCondition()); })
      .Case([&](scf::IndexSwitchOp op) { return depends(op.getArg()); })
      .Case([&](scf::WhileOp op) {
        return depends(op.getConditionOp().getCondition());
      })
      .Case([&](scf::ForOp op) {
        return depends(op.getLowerBound()) || depends(op.getUpperBound()) ||
               depends(op.getStep());
      })
      .Case([&](scf::ParallelOp op) {
        return llvm::any_of(op.getLowerBound(), depends) ||
               llvm::any_of(op.getUpperBound(), depends) ||
               llvm::any_of(op.getStep(), depends);
      })
      .Case([&](scf::ForallOp op) {
        return llvm::any_of(op.getDynamicLowerBound(), depends) ||
               llvm::any_of(op.getDynamicUpperBound(), depends) ||
               llvm::any_of(op.getDynamicStep(), depends);
      })
      // The sizes of the shaped operands determine the number of iterations.
      .Case<linalg::LinalgOp, tensor::GenerateOp>([&](Operation *op) {
        return llvm::any_of(op->getOperands(), [&](Value operand) {
          bool isShaped = isa<ShapedType>(operand.getType());
          return dependsOn(operand, /*onSizes=*/isShaped);
        });
      })
      .Case<scf::ExecuteRegionOp, scf::InParallelOp, scf::ReduceOp,
            memref::AllocaScopeOp, vector::MaskOp>(
          [](Operation *) { return false; })
      .Default([&](Operation *op) { return dependsOn(op, /*onSizes=*/false); });
}

bool Writes::dependsOn(Operation *op, bool onSizes) {
  if (!visited[onSizes].insert(op).second)
    return false;
  if (!onSizes && mayRead(op))
    return true;
  bool asksForSizes =
      isa<tensor::DimOp, memref::DimOp, memref::ExtractStridedMetadataOp>(op);
  auto dependsOnOperand = [&](Value operand) {
    bool isShaped = isa<ShapedType>(operand.getType());
    return dependsOn(operand, isShaped && (onSizes || asksForSizes));
  };
  // The elements of a reshape's shape operand are the sizes of its result.
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op);
      reshape && dependsOn(reshape.getShape(), /*onSizes=*/false))
    return true;
  if (auto reshape = dyn_cast<memref::ReshapeOp>(op);
      reshape && mayWriteTo(reshape.getShape()))
    return true;
  // Values that the op's regions yield may become its results, or arguments of
  // other regions.
  bool depends = llvm::any_of(op->getOperands(), dependsOnOperand);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (!depends && block.mightHaveTerminator())
        depends = llvm::any_of(block.getTerminator()->getOperands(),
                               dependsOnOperand);
  return depends;
}

bool Writes::decideOn(Value value) {
  for (auto &set : visited)
    set.clear();
  for (auto &set : visitedArguments)
    set.clear();
  return dependsOn(value, /*onSizes=*/false);
}

bool Writes::decideOn(scf::IfOp op) {
  if (decideOn(op.getCondition()))
    return true;
  for (Operation *parent = op->getParentOp(); parent != function;
       parent = parent->getParentOp())
    if (runsOf(parent))
      return true;
  return false;
}

LogicalResult Writes::remove() {
  for (Operation *op : ops) {
    WalkResult result = op->walk([](Operation *inner) {
      return inner->hasAttr(kReportAttrName) ? WalkResult::interrupt()
                                             : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return op->emitError("expected no indices to check in the region of '")
             << op->getName() << "'";
    OpBuilder b(op);
    for (OpResult value : op->getResults())
      if (!value.use_empty())
        value.replaceAllUsesWith(
            ub::PoisonOp::create(b, op->getLoc(), value.getType()));
    op->erase();
  }
  return success();
}
