//===- DropPromises.cpp - bngrad-drop-promises ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program and the function that checks its sizes and indices start from the
// same ops, and are then simplified independently. Attributes and flags that
// allow a simplification to change values for some arguments could therefore
// make the two disagree, or let LLVM delete a check.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CAbi/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADDROPPROMISESPASS
#include "BNGrad/Transforms/CAbi/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

static bool isOfLlvm(StringAttr name) {
  return name.strref().starts_with("llvm.") ||
         llvm::is_contained(LLVM::LLVMFuncOp::getAttributeNames(), name);
}

/// Drops the attributes of `function`, of its arguments and of its results that
/// the lowering would pass on to LLVM.
static void dropAttributes(func::FuncOp function) {
  function.setNoInline(false);
  SmallVector<StringAttr> names;
  for (NamedAttribute attr : function->getDiscardableAttrs())
    if (isOfLlvm(attr.getName()))
      names.push_back(attr.getName());
  for (StringAttr name : names)
    function->removeDiscardableAttr(name);
  auto dropOf = [](DictionaryAttr all, auto set) {
    NamedAttrList kept;
    for (NamedAttribute attr :
         all ? all.getValue() : ArrayRef<NamedAttribute>())
      if (!isOfLlvm(attr.getName()))
        kept.push_back(attr);
    if (all && kept.getAttrs().size() != all.size())
      set(kept);
  };
  for (unsigned i : llvm::seq(function.getNumArguments()))
    dropOf(function.getArgAttrDict(i), [&](const NamedAttrList &kept) {
      function.setArgAttrs(i, kept.getAttrs());
    });
  for (unsigned i : llvm::seq(function.getNumResults()))
    dropOf(function.getResultAttrDict(i), [&](const NamedAttrList &kept) {
      function.setResultAttrs(i, kept.getAttrs());
    });
}

/// Returns a constant of `type` with all bits set, or null if `type` is neither
/// a number nor a vector of numbers.
static Value createAllOnes(OpBuilder &b, Location loc, Type type) {
  Type element = isa<VectorType>(type) ? getElementTypeOrSelf(type) : type;
  TypedAttr value;
  if (element.isIndex())
    value = b.getIndexAttr(-1);
  else if (element.isSignlessInteger())
    value = b.getIntegerAttr(
        element, APInt::getAllOnes(element.getIntOrFloatBitWidth()));
  else if (auto number = dyn_cast<FloatType>(element))
    value = b.getFloatAttr(
        element, APFloat::getAllOnesValue(number.getFloatSemantics()));
  else
    return {};
  if (auto vector = dyn_cast<VectorType>(type))
    value = SplatElementsAttr::get(vector, value);
  return arith::ConstantOp::create(b, loc, value);
}

/// Replaces the poison result of `op` by a constant with all bits set.
static void setAllBits(Operation *op) {
  OpBuilder b(op);
  if (Value value =
          createAllOnes(b, op->getLoc(), op->getResult(0).getType())) {
    op->replaceAllUsesWith(ValueRange(value));
    op->erase();
  }
}

/// Drops the flags of `op` that can make its result poison.
static void dropIntegerFlags(Operation *op) {
  if (auto sum = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    op->setAttr(sum.getIntegerOverflowAttrName(),
                arith::IntegerOverflowFlagsAttr::get(
                    op->getContext(), arith::IntegerOverflowFlags::none));
  llvm::TypeSwitch<Operation *>(op)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [](auto quotient) { quotient.setIsExact(false); });
}

/// Whether the result of `op` is poison.
static bool isPoison(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([](ub::PoisonOp) { return true; })
      .Case<vector::ExtractOp, vector::InsertOp>([](auto access) {
        return llvm::is_contained(access.getStaticPosition(),
                                  vector::ExtractOp::kPoisonIndex);
      })
      .Default(false);
}

/// Makes the poison lanes of `op` take the first element.
static void defineLanes(vector::ShuffleOp op) {
  SmallVector<int64_t> mask(op.getMask());
  llvm::replace(mask, vector::ShuffleOp::kPoisonIndex, int64_t(0));
  op.setMask(mask);
}

namespace {
struct BNGradDropPromisesPass
    : bngrad::impl::BNGradDropPromisesPassBase<BNGradDropPromisesPass> {
  void runOnOperation() override {
    auto dropFlags = [&] { getOperation()->walk(dropIntegerFlags); };
    dropFlags();
    OpPassManager affine(ModuleOp::getOperationName());
    affine.addNestedPass<func::FuncOp>(createLowerAffinePass());
    if (failed(expandIndices()) || failed(runPipeline(affine, getOperation())))
      return signalPassFailure();
    // The lowering of affine expressions sets overflow flags again.
    dropFlags();

    SmallVector<Operation *> poison;
    getOperation()->walk([&](Operation *op) {
      if (auto function = dyn_cast<func::FuncOp>(op))
        dropAttributes(function);
      else if (auto shuffle = dyn_cast<vector::ShuffleOp>(op))
        defineLanes(shuffle);
      else if (isPoison(op))
        poison.push_back(op);
    });
    for (Operation *op : poison)
      setAllBits(op);
  }

private:
  /// Expands affine index ops. Upstream's pass would also remove dead code.
  LogicalResult expandIndices() {
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation()->walk([&](Operation *op) -> WalkResult {
      rewriter.setInsertionPoint(op);
      if (auto split = dyn_cast<affine::AffineDelinearizeIndexOp>(op))
        return affine::lowerAffineDelinearizeIndexOp(rewriter, split);
      if (auto joined = dyn_cast<affine::AffineLinearizeIndexOp>(op))
        return affine::lowerAffineLinearizeIndexOp(rewriter, joined);
      return success();
    });
    return failure(result.wasInterrupted());
  }
};
} // namespace
