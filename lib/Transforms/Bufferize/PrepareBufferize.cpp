//===- PrepareBufferize.cpp - bngrad-prepare-bufferize --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils/Utils.h"

#include "BNGrad/Transforms/Bufferize/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-prepare-bufferize"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADPREPAREBUFFERIZEPASS
#include "BNGrad/Transforms/Bufferize/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;
using bufferization::BufferizationDialect;

static void unshareInits(func::FuncOp function) {
  SmallVector<OpOperand *> inits;
  function.walk([&](linalg::LinalgOp op) {
    for (OpOperand &init : op.getDpsInitsMutable())
      inits.push_back(&init);
  });
  for (OpOperand *init : inits)
    if (Operation *def = init->get().getDefiningOp();
        def && !init->get().hasOneUse()) {
      OpBuilder b(def);
      if (Value cloned = cloneInit(b, init->get()))
        init->set(cloned);
      else
        LDBG() << "shared by several ops: no empty or filled tensor: " << *def;
    }
}

/// Fills large splat constants at run time, and turns empty constants into
/// empty tensors. Otherwise bufferization would turn each into a global, and
/// LLVM would build a constant with all of its elements or sizes.
static void fillLargeConstants(func::FuncOp function) {
  // 256 MB of f32, for which LLVM takes a second.
  constexpr int64_t kLargeElements = 1 << 26;
  SmallVector<arith::ConstantOp> constants;
  function.walk([&](arith::ConstantOp op) {
    auto value = dyn_cast<DenseElementsAttr>(op.getValue());
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!value || !type)
      return;
    bool isLarge = value.isSplat() && type.getNumElements() > kLargeElements &&
                   type.getElementType().isIntOrIndexOrFloat();
    if (type.getNumElements() == 0 || isLarge)
      constants.push_back(op);
  });
  for (arith::ConstantOp op : constants) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    Value result =
        tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    if (type.getNumElements() > 0) {
      auto value = cast<DenseElementsAttr>(op.getValue());
      Value element = arith::ConstantOp::create(
          b, loc, cast<TypedAttr>(value.getSplatValue<Attribute>()));
      result = linalg::FillOp::create(b, loc, element, result).getResult(0);
    }
    op.replaceAllUsesWith(result);
    op.erase();
  }
}

static void protectArguments(func::FuncOp function) {
  Builder b(function.getContext());
  StringRef name = BufferizationDialect::kWritableAttrName;
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (isa<TensorType>(argument.getType()) && !function.getArgAttr(i, name))
      function.setArgAttr(i, name, b.getBoolAttr(false));
  }
}

/// The value whose buffer `value` will certainly share.
static Value getSource(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

static void copyRepeatedResults(func::FuncOp function) {
  function.walk([&](func::ReturnOp op) {
    DenseSet<Value> returned;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || returned.insert(getSource(operand.get())).second)
        continue;
      OpBuilder b(op);
      operand.set(bufferization::AllocTensorOp::create(
          b, op.getLoc(), type, ValueRange(), operand.get()));
    }
  });
}

/// Returns the tensor.empty that is overwritten to compute `value`, or null if
/// there is none.
static tensor::EmptyOp getOverwritten(Value value) {
  if (auto region = value.getDefiningOp<scf::ExecuteRegionOp>())
    if (region.getRegion().hasOneBlock())
      value = region.getRegion().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic)
    return {};
  auto empty =
      generic.getDpsInitOperand(cast<OpResult>(value).getResultNumber())
          ->get()
          .getDefiningOp<tensor::EmptyOp>();
  return empty && empty->hasOneUse() ? empty : tensor::EmptyOp();
}

/// The sizes of the result of `collapse`, given the sizes of its source.
static SmallVector<OpFoldResult> getSizes(OpBuilder &b,
                                          tensor::CollapseShapeOp collapse,
                                          ArrayRef<OpFoldResult> sizes) {
  Location loc = collapse.getLoc();
  SmallVector<OpFoldResult> collapsedSizes;
  for (const ReassociationIndices &dims : collapse.getReassociationIndices()) {
    Value size = arith::ConstantIndexOp::create(b, loc, 1);
    for (int64_t dim : dims)
      size = b.createOrFold<arith::MulIOp>(
          loc, size, getValueOrCreateConstantIndexOp(b, loc, sizes[dim]));
    collapsedSizes.push_back(getAsOpFoldResult(size));
  }
  return collapsedSizes;
}

