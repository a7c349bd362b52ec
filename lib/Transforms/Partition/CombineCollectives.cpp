//===- CombineCollectives.cpp - bngrad-combine-collectives ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "BNGrad/Transforms/Partition/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-combine-collectives"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADCOMBINECOLLECTIVESPASS
#include "BNGrad/Transforms/Partition/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;
using shard::AllReduceOp;

static RankedTensorType getType(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// True if `op` is a sum of tensors that keeps their type.
static bool isSumOfTensor(AllReduceOp op) {
  return op.getReduction() == shard::ReductionKind::Sum &&
         getType(op.getInput()) && op.getInput().getType() == op.getType();
}

static bool canCombine(AllReduceOp a, AllReduceOp b) {
  if (a.getGridAttr() != b.getGridAttr() ||
      getType(a.getInput()).getElementType() !=
          getType(b.getInput()).getElementType())
    return false;
  auto grid =
      SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(a, a.getGridAttr());
  return getGridAxesOf(a, grid) == getGridAxesOf(b, grid);
}

namespace {
/// Replaces several all-reduces by one, at the position of the last.
class Combination {
public:
  explicit Combination(MutableArrayRef<AllReduceOp> ops)
      : ops(ops), b(ops.back()), loc(getFusedLocation(ops)) {}

  void build();

private:
  static Location getFusedLocation(MutableArrayRef<AllReduceOp> ops) {
    SmallVector<Location> locations;
    for (AllReduceOp op : ops)
      locations.push_back(op.getLoc());
    return FusedLoc::get(ops.front().getContext(), locations);
  }
  SmallVector<OpFoldResult> getSizes(Value tensor);
  OpFoldResult multiply(ArrayRef<OpFoldResult> sizes);
  OpFoldResult add(OpFoldResult lhs, OpFoldResult rhs);
  Value flatten(Value tensor);
  Value unflatten(Value flat, RankedTensorType type,
                  ArrayRef<OpFoldResult> sizes);

  MutableArrayRef<AllReduceOp> ops;
  OpBuilder b;
  Location loc;
};
} // namespace

SmallVector<OpFoldResult> Combination::getSizes(Value tensor) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(getType(tensor).getShape()))
    sizes.push_back(
        ShapedType::isDynamic(size)
            ? OpFoldResult(b.createOrFold<tensor::DimOp>(loc, tensor, dim))
            : OpFoldResult(b.getIndexAttr(size)));
  return sizes;
}

OpFoldResult Combination::add(OpFoldResult lhs, OpFoldResult rhs) {
  std::optional<int64_t> left = getConstantIntValue(lhs),
                         right = getConstantIntValue(rhs);
  if (left && right)
    return b.getIndexAttr(*left + *right);
  return b.createOrFold<arith::AddIOp>(
      loc, getValueOrCreateConstantIndexOp(b, loc, lhs),
      getValueOrCreateConstantIndexOp(b, loc, rhs));
}

OpFoldResult Combination::multiply(ArrayRef<OpFoldResult> sizes) {
  int64_t known = 1;
  Value product;
  for (OpFoldResult size : sizes) {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      known *= *constant;
    else
      product = product ? b.createOrFold<arith::MulIOp>(loc, product,
                                                        cast<Value>(size))
                        : cast<Value>(size);
  }
  if (!product)
    return b.getIndexAttr(known);
  Value factor = arith::ConstantIndexOp::create(b, loc, known);
  return b.createOrFold<arith::MulIOp>(loc, product, factor);
}

/// One group with all dims.
static SmallVector<ReassociationIndices> getReassociation(int64_t rank) {
  if (rank == 0)
    return {};
  return {llvm::to_vector<2>(llvm::seq<int64_t>(rank))};
}

