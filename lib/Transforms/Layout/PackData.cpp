//===- PackData.cpp - dense copies of data with strides -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackData.h"
#include "Schedule/SizeRules.h"
#include "StridedData.h"
#include "Utils/IndexBuilder.h"

#include "BNGrad/Dialect/Alignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The number of elements of a block along the slower and the faster of its two
/// dims in the target.
static constexpr int64_t kBlockElements[] = {256, 64};
/// The number of blocks of streaming stores between two fences.
static constexpr int64_t kBlocksOfFence = 4;
/// The part of a register within which one instruction interleaves vectors, in
/// bytes.
static constexpr int64_t kPartBytes = 16,
                         kPartsOfLine = kLineBytes / kPartBytes;

DataUse DataUse::get(const ScheduledGroup &group, Value memref) {
  DataUse use;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands()) {
      if (operand.get() != memref)
        continue;
      use.isRead |= !generic.getMatchingBlockArgument(&operand).use_empty();
      use.isWritten |= generic.isDpsInit(&operand);
    }
  return use;
}

namespace {
/// A copy in blocks of two dims: the last dim, and the last dim of the other
/// kind (feature or reduced). One of these is the fastest dim on each side, so
/// both sides access whole cache lines within a block. If the fastest dims of
/// the sides differ, vectors are transposed in registers.
class BlockedCopy {
public:
  BlockedCopy(OpBuilder &b, Location loc, const ScheduledGroup &group,
              Value from, Value to, Value isStreamed);

  void emit(OpBuilder &b) const;

private:
  struct Side {
    Value address;            // the address of the first element
    SmallVector<Value> steps; // the strides in bytes, by dim
  };
  /// The elements of a block. The second of its two dims is the faster one in
  /// the target.
  struct Plane {
    std::array<Value, 2> sizes, from, to; // `from` and `to` are steps
    Value fromAddress, toAddress;
  };
  using Positions = std::array<Value, 2>;

  IndexBuilder at(OpBuilder &b) const { return {b, loc}; }
  Side getSide(OpBuilder &b, Value memref) const;
  /// Merges `last` with the adjacent dims of its kind where the strides of both
  /// sides allow it: `last` gets all elements, and the others get size 1.
  void mergeInto(OpBuilder &b, unsigned last, const ScheduledGroup &group);
  Value hasWholeLines(OpBuilder &b) const;
  /// An i1: whether `step` is the step of the fastest dim of a side.
  Value isFastest(OpBuilder &b, Value step) const {
    return at(b).compare(arith::CmpIPredicate::eq, step, width);
  }
  /// Orders the values of the dims `other` and `inner` so that the dim that is
  /// faster in `to` comes last.
  std::array<Value, 2> inOrder(OpBuilder &b, Value ofOther,
                               Value ofInner) const {
    return {at(b).select(isReversed, ofInner, ofOther),
            at(b).select(isReversed, ofOther, ofInner)};
  }
  void emitFor(OpBuilder &b, Value lower, Value upper, Value step,
               function_ref<void(OpBuilder &, Value)> body) const;
  void emitBlock(OpBuilder &b, Value number) const;
  void emitPlane(OpBuilder &b, const Plane &plane) const;
  /// Copies rows that are contiguous on both sides.
  void emitRows(OpBuilder &b, const Plane &plane) const;
  void emitScalars(OpBuilder &b, const Plane &plane, Positions first) const;
  /// Transposes the elements from `first` to `end` in registers, in tiles of
  /// `parts` parts.
  void emitTiles(OpBuilder &b, const Plane &plane, Positions first,
                 Positions end, int64_t parts) const;
  void emitTile(OpBuilder &b, const Plane &plane, Positions first,
                int64_t parts) const;
  /// Loads a vector of `count` parts that are `step` bytes apart.
  Value loadParts(OpBuilder &b, Value address, Value step, int64_t count) const;
  void storeVectors(OpBuilder &b, const Plane &plane, Positions first,
                    ArrayRef<Value> vectors, bool isStreaming) const;
  Value getAddress(OpBuilder &b, Value address, std::array<Value, 2> steps,
                   Positions positions) const;
  Value getPointer(OpBuilder &b, Value address) const;

  Location loc;
  Type element; // an integer type
  Value width;  // the size of an element in bytes
  Side from, to;
  SmallVector<Value> sizes;
  unsigned inner, other;      // the dims of a block
  Value isReversed;           // an i1: whether `other` is faster in `to`
  SmallVector<Value> extents; // the sizes of a block, by dim
  SmallVector<Value> counts;  // the numbers of blocks, by dim
  int64_t partElements;
  Value isStreamed;
};
} // namespace

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