/// The sizes of the result of `expand`, given the sizes of its source; failure
/// if more than one size of a group is dynamic.
static FailureOr<SmallVector<OpFoldResult>>
getSizes(OpBuilder &b, tensor::ExpandShapeOp expand,
         ArrayRef<OpFoldResult> sizes) {
  std::optional<SmallVector<OpFoldResult>> expandedSizes =
      inferExpandShapeOutputShape(b, expand.getLoc(), expand.getResultType(),
                                  expand.getReassociationIndices(), sizes);
  if (!expandedSizes)
    return failure();
  return *expandedSizes;
}

/// If the source of `reshape` overwrites a tensor.empty, makes it overwrite a
/// tensor.empty of the result's shape, so that the result needs no copy.
static void writeThrough(Operation *reshape) {
  tensor::EmptyOp empty = getOverwritten(reshape->getOperand(0));
  if (!empty) {
    LDBG() << "written in the shape of the source, which overwrites no empty "
              "tensor of its own: "
           << *reshape;
    return;
  }
  OpBuilder b(empty);
  Location loc = reshape->getLoc();
  SmallVector<OpFoldResult> sizes = empty.getMixedSizes();
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(reshape);
  FailureOr<SmallVector<OpFoldResult>> resultSizes =
      collapse ? getSizes(b, collapse, sizes)
               : getSizes(b, cast<tensor::ExpandShapeOp>(reshape), sizes);
  if (failed(resultSizes)) {
    LDBG() << "copied: sizes do not follow from those of the source: "
           << *reshape;
    return;
  }
  Value target = tensor::EmptyOp::create(b, loc, *resultSizes,
                                         empty.getType().getElementType());
  if (Type type = reshape->getResult(0).getType(); target.getType() != type)
    target = tensor::CastOp::create(b, loc, type, target);
  Value init =
      collapse
          ? tensor::ExpandShapeOp::create(b, loc, empty.getType(), target,
                                          collapse.getReassociationIndices(),
                                          sizes)
                .getResult()
          : tensor::CollapseShapeOp::create(
                b, loc, empty.getType(), target,
                cast<tensor::ExpandShapeOp>(reshape).getReassociationIndices())
                .getResult();
  empty.replaceAllUsesWith(init);
  empty.erase();
}

/// Computes a result that is returned in another shape in a buffer of that
/// shape.
static void writeThroughReshapes(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      writeThrough(op);
  });
}

/// The ops that read the elements of `tensor`, also through reshapes.
static void collectReaders(Value tensor,
                           SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : tensor.getUsers()) {
    if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            tensor::ExtractSliceOp>(user))
      collectReaders(user->getResult(0), readers);
    else if (!isa<tensor::DimOp>(user))
      readers.push_back(user);
  }
}

/// True if `write`, which comes after `start`, may run before `reader`.
static bool mayRunBefore(Operation *write, Operation *reader, Operation *start,
                         const DominanceInfo &dominance) {
  // The region that contains both, and whether it can run again after `start`.
  Region *region = write->getParentRegion();
  while (!region->findAncestorOpInRegion(*reader))
    region = region->getParentRegion();
  for (Operation *op = region->getParentOp(); op && !op->isAncestor(start);
       op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op))
      return true;
  Operation *first = region->findAncestorOpInRegion(*write);
  Operation *second = region->findAncestorOpInRegion(*reader);
  return first != second && dominance.properlyDominates(first, second);
}

/// Collects the arguments and allocations that `memref` may view. Returns false
/// if it may view other memory, or any of them.
static bool collectMemory(Value memref, SmallVectorImpl<Value> &memory) {
  memref = getMemory(memref);
  if (auto select = memref.getDefiningOp<arith::SelectOp>())
    return collectMemory(select.getTrueValue(), memory) &&
           collectMemory(select.getFalseValue(), memory);
  memory.push_back(memref);
  if (auto argument = dyn_cast<BlockArgument>(memref))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp());
  return isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(
      memref.getDefiningOp());
}

