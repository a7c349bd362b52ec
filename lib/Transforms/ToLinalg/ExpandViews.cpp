//===- ExpandViews.cpp - bngrad-expand-views ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream infers the dims that a slice drops from the strides before the steps
// are applied, the sizes of an expanded group from its static sizes, and the
// rank of a reshape from the length of its shape.
// docs/upstream.md has programs for which it fails. Here, ops are rewritten so
// that there is nothing to infer.
//
//===----------------------------------------------------------------------===//

#include "Utils/Utils.h"

#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-expand-views"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADEXPANDVIEWSPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// A view of `source` with the sizes, strides and offset of `type`. Dynamic
/// ones are taken from `sizes`, `strides` and `offset`.
static Value castTo(OpBuilder &b, Location loc, MemRefType type, Value source,
                    Value offset, ArrayRef<OpFoldResult> sizes,
                    ArrayRef<OpFoldResult> strides) {
  auto [knownStrides, knownOffset] = type.getStridesAndOffset();
  auto choose = [&](int64_t known, OpFoldResult other) -> OpFoldResult {
    return ShapedType::isDynamic(known) ? other : b.getIndexAttr(known);
  };
  SmallVector<OpFoldResult> newSizes, newStrides;
  for (int64_t dim : llvm::seq(type.getRank())) {
    newSizes.push_back(choose(type.getDimSize(dim), sizes[dim]));
    newStrides.push_back(choose(knownStrides[dim], strides[dim]));
  }
  return memref::ReinterpretCastOp::create(
      b, loc, type, source, choose(knownOffset, offset), newSizes, newStrides);
}

/// True if `size` is a size of a function argument: no pass will make it
/// static.
static bool staysUnknown(OpFoldResult size) {
  auto value = dyn_cast<Value>(size);
  auto dim = value ? value.getDefiningOp<memref::DimOp>() : memref::DimOp();
  auto argument =
      dim ? dyn_cast<BlockArgument>(dim.getSource()) : BlockArgument();
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// True if the sizes alone determine which dims `op` drops, whichever sizes
/// later become constants.
static bool isPlain(memref::SubViewOp op) {
  if (op.getType().getRank() == op.getSourceType().getRank())
    return true;
  auto isOther = [](int64_t size) {
    return !ShapedType::isDynamic(size) && size != 1;
  };
  if (llvm::all_of(op.getType().getShape(), isOther))
    return true;
  return llvm::all_of(op.getStaticStrides(),
                      [](int64_t s) { return s == 1; }) &&
         llvm::all_of(op.getMixedSizes(),
                      [&](OpFoldResult size) {
                        std::optional<int64_t> known =
                            getConstantIntValue(size);
                        return known || staysUnknown(size);
                      }) &&
         llvm::count(op.getStaticSizes(), 1) ==
             op.getSourceType().getRank() - op.getType().getRank();
}

/// The dims of `full`, the type of a slice before dims are dropped, that
/// `reduced` keeps, in order; failure if sizes and strides disagree.
static FailureOr<SmallVector<int64_t>> findKeptDims(MemRefType full,
                                                    MemRefType reduced) {
  SmallVector<int64_t> fullStrides = full.getStridesAndOffset().first;
  SmallVector<int64_t> strides = reduced.getStridesAndOffset().first;
  SmallVector<int64_t> kept;
  for (int64_t dim : llvm::seq(full.getRank())) {
    int64_t next = kept.size();
    if (next < reduced.getRank() &&
        full.getDimSize(dim) == reduced.getDimSize(next) &&
        fullStrides[dim] == strides[next])
      kept.push_back(dim);
    else if (full.getDimSize(dim) != 1) {
      LDBG() << "dim " << dim << " of " << full
             << " is not of size 1, and not dim " << next << " of " << reduced;
      return failure();
    }
  }
  if (static_cast<int64_t>(kept.size()) != reduced.getRank()) {
    LDBG() << "dim " << kept.size() << " of " << reduced << " is no dim of "
           << full;
    return failure();
  }
  return kept;
}

static LogicalResult expand(memref::SubViewOp op) {
  if (isPlain(op))
    return success();
  OpBuilder b(op);
  Location loc = op.getLoc();
  MemRefType type = op.getType();
  auto full = memref::SubViewOp::inferResultType(
      op.getSourceType(), op.getStaticOffsets(), op.getStaticSizes(),
      op.getStaticStrides());
  FailureOr<SmallVector<int64_t>> kept = findKeptDims(full, type);
  if (failed(kept))
    return op.emitOpError() << "expected sizes and strides of the result to be "
                               "those of the same dims of "
                            << full << ", got " << type;
  auto slice = memref::SubViewOp::create(
      b, loc, full, op.getSource(), op.getMixedOffsets(), op.getMixedSizes(),
      op.getMixedStrides());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, slice);
  SmallVector<OpFoldResult> sizes, strides;
  for (int64_t dim : *kept) {
    sizes.push_back(op.getMixedSizes()[dim]);
    strides.push_back(metadata.getStrides()[dim]);
  }
  op.replaceAllUsesWith(
      castTo(b, loc, type, slice, metadata.getOffset(), sizes, strides));
  op.erase();
  return success();
}

/// True if a group of `op` has at most one size that is not static.
static bool isPlain(memref::ExpandShapeOp op) {
  return llvm::all_of(op.getReassociationIndices(),
                      [&](ArrayRef<int64_t> group) {
                        return llvm::count_if(group, [&](int64_t dim) {
                                 return op.getResultType().isDynamicDim(dim);
                               }) <= 1;
                      });
}

