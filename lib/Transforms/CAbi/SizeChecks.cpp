//===- SizeChecks.cpp - run-time checks of sizes and indices --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A failed check ends the function, so each check may rely on the preceding
// ones.
//
//===----------------------------------------------------------------------===//

#include "SizeChecks.h"

#include "BufferBytes.h"
#include "CheckBuilder.h"
#include "LoopChecks.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;
using namespace mlir::bngrad;

using arith::CmpIPredicate;

namespace {
/// Emits the checks of one op before it.
class SizeChecks : CheckBuilder {
public:
  explicit SizeChecks(Operation *op)
      : CheckBuilder(findInsertionPoint(op), op->getLoc()),
        name(op->getName().getStringRef()) {}

  void check(tensor::ConcatOp op);
  void check(tensor::ExpandShapeOp op) { checkExpandShape(op); }
  void check(tensor::DimOp op) { checkDim(op.getSource(), op.getIndex()); }
  void check(tensor::ExtractOp op) {
    checkIndices(op.getTensor(), op.getIndices());
  }
  void check(tensor::ExtractSliceOp op) {
    checkSlice(op, op.getSource(), "source");
  }
  void check(tensor::InsertOp op) {
    checkIndices(op.getDest(), op.getIndices());
  }
  void check(tensor::InsertSliceOp op) { checkInsertion(op); }
  void check(tensor::ParallelInsertSliceOp op) { checkInsertion(op); }
  void check(tensor::PadOp op);
  void check(tensor::ReshapeOp op) { checkReshape(op); }

  void check(bufferization::MaterializeInDestinationOp op);
  void check(memref::AtomicRMWOp op) {
    checkIndices(op.getMemref(), op.getIndices());
  }
  void check(memref::CollapseShapeOp op);
  void check(memref::DimOp op) { checkDim(op.getSource(), op.getIndex()); }
  void check(memref::ExpandShapeOp op) { checkExpandShape(op); }
  void check(memref::LoadOp op) {
    checkIndices(op.getMemref(), op.getIndices());
  }
  void check(memref::ReinterpretCastOp op);
  void check(memref::ReshapeOp op) { checkReshape(op); }
  void check(memref::StoreOp op) {
    checkIndices(op.getMemref(), op.getIndices());
  }
  void check(memref::SubViewOp op) { checkSlice(op, op.getSource(), "source"); }
  void check(memref::ViewOp op);

  void check(VectorTransferOpInterface op);
  void check(vector::ExtractOp op) {
    checkPosition(op.getMixedPosition(), op.getSourceVectorType());
  }
  void check(vector::InsertOp op) {
    checkPosition(op.getMixedPosition(), op.getDestVectorType());
  }
  void check(vector::LoadOp op) {
    checkVector(op.getBase(), op.getIndices(), op.getVectorType());
  }
  void check(vector::StoreOp op) {
    checkVector(op.getBase(), op.getIndices(), op.getVectorType());
  }

  void checkElementwise(Operation *op);
  /// Checks the sizes of a tensor or buffer that the op creates.
  void checkNewSizes(ShapedType type, ValueRange dynamicSizes);

private:
  /// Checks that `dynamicSizes` are not negative, and returns all sizes of
  /// `type`. Results of dim ops need no check, because the shaped value has
  /// been checked.
  SmallVector<Value> verifySizes(ShapedType type, ValueRange dynamicSizes,
                                 StringRef where = "");
  /// Finds an ancestor of `op`, or `op` itself, before which ops may be
  /// inserted: the regions of scf.in_parallel and vector.mask accept no others.
  static Operation *findInsertionPoint(Operation *op) {
    while (isa<scf::InParallelOp, vector::MaskOp>(op->getParentOp()))
      op = op->getParentOp();
    return op;
  }

  Value loadSize(Value shape, Value i);

