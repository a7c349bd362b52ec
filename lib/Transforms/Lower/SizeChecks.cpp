//===- SizeChecks.cpp - run-time checks of tensor ops ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// Emits the checks of one op before it.
class SizeChecks {
public:
  explicit SizeChecks(Operation *op) : b(op), loc(op->getLoc()) {}

  void check(tensor::ConcatOp op);
  void check(tensor::ExpandShapeOp op);
  void check(tensor::InsertSliceOp op);
  void check(tensor::PadOp op);
  void check(tensor::ReshapeOp op);
  void checkElementwise(Operation *op);

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value toValue(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  }
  Value sizeOf(Value tensor, int64_t dim) {
    return b.createOrFold<tensor::DimOp>(loc, tensor, dim);
  }
  void verify(arith::CmpIPredicate predicate, Value actual, Value expected,
              const Twine &message) {
    Value holds = arith::CmpIOp::create(b, loc, predicate, actual, expected);
    cf::AssertOp::create(b, loc, holds, message.str());
  }
  void verifyEqual(Value actual, Value expected, const Twine &message) {
    verify(arith::CmpIPredicate::eq, actual, expected, message);
  }
  Value multiply(ValueRange sizes);

  OpBuilder b;
  Location loc;
};
} // namespace

/// The product of `sizes`; -1 if it is not an index.
Value SizeChecks::multiply(ValueRange sizes) {
  Value product = constant(1), zero = constant(0), overflow = constant(-1);
  for (Value size : sizes) {
    auto next = arith::MulUIExtendedOp::create(b, loc, product, size);
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                       next.getHigh(), zero);
    product = arith::SelectOp::create(b, loc, fits, next.getLow(), overflow);
  }
  return product;
}

void SizeChecks::check(tensor::ConcatOp op) {
  Value first = op.getInputs().front();
  for (auto [i, input] : llvm::enumerate(op.getInputs().drop_front()))
    for (int64_t dim : llvm::seq(op.getRank()))
      if (dim != static_cast<int64_t>(op.getDim()))
        verifyEqual(sizeOf(input, dim), sizeOf(first, dim),
                    "expected size of dim " + Twine(dim) + " of input " +
                        Twine(i + 1) + " to be that of input 0");
}

void SizeChecks::check(tensor::ExpandShapeOp op) {
  SmallVector<OpFoldResult> shape = op.getMixedOutputShape();
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    SmallVector<Value> sizes;
    for (int64_t i : group)
      sizes.push_back(toValue(shape[i]));
    verifyEqual(multiply(sizes), sizeOf(op.getSrc(), dim),
                "expected product of output_shape over dim " + Twine(dim) +
                    " of src to be its size");
  }
}

void SizeChecks::check(tensor::InsertSliceOp op) {
  auto unsignedAtMost = arith::CmpIPredicate::ule;
  Value one = constant(1);
  for (auto [dim, offset, size, stride] : llvm::enumerate(
           op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    Value room = sizeOf(op.getDest(), dim), start = toValue(offset);
    std::string where = " of the slice in dim " + std::to_string(dim);
    verify(unsignedAtMost, start, room,
           "expected offset" + where + " to be at most the size of dest");
    // An empty slice has no last element.
    Value count = toValue(size);
    Value steps = arith::SubIOp::create(
        b, loc, arith::MaxSIOp::create(b, loc, count, one), one);
    Value last = arith::AddIOp::create(
        b, loc, start, arith::MulIOp::create(b, loc, steps, toValue(stride)));
    Value isEmpty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          count, constant(0));
    Value end = arith::SelectOp::create(
        b, loc, isEmpty, start, arith::AddIOp::create(b, loc, last, one));
    verify(unsignedAtMost, end, room,
           "expected end" + where + " to be at most the size of dest");
  }
}

void SizeChecks::check(tensor::PadOp op) {
  auto atLeast = arith::CmpIPredicate::sge;
  for (auto [dim, low, high] :
       llvm::enumerate(op.getMixedLowPad(), op.getMixedHighPad())) {
    verify(atLeast, toValue(low), constant(0),
           "expected low padding of dim " + Twine(dim) + " to be at least 0");
    verify(atLeast, toValue(high), constant(0),
           "expected high padding of dim " + Twine(dim) + " to be at least 0");
    if (!op.getResultType().isDynamicDim(dim))
      verifyEqual(
          arith::AddIOp::create(
              b, loc, sizeOf(op.getSource(), dim),
              arith::AddIOp::create(b, loc, toValue(low), toValue(high))),
          constant(op.getResultType().getDimSize(dim)),
          "expected padded size of dim " + Twine(dim) +
              " to be that of the result type");
  }
}

void SizeChecks::check(tensor::ReshapeOp op) {
  auto source = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto shape = cast<RankedTensorType>(op.getShape().getType());
  if (!source || shape.isDynamicDim(0))
    return;
  SmallVector<Value> from, to;
  for (int64_t dim : llvm::seq(source.getRank()))
    from.push_back(sizeOf(op.getSource(), dim));
  for (int64_t i : llvm::seq(shape.getDimSize(0))) {
    Value size = tensor::ExtractOp::create(b, loc, op.getShape(), constant(i));
    if (!size.getType().isIndex())
      size = arith::IndexCastOp::create(b, loc, b.getIndexType(), size);
    to.push_back(size);
  }
  verifyEqual(multiply(to), multiply(from),
              "expected product of shape to be the number of elements");
}

void SizeChecks::checkElementwise(Operation *op) {
  OpOperand *first = nullptr;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type)
      continue;
    if (!first) {
      first = &operand;
      continue;
    }
    auto expected = cast<RankedTensorType>(first->get().getType());
    for (int64_t dim : llvm::seq(type.getRank()))
      if (type.isDynamicDim(dim) || expected.isDynamicDim(dim))
        verifyEqual(sizeOf(operand.get(), dim), sizeOf(first->get(), dim),
                    "expected size of dim " + Twine(dim) + " of operand " +
                        Twine(operand.getOperandNumber()) +
                        " to be that of operand " +
                        Twine(first->getOperandNumber()));
  }
}

void mlir::bngrad::addSizeChecks(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    llvm::TypeSwitch<Operation *>(op)
        .Case<tensor::ConcatOp, tensor::ExpandShapeOp, tensor::InsertSliceOp,
              tensor::PadOp, tensor::ReshapeOp>(
            [](auto checked) { SizeChecks(checked).check(checked); })
        .Default([](Operation *other) {
          if (OpTrait::hasElementwiseMappableTraits(other))
            SizeChecks(other).checkElementwise(other);
        });
}
