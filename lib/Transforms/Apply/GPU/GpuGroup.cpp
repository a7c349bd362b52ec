//===- GpuGroup.cpp - what all emitters of kernels use --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuGroup.h"
#include "Schedule/OnePassLayout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::bngrad;

/// A symbol for the kernels of another group of `function`. No other symbol
/// begins with it, as embedding kernels creates `<symbol>_module` and the like.
static std::string createModuleName(func::FuncOp function) {
  unsigned number = 0;
  function.walk([&](gpu::LaunchOp launch) {
    if (auto module = launch.getModuleAttr())
      if (unsigned other;
          !module.getValue().rsplit('_').second.getAsInteger(10, other))
        number = std::max(number, other + 1);
  });
  auto makeName = [&] {
    return (function.getSymName() + "_group_" + Twine(number)).str();
  };
  auto isTaken = [&](Operation &op) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    return symbol && symbol.getName().starts_with(makeName());
  };
  while (llvm::any_of(*function->getBlock(), isTaken))
    ++number;
  return makeName();
}

GpuGroup::GpuGroup(OpBuilder &b, const ScheduledGroup &group,
                   const GpuSchedule &schedule, DeviceBuffers &buffers)
    : GroupEmitter(b, group), schedule(schedule), buffers(buffers),
      moments(MomentStages::getAboutFirst(group)),
      threads(schedule.blockThreads), inner(group.numLoops - 1) {
  channels = at(b).product(pick(sizes, group.features));
  module = createModuleName(
      group.getDataGenerics().front()->getParentOfType<func::FuncOp>());
}

void GpuGroup::enterStage(unsigned number) {
  GroupEmitter::enterStage(number);
  if (moments && number == moments->sum)
    sumTypes.clear();
  if (computesMoments())
    sumTypes.assign(2,
                    Float64Type::get(group.getMembers().front().getContext()));
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void GpuGroup::launch(
    OpBuilder &b, StringRef name, const LaunchShape &shape,
    function_ref<void(OpBuilder &, const Kernel &)> body) const {
  Value one = constant(b, 1), bytes, clusterX, clusterYZ;
  if (shape.dynamicSharedBytes > 0)
    bytes = arith::ConstantIntOp::create(b, loc, shape.dynamicSharedBytes,
                                         /*width=*/32);
  if (shape.cluster > 1) {
    clusterX = constant(b, shape.cluster);
    clusterYZ = one;
  }
  auto symbol = [&](const Twine &text) {
    return FlatSymbolRefAttr::get(b.getStringAttr(text));
  };
  auto launchOp = gpu::LaunchOp::create(
      b, loc, shape.blocks, one, one, constant(b, shape.threads), one, one,
      bytes, buffers.getStream().getType(), buffers.getStream(), shape.shared,
      /*privateAttributions=*/TypeRange(), clusterX, clusterYZ, clusterYZ,
      symbol(module), symbol(name));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&launchOp.getBody().front());
  // The builder omits the arguments for numbers and sizes of clusters.
  constexpr unsigned kBlockArguments = 12, kClusterArguments = 6;
  if (shape.cluster > 1)
    for (unsigned i : llvm::seq(kClusterArguments))
      launchOp.getBody().insertArgument(kBlockArguments + i, b.getIndexType(),
                                        loc);
  if (shape.startsNext)
    NVVM::GriddepcontrolOp::create(b, loc,
                                   NVVM::GridDepActionKind::launch_dependents);
  SmallVector<Value> attributions(
      launchOp.getBody().getArguments().take_back(shape.shared.size()));
  body(b, {*this, launchOp.getBlockIds().x, launchOp.getThreadIds().x,
           shape.threads, attributions});
  gpu::TerminatorOp::create(b, loc);
}

MemRefType GpuGroup::getSharedType(int64_t elements, Type type) {
  auto space = gpu::AddressSpaceAttr::get(type.getContext(),
                                          gpu::AddressSpace::Workgroup);
  return MemRefType::get({elements}, type, MemRefLayoutAttrInterface(), space);
}

SmallVector<Type> GpuGroup::getSharedTypes(int64_t elements) const {
  return llvm::map_to_vector(llvm::seq(numSums()), [&](unsigned i) -> Type {
    return getSharedType(elements, sumType(i));
  });
}

scf::ForOp
GpuGroup::forEach(OpBuilder &b, Value from, Value to, Value step,
                  function_ref<void(OpBuilder &, Value)> body) const {
  return scf::ForOp::create(
      b, loc, from, to, step, ValueRange(),
      [&](OpBuilder &nested, Location, Value number, ValueRange) {
        body(nested, number);
        scf::YieldOp::create(nested, loc);
      });
}