/// True if `op`, which writes `memref`, may write `buffer`.
static bool mayWrite(Operation *op, Value memref, Value buffer) {
  SmallVector<Value> written, read;
  if (!collectMemory(memref, written) || !collectMemory(buffer, read))
    return true;
  if (llvm::none_of(written, [&](Value memory) {
        return llvm::is_contained(read, memory);
      }))
    return false;
  if (areDisjoint(memref, buffer))
    return false;
  // A store writes one element, which a subview may not contain.
  auto store = dyn_cast<memref::StoreOp>(op);
  auto part = buffer.getDefiningOp<memref::SubViewOp>();
  if (!store || !part || part.getSource() != memref)
    return true;
  SmallVector<OpFoldResult> ones(store.getIndices().size(),
                                 OpBuilder(op).getIndexAttr(1));
  FailureOr<bool> overlap = ValueBoundsConstraintSet::areOverlappingSlices(
      op->getContext(),
      HyperrectangularSlice(getAsOpFoldResult(store.getIndices()), ones, ones),
      HyperrectangularSlice(part));
  return failed(overlap) || *overlap;
}

/// Emits an error at each write to a buffer between a bufferization.to_tensor
/// and a reader of its tensor. Ops are in their final order here, so this
/// includes writes that preceded or followed the reader in the source.
static LogicalResult verifyBuffers(func::FuncOp function,
                                   const DominanceInfo &dominance) {
  SmallVector<bufferization::ToTensorOp> tensors;
  function.walk([&](bufferization::ToTensorOp op) { tensors.push_back(op); });
  if (tensors.empty())
    return success();
  WalkResult walk = function.walk([&](MemoryEffectOpInterface op) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    op.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects) {
      Value value = effect.getValue();
      if (!value || !isa<BaseMemRefType>(value.getType()) ||
          !isa<MemoryEffects::Write, MemoryEffects::Free>(effect.getEffect()))
        continue;
      for (bufferization::ToTensorOp start : tensors) {
        if (!dominance.properlyDominates(start.getOperation(), op) ||
            !mayWrite(op, value, start.getBuffer()))
          continue;
        SmallVector<Operation *> readers;
        collectReaders(start.getResult(), readers);
        for (Operation *reader : readers) {
          if (!mayRunBefore(op, reader, start, dominance))
            continue;
          InFlightDiagnostic error =
              op->emitOpError()
              << "expected a buffer that is not written before the last use "
                 "of its tensor, got a write before '"
              << reader->getName() << "' reads it";
          error.attachNote(start.getLoc()) << "the buffer's tensor";
          return WalkResult::interrupt();
        }
      }
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Emits an error at each poison tensor, as it has no buffer.
static LogicalResult verifyPoison(func::FuncOp function) {
  WalkResult walk = function.walk([](ub::PoisonOp op) -> WalkResult {
    if (op.use_empty() || !isa<TensorType>(op.getType()))
      return WalkResult::advance();
    return op.emitOpError()
           << "expected a tensor whose elements are defined, got poison of "
           << op.getType();
  });
  return failure(walk.wasInterrupted());
}

static bool isEmpty(Value tensor) {
  return llvm::is_contained(cast<RankedTensorType>(tensor.getType()).getShape(),
                            0);
}

/// The inputs of `concat` whose size in its dim may be more than 0.
static SmallVector<Value> getParts(tensor::ConcatOp concat) {
  int64_t dim = concat.getDim(), known = 0;
  auto sizeOf = [&](Value part) {
    return cast<RankedTensorType>(part.getType()).getDimSize(dim);
  };
  for (Value part : concat.getInputs())
    if (!ShapedType::isDynamic(sizeOf(part)))
      known += sizeOf(part);
  // The known sizes may leave nothing for the others.
  bool isComplete = concat.getResultType().getDimSize(dim) == known;
  SmallVector<Value> parts;
  for (Value part : concat.getInputs())
    if (sizeOf(part) != 0 &&
        !(isComplete && ShapedType::isDynamic(sizeOf(part))))
      parts.push_back(part);
  return parts;
}

/// `concat` without its empty parts; null if it has none.
static Value dropEmptyParts(OpBuilder &b, tensor::ConcatOp concat) {
  Location loc = concat.getLoc();
  RankedTensorType type = concat.getResultType();
  SmallVector<Value> parts = getParts(concat);
  // An empty part whose size in this dim is not 0 has a size of 0 in another
  // dim, and so does the result.
  if (llvm::any_of(parts, isEmpty)) {
    ReifiedRankedShapedTypeDims sizes;
    if (failed(reifyResultShapes(b, concat, sizes))) {
      LDBG() << "with empty parts: sizes cannot be reified: " << concat;
      return {};
    }
    Value empty =
        tensor::EmptyOp::create(b, loc, sizes[0], type.getElementType());
    return tensor::CastOp::create(b, loc, type, empty);
  }
  if (parts.size() == concat.getInputs().size())
    return {};
  if (parts.empty())
    parts.push_back(concat.getInputs().front());
  if (parts.size() > 1)
    return tensor::ConcatOp::create(b, loc, type, concat.getDim(), parts);
  return tensor::CastOp::create(b, loc, type, parts.front());
}

/// Drops empty parts from concatenations and insertions: bufferization would
/// create a view for them, which may start past the end.
static void dropEmptyParts(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<tensor::ConcatOp, tensor::InsertSliceOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      if (!isEmpty(insert.getSource()))
        continue;
      insert.replaceAllUsesWith(insert.getDest());
      insert.erase();
      continue;
    }
    OpBuilder b(op);
    if (Value joined = dropEmptyParts(b, cast<tensor::ConcatOp>(op))) {
      op->replaceAllUsesWith(ValueRange(joined));
      op->erase();
    }
  }
}