  template <typename Op> void checkExpandShape(Op op);
  template <typename Op> void checkReshape(Op op);
  template <typename Op> void checkInsertion(Op op);
  void checkSlice(OffsetSizeAndStrideOpInterface op, Value whole,
                  StringRef name);
  void checkDim(Value shaped, Value index);
  void checkIndex(Value shaped, int64_t dim, Value index, int64_t count);
  void checkIndices(Value shaped, ValueRange indices);
  void checkPosition(ArrayRef<OpFoldResult> position, VectorType type);
  void checkVector(Value base, ValueRange indices, VectorType type);

  StringRef name; // the name of the op
};
} // namespace

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void SizeChecks::check(tensor::ConcatOp op) {
  SmallVector<Value> sizes;
  Value first = op.getInputs().front();
  for (auto [i, input] : llvm::enumerate(op.getInputs().drop_front()))
    for (int64_t dim : llvm::seq(op.getRank()))
      if (dim != static_cast<int64_t>(op.getDim()))
        verifyEqual(sizeOf(input, dim), sizeOf(first, dim),
                    "expected dim " + Twine(dim) + " of input " + Twine(i + 1) +
                        " to have the size of dim " + Twine(dim) +
                        " of input 0");
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    sizes.push_back(sizeOf(input, op.getDim()));
    if (i > 0)
      verifySum(sizes,
                "size of dim " + Twine(op.getDim()) + " of input " + Twine(i));
  }
}

template <typename Op> void SizeChecks::checkExpandShape(Op op) {
  SmallVector<OpFoldResult> shape = op.getMixedOutputShape();
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    SmallVector<Value> sizes;
    for (int64_t i : group) {
      sizes.push_back(toValue(shape[i]));
      verifyNotNegative(sizes.back(),
                        "element " + Twine(i) + " of output_shape");
    }
    verifyEqual(multiply(sizes), sizeOf(op.getSrc(), dim),
                "expected product of the elements of output_shape for dim " +
                    Twine(dim) + " of src to be the size of that dim");
  }
}

