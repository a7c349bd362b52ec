//===- MergeAllocations.cpp - bngrad-merge-allocations --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device ops that depend on the same token become calls on the same stream,
// which executes them in order. It is therefore correct to allocate a buffer
// earlier in the stream, and to free it later.
//
//===----------------------------------------------------------------------===//

#include "CAbi/BufferBytes.h"

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADMERGEALLOCATIONSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The alignment of each buffer in bytes, which is the same as for allocations
/// by CUDA.
static constexpr int64_t kMergedAlignment = 256;

namespace {
/// An allocation, and the op in the same block and stream that frees it.
struct Buffer {
  gpu::AllocOp alloc;
  gpu::DeallocOp dealloc;

  bool isUsed() const { return !alloc->getResult(0).hasOneUse(); }
};
} // namespace

/// The token of the stream of `op`, or null if `op` does not depend on exactly
/// one token.
static Value getStream(gpu::AsyncOpInterface op) {
  OperandRange tokens = op.getAsyncDependencies();
  return op.getAsyncToken() && tokens.size() == 1 ? tokens.front() : Value();
}

/// The buffer of `alloc`, or nothing if the allocation must be kept.
static std::optional<Buffer> findBuffer(gpu::AllocOp alloc) {
  MemRefType type = alloc.getType();
  Value stream = getStream(alloc);
  if (!stream || alloc.getHostShared() || type.getMemorySpace() ||
      !type.getLayout().isIdentity() ||
      getElementBytes(type.getElementType()) == 0)
    return std::nullopt;
  Buffer buffer{alloc, {}};
  for (Operation *user : alloc.getMemref().getUsers()) {
    auto dealloc = dyn_cast<gpu::DeallocOp>(user);
    if (!dealloc)
      continue;
    if (buffer.dealloc || dealloc->getBlock() != alloc->getBlock() ||
        getStream(dealloc) != stream)
      return std::nullopt;
    buffer.dealloc = dealloc;
  }
  if (!buffer.dealloc)
    return std::nullopt;
  return buffer;
}

/// The last op of the stream in `block` before `end`, or null.
static gpu::AsyncOpInterface findLast(Block &block, Value stream,
                                      Operation *end) {
  gpu::AsyncOpInterface last;
  for (Operation &op : block) {
    if (&op == end)
      break;
    auto async = dyn_cast<gpu::AsyncOpInterface>(op);
    if (async && getStream(async) == stream)
      last = async;
  }
  return last;
}

/// Erases the unused buffers of `block`. Ops that waited for the free then wait
/// for the preceding op of the stream.
static void eraseUnused(RewriterBase &rewriter, Block &block) {
  for (auto dealloc :
       llvm::make_early_inc_range(block.getOps<gpu::DeallocOp>())) {
    auto alloc = dealloc.getMemref().getDefiningOp<gpu::AllocOp>();
    std::optional<Buffer> buffer;
    if (alloc)
      buffer = findBuffer(alloc);
    if (!buffer || buffer->isUsed())
      continue;
    Value stream = getStream(alloc);
    gpu::AsyncOpInterface last = findLast(block, stream, dealloc);
    // If nothing is between the allocation and the free, users of the free
    // would wait for the token of the stream, which is the result of another
    // gpu.wait, and upstream folds such waits away.
    if (last == alloc)
      continue;
    rewriter.replaceOp(dealloc, last.getAsyncToken());
    rewriter.replaceAllUsesWith(alloc.getAsyncToken(), stream);
    rewriter.eraseOp(alloc);
  }
}

/// The branch of `choice` that contains all uses of `buffer`, or null.
static Block *findBranch(scf::IfOp choice, Buffer buffer) {
  Block *only = nullptr;
  for (Operation *user : buffer.alloc.getMemref().getUsers()) {
    if (user == buffer.dealloc)
      continue;
    Block *branch = nullptr;
    for (Region &region : choice->getRegions())
      if (region.isAncestor(user->getParentRegion()))
        branch = &region.front();
    if (!branch || (only && only != branch))
      return nullptr;
    only = branch;
  }
  return only;
}