/// True if no element of `pad` comes from its source.
static bool isAllPadding(tensor::PadOp pad) {
  if (isEmpty(pad.getSource()))
    return true;
  // If padding fills the result, a dynamic size of the source is 0.
  return llvm::any_of(llvm::zip_equal(pad.getStaticLow(), pad.getStaticHigh(),
                                      pad.getResultType().getShape()),
                      [](auto sizes) {
                        auto [low, high, size] = sizes;
                        int64_t padding =
                            (ShapedType::isDynamic(low) ? 0 : low) +
                            (ShapedType::isDynamic(high) ? 0 : high);
                        return !ShapedType::isDynamic(size) && padding >= size;
                      });
}

/// Replaces each pad that consists of padding only by a tensor.generate,
/// because bufferization would create a view for its empty source as well.
static void fillEmptyPads(func::FuncOp function) {
  SmallVector<tensor::PadOp> pads;
  function.walk([&](tensor::PadOp pad) {
    if (isAllPadding(pad))
      pads.push_back(pad);
  });
  for (tensor::PadOp pad : pads) {
    OpBuilder b(pad);
    Location loc = pad.getLoc();
    AffineExpr source, low, high;
    bindSymbols(b.getContext(), source, low, high);
    SmallVector<Value> dynamicSizes;
    for (int64_t dim : llvm::seq(pad.getResultType().getRank()))
      if (pad.getResultType().isDynamicDim(dim))
        dynamicSizes.push_back(getValueOrCreateConstantIndexOp(
            b, loc,
            affine::makeComposedFoldedAffineApply(
                b, loc, source + low + high,
                {tensor::getMixedSize(b, loc, pad.getSource(), dim),
                 pad.getMixedLowPad()[dim], pad.getMixedHighPad()[dim]})));
    auto padding =
        tensor::GenerateOp::create(b, loc, pad.getResultType(), dynamicSizes);
    padding.getBody().takeBody(pad.getRegion());
    pad.replaceAllUsesWith(padding.getResult());
    pad.erase();
  }
}

