//===- PackData.cpp - dense copies of data with strides -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackData.h"
#include "IndexBuilder.h"
#include "Schedule/SizeRules.h"
#include "StridedData.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Elements of a block along the last dim and along another: the lines of both
/// sides fit into a first-level cache.
static constexpr int64_t kInnerElements = 64, kOtherElements = 32;

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
/// A copy in blocks of two dims, so that whole lines of both sides are used
/// whichever of the dims is the fastest in memory: the last dim, and the last
/// of the other kind (a feature or not).
class BlockedCopy {
public:
  BlockedCopy(OpBuilder &b, Location loc, const ScheduledGroup &group,
              Value from, Value to);

  void emit(OpBuilder &b) const;

private:
  struct Side {
    Value memref, address; // the address of its first element, in bytes
    SmallVector<Value> strides;
  };

  IndexBuilder at(OpBuilder &b) const { return {b, loc}; }
  Side getSide(OpBuilder &b, Value memref) const;
  void emitFor(OpBuilder &b, Value lower, Value upper,
               function_ref<void(OpBuilder &, Value)> body) const;
  void emitBlock(OpBuilder &b, Value number) const;
  /// The elements of the block that starts at `ivs`, along `dims`, outermost
  /// first.
  void emitElements(OpBuilder &b, SmallVector<Value> ivs,
                    ArrayRef<unsigned> dims) const;
  void emitScalars(OpBuilder &b, SmallVector<Value> ivs, unsigned dim,
                   Value end) const;
  /// Elements that are contiguous on both sides.
  void emitBytes(OpBuilder &b, ArrayRef<Value> ivs, Value count) const;
  Value getPointer(OpBuilder &b, const Side &side, ArrayRef<Value> ivs) const;

  Location loc;
  Side from, to;
  Value width; // bytes of an element
  SmallVector<Value> sizes;
  SmallVector<int64_t> steps; // by dim, 1 for those that are not blocked
  SmallVector<Value> counts;  // of blocks, by dim
};
} // namespace

BlockedCopy::Side BlockedCopy::getSide(OpBuilder &b, Value memref) const {
  auto strided = StridedData::get(b, loc, memref);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  return {memref, at(b).add(address, at(b).mul(strided.offset, width)),
          strided.strides};
}

BlockedCopy::BlockedCopy(OpBuilder &b, Location loc,
                         const ScheduledGroup &group, Value fromData,
                         Value toData)
    : loc(loc), steps(group.numLoops, 1) {
  auto type = cast<MemRefType>(fromData.getType());
  width = at(b).constant(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  from = getSide(b, fromData);
  to = getSide(b, toData);
  unsigned inner = group.numLoops - 1;
  steps[inner] = kInnerElements;
  for (unsigned dim : llvm::reverse(llvm::seq(inner)))
    if (group.isFeature(dim) != group.isFeature(inner)) {
      steps[dim] = kOtherElements;
      break;
    }
  for (auto [dim, step] : llvm::enumerate(steps)) {
    sizes.push_back(b.createOrFold<memref::DimOp>(loc, fromData, dim));
    counts.push_back(at(b).ceilDiv(sizes.back(), at(b).constant(step)));
  }
}

void BlockedCopy::emitFor(OpBuilder &b, Value lower, Value upper,
                          function_ref<void(OpBuilder &, Value)> body) const {
  scf::ForOp::create(b, loc, lower, upper, at(b).constant(1), ValueRange(),
                     [&](OpBuilder &nested, Location, Value iv, ValueRange) {
                       body(nested, iv);
                       scf::YieldOp::create(nested, loc);
                     });
}

Value BlockedCopy::getPointer(OpBuilder &b, const Side &side,
                              ArrayRef<Value> ivs) const {
  Value position = at(b).constant(0);
  for (auto [iv, stride] : llvm::zip_equal(ivs, side.strides))
    position = at(b).add(position, at(b).mul(iv, stride));
  Value address = at(b).add(side.address, at(b).mul(position, width));
  Value bits = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), bits);
}