/// Checks that a slice is in bounds of `whole`, which messages call `name`.
void SizeChecks::checkSlice(OffsetSizeAndStrideOpInterface op, Value whole,
                            StringRef name) {
  SmallVector<Value> counts;
  for (auto [dim, offset, size, stride] : llvm::enumerate(
           op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    Value room = sizeOf(whole, dim), start = toValue(offset);
    Value count = counts.emplace_back(toValue(size));
    Value zero = constant(0), one = constant(1);
    std::string where = llvm::formatv(" of the slice in dim {0}", dim);
    auto expectInside = [&](StringRef what) -> std::string {
      return llvm::formatv("expected {0} to be at most the size of {1}", what,
                           name);
    };
    verifyNotNegative(count, "size" + where);
    verify(CmpIPredicate::ule, start, room, expectInside("offset" + where));
    auto [last, fits] = multiplySigned(subtract(count, one), toValue(stride));
    last = arith::AddIOp::create(b, loc, start, last);
    fits = arith::AndIOp::create(b, loc, fits,
                                 compare(CmpIPredicate::sge, last, zero));
    Value end =
        select(fits, arith::AddIOp::create(b, loc, last, one), constant(-1));
    // An empty slice has no last element.
    end = select(compare(CmpIPredicate::eq, count, zero), start, end);
    verify(CmpIPredicate::ule, end, room, expectInside("end" + where));
    // If the stride is negative, the first element has the highest address.
    if (getConstantIntValue(stride).value_or(-1) < 0) {
      Value next = arith::AddIOp::create(b, loc, start, one);
      verify(CmpIPredicate::ule,
             select(compare(CmpIPredicate::eq, count, zero), start, next), room,
             expectInside("end of the first element" + where));
    }
  }
  // With a stride of 0, a slice can have more elements than its source.
  if (llvm::any_of(op.getMixedStrides(),
                   [](OpFoldResult stride) { return !isOneInteger(stride); }))
    verifyProduct(counts);
}

template <typename Op> void SizeChecks::checkInsertion(Op op) {
  auto slice = cast<OffsetSizeAndStrideOpInterface>(op.getOperation());
  checkSlice(slice, op.getDest(), "dest");
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t from = 0;
  for (auto [dim, size] : llvm::enumerate(op.getMixedSizes())) {
    if (dropped.test(dim))
      continue;
    Value actual = sizeOf(op.getSource(), from++);
    if (isa<Value>(size) || actual.getDefiningOp<tensor::DimOp>())
      verifyEqual(actual, toValue(size),
                  "expected dim " + Twine(from - 1) +
                      " of source to have the size of the slice");
  }
}

void SizeChecks::check(tensor::PadOp op) {
  SmallVector<Value> sizes;
  for (auto [dim, low, high] :
       llvm::enumerate(op.getMixedLowPad(), op.getMixedHighPad())) {
    verifyNotNegative(toValue(low), "low padding of dim " + Twine(dim));
    verifyNotNegative(toValue(high), "high padding of dim " + Twine(dim));
    Value size = sizeOf(op.getSource(), dim);
    verifySum({size, toValue(low)}, "low padding of dim " + Twine(dim));
    verifySum({size, toValue(low), toValue(high)},
              "high padding of dim " + Twine(dim));
    Value padding = arith::AddIOp::create(b, loc, toValue(low), toValue(high));
    sizes.push_back(arith::AddIOp::create(b, loc, size, padding));
    if (!op.getResultType().isDynamicDim(dim))
      verifyEqual(sizes.back(), constant(op.getResultType().getDimSize(dim)),
                  "expected dim " + Twine(dim) +
                      " to have the size of the result type after padding");
  }
  verifyProduct(sizes);
}

/// Loads element `i` of the operand `shape` of a reshape, as an index.
Value SizeChecks::loadSize(Value shape, Value i) {
  Value size;
  if (isa<MemRefType>(shape.getType()))
    size = memref::LoadOp::create(b, loc, shape, i);
  else
    size = tensor::ExtractOp::create(b, loc, shape, i);
  if (!size.getType().isIndex())
    size = arith::IndexCastOp::create(b, loc, b.getIndexType(), size);
  return size;
}

template <typename Op> void SizeChecks::checkReshape(Op op) {
  auto shape = cast<ShapedType>(op.getShape().getType());
  auto result = cast<ShapedType>(op.getResult().getType());
  Value product;
  if (shape.isDynamicDim(0)) {
    product = multiplyAll(sizeOf(op.getShape(), 0), [&](Value i) {
      Value size = loadSize(op.getShape(), i);
      verifyNotNegative(size, "elements of shape");
      return size;
    });
  } else {
    SmallVector<Value> sizes;
    for (int64_t i : llvm::seq(shape.getDimSize(0))) {
      Value size = sizes.emplace_back(loadSize(op.getShape(), constant(i)));
      std::string name = llvm::formatv("element {0} of shape", i);
      if (result.hasRank() && !result.isDynamicDim(i))
        verifyEqual(size, constant(result.getDimSize(i)),
                    "expected " + name + " to be the size of dim " + Twine(i) +
                        " of the result type");
      else
        verifyNotNegative(size, name);
    }
    product = multiply(sizes);
  }
  verifyEqual(product, countElements(op.getSource()),
              "expected product of the elements of shape to be the number of "
              "elements of source");
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
                    "expected dim " + Twine(dim) + " of operand " +
                        Twine(operand.getOperandNumber()) +
                        " to have the size of dim " + Twine(dim) +
                        " of operand " + Twine(first->getOperandNumber()));
  }
}

