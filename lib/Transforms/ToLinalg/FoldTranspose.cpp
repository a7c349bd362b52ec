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
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-fold-transpose"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADFOLDTRANSPOSEPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The permutation by which all values are transposed, if there is one.
static std::optional<SmallVector<int64_t>>
getCommonPermutation(ArrayRef<OpOperand *> operands) {
  std::optional<SmallVector<int64_t>> common;
  for (OpOperand *operand : operands) {
    auto transpose = operand->get().getDefiningOp<linalg::TransposeOp>();
    if (!transpose || !transpose.hasPureTensorSemantics()) {
      LDBG() << "operand " << operand->getOperandNumber()
             << " is no transpose of a tensor: " << *operand->getOwner();
      return std::nullopt;
    }
    if (common && ArrayRef(*common) != transpose.getPermutation()) {
      LDBG() << "operand " << operand->getOperandNumber()
             << " is transposed in another way: " << *operand->getOwner();
      return std::nullopt;
    }
    common = SmallVector<int64_t>(transpose.getPermutation());
  }
  return common;
}

/// The feature dims of the operands before they were transposed; nothing if
/// their order changes, as the per-channel operands' dims have that order.
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

static bool isData(Role role) { return getInfo(role).shape == RoleShape::Data; }

/// Makes `result` the gradient of the untransposed operands, and makes its
/// users read its transpose.
static void transposeResult(PatternRewriter &rewriter,
                            TypedValue<RankedTensorType> result,
                            ArrayRef<int64_t> permutation) {
  RankedTensorType type = result.getType();
  SmallVector<OpOperand *> uses =
      llvm::to_vector(llvm::make_pointer_range(result.getUses()));
  result.setType(undoTranspose(type, permutation));
  rewriter.setInsertionPointAfterValue(result);
  Value transposed =
      buildTranspose(rewriter, result.getLoc(), result, permutation, type);
  for (OpOperand *use : uses)
    rewriter.modifyOpInPlace(use->getOwner(), [&] { use->set(transposed); });
}

namespace {
/// Replaces transposes of all data operands by a transpose of grad_input, which
/// may cancel with its reader's, and by other feature dims.
struct FoldTranspose : OpInterfaceRewritePattern<BatchNormOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(BatchNormOpInterface op,
                                PatternRewriter &rewriter) const override {
    SmallVector<OpOperand *> data;
    for (OpOperand &operand : op->getOpOperands())
      if (isData(op.getOperandRole(operand)))
        data.push_back(&operand);
    auto permutation = getCommonPermutation(data);
    if (!permutation)
      return rewriter.notifyMatchFailure(op, "no common transpose");
    auto featureDims = permuteFeatureDims(op.getFeatureDims(), *permutation);
    if (!featureDims)
      return rewriter.notifyMatchFailure(op, "feature dims change their order");

    rewriter.startOpModification(op);
    for (OpOperand *operand : data)
      operand->set(
          operand->get().getDefiningOp<linalg::TransposeOp>().getInput());
    op.setFeatureDims(*featureDims);
    for (auto [role, result] :
         llvm::zip_equal(op.getResultRoles(), op->getResults()))
      if (isData(role))
        transposeResult(rewriter, cast<TypedValue<RankedTensorType>>(result),
                        *permutation);
    rewriter.finalizeOpModification(op);
    return success();
  }
};

/// An element of a transpose, such as a channel's first one, is an element of
/// its source.
struct FoldExtract : OpRewritePattern<tensor::ExtractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getTensor().getDefiningOp<linalg::TransposeOp>();
    if (!transpose || !transpose.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "no transpose of a tensor");
    rewriter.replaceOpWithNewOp<tensor::ExtractOp>(
        op, transpose.getInput(),
        applyPermutation(llvm::to_vector(op.getIndices()),
                         invertPermutationVector(transpose.getPermutation())));
    return success();
  }
};

struct BNGradFoldTransposePass
    : bngrad::impl::BNGradFoldTransposePassBase<BNGradFoldTransposePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateFoldTransposePatterns(patterns);
    if (failed(applyToFixedPoint(getOperation(), std::move(patterns),
                                 "folding of transposes")))
      signalPassFailure();
  }
};
} // namespace

void mlir::bngrad::populateFoldTransposePatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<FoldExtract, FoldTranspose>(context);
  linalg::TransposeOp::getCanonicalizationPatterns(patterns, context);
}