Value Combination::flatten(Value tensor) {
  RankedTensorType type = getType(tensor);
  if (type.getRank() == 1)
    return tensor;
  if (type.getRank() == 0)
    return tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get({1}, type.getElementType()), tensor,
        getReassociation(0));
  return tensor::CollapseShapeOp::create(b, loc, tensor,
                                         getReassociation(type.getRank()));
}

Value Combination::unflatten(Value flat, RankedTensorType type,
                             ArrayRef<OpFoldResult> sizes) {
  if (type.getRank() == 1)
    return flat;
  if (type.getRank() == 0)
    return tensor::CollapseShapeOp::create(b, loc, type, flat,
                                           getReassociation(0));
  return tensor::ExpandShapeOp::create(b, loc, type, flat,
                                       getReassociation(type.getRank()), sizes);
}

void Combination::build() {
  SmallVector<SmallVector<OpFoldResult>> sizes;
  SmallVector<OpFoldResult> offsets = {b.getIndexAttr(0)}, lengths;
  for (AllReduceOp op : ops) {
    sizes.push_back(getSizes(op.getInput()));
    lengths.push_back(multiply(sizes.back()));
    offsets.push_back(add(offsets.back(), lengths.back()));
  }
  OpFoldResult one = b.getIndexAttr(1);
  Type elementType = getType(ops.front().getInput()).getElementType();
  Value all = tensor::EmptyOp::create(b, loc, {offsets.back()}, elementType);
  for (auto [i, op] : llvm::enumerate(ops))
    all = tensor::InsertSliceOp::create(b, loc, flatten(op.getInput()), all,
                                        {offsets[i]}, {lengths[i]}, {one});
  std::string text;
  for (AllReduceOp op : ops)
    if (auto attr = op->getAttrOfType<StringAttr>(kCollectiveAttrName))
      text += (text.empty() ? "" : "; ") + attr.str();
  auto combined =
      AllReduceOp::create(b, loc, all, ops.front().getGrid(),
                          ops.front().getGridAxes(), shard::ReductionKind::Sum);
  if (!text.empty())
    combined->setAttr(kCollectiveAttrName, b.getStringAttr(text));
  for (auto [i, op] : llvm::enumerate(ops)) {
    RankedTensorType type = getType(op.getResult());
    SmallVector<int64_t> shape = {
        getConstantIntValue(lengths[i]).value_or(ShapedType::kDynamic)};
    Value flat = tensor::ExtractSliceOp::create(
        b, loc, RankedTensorType::get(shape, elementType), combined,
        {offsets[i]}, {lengths[i]}, {one});
    op.getResult().replaceAllUsesWith(unflatten(flat, type, sizes[i]));
  }
  for (AllReduceOp op : ops)
    op.erase();
}

namespace {
struct BNGradCombineCollectivesPass
    : bngrad::impl::BNGradCombineCollectivesPassBase<
          BNGradCombineCollectivesPass> {
  void runOnOperation() override {
    SmallVector<SmallVector<AllReduceOp>> combinations;
    for (const CollectiveLevel &level : sortByCollectives(getOperation())) {
      // Groups are in program order, which is the same in every process.
      SmallVector<SmallVector<AllReduceOp>> groups;
      for (AllReduceOp op : level.ops) {
        if (!isSumOfTensor(op))
          continue;
        auto *group = llvm::find_if(groups, [&](ArrayRef<AllReduceOp> others) {
          return canCombine(others.front(), op);
        });
        if (group == groups.end())
          groups.push_back({op});
        else
          group->push_back(op);
      }
      for (SmallVector<AllReduceOp> &group : groups)
        if (group.size() > 1)
          combinations.push_back(std::move(group));
    }
    for (SmallVector<AllReduceOp> &ops : combinations) {
      LDBG() << "one all-reduce of " << ops.size();
      // All operands of a combination are available at its last op.
      llvm::sort(ops, [](AllReduceOp a, AllReduceOp b) {
        return a->isBeforeInBlock(b);
      });
      Combination(ops).build();
    }
  }
};
} // namespace
