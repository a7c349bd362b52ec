//===- ShardingInterface.cpp - sharding of the ops ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of an op are the dims of input, and one more over the two rows of
// the sums. Dims of input that are not feature dims are summed over. If one is
// sharded, an all-reduce adds up the sums of the shards.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Partition/ShardingInterface.h"

#include "Collectives.h"
#include "ToLinalg/Split.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::bngrad;
using shard::GridAxis;
using shard::ReductionKind;
using shard::Sharding;
using shard::ShardingOption;
using utils::IteratorType;

static int64_t getDataRank(BatchNormOpInterface op) {
  return op.getDataShape().size();
}

/// The map from the loops of `op` to a tensor of `role`.
static AffineMap getIndexingMap(BatchNormOpInterface op, Role role) {
  unsigned rank = getDataRank(op);
  MLIRContext *context = op.getContext();
  SmallVector<AffineExpr> exprs;
  switch (getInfo(role).shape) {
  case RoleShape::Data:
    for (unsigned dim : llvm::seq(rank))
      exprs.push_back(getAffineDimExpr(dim, context));
    break;
  case RoleShape::Sums:
    exprs.push_back(getAffineDimExpr(rank, context));
    [[fallthrough]];
  case RoleShape::Channel:
    for (int64_t dim : op.getFeatureDims())
      exprs.push_back(getAffineDimExpr(dim, context));
    break;
  case RoleShape::Scalar:
    break;
  }
  return AffineMap::get(rank + 1, 0, exprs, context);
}

static SmallVector<AffineMap> getIndexingMapsOf(BatchNormOpInterface op) {
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands())
    maps.push_back(getIndexingMap(op, op.getOperandRole(operand)));
  for (Role role : op.getResultRoles())
    maps.push_back(getIndexingMap(op, role));
  return maps;
}

/// The iterator types of the loops of `op`: every dim of input that is not a
/// feature dim is summed over.
static SmallVector<IteratorType> getIteratorTypes(BatchNormOpInterface op) {
  SmallVector<IteratorType> types(getDataRank(op) + 1, IteratorType::reduction);
  types.back() = IteratorType::parallel;
  for (int64_t dim : op.getFeatureDims())
    types[dim] = IteratorType::parallel;
  return types;
}

/// M of the whole batch if the type determines it.
static std::optional<int64_t> getGlobalCount(BatchNormOpInterface op) {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(op.getDataShape())) {
    if (op.isFeatureDim(dim))
      continue;
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    count *= size;
  }
  return count;
}

/// True if something other than annotations uses `value`.
static bool isUsed(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    auto annotation = dyn_cast<shard::ShardOp>(user);
    return !annotation || isUsed(annotation.getResult());
  });
}

namespace {
/// Partitions one op.
class Partitioner {
public:
  Partitioner(BatchNormOpInterface op, ArrayRef<Value> operands,
              ArrayRef<Sharding> operandShardings,
              ArrayRef<Sharding> resultShardings, IRMapping &mapping,
              SymbolTableCollection &symbols, OpBuilder &b);

  LogicalResult partition(BatchNormBackwardOp op);
  LogicalResult partition(BatchNormBackwardElemtOp op);
  LogicalResult partition(BatchNormTrainingOp op);
  /// Any other op: the op on the shards. Results that are not data are sums.
  LogicalResult partition(BatchNormOpInterface op);

private:
  bool hasWholeChannels();
  bool hasNoElements() { return llvm::is_contained(op.getDataShape(), 0); }
  Operation *cloneForShard();
  Value addUp(Value value, StringRef text);
  Value addUpCount(Value count);
  void mapResults(ArrayRef<Value> values);

  BatchNormOpInterface op;
  ArrayRef<Sharding> resultShardings;
  IRMapping &mapping;
  OpBuilder &b;
  shard::GridOp grid;
  /// The axes along which the sums of the shards are added up, ascending.
  SmallVector<GridAxis> axes;
  SmallVector<Type> shardTypes; // of the results
};
} // namespace

