//===- PlanWorkspace.cpp - bngrad-plan-workspace --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The buffers of a block are placed one after another. The buffers of a nested
// region start where the preceding buffers of the block end, and later buffers
// of the block reuse their memory, because they are dead once the region has
// run. The function that computes the size of the workspace adds up the sizes
// in the same way. It contains the slice of the function that the sizes depend
// on.
//
//===----------------------------------------------------------------------===//

#include "BufferBytes.h"

#include "BNGrad/Dialect/Alignment.h"
#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/ExportC.h"
#include "BNGrad/Transforms/CAbi/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-plan-workspace"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADPLANWORKSPACEPASS
#include "BNGrad/Transforms/CAbi/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The buffer that `op` frees, or null.
static Value getFreed(Operation *op) {
  if (auto dealloc = dyn_cast<memref::DeallocOp>(op))
    return dealloc.getMemref();
  if (auto dealloc = dyn_cast<gpu::DeallocOp>(op))
    return dealloc.getMemref();
  return Value();
}

namespace {
/// A memref.alloc or gpu.alloc.
class Allocation {
public:
  explicit Allocation(Operation *op) : op(op) {}

  MemRefType getType() const {
    return cast<MemRefType>(op->getResult(0).getType());
  }
  ValueRange getDynamicSizes() const {
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return alloc.getDynamicSizes();
    return cast<gpu::AllocOp>(op).getDynamicSizes();
  }
  /// The alignment in bytes; 1 if none is required.
  uint64_t getAlignment() const {
    auto alloc = dyn_cast<memref::AllocOp>(op);
    return alloc ? alloc.getAlignment().value_or(1) : 1;
  }
  bool isHostShared() const {
    auto alloc = dyn_cast<gpu::AllocOp>(op);
    return alloc && alloc.getHostShared();
  }

private:
  Operation *op;
};

/// Plans the workspace of one function.
class Planner {
public:
  /// Plans the memory of gpu.alloc if `ofDevice` is true, otherwise the memory
  /// of memref.alloc.
  Planner(func::FuncOp function, bool ofDevice)
      : function(function), ofDevice(ofDevice), builder(function.getContext()),
        bytes(builder, function.getLoc(), kBufferAlignment) {}

  /// Whether there is anything to plan.
  bool find();
  /// Adds NAME.workspace.
  func::FuncOp createSizeFunction();
  /// Replaces the allocations by views of the workspace.
  void apply();

private:
  /// A planned allocation.
  struct Buffer {
    /// The parallel loop whose body contains the allocation, or null.
    scf::ParallelOp loop;
    /// An earlier allocation in the same block whose memory this one reuses, or
    /// null.
    Operation *reused = nullptr;
    SmallVector<Operation *> deallocs;
  };

  bool isAllocation(Operation *op) const {
    return ofDevice ? isa<gpu::AllocOp>(op) : isa<memref::AllocOp>(op);
  }
  std::optional<Buffer> examine(Operation *op);
  bool addSlice(Value value);
  void findReuse(Block &block);
  Value measure(Block &block, IRMapping &mapping, Value start);
  void place(Block &block, Value start);
  template <typename Op> Value fold(Value lhs, Value rhs) {
    return builder.createOrFold<Op>(function.getLoc(), lhs, rhs);
  }

  func::FuncOp function;
  bool ofDevice;
  OpBuilder builder;
  BufferBytes bytes;
  llvm::MapVector<Operation *, Buffer> buffers;
  /// The ops that compute the sizes, conditions and loop bounds of the plan.
  DenseSet<Operation *> slice;
  /// The ops whose regions contain planned allocations.
  DenseSet<Operation *> around;
  Value workspace;
  DenseMap<Operation *, Value> offsets;
};
} // namespace

/// Adds the ops that compute `value` to the slice. Returns false if `value`
/// depends on data.
bool Planner::addSlice(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &function.front();
  Operation *op = value.getDefiningOp();
  if (slice.contains(op))
    return true;
  // This also excludes sizes of allocated buffers, since allocations have
  // effects.
  if (!isMemoryEffectFree(op))
    return false;
  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), operands);
  if (!llvm::all_of(operands, [&](Value v) { return addSlice(v); }))
    return false;
  slice.insert(op);
  return true;
}

/// Whether `op` can be erased: it has no token, or depends on a single token
/// that can replace its own.
static bool canErase(Operation *op) {
  auto async = dyn_cast<gpu::AsyncOpInterface>(op);
  return !async || !async.getAsyncToken() ||
         async.getAsyncDependencies().size() == 1;
}

/// Erases `op`. Ops that waited for it then wait for the token it depended on.
static void erase(Operation *op) {
  if (auto async = dyn_cast<gpu::AsyncOpInterface>(op))
    if (Value token = async.getAsyncToken())
      token.replaceAllUsesWith(async.getAsyncDependencies().front());
  op->erase();
}