BlockedCopy::Side BlockedCopy::getSide(OpBuilder &b, Value memref) const {
  auto strided = StridedData::get(b, loc, memref);
  Side side;
  side.address =
      at(b).add(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref),
                at(b).mul(strided.offset, width));
  for (Value stride : strided.strides)
    side.steps.push_back(at(b).mul(stride, width));
  return side;
}

void BlockedCopy::mergeInto(OpBuilder &b, unsigned last,
                            const ScheduledGroup &group) {
  IndexBuilder index = at(b);
  Value one = index.constant(1);
  Value isMerged = arith::ConstantIntOp::create(b, loc, 1, 1);
  for (unsigned dim : llvm::reverse(llvm::seq(last))) {
    if (group.isFeature(dim) != group.isFeature(last))
      break;
    for (const Side *side : {&from, &to})
      isMerged = index.bitAnd(
          isMerged, index.compare(arith::CmpIPredicate::eq, side->steps[dim],
                                  index.mul(sizes[last], side->steps[last])));
    sizes[last] =
        index.select(isMerged, index.mul(sizes[last], sizes[dim]), sizes[last]);
    sizes[dim] = index.select(isMerged, one, sizes[dim]);
  }
}

/// Emits an i1: whether each tile of `to` starts at the start of a cache line.
Value BlockedCopy::hasWholeLines(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value result = arith::ConstantIntOp::create(b, loc, 1, 1);
  auto require = [&](Value distance, Value isFree) {
    Value isWhole = index.compare(
        arith::CmpIPredicate::eq,
        index.rem(distance, index.constant(kLineBytes)), index.constant(0));
    result = index.bitAnd(result, index.bitOr(isFree, isWhole));
  };
  require(to.address, arith::ConstantIntOp::create(b, loc, 0, 1));
  for (auto [size, step] : llvm::zip_equal(sizes, to.steps))
    require(step, index.bitOr(index.compare(arith::CmpIPredicate::eq, size,
                                            index.constant(1)),
                              isFastest(b, step)));
  return result;
}

BlockedCopy::BlockedCopy(OpBuilder &b, Location loc,
                         const ScheduledGroup &group, Value fromData,
                         Value toData, Value areStreamed)
    : loc(loc), inner(group.numLoops - 1), other(inner) {
  auto type = cast<MemRefType>(fromData.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  element = b.getIntegerType(8 * bytes);
  width = at(b).constant(bytes);
  partElements = kPartBytes / bytes;
  from = getSide(b, fromData);
  to = getSide(b, toData);
  while (other > 0 && group.isFeature(other) == group.isFeature(inner))
    --other;
  for (unsigned dim : llvm::seq(group.numLoops))
    sizes.push_back(b.createOrFold<memref::DimOp>(loc, fromData, dim));
  for (unsigned dim : {inner, other})
    mergeInto(b, dim, group);
  isReversed = at(b).compare(arith::CmpIPredicate::slt, to.steps[other],
                             to.steps[inner]);
  extents.assign(sizes.size(), at(b).constant(1));
  auto [most, least] = kBlockElements;
  extents[other] =
      at(b).select(isReversed, at(b).constant(least), at(b).constant(most));
  extents[inner] =
      at(b).select(isReversed, at(b).constant(most), at(b).constant(least));
  for (auto [size, extent] : llvm::zip_equal(sizes, extents))
    counts.push_back(at(b).ceilDiv(size, extent));
  isStreamed = at(b).bitAnd(areStreamed, hasWholeLines(b));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

void BlockedCopy::emitFor(OpBuilder &b, Value lower, Value upper, Value step,
                          function_ref<void(OpBuilder &, Value)> body) const {
  scf::ForOp::create(b, loc, lower, upper, step, ValueRange(),
                     [&](OpBuilder &nested, Location, Value iv, ValueRange) {
                       body(nested, iv);
                       scf::YieldOp::create(nested, loc);
                     });
}

Value BlockedCopy::getAddress(OpBuilder &b, Value address,
                              std::array<Value, 2> steps,
                              Positions positions) const {
  for (auto [step, position] : llvm::zip_equal(steps, positions))
    address = at(b).add(address, at(b).mul(step, position));
  return address;
}

Value BlockedCopy::getPointer(OpBuilder &b, Value address) const {
  Value bits = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), bits);
}

void BlockedCopy::emitRows(OpBuilder &b, const Plane &plane) const {
  Value zero = at(b).constant(0);
  Value bytes = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                           at(b).mul(plane.sizes[1], width));
  emitFor(b, zero, plane.sizes[0], at(b).constant(1),
          [&](OpBuilder &nested, Value row) {
            auto start = [&](Value address, std::array<Value, 2> steps) {
              return getPointer(
                  nested, getAddress(nested, address, steps, {row, zero}));
            };
            LLVM::MemcpyOp::create(nested, loc,
                                   start(plane.toAddress, plane.to),
                                   start(plane.fromAddress, plane.from), bytes,
                                   /*isVolatile=*/false);
          });
}