Partitioner::Partitioner(BatchNormOpInterface op, ArrayRef<Value> operands,
                         ArrayRef<Sharding> operandShardings,
                         ArrayRef<Sharding> resultShardings, IRMapping &mapping,
                         SymbolTableCollection &symbols, OpBuilder &b)
    : op(op), resultShardings(resultShardings), mapping(mapping), b(b) {
  for (ArrayRef<Sharding> shardings : {operandShardings, resultShardings})
    for (const Sharding &sharding : shardings)
      if (sharding && !grid)
        grid = shard::getGridOrNull(op, sharding.getGridAttr(), symbols);
  SmallVector<IteratorType> types = getIteratorTypes(op);
  axes = shard::getReductionGridAxes(
      types,
      shard::getGridAxisAssignmentForLoopIterators(
          operandShardings, resultShardings, types, getIndexingMapsOf(op)));
  llvm::sort(axes);
  for (auto [result, sharding] :
       llvm::zip_equal(op->getResults(), resultShardings)) {
    auto type = cast<RankedTensorType>(result.getType());
    shardTypes.push_back(sharding && type.getRank() > 0
                             ? shard::shardType(type, grid, sharding)
                             : type);
  }
}

/// The op on the shards, with results of their types.
Operation *Partitioner::cloneForShard() {
  IRMapping local = mapping;
  Operation *clone = b.clone(*op, local);
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), shardTypes))
    result.setType(type);
  return clone;
}

void Partitioner::mapResults(ArrayRef<Value> values) {
  for (auto [result, value, type] :
       llvm::zip_equal(op->getResults(), values, shardTypes)) {
    Value mapped = value;
    // A result without a value is unused.
    if (!mapped)
      mapped = ub::PoisonOp::create(b, op.getLoc(), type);
    if (mapped.getType() != type)
      mapped = tensor::CastOp::create(b, op.getLoc(), type, mapped);
    mapping.map(result, mapped);
  }
}

/// True if each channel belongs to one process.
bool Partitioner::hasWholeChannels() {
  return axes.empty() || shard::collectiveProcessGroupSize(axes, grid) == 1;
}

/// The sum of `value` over the processes that share a channel.
Value Partitioner::addUp(Value value, StringRef text) {
  auto reduced = shard::AllReduceOp::create(
      b, op.getLoc(), value, grid.getSymName(), axes, ReductionKind::Sum);
  reduced->setAttr(kCollectiveAttrName,
                   b.getStringAttr(text + " " + describeGradient(op)));
  return reduced.getResult();
}

Value Partitioner::addUpCount(Value count) {
  if (std::optional<int64_t> known = getGlobalCount(op)) {
    auto type = RankedTensorType::get({}, b.getI64Type());
    return arith::ConstantOp::create(
        b, op.getLoc(),
        DenseElementsAttr::get(type, b.getI64IntegerAttr(*known)));
  }
  return addUp(count, "count of");
}

LogicalResult Partitioner::partition(BatchNormBackwardOp op) {
  UsedResults used{isUsed(op.getGradInput()), isUsed(op.getGradScale()),
                   isUsed(op.getGradOffset())};
  bool isChannelLocal = op.getLocalParameterGradients();
  bool needsWhole =
      (used.gradInput && op.getStatistics() == Statistics::Batch) ||
      (used.anyOfChannel() && !isChannelLocal);
  auto local = cast<BatchNormBackwardOp>(cloneForShard());
  if (axes.empty() || !needsWhole || hasNoElements()) {
    mapping.map(op->getResults(), local->getResults());
    return success();
  }
  auto getSums = [&](Value sums) { return addUp(sums, "sums of"); };
  auto getCount = [&](Value count) { return addUpCount(count); };
  WholeBatch whole{getSums, getCount, getGlobalCount(op), isChannelLocal};
  std::array<Value, 3> values = buildHalves(b, local, used, whole);
  local.erase();
  mapResults(values);
  return success();
}

LogicalResult Partitioner::partition(BatchNormTrainingOp op) {
  auto request = TrainingRequest::get(op, isUsed);
  auto local = cast<BatchNormTrainingOp>(cloneForShard());
  if (hasWholeChannels() || request.isEmpty() || hasNoElements()) {
    mapping.map(op->getResults(), local->getResults());
    return success();
  }
  auto getSums = [&](Value sums) { return addUp(sums, "sums of"); };
  auto getCount = [&](Value count) { return addUpCount(count); };
  WholeBatch whole{getSums, getCount, getGlobalCount(op)};
  std::array<Value, 4> values = buildTrainingParts(b, local, request, &whole);
  local.erase();
  mapResults(values);
  return success();
}

LogicalResult Partitioner::partition(BatchNormOpInterface op) {
  Operation *local = cloneForShard();
  for (auto [role, result, value] : llvm::zip_equal(
           op.getResultRoles(), op->getResults(), local->getResults())) {
    Value whole = value;
    if (getInfo(role).shape != RoleShape::Data && !axes.empty() &&
        isUsed(result)) {
      if (role == Role::Count)
        whole = addUpCount(value);
      else if (!hasNoElements())
        whole = addUp(value, "sums of");
    }
    mapping.map(result, whole);
  }
  return success();
}

