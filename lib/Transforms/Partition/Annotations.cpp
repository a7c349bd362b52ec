//===- Annotations.cpp - shard annotations of a function ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Annotations.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::bngrad;
using shard::GridAxis;
using shard::Sharding;
using shard::ShardingOp;
using shard::ShardOp;

/// Scalars are replicated and need no annotation.
static bool isSharded(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0;
}

/// "argument 2 of @f", "result 0 of 'linalg.generic'".
static std::string describe(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    os << "argument " << argument.getArgNumber() << " of @"
       << function.getSymName();
  } else if (auto annotation = value.getDefiningOp<ShardOp>()) {
    return describe(annotation.getSrc());
  } else {
    auto result = cast<OpResult>(value);
    os << "result " << result.getResultNumber() << " of '"
       << result.getOwner()->getName() << "'";
  }
  return text;
}

static void printAxes(raw_ostream &os, ArrayRef<GridAxis> axes) {
  os << "[";
  llvm::interleaveComma(axes, os);
  os << "]";
}

static std::string print(ArrayRef<GridAxis> axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printAxes(os, axes);
  return text;
}

static std::string print(const Sharding &sharding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(
      sharding.getSplitAxes(), os,
      [&](DenseI16ArrayAttr axes) { printAxes(os, axes.asArrayRef()); });
  os << "]";
  return text;
}