void SizeChecks::check(bufferization::MaterializeInDestinationOp op) {
  auto source = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto dest = dyn_cast<ShapedType>(op.getDest().getType());
  if (!source || !dest.hasRank())
    return;
  for (int64_t dim : llvm::seq(source.getRank()))
    if (source.isDynamicDim(dim) || dest.isDynamicDim(dim))
      verifyEqual(sizeOf(op.getDest(), dim), sizeOf(op.getSource(), dim),
                  "expected dim " + Twine(dim) +
                      " of dest to have the size of source");
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

SmallVector<Value> SizeChecks::verifySizes(ShapedType type,
                                           ValueRange dynamicSizes,
                                           StringRef where) {
  SmallVector<Value> sizes;
  unsigned dynamic = 0;
  for (int64_t size : type.getShape()) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(constant(size));
      continue;
    }
    Value given = sizes.emplace_back(dynamicSizes[dynamic]);
    if (!isa_and_present<memref::DimOp, tensor::DimOp>(given.getDefiningOp()))
      verifyNotNegative(given, "dynamic size " + Twine(dynamic) + where);
    ++dynamic;
  }
  return sizes;
}

void SizeChecks::checkNewSizes(ShapedType type, ValueRange dynamicSizes) {
  SmallVector<Value> sizes = verifySizes(type, dynamicSizes);
  if (!type.hasStaticShape())
    verifyProduct(sizes);
}

/// Checks that the dims of each group can be merged: the result has the stride
/// of the last dim of the group.
void SizeChecks::check(memref::CollapseShapeOp op) {
  MemRefType type = op.getSrcType();
  if (type.getLayout().isIdentity())
    return;
  auto source = memref::ExtractStridedMetadataOp::create(b, loc, op.getSrc());
  for (ReassociationIndices &group : op.getReassociationIndices()) {
    Value expected = source.getStrides()[group.back()];
    for (int64_t dim : llvm::reverse(group)) {
      Value size = sizeOf(op.getSrc(), dim), stride = source.getStrides()[dim];
      // The stride of a dim with one element is not used.
      Value isUnit = compare(CmpIPredicate::eq, size, constant(1));
      if (dim != group.back())
        verifyEqual(select(isUnit, expected, stride), expected,
                    "expected stride of dim " + Twine(dim) +
                        " of src to be the size times the stride of the next "
                        "dim");
      expected = arith::MulIOp::create(b, loc, expected, size);
    }
  }
}

/// Follows views of `buffer` to the buffer it is a part of, as long as the
/// element type stays the same.
static Value findWhole(Value buffer) {
  Type element = getElementTypeOrSelf(buffer);
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    Value source = view.getViewSource();
    if (!isa<BaseMemRefType>(source.getType()) ||
        getElementTypeOrSelf(source) != element)
      break;
    buffer = source;
  }
  return buffer;
}

void SizeChecks::check(memref::ReinterpretCastOp op) {
  auto whole = memref::ExtractStridedMetadataOp::create(
      b, loc, findWhole(op.getSource()));
  auto toValues = [&](ArrayRef<OpFoldResult> all) {
    return llvm::map_to_vector(all,
                               [&](OpFoldResult one) { return toValue(one); });
  };
  SmallVector<Value> sizes = toValues(op.getMixedSizes());
  Value isEmpty = arith::ConstantIntOp::create(b, loc, 0, 1),
        zero = constant(0);
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (op.isDynamicSize(dim))
      verifyNotNegative(size, "size of dim " + Twine(dim) + " of the cast");
    isEmpty = arith::OrIOp::create(b, loc, isEmpty,
                                   compare(CmpIPredicate::eq, size, zero));
  }
  verifyProduct(sizes);
  Extent room =
      findExtent(whole.getOffset(), whole.getSizes(), whole.getStrides());
  Extent cast = findExtent(toValue(op.getMixedOffsets().front()), sizes,
                           toValues(op.getMixedStrides()));
  for (Value size : whole.getSizes())
    // An empty source contains no element.
    room.last = select(compare(CmpIPredicate::eq, size, zero),
                       constant(-2 * kMostElements), room.last);
  verify(CmpIPredicate::sge, select(isEmpty, room.first, cast.first),
         room.first,
         "expected first element of the cast to be in the memory of source, at "
         "least");
  verify(CmpIPredicate::sle, select(isEmpty, room.last, cast.last), room.last,
         "expected last element of the cast to be in the memory of source, at "
         "most");
}