//===----------------------------------------------------------------------===//
// Numbers for the threads of a block
//===----------------------------------------------------------------------===//

void Kernel::forEach(OpBuilder &b, int64_t count,
                     function_ref<void(OpBuilder &, Value)> body) const {
  IndexBuilder index = gpu.at(b);
  Value end = index.constant(count);
  if (count <= threads)
    return gpu.emitIf(b, isBelow(index, thread, end),
                      [&](OpBuilder &nested) { body(nested, thread); });
  gpu.forEach(b, thread, end, index.constant(threads), body);
}

int64_t Kernel::countSharers(int64_t count, int64_t most) const {
  int64_t parts = std::min({most, threads / count, CudaChip::kWarpSize});
  return parts > 1 ? llvm::bit_floor(static_cast<uint64_t>(parts)) : 1;
}

/// The threads that share `count` numbers, in whole warps.
static int64_t countActive(int64_t count, int64_t parts) {
  return parts > 1 ? llvm::alignTo(count * parts, CudaChip::kWarpSize) : count;
}

void Kernel::forEachShared(OpBuilder &b, int64_t count, int64_t parts,
                           SharedBody body) const {
  forEach(b, countActive(count, parts), [&](OpBuilder &nested, Value number) {
    Value width = gpu.constant(nested, parts);
    body(nested, gpu.at(nested).div(number, width),
         gpu.at(nested).rem(number, width));
  });
}

std::optional<Value> Kernel::getSharedNumber(OpBuilder &b, int64_t count,
                                             int64_t parts) const {
  if (countActive(count, parts) > threads)
    return std::nullopt;
  return gpu.at(b).div(thread, gpu.constant(b, parts));
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

Walk::Walk(IndexBuilder index, ArrayRef<unsigned> loops, ArrayRef<Value> sizes,
           Value stride, unsigned inner, int64_t lanes)
    : loops(loops), sizes(sizes), inner(inner), lanes(lanes) {
  strides = delinearize(index, stride);
}

SmallVector<Value> Walk::delinearize(IndexBuilder index, Value number) const {
  SmallVector<Value> result(loops.size());
  for (size_t i = loops.size(); i-- > 1;) {
    // A loop without iterations has no positions.
    Value size = index.max(sizes[i], index.constant(1));
    result[i] = index.rem(number, size);
    number = index.div(number, size);
  }
  result[0] = number;
  return result;
}

SmallVector<Value> Walk::advance(IndexBuilder index,
                                 ValueRange position) const {
  SmallVector<Value> result(loops.size());
  Value carry = index.constant(0);
  for (size_t i = loops.size(); i-- > 1;) {
    Value next = index.add(index.add(position[i], strides[i]), carry);
    Value wraps = index.compare(arith::CmpIPredicate::uge, next, sizes[i]);
    result[i] = index.select(wraps, index.sub(next, sizes[i]), next);
    carry = index.select(wraps, index.constant(1), index.constant(0));
  }
  result[0] = index.add(index.add(position[0], strides[0]), carry);
  return result;
}

Indices Walk::getIndices(IndexBuilder index, Indices indices,
                         ValueRange position) const {
  for (auto [loop, value] : llvm::zip_equal(loops, position))
    indices[loop] =
        loop == inner ? index.mul(value, index.constant(lanes)) : value;
  return indices;
}

Walk GpuGroup::createWalk(OpBuilder &b, ArrayRef<unsigned> loops, Value stride,
                          int64_t lanes) const {
  SmallVector<Value> pieces = pick(sizes, loops);
  if (!loops.empty() && loops.back() == inner)
    pieces.back() = at(b).div(pieces.back(), constant(b, lanes));
  return {at(b), loops, pieces, stride, inner, lanes};
}

Chunks::Chunks(IndexBuilder index, const ThreadPieces &pieces) {
  size = index.mul(pieces.stride, index.constant(kUnroll));
  // All threads have a whole chunk if the last thread has its last piece.
  Value to = pieces.to;
  if (pieces.width)
    to = index.add(to, index.sub(pieces.stride, index.constant(pieces.width)));
  count =
      pieces.isChunk
          ? index.constant(1)
          : index.div(index.sub(index.max(to, pieces.from), pieces.from), size);
  start = index.add(pieces.from, pieces.thread);
}