bool mlir::bngrad::hasAnnotations(func::FuncOp function) {
  return function.walk([](ShardOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static shard::GridOp lookUpGrid(Operation *from, FlatSymbolRefAttr symbol) {
  return SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(from, symbol);
}

/// Checks that every size of the grid is known and positive, and that MPI can
/// number the processes.
static LogicalResult verifyGrid(shard::GridOp grid) {
  int64_t numProcesses = 1;
  for (auto [axis, size] : llvm::enumerate(grid.getShape())) {
    if (ShapedType::isDynamic(size) || size < 1) {
      InFlightDiagnostic error = grid.emitOpError()
                                 << "expected size of axis " << axis << " of @"
                                 << grid.getSymName()
                                 << " to be a positive constant, got ";
      return ShapedType::isDynamic(size) ? error << "?" : error << size;
    }
    if (size > INT32_MAX / numProcesses)
      return grid.emitOpError()
             << "expected at most " << INT32_MAX << " processes of @"
             << grid.getSymName() << ", got more";
    numProcesses *= size;
  }
  return success();
}

/// Checks that each dim of `value` has a size that the grid divides.
static LogicalResult verifySizes(Location loc, Value value,
                                 const Sharding &sharding, shard::GridOp grid) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  for (auto [dim, axes] : llvm::enumerate(sharding.getSplitAxes())) {
    if (dim >= shape.size() || ShapedType::isDynamic(shape[dim]))
      continue;
    int64_t shards =
        shard::collectiveProcessGroupSize(axes.asArrayRef(), grid.getShape());
    if (shape[dim] % shards != 0)
      return emitError(loc)
             << "expected dim " << dim << " of " << describe(value)
             << " to be a multiple of " << shards << ", the size of grid axes "
             << print(axes.asArrayRef()) << ", got " << shape[dim];
  }
  return success();
}

/// Checks an annotation of the user; `grid` is the earlier ones' grid, or null.
static LogicalResult verifyAnnotation(ShardOp op, shard::GridOp &grid) {
  auto sharding = op.getSharding().getDefiningOp<ShardingOp>();
  if (!sharding)
    return op.emitOpError() << "expected sharding to be a 'shard.sharding', "
                               "got another value";
  shard::GridOp ownGrid = lookUpGrid(op, sharding.getGridAttr());
  if (!grid) {
    grid = ownGrid;
    if (failed(verifyGrid(grid)))
      return failure();
  }
  if (ownGrid != grid)
    return op.emitOpError()
           << "expected one grid in a function, @" << grid.getSymName()
           << ", got @" << ownGrid.getSymName();
  if (!sharding.getStaticHaloSizes().empty() ||
      !sharding.getStaticShardedDimsOffsets().empty())
    return sharding.emitOpError()
           << "expected no "
           << (sharding.getStaticHaloSizes().empty() ? "sharded_dims_offsets"
                                                     : "halo_sizes")
           << ", which propagation drops, got some";
  // The only valid annotation of a scalar is [[]].
  ArrayRef<DenseI16ArrayAttr> splitAxes = sharding.getSplitAxes().getAxes();
  while (!splitAxes.empty() && splitAxes.back().empty())
    splitAxes = splitAxes.drop_back();
  int64_t rank = op.getType().getRank();
  if (static_cast<int64_t>(splitAxes.size()) > rank)
    return op.emitOpError()
           << "expected split_axes of at most " << rank << " dims, got "
           << print(Sharding(op.getSharding()));
  for (DenseI16ArrayAttr axes : splitAxes)
    for (GridAxis axis : axes.asArrayRef())
      if (axis < 0 || axis >= grid.getRank())
        return op.emitOpError() << "expected grid axes in [0, "
                                << grid.getRank() << "), got " << axis;
  return verifySizes(op.getLoc(), op.getSrc(), Sharding(op.getSharding()),
                     grid);
}

/// Checks what upstream's partition of linalg ops does not check, or only
/// asserts.
static LogicalResult verifyLinalg(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics())
    return op.emitOpError() << "expected tensors, as the function has shard "
                               "annotations, got memrefs";
  for (AffineMap map : op.getIndexingMapsArray())
    if (!map.isProjectedPermutation())
      return op.emitOpError() << "expected indexing maps that are projected "
                                 "permutations, as the function has shard "
                                 "annotations, got "
                              << AffineMapAttr::get(map);
  if (op.getNumReductionLoops() == 0)
    return success();
  SmallVector<Operation *> combiners;
  if (op.getNumDpsInits() == 1 &&
      matchReduction(op.getRegionOutputArgs(), 0, combiners) &&
      combiners.size() == 1 &&
      isa<arith::AddFOp, arith::AddIOp>(combiners.front()))
    return success();
  return op.emitOpError() << "expected one sum, by arith.addf or arith.addi, "
                             "in a reduction, as the function has shard "
                             "annotations, got another one";
}

namespace {
/// The grid axes along which a loop is split, and where this was seen.
struct SplitLoop {
  SmallVector<GridAxis> axes;
  StringRef role;
  unsigned dim;
};
} // namespace

/// The annotation of an operand or of a result; null if there is none.
static ShardOp getAnnotation(Value value, bool isResult) {
  if (!isResult)
    return value.getDefiningOp<ShardOp>();
  for (Operation *user : value.getUsers())
    if (auto annotation = dyn_cast<ShardOp>(user))
      return annotation;
  return {};
}

/// Checks that the annotations of a gradient agree.
static LogicalResult verifyGradient(BatchNormOpInterface op) {
  auto sharding = cast<shard::ShardingInterface>(op.getOperation());
  SmallVector<AffineMap> maps = sharding.getIndexingMaps();
  SmallVector<std::optional<SplitLoop>> loops(maps.front().getNumDims());
  auto visit = [&](ShardOp annotation, Role role,
                   AffineMap map) -> LogicalResult {
    if (!annotation)
      return success();
    Sharding sharding(annotation.getSharding());
    ArrayRef<DenseI16ArrayAttr> axesOfDims = sharding.getSplitAxes();
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      SmallVector<GridAxis> axes;
      if (dim < axesOfDims.size())
        llvm::append_range(axes, axesOfDims[dim].asArrayRef());
      auto &loop = loops[cast<AffineDimExpr>(expr).getPosition()];
      if (!loop)
        loop = SplitLoop{axes, stringifyRole(role), unsigned(dim)};
      else if (loop->axes != axes)
        return op.emitOpError()
               << "expected dim " << dim << " of " << stringifyRole(role)
               << " to be split along grid axes " << print(loop->axes)
               << ", as dim " << loop->dim << " of " << loop->role << ", got "
               << print(axes);
    }
    return success();
  };
  // Visit input first, as users annotate it.
  for (bool ofInput : {true, false})
    for (OpOperand &operand : op->getOpOperands()) {
      Role role = op.getOperandRole(operand);
      if ((role == Role::Input) == ofInput &&
          failed(visit(getAnnotation(operand.get(), /*isResult=*/false), role,
                       maps[operand.getOperandNumber()])))
        return failure();
    }
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (failed(visit(getAnnotation(result, /*isResult=*/true),
                     op.getResultRoles()[i], maps[op->getNumOperands() + i])))
      return failure();
  return success();
}