void SizeChecks::check(memref::ViewOp op) {
  auto type = op.getType();
  Value room = sizeOf(op.getSource(), 0);
  SmallVector<Value> sizes = verifySizes(type, op.getSizes(), " of the view");
  sizes.push_back(constant(getElementBytes(type.getElementType())));
  Value bytes = multiply(sizes);
  verify(CmpIPredicate::ule, bytes, room,
         "expected bytes of the view to be at most the bytes of source");
  verify(CmpIPredicate::ule, op.getByteShift(), subtract(room, bytes),
         "expected byte_shift to be at most the bytes of source less the bytes "
         "of the view");
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Checks that the `count` elements from `index` on are within `dim`.
void SizeChecks::checkIndex(Value shaped, int64_t dim, Value index,
                            int64_t count) {
  std::string what = llvm::formatv("index of dim {0} of {1}", dim, name);
  verifyNotNegative(index, what);
  std::string less;
  if (count > 1)
    less = llvm::formatv(
        " the size of the dim less the {0} elements of the access", count);
  verify(CmpIPredicate::sle, index,
         subtract(sizeOf(shaped, dim), constant(count)),
         "expected " + what + " to be at most" + less);
}

void SizeChecks::checkIndices(Value shaped, ValueRange indices) {
  for (auto [dim, index] : llvm::enumerate(indices))
    checkIndex(shaped, dim, index, /*count=*/1);
}

/// Checks that `shaped` has a dim number `index`.
void SizeChecks::checkDim(Value shaped, Value index) {
  Value rank;
  if (auto type = cast<ShapedType>(shaped.getType()); type.hasRank())
    rank = constant(type.getRank());
  else if (isa<BaseMemRefType>(type))
    rank = memref::RankOp::create(b, loc, shaped);
  else
    rank = tensor::RankOp::create(b, loc, shaped);
  std::string what = ("index of " + name).str();
  verifyNotNegative(index, what);
  verify(CmpIPredicate::sle, index, subtract(rank, constant(1)),
         "expected " + what + " to be at most");
}

void SizeChecks::checkPosition(ArrayRef<OpFoldResult> position,
                               VectorType type) {
  for (auto [dim, index] : llvm::enumerate(position)) {
    auto value = dyn_cast<Value>(index);
    if (!value)
      continue; // Verifiers check constant positions.
    std::string what = llvm::formatv("position {0} of {1}", dim, name);
    verifyNotNegative(value, what);
    // A scalable vector has at least this many elements.
    verify(CmpIPredicate::sle, value, constant(type.getDimSize(dim) - 1),
           "expected " + what + " to be at most");
  }
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

void SizeChecks::checkVector(Value base, ValueRange indices, VectorType type) {
  int64_t first = static_cast<int64_t>(indices.size()) - type.getRank();
  // If the elements of the memory are vectors, the access loads one element.
  if (isa<VectorType>(cast<MemRefType>(base.getType()).getElementType()))
    first = static_cast<int64_t>(indices.size());
  for (auto [dim, index] : llvm::enumerate(indices)) {
    int64_t place = static_cast<int64_t>(dim) - first;
    checkIndex(base, dim, index, place >= 0 ? type.getDimSize(place) : 1);
  }
}

void SizeChecks::check(VectorTransferOpInterface op) {
  Value base = op.getBase();
  bool hasMask = op.getMask() || isa<vector::MaskOp>(op->getParentOp());
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    int64_t count = 1;
    bool isChecked = false; // by the lowering, or by the op's mask
    for (auto [i, expr] :
         llvm::enumerate(op.getPermutationMap().getResults())) {
      auto position = dyn_cast<AffineDimExpr>(expr);
      if (!position || position.getPosition() != dim)
        continue;
      count = op.getVectorType().getDimSize(i);
      isChecked = hasMask || !op.isDimInBounds(i);
    }
    if (isChecked) {
      // Upstream computes the mask of elements in bounds in 32-bit arithmetic.
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      std::string what = llvm::formatv("index of dim {0} of {1}", dim, name);
      verifyNotNegative(index, what);
      verify(CmpIPredicate::sle, subtract(index, sizeOf(base, dim)),
             constant(kMost),
             "expected " + what + " less the size of the dim to be at most");
    } else {
      checkIndex(base, dim, index, count);
    }
  }
}

/// Erases upstream's checks of indices and slices. Their messages do not
/// contain the values, unlike the messages of the checks in this file.
static void eraseUpstreamChecks(func::FuncOp function) {
  function.walk([](cf::AssertOp op) {
    StringRef message = op.getMsg();
    size_t start = message.find(kUpstreamMessage);
    if (start == StringRef::npos)
      return;
    message = message.substr(start + kUpstreamMessage.size()).split('\n').first;
    if (message.contains("out-of-bounds") || message.contains("out of bounds"))
      op.erase();
  });
}

/// Reports a cast of memory of unknown extent, and a view whose elements have
/// an unknown size in bytes.
static LogicalResult verifyView(Operation *op) {
  if (auto cast = dyn_cast<memref::ReinterpretCastOp>(op);
      cast && !isa<MemRefType>(findWhole(cast.getSource()).getType()))
    return op->emitOpError("expected source to be a buffer of known rank, got ")
           << cast.getSource().getType();
  if (auto view = dyn_cast<memref::ViewOp>(op);
      view && getElementBytes(view.getType().getElementType()) == 0)
    return op->emitOpError("expected elements to be floats, or integers of 1, "
                           "8, 16, 32 or 64 bits, got ")
           << view.getType().getElementType();
  return success();
}

LogicalResult mlir::bngrad::addSizeChecks(func::FuncOp function) {
  eraseUpstreamChecks(function);
  SmallVector<Operation *> ops;
  WalkResult result = function.walk([&](Operation *op) -> WalkResult {
    ops.push_back(op);
    return verifyView(op);
  });
  if (result.wasInterrupted())
    return failure();
  for (Operation *op : ops)
    llvm::TypeSwitch<Operation *>(op)
        .Case<tensor::ConcatOp, tensor::DimOp, tensor::ExpandShapeOp,
              tensor::ExtractOp, tensor::ExtractSliceOp, tensor::InsertOp,
              tensor::InsertSliceOp, tensor::ParallelInsertSliceOp,
              tensor::PadOp, tensor::ReshapeOp,
              bufferization::MaterializeInDestinationOp, memref::AtomicRMWOp,
              memref::CollapseShapeOp, memref::DimOp, memref::ExpandShapeOp,
              memref::LoadOp, memref::ReinterpretCastOp, memref::ReshapeOp,
              memref::StoreOp, memref::SubViewOp, memref::ViewOp,
              VectorTransferOpInterface, vector::ExtractOp, vector::InsertOp,
              vector::LoadOp, vector::StoreOp>(
            [](auto checked) { SizeChecks(checked).check(checked); })
        .Case<tensor::EmptyOp, tensor::GenerateOp>([](auto created) {
          SizeChecks(created).checkNewSizes(created.getType(),
                                            created->getOperands());
        })
        .Case<tensor::SplatOp, memref::AllocOp, memref::AllocaOp,
              bufferization::AllocTensorOp>([](auto created) {
          SizeChecks(created).checkNewSizes(created.getType(),
                                            created.getDynamicSizes());
        })
        .Case<linalg::LinalgOp, LoopLikeOpInterface>(
            [](auto loops) { addLoopChecks(loops); })
        .Default([](Operation *other) {
          if (OpTrait::hasElementwiseMappableTraits(other))
            SizeChecks(other).checkElementwise(other);
        });
  return success();
}