namespace {
/// The ops after an scf.if: frees of buffers that at most one branch uses, and
/// a wait of the host for the stream.
struct Tail {
  SmallVector<Buffer> buffers;
  Value stream;
  gpu::WaitOp wait;
};
} // namespace

/// Returns the tail of `choice`, or nothing if other ops follow it.
static std::optional<Tail> findTail(scf::IfOp choice) {
  Tail tail;
  Operation *op = choice->getNextNode();
  for (; !isa_and_nonnull<gpu::WaitOp>(op); op = op->getNextNode()) {
    if (!op || op->hasTrait<OpTrait::IsTerminator>())
      return std::nullopt;
    if (isMemoryEffectFree(op) || isa<gpu::AllocOp>(op))
      continue;
    auto dealloc = dyn_cast<gpu::DeallocOp>(op);
    auto alloc = dealloc ? dealloc.getMemref().getDefiningOp<gpu::AllocOp>()
                         : gpu::AllocOp();
    std::optional<Buffer> buffer;
    if (alloc)
      buffer = findBuffer(alloc);
    if (!buffer || (buffer->isUsed() && !findBranch(choice, *buffer)))
      return std::nullopt;
    tail.buffers.push_back(*buffer);
  }
  tail.wait = cast<gpu::WaitOp>(op);
  if (tail.buffers.empty() || tail.wait.getAsyncToken() ||
      tail.wait.getAsyncDependencies().size() != 1)
    return std::nullopt;
  tail.stream = getStream(tail.buffers.front().alloc);
  auto isOfStream = [&](gpu::AsyncOpInterface async) {
    return async && getStream(async) == tail.stream;
  };
  Value last = tail.wait.getAsyncDependencies().front();
  if (!isOfStream(last.getDefiningOp<gpu::AsyncOpInterface>()) ||
      !llvm::all_of(tail.buffers, [&](const Buffer &buffer) {
        return isOfStream(buffer.dealloc);
      }))
    return std::nullopt;
  return tail;
}

/// Moves buffers that only one branch of `choice` uses into that branch, so
/// that the other branch does not allocate them. Both branches then wait.
static void sinkInto(RewriterBase &rewriter, scf::IfOp choice) {
  std::optional<Tail> tail;
  if (choice.elseBlock() && choice->getNumResults() == 0)
    tail = findTail(choice);
  if (!tail || !llvm::all_of(choice->getRegions(), [&](Region &region) {
        return findLast(region.front(), tail->stream, nullptr);
      }))
    return;
  for (Buffer buffer : tail->buffers) {
    rewriter.replaceAllUsesWith(buffer.alloc.getAsyncToken(), tail->stream);
    rewriter.replaceAllUsesWith(buffer.dealloc.getAsyncToken(), tail->stream);
    if (Block *branch = findBranch(choice, buffer)) {
      rewriter.moveOpBefore(buffer.alloc, branch, branch->begin());
      rewriter.moveOpBefore(buffer.dealloc, branch->getTerminator());
    } else {
      rewriter.eraseOp(buffer.dealloc);
      rewriter.eraseOp(buffer.alloc);
    }
  }
  for (Region &region : choice->getRegions()) {
    Operation *end = region.front().getTerminator();
    rewriter.setInsertionPoint(end);
    gpu::WaitOp::create(
        rewriter, tail->wait.getLoc(), Type(),
        findLast(region.front(), tail->stream, end).getAsyncToken());
  }
  rewriter.eraseOp(tail->wait);
}

/// Adds the ops that compute `value` and follow `point` in its block to
/// `slice`, in an order in which they can be moved before `point`. Returns
/// false if `value` depends on memory.
static bool addSlice(Value value, Operation *point,
                     llvm::SetVector<Operation *> &slice) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != point->getBlock() ||
      op->isBeforeInBlock(point) || slice.contains(op))
    return true;
  if (!isPure(op))
    return false;
  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), operands);
  if (!llvm::all_of(operands,
                    [&](Value v) { return addSlice(v, point, slice); }))
    return false;
  slice.insert(op);
  return true;
}