/// The inner loop is along the faster dim of the target, so that adjacent
/// elements are stored one after another.
void BlockedCopy::emitScalars(OpBuilder &b, const Plane &plane,
                              Positions first) const {
  Value one = at(b).constant(1);
  int64_t alignment = element.getIntOrFloatBitWidth() / 8;
  emitFor(b, first[0], plane.sizes[0], one, [&](OpBuilder &outer, Value row) {
    emitFor(outer, first[1], plane.sizes[1], one,
            [&](OpBuilder &nested, Value column) {
              auto point = [&](Value address, std::array<Value, 2> steps) {
                return getPointer(
                    nested, getAddress(nested, address, steps, {row, column}));
              };
              Value value = LLVM::LoadOp::create(
                  nested, loc, element, point(plane.fromAddress, plane.from),
                  alignment);
              LLVM::StoreOp::create(nested, loc, value,
                                    point(plane.toAddress, plane.to),
                                    alignment);
            });
  });
}

/// Transposes square blocks: the parts at the same position of the vectors in
/// `given`, of which there are as many as a part has elements. Each step moves
/// one bit from the index of a vector to the index of an element.
static SmallVector<Value> transposeParts(OpBuilder &b, Location loc,
                                         ArrayRef<Value> given) {
  int64_t count = given.size();
  int64_t length = cast<VectorType>(given[0].getType()).getNumElements();
  SmallVector<Value> vectors(given);
  for (int64_t done = 1; done < count; done *= 2) {
    SmallVector<Value> next;
    for (int64_t i : llvm::seq(count / 2))
      for (int64_t half : {0, 1}) {
        SmallVector<int64_t> mask;
        for (int64_t part = 0; part < length; part += count)
          for (int64_t element : llvm::seq(count / 2)) {
            int64_t lane = part + half * count / 2 + element;
            mask.append({lane, length + lane});
          }
        next.push_back(vector::ShuffleOp::create(b, loc, vectors[i],
                                                 vectors[i + count / 2], mask));
      }
    vectors = std::move(next);
  }
  return vectors;
}

void BlockedCopy::storeVectors(OpBuilder &b, const Plane &plane,
                               Positions first, ArrayRef<Value> vectors,
                               bool isStreaming) const {
  int64_t alignment =
      isStreaming ? kLineBytes : element.getIntOrFloatBitWidth() / 8;
  Value address = getAddress(b, plane.toAddress, plane.to, first);
  for (Value vector : vectors) {
    LLVM::StoreOp::create(b, loc, vector, getPointer(b, address), alignment,
                          /*isVolatile=*/false, isStreaming);
    address = at(b).add(address, plane.to[0]);
  }
}

Value BlockedCopy::loadParts(OpBuilder &b, Value address, Value step,
                             int64_t count) const {
  if (count == 1)
    return LLVM::LoadOp::create(
        b, loc, VectorType::get({partElements}, element),
        getPointer(b, address), element.getIntOrFloatBitWidth() / 8);
  Value middle = at(b).add(address, at(b).mul(step, at(b).constant(count / 2)));
  Value lower = loadParts(b, address, step, count / 2);
  Value upper = loadParts(b, middle, step, count / 2);
  return vector::ShuffleOp::create(
      b, loc, lower, upper, llvm::to_vector(llvm::seq(count * partElements)));
}

void BlockedCopy::emitTile(OpBuilder &b, const Plane &plane, Positions first,
                           int64_t parts) const {
  // Each part of a vector is loaded from one row, and stored in one column.
  SmallVector<Value> vectors;
  Value address = getAddress(b, plane.fromAddress, plane.from, first);
  Value stepOfParts = at(b).mul(plane.from[1], at(b).constant(partElements));
  for (int64_t i = 0; i < partElements; ++i) {
    vectors.push_back(loadParts(b, address, stepOfParts, parts));
    address = at(b).add(address, plane.from[1]);
  }
  vectors = transposeParts(b, loc, vectors);
  if (parts < kPartsOfLine)
    return storeVectors(b, plane, first, vectors, /*isStreaming=*/false);
  auto store = [&](bool isStreaming) {
    return [&, isStreaming](OpBuilder &nested) {
      storeVectors(nested, plane, first, vectors, isStreaming);
    };
  };
  emitIf(b, loc, isStreamed, store(true), store(false));
}

