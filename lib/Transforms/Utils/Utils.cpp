//===- Utils.cpp - small questions about linalg ops -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

std::unique_ptr<Pass> mlir::bngrad::createOpCanonicalizerPass() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(config);
}

Value mlir::bngrad::cloneInit(OpBuilder &b, Value init) {
  Operation *def = init.getDefiningOp();
  IRMapping mapping;
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(def)) {
    Value target = fill.getDpsInits()[0];
    Value cloned = cloneInit(b, target);
    if (!cloned)
      return {};
    mapping.map(target, cloned);
  } else if (!isa_and_present<tensor::EmptyOp>(def)) {
    return {};
  }
  return b.clone(*def, mapping)->getResult(0);
}

/// Checks that the indices of `reshape` are 0, 1, ... over all groups.
template <typename OpTy> static LogicalResult verifyReshape(OpTy reshape) {
  int64_t expected = 0;
  for (const ReassociationIndices &group : reshape.getReassociationIndices())
    for (int64_t index : group) {
      if (index != expected)
        return reshape.emitOpError()
               << "expected indices of reassociation to be consecutive from 0, "
                  "got "
               << index << " instead of " << expected;
      ++expected;
    }
  return success();
}

static LogicalResult verifyDim(ShapedDimOpInterface dim) {
  std::optional<int64_t> index = getConstantIntValue(dim.getDimension());
  if (!index || *index >= 0)
    return success();
  return dim->emitOpError() << "expected the index of a dim to be at least 0, "
                               "got "
                            << *index;
}

LogicalResult mlir::bngrad::verifyDimIndices(Operation *root) {
  WalkResult walk = root->walk([](Operation *op) -> WalkResult {
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return verifyReshape(expand);
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      return verifyReshape(collapse);
    if (auto dim = dyn_cast<ShapedDimOpInterface>(op))
      return verifyDim(dim);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult mlir::bngrad::applyToFixedPoint(Operation *op,
                                              RewritePatternSet patterns,
                                              StringRef work) {
  if (failed(verifyDimIndices(op)))
    return failure();
  // Each op is rewritten a few times: it is generalized, its reshapes are
  // folded, it is fused with its producers, and operands are dropped.
  int64_t ops = 0;
  op->walk([&](Operation *) { ++ops; });
  const int64_t limit = 1000 + 100 * ops;
  GreedyRewriteConfig config;
  config.setMaxNumRewrites(limit);
  if (failed(applyPatternsGreedily(op, std::move(patterns), config)))
    op->emitWarning() << "expected " << work << " to end within " << limit
                      << " rewrites; it was stopped there";
  return success();
}

void mlir::bngrad::disableUnrolling(Operation *loop) {
  MLIRContext *context = loop->getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/BoolAttr::get(context, true), /*count=*/{},
      /*runtimeDisable=*/{}, /*full=*/{}, /*followupUnrolled=*/{},
      /*followupRemainder=*/{}, /*followupAll=*/{});
  auto annotation = LLVM::LoopAnnotationAttr::get(
      context, /*disableNonforced=*/{}, /*vectorize=*/{}, /*interleave=*/{},
      unroll, /*unrollAndJam=*/{}, /*licm=*/{}, /*distribute=*/{},
      /*pipeline=*/{}, /*peeled=*/{}, /*unswitch=*/{},
      /*mustProgress=*/{}, /*isVectorized=*/{}, /*startLoc=*/{},
      /*endLoc=*/{}, /*parallelAccesses=*/{});
  loop->setAttr(LLVM::BrOp::getLoopAnnotationAttrName(
                    OperationName(LLVM::BrOp::getOperationName(), context)),
                annotation);
}

Value mlir::bngrad::getMemory(Value memref) {
  while (Operation *def = memref.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(def))
      memref = view.getViewSource();
    else if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(def))
      memref = metadata.getSource();
    else
      break;
  }
  return memref;
}

bool mlir::bngrad::isArgument(Value memref) {
  auto argument = dyn_cast<BlockArgument>(getMemory(memref));
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

void mlir::bngrad::collectUsers(Value memref,
                                SmallVectorImpl<Operation *> &users) {
  for (Operation *user : memref.getUsers()) {
    users.push_back(user);
    for (Value result : user->getResults())
      if (isa<BaseMemRefType>(result.getType()) &&
          getMemory(result) == getMemory(memref))
        collectUsers(result, users);
  }
}

bool mlir::bngrad::areDisjoint(Value a, Value b) {
  auto part = a.getDefiningOp<memref::SubViewOp>();
  auto other = b.getDefiningOp<memref::SubViewOp>();
  if (!part || !other || part.getSource() != other.getSource())
    return false;
  FailureOr<bool> overlap = ValueBoundsConstraintSet::areOverlappingSlices(
      a.getContext(), HyperrectangularSlice(part),
      HyperrectangularSlice(other));
  return succeeded(overlap) && !*overlap;
}
