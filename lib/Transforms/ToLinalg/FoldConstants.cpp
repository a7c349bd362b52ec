//===- FoldConstants.cpp - per-channel values of constants ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A deployed model has constant parameters and statistics. The factor
// scale/sqrt(variance + epsilon) of its batch norms is then computed at compile
// time, by the folders of the ops that would compute it: these round to nearest
// as the ops do, so the results have the same bits.
//
//===----------------------------------------------------------------------===//

#include "FoldConstants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace {
/// More elements are left to the run time: each takes about a microsecond per
/// op here, and the context keeps its value.
constexpr int64_t kMaxElements = 8192;

/// Folds `block` for given arguments: the attributes of the terminator's
/// operands, or failure.
class BlockFolder {
public:
  explicit BlockFolder(Block &block) : block(block) {}

  FailureOr<SmallVector<Attribute>> fold(ArrayRef<Attribute> arguments) {
    values.clear();
    for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
      values[argument] = value;
    for (Operation &op : block.without_terminator())
      if (failed(foldOp(op)))
        return failure();
    return lookUp(block.getTerminator()->getOperands());
  }

private:
  LogicalResult foldOp(Operation &op) {
    FailureOr<SmallVector<Attribute>> operands = lookUp(op.getOperands());
    SmallVector<OpFoldResult> results;
    // A folder that succeeds without results has changed the op.
    if (failed(operands) || !isPure(&op) || op.getNumRegions() > 0 ||
        failed(op.fold(*operands, results)) || results.empty())
      return failure();
    for (auto [result, folded] : llvm::zip_equal(op.getResults(), results)) {
      Attribute value = isa<Attribute>(folded) ? cast<Attribute>(folded)
                                               : lookUp(cast<Value>(folded));
      if (!value)
        return failure();
      values[result] = value;
    }
    return success();
  }

  Attribute lookUp(Value value) {
    Attribute known = values.lookup(value);
    if (!known && value.getParentBlock() != &block)
      matchPattern(value, m_Constant(&known));
    return known;
  }

  FailureOr<SmallVector<Attribute>> lookUp(ValueRange range) {
    SmallVector<Attribute> attributes;
    for (Value value : range)
      attributes.push_back(lookUp(value));
    if (llvm::is_contained(attributes, Attribute()))
      return failure();
    return attributes;
  }

  Block &block;
  DenseMap<Value, Attribute> values;
};

/// Computes a generic whose inputs are constants, element by element.
struct FoldConstantInputs : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp generic,
                                PatternRewriter &rewriter) const override {
    SmallVector<DenseElementsAttr> inputs;
    if (!isFoldable(generic) || !getConstants(generic, inputs))
      return rewriter.notifyMatchFailure(generic,
                                         "not a few elements of constants");
    int64_t count = ShapedType::getNumElements(generic.getStaticLoopRanges());
    SmallVector<SmallVector<Attribute>> results(generic.getNumResults());
    BlockFolder folder(*generic.getBody());
    for (int64_t i = 0; i < count; ++i) {
      SmallVector<Attribute> elements;
      for (DenseElementsAttr input : inputs)
        elements.push_back(input.getValues<Attribute>()[i]);
      FailureOr<SmallVector<Attribute>> values = folder.fold(elements);
      if (failed(values))
        return rewriter.notifyMatchFailure(generic, "an op does not fold");
      for (auto [result, value] : llvm::zip_equal(results, *values))
        result.push_back(value);
    }
    // A value that all channels share would be a scalar in the loops over the
    // data, and bngrad-group finds these by their per-channel operands.
    if (llvm::any_of(results, [](ArrayRef<Attribute> values) {
          return values.empty() || llvm::all_equal(values);
        }))
      return rewriter.notifyMatchFailure(generic, "its elements are equal");
    SmallVector<Value> constants;
    for (auto [result, values] :
         llvm::zip_equal(generic.getResults(), results)) {
      auto type = cast<RankedTensorType>(result.getType());
      constants.push_back(arith::ConstantOp::create(
          rewriter, generic.getLoc(), DenseElementsAttr::get(type, values)));
    }
    rewriter.replaceOp(generic, constants);
    return success();
  }

private:
  /// Loops over the elements of a few tensors of one shape, in order.
  static bool isFoldable(linalg::GenericOp generic) {
    if (!generic.hasPureTensorSemantics() ||
        generic.getNumLoops() != generic.getNumParallelLoops() ||
        !llvm::all_of(generic.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }))
      return false;
    SmallVector<int64_t> sizes = generic.getStaticLoopRanges();
    return ShapedType::isStaticShape(sizes) &&
           ShapedType::getNumElements(sizes) <= kMaxElements;
  }

  static bool getConstants(linalg::GenericOp generic,
                           SmallVectorImpl<DenseElementsAttr> &constants) {
    return llvm::all_of(generic.getInputs(), [&](Value input) {
      return matchPattern(input, m_Constant(&constants.emplace_back()));
    });
  }
};
} // namespace

void mlir::bngrad::populateFoldConstantsPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldConstantInputs>(patterns.getContext());
}
