//===- LowerKernelMath.cpp - bngrad-lower-kernel-math ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVM/NVVM/Utils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#define DEBUG_TYPE "bngrad-lower-kernel-math"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADLOWERKERNELMATHPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Whether LLVM's intrinsics accept elements of `type`.
static bool isKnown(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
}

/// Creates a call of the intrinsic `name`. Upstream's intrinsic ops cannot be
/// used, because its conversion makes them illegal in kernels.
static Value createIntrinsic(OpBuilder &b, Operation *op, StringRef name) {
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType(), computed = type;
  SmallVector<Value> operands(op->getOperands());
  // Compute bf16 in f32, as LLVM does for CPUs and for chips before sm_80, so
  // that results are the same on all targets.
  if (getElementTypeOrSelf(type).isBF16()) {
    computed = b.getF32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      computed = vector.clone(computed);
    for (Value &operand : operands)
      operand = arith::ExtFOp::create(b, loc, computed, operand);
  }
  Value result = LLVM::CallIntrinsicOp::create(b, loc, computed,
                                               b.getStringAttr(name), operands)
                     .getResult(0);
  if (computed != type)
    result = arith::TruncFOp::create(b, loc, type, result);
  return result;
}

/// The intrinsic for `op` that PTX implements by an instruction, or an empty
/// string.
static StringRef getIntrinsic(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<math::SqrtOp, math::RsqrtOp>([](auto) { return "llvm.sqrt"; })
      .Case<math::FmaOp>([](auto) { return "llvm.fma"; })
      .Case<math::AbsFOp>([](auto) { return "llvm.fabs"; })
      .Case<math::CopySignOp>([](auto) { return "llvm.copysign"; })
      .Case<math::FloorOp>([](auto) { return "llvm.floor"; })
      .Case<math::CeilOp>([](auto) { return "llvm.ceil"; })
      .Case<math::TruncOp>([](auto) { return "llvm.trunc"; })
      .Case<math::RoundEvenOp>([](auto) { return "llvm.roundeven"; })
      .Default([](Operation *) { return ""; });
}

static void lower(Operation *op) {
  StringRef name = getIntrinsic(op);
  if (name.empty() || !isKnown(op->getResult(0).getType())) {
    LDBG() << "left to libdevice, because LLVM has no intrinsic: " << *op;
    return;
  }
  OpBuilder b(op);
  Value value = createIntrinsic(b, op, name);
  // PTX only has an approximate reciprocal square root, so divide instead.
  if (isa<math::RsqrtOp>(op)) {
    auto type = op->getResult(0).getType();
    TypedAttr one = b.getFloatAttr(getElementTypeOrSelf(type), 1.0);
    if (auto vector = dyn_cast<VectorType>(type))
      one = DenseElementsAttr::get(vector, one);
    Value numerator = arith::ConstantOp::create(b, op->getLoc(), one);
    value = arith::DivFOp::create(b, op->getLoc(), numerator, value);
  }
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
}

/// Widens a vector with an even number of bf16 in words of two elements: the
/// lower element is shifted, and the upper one is masked. LLVM would first
/// extract each element, and need three instructions for two elements.
static void widenInPairs(arith::ExtFOp op) {
  auto type = dyn_cast<VectorType>(op.getIn().getType());
  if (!type || type.getRank() != 1 || type.isScalable() ||
      type.getNumElements() % 2 != 0 || !type.getElementType().isBF16() ||
      !getElementTypeOrSelf(op.getType()).isF32())
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto words = VectorType::get({type.getNumElements() / 2}, b.getI32Type());
  auto constant = [&](uint32_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(words, APInt(32, value)));
  };
  Value pairs = vector::BitCastOp::create(b, loc, words, op.getIn());
  Value lower = arith::ShLIOp::create(b, loc, pairs, constant(16));
  Value upper = arith::AndIOp::create(b, loc, pairs, constant(0xffff0000));
  Value bits = vector::InterleaveOp::create(b, loc, lower, upper);
  op.replaceAllUsesWith(
      arith::BitcastOp::create(b, loc, op.getType(), bits).getResult());
  op.erase();
}

namespace {
struct BNGradLowerKernelMathPass
    : bngrad::impl::BNGradLowerKernelMathPassBase<BNGradLowerKernelMathPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()))
        lower(op);
    });
    // Include the conversions that the lowering above has created.
    getOperation().walk(widenInPairs);

    SmallString<128> libdevice(NVVM::getCUDAToolkitPath());
    llvm::sys::path::append(libdevice, "nvvm", "libdevice", "libdevice.10.bc");
    if (llvm::sys::fs::exists(libdevice))
      return;
    WalkResult walk = getOperation().walk([&](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError() << "expected libdevice of the CUDA toolkit at '"
                        << libdevice << "', which kernels need for this op";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