/// Checks an op that is not an annotation.
static LogicalResult verifyOp(Operation &op, func::FuncOp function) {
  if (llvm::any_of(op.getOperandTypes(), llvm::IsaPred<shard::ShardingType>))
    return op.emitOpError()
           << "expected no operand of type "
           << shard::ShardingType::get(op.getContext()) << ", got one";
  if (isa<func::ReturnOp>(op))
    return success();
  if (!isa<shard::ShardingInterface>(op) &&
      !op.hasTrait<OpTrait::ConstantLike>())
    return op.emitOpError() << "expected an op that implements "
                               "ShardingInterface, as @"
                            << function.getSymName()
                            << " has shard annotations, got one that does not";
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return verifyLinalg(linalg);
  if (auto gradient = dyn_cast<BatchNormOpInterface>(op))
    return verifyGradient(gradient);
  return success();
}

LogicalResult mlir::bngrad::verifyAnnotations(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError()
           << "expected one block in a function with shard annotations, got "
           << function.getBlocks().size();
  auto module = function->getParentOfType<ModuleOp>();
  if (auto uses = SymbolTable::getSymbolUses(function, module);
      uses && !uses->empty())
    return uses->begin()->getUser()->emitOpError()
           << "expected no use of @" << function.getSymName()
           << ", whose type changes as it has shard annotations, got one";
  WalkResult nested = function.walk([&](ShardOp op) {
    if (op->getParentOp() == function)
      return WalkResult::advance();
    op.emitOpError() << "expected in the body of @" << function.getSymName()
                     << ", got in '" << op->getParentOp()->getName() << "'";
    return WalkResult::interrupt();
  });
  if (nested.wasInterrupted())
    return failure();
  for (BlockArgument argument : function.getArguments())
    if (isSharded(argument.getType()) && argument.use_empty())
      return emitError(argument.getLoc())
             << "expected a use of " << describe(argument)
             << ", which has shard annotations, got none";
  shard::GridOp grid;
  for (auto op : function.getOps<ShardOp>())
    if (failed(verifyAnnotation(op, grid)))
      return failure();
  for (Operation &op : function.front())
    if (!isa<ShardOp, ShardingOp>(op) && failed(verifyOp(op, function)))
      return failure();
  return success();
}

/// The one annotation for the definition of the tensor `value`. Merges the
/// annotations that propagation made, one for each user of an argument.
static FailureOr<ShardOp> mergeAnnotations(Value value) {
  SmallVector<ShardOp> annotations;
  SmallVector<OpOperand *> others;
  for (OpOperand &use : value.getUses()) {
    if (auto annotation = dyn_cast<ShardOp>(use.getOwner()))
      annotations.push_back(annotation);
    else
      others.push_back(&use);
  }
  if (annotations.empty())
    return emitError(value.getLoc())
           << "expected a shard annotation of " << describe(value)
           << ", or of a value from which it follows, got none";
  // Sort them in program order.
  llvm::sort(annotations,
             [](ShardOp a, ShardOp b) { return a->isBeforeInBlock(b); });
  Sharding sharding(annotations.front().getSharding());
  for (ShardOp annotation : annotations)
    if (Sharding(annotation.getSharding()) != sharding)
      return emitError(value.getLoc())
             << "expected one sharding of " << describe(value) << ", "
             << print(sharding) << ", got "
             << print(Sharding(annotation.getSharding()));
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  Value own = ShardingOp::create(b, value.getLoc(), sharding);
  auto merged = ShardOp::create(b, value.getLoc(), value, own,
                                /*annotate_for_users=*/false);
  for (ShardOp annotation : annotations) {
    if (annotation.getAnnotateForUsers()) {
      annotation.getSrcMutable().assign(merged);
    } else {
      annotation.replaceAllUsesWith(merged.getResult());
      annotation.erase();
    }
  }
  for (OpOperand *use : others)
    use->set(merged);
  return merged;
}