/// Returns the plan for the allocation `op`, or nothing if it cannot be
/// replaced.
std::optional<Planner::Buffer> Planner::examine(Operation *op) {
  Allocation allocation(op);
  MemRefType type = allocation.getType();
  Value memref = op->getResult(0);
  if (type.getMemorySpace() || !type.getLayout().isIdentity() ||
      getElementBytes(type.getElementType()) == 0 ||
      allocation.getAlignment() > static_cast<uint64_t>(kBufferAlignment) ||
      allocation.isHostShared() || !canErase(op))
    return std::nullopt;

  Buffer buffer;
  // Check that the buffer is freed in this block and does not escape from it.
  SmallVector<Value> worklist = {memref};
  while (!worklist.empty()) {
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (Value freed = getFreed(user)) {
        if (freed != memref || user->getBlock() != op->getBlock() ||
            !canErase(user))
          return std::nullopt;
        buffer.deallocs.push_back(user);
      } else if (isa<ViewLikeOpInterface, arith::SelectOp>(user)) {
        worklist.append(user->result_begin(), user->result_end());
      } else if (user->hasTrait<OpTrait::IsTerminator>() ||
                 isa<CallOpInterface, RegionBranchOpInterface>(user) ||
                 llvm::any_of(user->getResultTypes(), [](Type type) {
                   return isa<BaseMemRefType>(type);
                 })) {
        return std::nullopt;
      }
    }
  }

  Operation *parent = op->getParentOp();
  if (auto loop = dyn_cast<scf::ParallelOp>(parent)) {
    if (loop.getNumLoops() != 1 || loop.getNumResults() != 0 ||
        !addSlice(loop.getLowerBound()[0]) ||
        !addSlice(loop.getUpperBound()[0]) || !addSlice(loop.getStep()[0]))
      return std::nullopt;
    buffer.loop = loop;
    parent = loop->getParentOp();
  }
  for (; parent != function; parent = parent->getParentOp()) {
    if (auto choice = dyn_cast<scf::IfOp>(parent)) {
      if (!addSlice(choice.getCondition()))
        return std::nullopt;
    } else if (auto region = dyn_cast<scf::ExecuteRegionOp>(parent);
               !region || !region.getRegion().hasOneBlock()) {
      return std::nullopt;
    }
  }
  if (!llvm::all_of(allocation.getDynamicSizes(),
                    [&](Value size) { return addSlice(size); }))
    return std::nullopt;
  return buffer;
}

bool Planner::find() {
  if (!function.getBody().hasOneBlock())
    return false;
  function.walk([&](Operation *op) {
    if (!isAllocation(op))
      return;
    std::optional<Buffer> buffer = examine(op);
    if (!buffer) {
      LDBG() << "not replaced, because its lifetime or its size depends on "
                "data: "
             << *op;
      return;
    }
    buffers.insert({op, std::move(*buffer)});
    for (Operation *parent = op->getParentOp(); parent != function;
         parent = parent->getParentOp())
      around.insert(parent);
  });
  function.walk([&](Block *block) { findReuse(*block); });
  return !buffers.empty();
}

/// Makes buffers of static size reuse the memory of buffers that were freed
/// earlier in `block`.
void Planner::findReuse(Block &block) {
  // The memory that is free: the allocation that placed it, and its size.
  SmallVector<std::pair<Operation *, int64_t>> free;
  DenseMap<Operation *, std::pair<Operation *, int64_t>> owners;
  for (Operation &op : block) {
    if (Value freed = getFreed(&op)) {
      auto owner = owners.find(freed.getDefiningOp());
      if (owner != owners.end())
        free.push_back(owner->second);
      continue;
    }
    if (!buffers.contains(&op))
      continue;
    MemRefType type = Allocation(&op).getType();
    if (!type.hasStaticShape())
      continue;
    int64_t bytes =
        type.getNumElements() * getElementBytes(type.getElementType());
    auto *best = free.end();
    for (auto *it = free.begin(); it != free.end(); ++it)
      if (it->second >= bytes &&
          (best == free.end() || it->second < best->second))
        best = it;
    if (best == free.end()) {
      owners[&op] = {&op, bytes};
      continue;
    }
    buffers[&op].reused = best->first;
    owners[&op] = *best;
    free.erase(best);
  }
}

/// Emits the number of iterations of `loop`; `get` maps the loop's operands.
static Value countIterations(OpBuilder &b, scf::ParallelOp loop,
                             function_ref<Value(Value)> get) {
  Location loc = loop.getLoc();
  Value lower = get(loop.getLowerBound()[0]);
  Value upper = get(loop.getUpperBound()[0]);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value isEmpty =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, lower, upper);
  // The difference of bounds that are far apart is an unsigned number.
  Value range = arith::SubIOp::create(b, loc, upper, lower);
  range = arith::SelectOp::create(b, loc, isEmpty, zero, range);
  return arith::CeilDivUIOp::create(b, loc, range, get(loop.getStep()[0]));
}