void BlockedCopy::emitTiles(OpBuilder &b, const Plane &plane, Positions first,
                            Positions end, int64_t parts) const {
  Value rows = at(b).constant(parts * partElements);
  emitFor(b, first[1], end[1], rows, [&](OpBuilder &outer, Value row) {
    emitFor(outer, first[0], end[0], at(outer).constant(partElements),
            [&](OpBuilder &nested, Value column) {
              emitTile(nested, plane, {column, row}, parts);
            });
  });
}

void BlockedCopy::emitPlane(OpBuilder &b, const Plane &plane) const {
  IndexBuilder index = at(b);
  Value zero = index.constant(0);
  Value isTransposed =
      index.bitAnd(isFastest(b, plane.from[0]), isFastest(b, plane.to[1]));
  auto inUnits = [&](Value size, int64_t unit) {
    Value whole = index.sub(size, index.rem(size, index.constant(unit)));
    return index.select(isTransposed, whole, zero);
  };
  Value columns = inUnits(plane.sizes[0], partElements);
  Value ofLines = inUnits(plane.sizes[1], kPartsOfLine * partElements);
  Value ofParts = inUnits(plane.sizes[1], partElements);
  emitTiles(b, plane, {zero, zero}, {columns, ofLines}, kPartsOfLine);
  emitTiles(b, plane, {zero, ofLines}, {columns, ofParts}, /*parts=*/1);
  Plane besideTiles = plane;
  besideTiles.sizes[1] = ofParts;
  emitScalars(b, besideTiles, {columns, zero});
  emitScalars(b, plane, {zero, ofParts});
}

void BlockedCopy::emitBlock(OpBuilder &b, Value number) const {
  IndexBuilder index = at(b);
  Value fromAddress = from.address, toAddress = to.address;
  SmallVector<Value> lengths(sizes);
  for (unsigned dim : llvm::reverse(llvm::seq<unsigned>(sizes.size()))) {
    Value first = index.mul(index.rem(number, counts[dim]), extents[dim]);
    number = index.div(number, counts[dim]);
    lengths[dim] = index.min(extents[dim], index.sub(sizes[dim], first));
    fromAddress = index.add(fromAddress, index.mul(first, from.steps[dim]));
    toAddress = index.add(toAddress, index.mul(first, to.steps[dim]));
  }
  Plane plane = {inOrder(b, lengths[other], lengths[inner]),
                 inOrder(b, from.steps[other], from.steps[inner]),
                 inOrder(b, to.steps[other], to.steps[inner]), fromAddress,
                 toAddress};
  emitIf(
      b, loc,
      index.bitAnd(isFastest(b, plane.from[1]), isFastest(b, plane.to[1])),
      [&](OpBuilder &nested) { emitRows(nested, plane); },
      [&](OpBuilder &nested) { emitPlane(nested, plane); });
}

/// A small copy is one iteration of the parallel loop, and so runs on one
/// thread.
void BlockedCopy::emit(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value zero = index.constant(0), one = index.constant(1);
  Value blocks = index.product(counts);
  Value isSmall = index.compare(arith::CmpIPredicate::ult, index.product(sizes),
                                index.constant(limits::kSerialElements));
  Value ofShare = index.select(
      isSmall, blocks,
      index.select(isStreamed, index.constant(kBlocksOfFence), one));
  Value shares = index.ceilDiv(blocks, index.max(ofShare, one));
  scf::ParallelOp::create(
      b, loc, zero, shares, one,
      [&](OpBuilder &nested, Location, ValueRange iv) {
        Value first = at(nested).mul(iv[0], ofShare);
        Value end = at(nested).min(at(nested).add(first, ofShare), blocks);
        emitFor(nested, first, end, one, [&](OpBuilder &inBlock, Value number) {
          emitBlock(inBlock, number);
        });
        // Without a fence, streaming stores are not ordered before the loads of
        // other threads.
        auto fence = [&](OpBuilder &inCase) {
          LLVM::FenceOp::create(inCase, loc, LLVM::AtomicOrdering::seq_cst);
        };
        emitIf(nested, loc, isStreamed, fence, [](OpBuilder &) {});
      });
}

Value mlir::bngrad::areCopiesStreamed(OpBuilder &b, Location loc,
                                      CpuSchedule schedule, Value bytes) {
  if (schedule.streamingBytes == 0)
    return arith::ConstantIntOp::create(b, loc, 0, 1);
  IndexBuilder index = {b, loc};
  return index.compare(arith::CmpIPredicate::ugt, bytes,
                       index.constant(schedule.streamingBytes));
}

void mlir::bngrad::emitCopy(OpBuilder &b, Location loc,
                            const ScheduledGroup &group, Value from, Value to,
                            Value isStreamed) {
  BlockedCopy(b, loc, group, from, to, isStreamed).emit(b);
}