/// Gives each operand of `op` an annotation for users.
static LogicalResult annotateOperands(Operation &op) {
  for (OpOperand &operand : op.getOpOperands()) {
    if (!isSharded(operand.get().getType()))
      continue;
    auto annotation = operand.get().getDefiningOp<ShardOp>();
    if (annotation.getAnnotateForUsers())
      continue;
    OpBuilder b(&op);
    operand.set(ShardOp::create(b, op.getLoc(), annotation,
                                annotation.getSharding(),
                                /*annotate_for_users=*/true));
  }
  return success();
}

/// Checks that an annotation of an annotated value agrees with it.
static LogicalResult verifyChain(ShardOp op) {
  auto source = op.getSrc().getDefiningOp<ShardOp>();
  if (!source)
    return success();
  Sharding from(source.getSharding()), to(op.getSharding());
  if (from == to)
    return success();
  Operation *user = op;
  for (Operation *next : op->getUsers())
    if (!isa<ShardOp>(next))
      user = next;
  return user->emitOpError()
         << "expected sharding " << print(to) << " of " << describe(op.getSrc())
         << ", which is not resharded, got " << print(from);
}

/// Checks a constant. Upstream splits only splats: it copies other constants
/// whole, or fails without an error.
static LogicalResult verifyConstant(Operation *op, const Sharding &sharding) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  auto value = constant
                   ? dyn_cast<DenseIntOrFPElementsAttr>(constant.getValue())
                   : DenseIntOrFPElementsAttr();
  if (value ? value.isSplat() : shard::isFullReplication(sharding))
    return success();
  return op->emitOpError()
         << "expected one value for all elements of a constant, as the "
            "function has shard annotations, got several";
}

FailureOr<FunctionShardings>
mlir::bngrad::completeAnnotations(func::FuncOp function) {
  SmallVector<Value> values;
  llvm::append_range(values, function.getArguments());
  for (Operation &op : function.front())
    if (!isa<ShardOp>(op))
      llvm::append_range(values, op.getResults());
  FunctionShardings shardings;
  for (Value value : values) {
    if (!isSharded(value.getType()))
      continue;
    FailureOr<ShardOp> annotation = mergeAnnotations(value);
    if (failed(annotation))
      return failure();
    Sharding sharding(annotation->getSharding());
    shardings.grid = lookUpGrid(function, sharding.getGridAttr());
    if (failed(verifySizes(value.getLoc(), value, sharding, shardings.grid)))
      return failure();
    Operation *def = value.getDefiningOp();
    if (def && def->hasTrait<OpTrait::ConstantLike>() &&
        failed(verifyConstant(def, sharding)))
      return failure();
  }
  for (auto op : function.getOps<ShardOp>())
    if (failed(verifyChain(op)))
      return failure();
  for (Operation &op : function.front())
    if (!isa<ShardOp>(op) && failed(annotateOperands(op)))
      return failure();
  auto getSharding = [](ShardOp annotation) {
    return annotation ? Sharding(annotation.getSharding()) : Sharding();
  };
  for (BlockArgument argument : function.getArguments())
    shardings.arguments.push_back(
        getSharding(getAnnotation(argument, /*isResult=*/true)));
  for (Value result : function.front().getTerminator()->getOperands())
    shardings.results.push_back(
        getSharding(getAnnotation(result, /*isResult=*/false)));
  return shardings;
}