/// Emits the end of the memory that `block` needs if it starts at `start`.
Value Planner::measure(Block &block, IRMapping &mapping, Value start) {
  Location loc = function.getLoc();
  Value current = start, peak = start;
  auto raise = [&](Value end) { peak = fold<arith::MaxUIOp>(peak, end); };
  auto get = [&](Value value) { return mapping.lookup(value); };
  for (Operation &op : block) {
    if (slice.contains(&op))
      builder.clone(op, mapping);
    if (auto *buffer = buffers.find(&op); buffer != buffers.end()) {
      if (buffer->second.reused)
        continue;
      SmallVector<Value> sizes =
          llvm::map_to_vector(Allocation(&op).getDynamicSizes(), get);
      Value size = bytes.compute(Allocation(&op).getType(), sizes);
      if (scf::ParallelOp loop = buffer->second.loop)
        size = bytes.multiply(
            size, bytes.fromIndex(countIterations(builder, loop, get)));
      current = bytes.add(current, size);
      raise(current);
    }
    if (!around.contains(&op))
      continue;
    if (auto choice = dyn_cast<scf::IfOp>(op)) {
      auto sizes = scf::IfOp::create(builder, loc, builder.getI64Type(),
                                     get(choice.getCondition()),
                                     /*withElseRegion=*/true);
      for (auto [from, to] :
           llvm::zip_equal(choice->getRegions(), sizes->getRegions())) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToEnd(&to.front());
        Value end =
            from.empty() ? current : measure(from.front(), mapping, current);
        scf::YieldOp::create(builder, loc, end);
      }
      raise(sizes.getResult(0));
    } else {
      raise(measure(op.getRegion(0).front(), mapping, current));
    }
  }
  return peak;
}

func::FuncOp Planner::createSizeFunction() {
  builder.setInsertionPointAfter(function);
  Location loc = function.getLoc();
  auto size = func::FuncOp::create(
      builder, loc, (function.getSymName() + ".workspace").str(),
      builder.getFunctionType(function.getArgumentTypes(),
                              builder.getI64Type()));
  size.setPrivate();
  builder.setInsertionPointToStart(size.addEntryBlock());
  IRMapping mapping;
  mapping.map(function.getArguments(), size.getArguments());
  Value end = measure(function.front(), mapping, bytes.constant(0));
  func::ReturnOp::create(builder, loc, end);
  // The size must suffice for any thread pool, so assume the most threads.
  size.walk([&](NumThreadsOp op) {
    builder.setInsertionPoint(op);
    op.replaceAllUsesWith(
        arith::ConstantIntOp::create(builder, op.getLoc(), op.getMax(), 32)
            .getResult());
    op.erase();
  });
  return size;
}

/// Replaces the buffers of `block` by views of the workspace from `start` on.
void Planner::place(Block &block, Value start) {
  Location loc = function.getLoc();
  Value current = start;
  SmallVector<Operation *> dead;
  for (Operation &op : block) {
    if (around.contains(&op)) {
      for (Region &region : op.getRegions())
        if (!region.empty())
          place(region.front(), current);
      continue;
    }
    auto *found = buffers.find(&op);
    if (found == buffers.end())
      continue;
    const Buffer &buffer = found->second;
    Allocation alloc(&op);
    builder.setInsertionPoint(&op);
    Value offset = current;
    if (buffer.reused) {
      offset = offsets.lookup(buffer.reused);
    } else {
      Value size = bytes.compute(alloc.getType(), alloc.getDynamicSizes());
      Value all = size;
      if (scf::ParallelOp loop = buffer.loop) {
        auto get = [](Value value) { return value; };
        Value first = arith::SubIOp::create(
            builder, loc, loop.getInductionVars()[0], loop.getLowerBound()[0]);
        Value iteration =
            arith::DivSIOp::create(builder, loc, first, loop.getStep()[0]);
        offset = bytes.add(
            current, fold<arith::MulIOp>(size, bytes.fromIndex(iteration)));
        Value iterations = countIterations(builder, loop, get);
        all = arith::MulIOp::create(builder, loc, size,
                                    bytes.fromIndex(iterations));
      }
      current = bytes.add(current, all);
    }
    offsets[&op] = offset;
    Value view =
        memref::ViewOp::create(builder, op.getLoc(), alloc.getType(), workspace,
                               bytes.toIndex(offset), alloc.getDynamicSizes());
    op.getResult(0).replaceAllUsesWith(view);
    llvm::append_range(dead, buffer.deallocs);
    dead.push_back(&op);
  }
  for (Operation *op : dead)
    erase(op);
}

void Planner::apply() {
  Location loc = function.getLoc();
  auto type =
      MemRefType::get({ShapedType::kDynamic}, builder.getIntegerType(8));
  (void)function.insertArgument(function.getNumArguments(), type, {}, loc);
  workspace = function.getArguments().back();
  builder.setInsertionPointToStart(&function.front());
  place(function.front(), bytes.constant(0));
}

namespace {
struct BNGradPlanWorkspacePass
    : bngrad::impl::BNGradPlanWorkspacePassBase<BNGradPlanWorkspacePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic() && !function.isExternal() &&
          SymbolTable::symbolKnownUseEmpty(function, module))
        functions.push_back(function);
    for (func::FuncOp function : functions) {
      Planner planner(function, device);
      if (!planner.find())
        continue;
      func::FuncOp size = planner.createSizeFunction();
      planner.apply();
      function->setAttr(kWorkspaceAttrName, FlatSymbolRefAttr::get(size));
    }
  }
};
} // namespace