static void expand(memref::ExpandShapeOp op) {
  if (isPlain(op))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  MemRefType type = op.getResultType();
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, op.getSrc());
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  SmallVector<OpFoldResult> strides(type.getRank());
  for (auto [i, group] : llvm::enumerate(op.getReassociationIndices())) {
    Value stride = metadata.getStrides()[i];
    for (int64_t dim : llvm::reverse(group)) {
      strides[dim] = stride;
      stride = b.createOrFold<arith::MulIOp>(
          loc, stride, getValueOrCreateConstantIndexOp(b, loc, sizes[dim]));
    }
  }
  op.getResult().replaceAllUsesWith(
      castTo(b, loc, type, op.getSrc(), metadata.getOffset(), sizes, strides));
  op.erase();
}

/// Gives the result of `op` a rank: the length of its shape operand.
static void expand(memref::ReshapeOp op) {
  auto type = dyn_cast<UnrankedMemRefType>(op.getResult().getType());
  int64_t rank = cast<MemRefType>(op.getShape().getType()).getDimSize(0);
  if (!type || ShapedType::isDynamic(rank))
    return;
  OpBuilder b(op);
  auto ranked = MemRefType::get(
      SmallVector<int64_t>(rank, ShapedType::kDynamic), type.getElementType(),
      MemRefLayoutAttrInterface(), type.getMemorySpace());
  Value result = memref::ReshapeOp::create(b, op.getLoc(), ranked,
                                           op.getSource(), op.getShape());
  op.replaceAllUsesWith(
      memref::CastOp::create(b, op.getLoc(), type, result).getResult());
  op.erase();
}

/// Drops the steps of a slice of tensors in dims of size 1, where they have no
/// effect: upstream would turn them into strides and drop other dims.
template <typename OpTy> static void dropSteps(OpTy op) {
  SmallVector<int64_t> strides(op.getStaticStrides());
  for (auto [stride, size] : llvm::zip_equal(strides, op.getStaticSizes()))
    if (size == 1 && !ShapedType::isDynamic(stride))
      stride = 1;
  op.setStaticStrides(strides);
}

/// True if upstream may choose the dims that a slice of tensors drops again,
/// and perhaps others: more dims of it have size 1 than it drops, and an
/// operand may become a constant.
template <typename OpTy> static bool mayDropOtherDims(OpTy op) {
  int64_t numDropped = op.getDroppedDims().count();
  bool hasOperands = !op.getOffsets().empty() || !op.getSizes().empty() ||
                     !op.getStrides().empty();
  return numDropped > 0 && hasOperands &&
         llvm::count(op.getStaticSizes(), 1) > numDropped;
}

/// The dims of a slice by dims of the tensor without those in `dropped`. Each
/// dropped dim joins the kept dim before it, or the first one.
static SmallVector<ReassociationIndices>
getKeptGroups(const llvm::SmallBitVector &dropped) {
  SmallVector<ReassociationIndices> groups(dropped.size() - dropped.count());
  int64_t numKept = 0;
  for (int64_t dim : llvm::seq<int64_t>(dropped.size())) {
    numKept += !dropped[dim];
    if (!groups.empty())
      groups[std::max<int64_t>(numKept - 1, 0)].push_back(dim);
  }
  return groups;
}

/// Leaves it to a reshape to drop dims.
static void expandDims(tensor::ExtractSliceOp op) {
  if (!mayDropOtherDims(op))
    return;
  OpBuilder b(op);
  Value full = tensor::ExtractSliceOp::create(
      b, op.getLoc(), op.getSource(), op.getMixedOffsets(), op.getMixedSizes(),
      op.getMixedStrides());
  op.replaceAllUsesWith(
      tensor::CollapseShapeOp::create(b, op.getLoc(), op.getType(), full,
                                      getKeptGroups(op.getDroppedDims()))
          .getResult());
  op.erase();
}

static void expandDims(tensor::InsertSliceOp op) {
  if (!mayDropOtherDims(op))
    return;
  OpBuilder b(op);
  auto type = RankedTensorType::get(op.getStaticSizes(),
                                    op.getSourceType().getElementType(),
                                    op.getSourceType().getEncoding());
  Value full = tensor::ExpandShapeOp::create(
      b, op.getLoc(), type, op.getSource(), getKeptGroups(op.getDroppedDims()),
      op.getMixedSizes());
  op.getSourceMutable().assign(full);
}

namespace {
struct BNGradExpandViewsPass
    : bngrad::impl::BNGradExpandViewsPassBase<BNGradExpandViewsPass> {
  using BNGradExpandViewsPassBase::BNGradExpandViewsPassBase;

  void runOnOperation() override {
    // Each pipeline begins with this pass.
    if (failed(verifyDimIndices(getOperation())))
      return signalPassFailure();
    WalkResult walk = getOperation()->walk([&](Operation *op) {
      if (auto slice = dyn_cast<memref::SubViewOp>(op)) {
        if (failed(expand(slice)))
          return WalkResult::interrupt();
      } else if (auto reshape = dyn_cast<memref::ExpandShapeOp>(op)) {
        if (reshapes)
          expand(reshape);
      } else if (auto reshape = dyn_cast<memref::ReshapeOp>(op)) {
        expand(reshape);
      } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
        dropSteps(slice);
        expandDims(slice);
      } else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
        dropSteps(slice);
        expandDims(slice);
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
