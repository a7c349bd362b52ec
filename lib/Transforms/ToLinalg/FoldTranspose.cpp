//===- FoldTranspose.cpp - bngrad-fold-transpose: layouts by feature_dims -===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils/Utils.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"
#include "BNGrad/Transforms/ToLinalg/Patterns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADFOLDTRANSPOSEPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The permutation that the data operands (null: absent) are all transposed by,
/// or nothing.
static std::optional<SmallVector<int64_t>>
getCommonPermutation(ArrayRef<Value> operands) {
  std::optional<SmallVector<int64_t>> common;
  for (Value operand : operands) {
    if (!operand)
      continue;
    auto transpose = operand.getDefiningOp<linalg::TransposeOp>();
    if (!transpose || !transpose.hasPureTensorSemantics())
      return std::nullopt;
    if (common && ArrayRef(*common) != transpose.getPermutation())
      return std::nullopt;
    common = SmallVector<int64_t>(transpose.getPermutation());
  }
  return common;
}

/// The feature dims of the operands before they were transposed; nothing if
/// that changes their order, which is that of the per-channel operands' dims.
static std::optional<SmallVector<int64_t>>
permuteFeatureDims(ArrayRef<int64_t> featureDims,
                   ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> permuted;
  for (int64_t dim : featureDims) {
    permuted.push_back(permutation[dim]);
    if (permuted.size() > 1 && permuted.end()[-2] >= permuted.back())
      return std::nullopt;
  }
  return permuted;
}

/// The shape of `type` before it was transposed by `permutation`.
static RankedTensorType undoTranspose(RankedTensorType type,
                                      ArrayRef<int64_t> permutation) {
  return type.clone(
      applyPermutation(type.getShape(), invertPermutationVector(permutation)));
}

/// `value` transposed by `permutation`, as a tensor of type `type`.
static Value buildTranspose(PatternRewriter &rewriter, Location loc,
                            Value value, ArrayRef<int64_t> permutation,
                            RankedTensorType type) {
  SmallVector<OpFoldResult> sizes = applyPermutation(
      tensor::getMixedSizes(rewriter, loc, value), permutation);
  Value init =
      tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  Value transposed =
      linalg::TransposeOp::create(rewriter, loc, value, init, permutation)
          .getResult()[0];
  if (transposed.getType() == type)
    return transposed;
  return tensor::CastOp::create(rewriter, loc, type, transposed);
}

namespace {
/// Transposes of all data operands become one of grad_input, which then meets
/// the transpose of its reader, and other feature dims.
template <typename OpTy> struct FoldTranspose : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    auto permutation =
        getCommonPermutation({op.getGradOutput(), op.getInput(), op.getMask()});
    if (!permutation)
      return rewriter.notifyMatchFailure(op, "no common transpose");
    auto featureDims = permuteFeatureDims(op.getFeatureDims(), *permutation);
    if (!featureDims)
      return rewriter.notifyMatchFailure(op, "feature dims change their order");

    rewriter.startOpModification(op);
    for (OpOperand *operand :
         {&op.getGradOutputMutable(), &op.getInputMutable()})
      operand->set(operand->get()
                       .template getDefiningOp<linalg::TransposeOp>()
                       .getInput());
    if (op.getMask())
      op.getMaskMutable().assign(
          op.getMask()
              .template getDefiningOp<linalg::TransposeOp>()
              .getInput());
    op.setFeatureDims(*featureDims);
    if constexpr (!std::is_same_v<OpTy, BatchNormBackwardReduceOp>) {
      auto type = cast<RankedTensorType>(op.getGradInput().getType());
      SmallVector<OpOperand *> uses = llvm::to_vector(
          llvm::make_pointer_range(op.getGradInput().getUses()));
      op.getGradInput().setType(undoTranspose(type, *permutation));
      rewriter.setInsertionPointAfter(op);
      Value transposed = buildTranspose(rewriter, op.getLoc(),
                                        op.getGradInput(), *permutation, type);
      for (OpOperand *use : uses)
        rewriter.modifyOpInPlace(use->getOwner(),
                                 [&] { use->set(transposed); });
    }
    rewriter.finalizeOpModification(op);
    return success();
  }
};

struct BNGradFoldTransposePass
    : bngrad::impl::BNGradFoldTransposePassBase<BNGradFoldTransposePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateFoldTransposePatterns(patterns);
    applyToFixedPoint(getOperation(), std::move(patterns),
                      "folding of transposes");
  }
};
} // namespace

void mlir::bngrad::populateFoldTransposePatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<FoldTranspose<BatchNormBackwardOp>,
               FoldTranspose<BatchNormBackwardReduceOp>,
               FoldTranspose<BatchNormBackwardElemtOp>>(context);
  linalg::TransposeOp::getCanonicalizationPatterns(patterns, context);
}