/// Moves the computation of `values`, which are used in the block of `point`,
/// before `point`. Returns false if they depend on memory.
static bool moveBefore(ValueRange values, Operation *point) {
  llvm::SetVector<Operation *> slice;
  if (!llvm::all_of(values, [&](Value v) { return addSlice(v, point, slice); }))
    return false;
  for (Operation *op : slice)
    op->moveBefore(point);
  return true;
}

/// Merges `buffers`, which are alive at the same time, into one allocation.
/// Their sizes are available at the first of them.
static void merge(RewriterBase &rewriter, ArrayRef<Buffer> buffers) {
  gpu::AllocOp first = buffers.front().alloc;
  Location loc = first.getLoc();
  rewriter.setInsertionPoint(first);
  BufferBytes bytes(rewriter, loc, kMergedAlignment);
  Value end = bytes.constant(0);
  SmallVector<Value> offsets;
  for (const Buffer &buffer : buffers) {
    gpu::AllocOp alloc = buffer.alloc;
    offsets.push_back(end);
    end =
        bytes.add(end, bytes.compute(alloc.getType(), alloc.getDynamicSizes()));
  }
  auto type = MemRefType::get({ShapedType::kDynamic}, rewriter.getI8Type());
  auto arena = gpu::AllocOp::create(
      rewriter, loc, type, first.getAsyncToken().getType(),
      first.getAsyncDependencies(), bytes.toIndex(end), ValueRange());
  gpu::DeallocOp last = buffers.front().dealloc;
  for (const Buffer &buffer : buffers)
    if (last->isBeforeInBlock(buffer.dealloc))
      last = buffer.dealloc;
  for (auto [buffer, offset] : llvm::zip_equal(buffers, offsets)) {
    gpu::AllocOp alloc = buffer.alloc;
    gpu::DeallocOp dealloc = buffer.dealloc;
    if (dealloc == last) {
      rewriter.modifyOpInPlace(dealloc, [&] {
        dealloc.getMemrefMutable().assign(arena.getMemref());
      });
    } else {
      rewriter.replaceOp(dealloc, arena.getAsyncToken());
    }
    Value view = memref::ViewOp::create(
        rewriter, alloc.getLoc(), alloc.getType(), arena.getMemref(),
        bytes.toIndex(offset), alloc.getDynamicSizes());
    rewriter.replaceOp(alloc, {view, arena.getAsyncToken()});
  }
}

/// Merges the buffers of `block` that are alive at the same time.
static void mergeInBlock(RewriterBase &rewriter, Block &block) {
  SmallVector<SmallVector<Buffer>> arenas;
  DenseMap<Value, size_t> open; // the current arena of each stream
  for (Operation &op : block) {
    // Later allocations may reuse the freed memory, so they start a new arena.
    if (auto dealloc = dyn_cast<gpu::DeallocOp>(op))
      open.erase(getStream(dealloc));
    auto alloc = dyn_cast<gpu::AllocOp>(op);
    std::optional<Buffer> buffer;
    if (alloc)
      buffer = findBuffer(alloc);
    if (!buffer)
      continue;
    auto [arena, isFirst] = open.try_emplace(getStream(alloc), arenas.size());
    if (!isFirst && !moveBefore(alloc.getDynamicSizes(),
                                arenas[arena->second].front().alloc)) {
      arena->second = arenas.size();
      isFirst = true;
    }
    if (isFirst)
      arenas.emplace_back();
    arenas[arena->second].push_back(*buffer);
  }
  for (ArrayRef<Buffer> arena : arenas)
    if (arena.size() > 1)
      merge(rewriter, arena);
}

namespace {
struct BNGradMergeAllocationsPass
    : bngrad::impl::BNGradMergeAllocationsPassBase<BNGradMergeAllocationsPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    func::FuncOp function = getOperation();
    function.walk([&](Block *block) { eraseUnused(rewriter, *block); });
    SmallVector<scf::IfOp> choices; // outer ones first
    function.walk<WalkOrder::PreOrder>(
        [&](scf::IfOp choice) { choices.push_back(choice); });
    for (scf::IfOp choice : choices)
      sinkInto(rewriter, choice);
    function.walk([&](Block *block) { mergeInBlock(rewriter, *block); });
  }
};
} // namespace