LogicalResult Partitioner::partition(BatchNormBackwardElemtOp op) {
  auto local = cast<BatchNormBackwardElemtOp>(cloneForShard());
  mapping.map(op.getGradInput(), local.getGradInput());
  if (axes.empty() || !op.getSums() || op.getCount() || hasNoElements())
    return success();
  // M of the op's own input is M of the whole batch.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(local);
  auto reduce = BatchNormBackwardReduceOp::create(
      b, op.getLoc(), local.getGradOutput(), local.getInput(), local.getMean(),
      local.getMask(), op.getFeatureDimsAttr());
  local.getCountMutable().assign(addUpCount(reduce.getCount()));
  if (reduce->use_empty())
    reduce.erase();
  return success();
}

namespace {
template <typename Op>
struct BatchNormSharding
    : shard::ShardingInterface::ExternalModel<BatchNormSharding<Op>, Op> {
  SmallVector<IteratorType> getLoopIteratorTypes(Operation *op) const {
    return getIteratorTypes(cast<Op>(op));
  }

  SmallVector<ReductionKind>
  getReductionLoopIteratorKinds(Operation *op) const {
    return SmallVector<ReductionKind>(
        llvm::count(getIteratorTypes(cast<Op>(op)), IteratorType::reduction),
        ReductionKind::Sum);
  }

  SmallVector<AffineMap> getIndexingMaps(Operation *op) const {
    return getIndexingMapsOf(cast<Op>(op));
  }

  FailureOr<ShardingOption>
  getShardingOption(Operation *op, ArrayRef<Sharding> operandShardings,
                    ArrayRef<Sharding> resultShardings) const {
    // Upstream treats an op as unsharded if its last operand with a sharding is
    // a scalar.
    std::vector<Sharding> ofTensors(operandShardings);
    for (auto [type, sharding] : llvm::zip(op->getOperandTypes(), ofTensors))
      if (cast<RankedTensorType>(type).getRank() == 0)
        sharding = Sharding();
    return shard::detail::defaultGetShardingOption(op, ofTensors,
                                                   resultShardings);
  }

  LogicalResult addShardingAnnotations(Operation *op, OpBuilder &b,
                                       const ShardingOption &option) const {
    FailureOr<std::vector<Sharding>> shardings =
        shard::detail::defaultGetShardingAnnotations(op, option);
    if (failed(shardings) ||
        failed(shard::detail::defaultAddShardingAnnotations(op, b, option)))
      return failure();
    // Upstream does not annotate unused results, but needs the annotation.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(op);
    auto ofResults = ArrayRef(*shardings).take_back(op->getNumResults());
    for (auto [result, sharding] :
         llvm::zip_equal(op->getResults(), ofResults)) {
      if (!result.use_empty())
        continue;
      Value value = shard::ShardingOp::create(b, op->getLoc(), sharding);
      shard::ShardOp::create(b, op->getLoc(), result, value,
                             /*annotate_for_users=*/false);
    }
    return success();
  }

  LogicalResult partition(Operation *op, ArrayRef<Value> operands,
                          ArrayRef<Sharding> operandShardings,
                          ArrayRef<Sharding> resultShardings,
                          IRMapping &mapping, SymbolTableCollection &symbols,
                          OpBuilder &b) const {
    return Partitioner(cast<Op>(op), operands, operandShardings,
                       resultShardings, mapping, symbols, b)
        .partition(cast<Op>(op));
  }
};
} // namespace

/// Attaches the model to `Op` if it is a batch normalization or a part of one.
template <typename Op> static void attachModel(MLIRContext *context) {
  if constexpr (Op::template hasTrait<BatchNormOpInterface::Trait>())
    Op::template attachInterface<BatchNormSharding<Op>>(*context);
}

template <typename... Ops> static void attachModels(MLIRContext *context) {
  (attachModel<Ops>(context), ...);
}

void mlir::bngrad::registerShardingInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, BNGradDialect *) {
    attachModels<
#define GET_OP_LIST
#include "BNGrad/Dialect/BNGradOps.cpp.inc"
        >(context);
    // The dialects of ops that `partition` creates.
    context
        ->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                      math::MathDialect, scf::SCFDialect, shard::ShardDialect,
                      tensor::TensorDialect, ub::UBDialect>();
  });
}