/// The sizes of `slice` of a tensor that starts as `empty` as sizes in
/// `buffer`, which has its shape; empty if they may depend on anything else, or
/// if the slice may be of any part of the buffer.
static SmallVector<OpFoldResult> getSizesInBuffer(OpBuilder &b,
                                                  tensor::InsertSliceOp slice,
                                                  tensor::EmptyOp empty,
                                                  Value buffer) {
  if (llvm::is_contained(slice.getStaticOffsets(), ShapedType::kDynamic) ||
      llvm::is_contained(slice.getStaticStrides(), ShapedType::kDynamic))
    return {};
  SmallVector<OpFoldResult> whole = empty.getMixedSizes(), sizes;
  for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes())) {
    if (isa<Attribute>(size))
      sizes.push_back(size);
    else if (isEqualConstantIntOrValue(size, whole[dim]))
      sizes.push_back(
          memref::DimOp::create(b, slice.getLoc(), buffer, dim).getResult());
    else
      return {};
  }
  return sizes;
}

/// Stores each slice of a tensor of slices to its part of a buffer, which the
/// op that computes the slice then writes itself. Bufferization would compute
/// the slices in buffers of their own.
static void storeSlicesApart(func::FuncOp function) {
  SmallVector<bufferization::MaterializeInDestinationOp> stores;
  function.walk([&](bufferization::MaterializeInDestinationOp store) {
    if (isa<MemRefType>(store.getDest().getType()) && store.getRestrict())
      stores.push_back(store);
  });
  for (bufferization::MaterializeInDestinationOp store : stores) {
    SmallVector<tensor::InsertSliceOp> slices;
    Value tensor = store.getSource(), buffer = store.getDest();
    while (auto slice = tensor.getDefiningOp<tensor::InsertSliceOp>()) {
      if (!tensor.hasOneUse())
        break;
      slices.push_back(slice);
      tensor = slice.getDest();
    }
    auto empty = tensor.getDefiningOp<tensor::EmptyOp>();
    if (slices.empty() || !empty)
      continue;
    // The parts must be there before the slices are computed.
    OpBuilder b(function.getContext());
    b.setInsertionPointAfterValue(buffer);
    SmallVector<Value> parts;
    for (tensor::InsertSliceOp slice : llvm::reverse(slices)) {
      SmallVector<OpFoldResult> sizes =
          getSizesInBuffer(b, slice, empty, buffer);
      if (sizes.empty())
        break;
      MemRefType type = memref::SubViewOp::inferRankReducedResultType(
          slice.getSourceType().getShape(), cast<MemRefType>(buffer.getType()),
          slice.getMixedOffsets(), sizes, slice.getMixedStrides());
      parts.push_back(memref::SubViewOp::create(b, slice.getLoc(), type, buffer,
                                                slice.getMixedOffsets(), sizes,
                                                slice.getMixedStrides()));
    }
    if (parts.size() != slices.size())
      continue;
    b.setInsertionPoint(store);
    for (auto [slice, part] : llvm::zip_equal(llvm::reverse(slices), parts))
      bufferization::MaterializeInDestinationOp::create(
          b, store.getLoc(), /*result=*/Type(), slice.getSource(), part,
          /*restrict=*/true, store.getWritable());
    store.erase();
    for (tensor::InsertSliceOp slice : slices)
      slice.erase();
  }
}

namespace {
struct BNGradPrepareBufferizePass
    : bngrad::impl::BNGradPrepareBufferizePassBase<BNGradPrepareBufferizePass> {
  void runOnOperation() override {
    if (failed(verifyDimIndices(getOperation())) ||
        failed(verifyPoison(getOperation())) ||
        failed(verifyBuffers(getOperation(), getAnalysis<DominanceInfo>())))
      return signalPassFailure();
    fillEmptyPads(getOperation());
    dropEmptyParts(getOperation());
    fillLargeConstants(getOperation());
    unshareInits(getOperation());
    storeSlicesApart(getOperation());
    writeThroughReshapes(getOperation());
    protectArguments(getOperation());
    copyRepeatedResults(getOperation());
  }
};
} // namespace