void BlockedCopy::emitBytes(OpBuilder &b, ArrayRef<Value> ivs,
                            Value count) const {
  Value bytes = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                           at(b).mul(count, width));
  LLVM::MemcpyOp::create(b, loc, getPointer(b, to, ivs),
                         getPointer(b, from, ivs), bytes,
                         /*isVolatile=*/false);
}

void BlockedCopy::emitScalars(OpBuilder &b, SmallVector<Value> ivs,
                              unsigned dim, Value end) const {
  emitFor(b, ivs[dim], end, [&](OpBuilder &nested, Value iv) {
    ivs[dim] = iv;
    Value element = memref::LoadOp::create(nested, loc, from.memref, ivs);
    memref::StoreOp::create(nested, loc, element, to.memref, ivs);
  });
}

void BlockedCopy::emitElements(OpBuilder &b, SmallVector<Value> ivs,
                               ArrayRef<unsigned> dims) const {
  unsigned dim = dims.front();
  Value first = ivs[dim];
  Value end =
      at(b).min(at(b).add(first, at(b).constant(steps[dim])), sizes[dim]);
  if (dims.size() > 1) {
    emitFor(b, first, end, [&](OpBuilder &nested, Value iv) {
      ivs[dim] = iv;
      emitElements(nested, ivs, dims.drop_front());
    });
    return;
  }
  auto isOne = [&](Value stride) {
    return at(b).compare(arith::CmpIPredicate::eq, stride, at(b).constant(1));
  };
  scf::IfOp::create(
      b, loc, at(b).bitAnd(isOne(from.strides[dim]), isOne(to.strides[dim])),
      [&](OpBuilder &nested, Location) {
        emitBytes(nested, ivs, at(nested).sub(end, first));
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        emitScalars(nested, ivs, dim, end);
        scf::YieldOp::create(nested, loc);
      });
}

void BlockedCopy::emitBlock(OpBuilder &b, Value number) const {
  SmallVector<Value> ivs(steps.size());
  SmallVector<unsigned> dims; // the blocked ones
  for (unsigned dim : llvm::reverse(llvm::seq<unsigned>(steps.size()))) {
    Value block = at(b).rem(number, counts[dim]);
    ivs[dim] = at(b).mul(block, at(b).constant(steps[dim]));
    number = at(b).div(number, counts[dim]);
    if (steps[dim] > 1)
      dims.insert(dims.begin(), dim);
  }
  // Stores to neighbours follow one another.
  auto emitInOrder = [&](ArrayRef<unsigned> order) {
    return [&, order](OpBuilder &nested, Location) {
      emitElements(nested, ivs, order);
      scf::YieldOp::create(nested, loc);
    };
  };
  SmallVector<unsigned> reversed(llvm::reverse(dims));
  Value isReversed =
      at(b).compare(arith::CmpIPredicate::slt, to.strides[dims.front()],
                    to.strides[dims.back()]);
  scf::IfOp::create(b, loc, isReversed, emitInOrder(reversed),
                    emitInOrder(dims));
}

/// A small copy is one iteration of the parallel loop.
void BlockedCopy::emit(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value zero = index.constant(0), one = index.constant(1);
  Value blocks = index.product(counts);
  Value isSmall = index.compare(arith::CmpIPredicate::ult, index.product(sizes),
                                index.constant(limits::kSerialElements));
  Value shares = index.select(isSmall, one, blocks);
  scf::ParallelOp::create(
      b, loc, zero, shares, one,
      [&](OpBuilder &nested, Location, ValueRange iv) {
        Value first = at(nested).select(isSmall, zero, iv[0]);
        Value end =
            at(nested).select(isSmall, blocks, at(nested).add(iv[0], one));
        emitFor(nested, first, end, [&](OpBuilder &inBlock, Value number) {
          emitBlock(inBlock, number);
        });
      });
}

void mlir::bngrad::emitCopy(OpBuilder &b, Location loc,
                            const ScheduledGroup &group, Value from, Value to) {
  BlockedCopy(b, loc, group, from, to).emit(b);
}
