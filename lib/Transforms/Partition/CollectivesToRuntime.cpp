//===- CollectivesToRuntime.cpp - bngrad-collectives-to-runtime -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The generated code calls the functions of BNGrad/Runtime/Collectives.h. All
// requests of a level end before any status is checked, so that a function that
// returns an error leaves no request behind.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "BNGrad/Runtime/Collectives.h"
#include "BNGrad/Transforms/Partition/CollectiveCalls.h"
#include "BNGrad/Transforms/Partition/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-collectives-to-runtime"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADCOLLECTIVESTORUNTIMEPASS
#include "BNGrad/Transforms/Partition/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;
using shard::AllReduceOp;

static constexpr StringLiteral kStart = "bngradAllReduceStart";
static constexpr StringLiteral kWait = "bngradAllReduceWait";
static constexpr StringLiteral kProcessIndex = "bngradProcessIndex";
static constexpr StringLiteral kStatus = "bngrad_collective_status";
/// As in BNGrad/Transforms/CAbi/Status.h, which a later stage owns.
static constexpr StringLiteral kStatusAttrName = "bngrad.returns_status";

// The fields of the constants that RuntimeBuilder makes.
static_assert(sizeof(bngradCollective_t) == 64 && sizeof(int64_t *) == 8,
              "expected a struct of eight fields with 8 bytes each");

/// The number of `type` in BNGrad/Runtime/Collectives.h, if it has one.
static std::optional<int64_t> getElementNumber(Type type) {
  if (type.isF32())
    return BNGRAD_COLLECTIVE_F32;
  if (type.isF64())
    return BNGRAD_COLLECTIVE_F64;
  if (type.isInteger(64))
    return BNGRAD_COLLECTIVE_I64;
  return std::nullopt;
}

bool mlir::bngrad::callsCollectives(ModuleOp module) {
  return module.lookupSymbol(kStart) || module.lookupSymbol(kProcessIndex);
}

namespace {
/// Constants and functions of a module.
class RuntimeBuilder {
public:
  explicit RuntimeBuilder(ModuleOp module)
      : module(module), symbols(module), b(module.getContext()),
        pointerType(LLVM::LLVMPointerType::get(module.getContext())) {}

  /// The address of a bngradCollective_t at the insertion point of `at`.
  /// `dtype` and `axes` describe an all-reduce.
  Value getCollective(OpBuilder &at, Location loc, StringRef text,
                      shard::GridOp grid, int64_t dtype,
                      ArrayRef<shard::GridAxis> axes);
  /// Calls a function of the runtime; null and an error if the module has
  /// another symbol of its name.
  Value call(OpBuilder &at, Location loc, StringRef name, ValueRange operands,
             Type result);
  /// Makes the function return `status` if it is not 0.
  LogicalResult check(OpBuilder &at, Location loc, Value status);
  Type getPointerType() const { return pointerType; }

private:
  FailureOr<func::FuncOp> getFunction(Location loc, StringRef name,
                                      FunctionType type);
  LLVM::GlobalOp addGlobal(Location loc, Type type, StringRef name,
                           Attribute value);
  Value addText(OpBuilder &at, Location loc, StringRef name, StringRef text);
  Value addNumbers(OpBuilder &at, Location loc, StringRef name,
                   ArrayRef<int64_t> numbers);

  ModuleOp module;
  SymbolTable symbols;
  OpBuilder b;
  Type pointerType;
};
} // namespace

LLVM::GlobalOp RuntimeBuilder::addGlobal(Location loc, Type type,
                                         StringRef name, Attribute value) {
  OpBuilder detached(module.getContext());
  auto global = LLVM::GlobalOp::create(detached, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal, name, value);
  symbols.insert(global, module.getBody()->begin());
  return global;
}

Value RuntimeBuilder::addText(OpBuilder &at, Location loc, StringRef name,
                              StringRef text) {
  std::string terminated = text.str();
  terminated.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), terminated.size());
  return LLVM::AddressOfOp::create(
      at, loc, addGlobal(loc, type, name, b.getStringAttr(terminated)));
}

Value RuntimeBuilder::addNumbers(OpBuilder &at, Location loc, StringRef name,
                                 ArrayRef<int64_t> numbers) {
  if (numbers.empty())
    return LLVM::ZeroOp::create(at, loc, pointerType);
  auto type = LLVM::LLVMArrayType::get(b.getI64Type(), numbers.size());
  return LLVM::AddressOfOp::create(
      at, loc, addGlobal(loc, type, name, b.getI64TensorAttr(numbers)));
}

/// "file.mlir:12:8", or "".
static std::string printLocation(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return "";
  return (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" +
          Twine(place.getColumn()))
      .str();
}

Value RuntimeBuilder::getCollective(OpBuilder &at, Location loc, StringRef text,
                                    shard::GridOp grid, int64_t dtype,
                                    ArrayRef<shard::GridAxis> axes) {
  Type i64 = b.getI64Type();
  auto type = LLVM::LLVMStructType::getLiteral(
      module.getContext(),
      {i64, pointerType, pointerType, i64, i64, pointerType, i64, pointerType});
  LLVM::GlobalOp global = addGlobal(loc, type, "bngrad_collective", {});
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&global.getInitializerRegion());
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(value));
  };
  SmallVector<int64_t> reduced(axes);
  Value fields[] = {
      constant(sizeof(bngradCollective_t)),
      addText(b, loc, "bngrad_collective_op", text),
      addText(b, loc, "bngrad_collective_location", printLocation(loc)),
      constant(dtype),
      constant(grid.getRank()),
      addNumbers(b, loc, "bngrad_collective_grid", grid.getShape()),
      constant(reduced.size()),
      addNumbers(b, loc, "bngrad_collective_axes", reduced)};
  Value value = LLVM::PoisonOp::create(b, loc, type);
  for (auto [i, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(b, loc, value, field,
                                        static_cast<int64_t>(i));
  LLVM::ReturnOp::create(b, loc, value);
  return LLVM::AddressOfOp::create(at, loc, global);
}

FailureOr<func::FuncOp>
RuntimeBuilder::getFunction(Location loc, StringRef name, FunctionType type) {
  Operation *found = symbols.lookup(name);
  if (auto function = dyn_cast_if_present<func::FuncOp>(found);
      function && function.getFunctionType() == type)
    return function;
  if (found)
    return found->emitError() << "expected @" << name
                              << " to be the function of the runtime, of type "
                              << type << ", got another symbol";
  OpBuilder detached(module.getContext());
  auto function = func::FuncOp::create(detached, loc, name, type);
  function.setPrivate();
  symbols.insert(function, module.getBody()->begin());
  return function;
}

Value RuntimeBuilder::call(OpBuilder &at, Location loc, StringRef name,
                           ValueRange operands, Type result) {
  FailureOr<func::FuncOp> function = getFunction(
      module.getLoc(), name, b.getFunctionType(operands.getTypes(), result));
  if (failed(function))
    return {};
  return func::CallOp::create(at, loc, *function, operands).getResult(0);
}

LogicalResult RuntimeBuilder::check(OpBuilder &at, Location loc, Value status) {
  // Code that is not lowered yet expresses a status only as a call of a
  // function with a status.
  Type type = status.getType();
  FailureOr<func::FuncOp> function =
      getFunction(module.getLoc(), kStatus, b.getFunctionType(type, type));
  if (failed(function))
    return failure();
  if (function->isExternal()) {
    (*function)->setAttr(kStatusAttrName, b.getUnitAttr());
    Block *body = function->addEntryBlock();
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    func::ReturnOp::create(inside, module.getLoc(), body->getArguments());
  }
  func::CallOp::create(at, loc, *function, status);
  return success();
}

namespace {
/// Lowers the all-reduces of one level.
class LevelLowering {
public:
  LevelLowering(RuntimeBuilder &runtime, const CollectiveLevel &level)
      : runtime(runtime), level(level) {}

  LogicalResult run();

private:
  /// An all-reduce in flight, in `buffer`.
  struct Request {
    AllReduceOp op;
    Value buffer, number;
  };
  FailureOr<Request> start(AllReduceOp op);

  RuntimeBuilder &runtime;
  const CollectiveLevel &level;
};
} // namespace

static LogicalResult verifySum(AllReduceOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
  if (!type)
    return op.emitOpError()
           << "expected a tensor, got " << op.getInput().getType();
  if (op.getReduction() != shard::ReductionKind::Sum)
    return op.emitOpError() << "expected reduction to be sum, got "
                            << shard::stringifyReductionKind(op.getReduction());
  if (!getElementNumber(type.getElementType()) || op.getType() != type)
    return op.emitOpError()
           << "expected input and result to have one type with elements f32, "
              "f64 or i64, got "
           << type << " and " << op.getType();
  return success();
}

static shard::GridOp getGrid(Operation *op, FlatSymbolRefAttr symbol) {
  return SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, symbol);
}

static LogicalResult verifyGridShape(Operation *op, shard::GridOp grid) {
  if (grid.getRank() > BNGRAD_MAX_GRID_RANK)
    return op->emitOpError()
           << "expected at most " << BNGRAD_MAX_GRID_RANK << " axes of grid @"
           << grid.getSymName() << ", got " << grid.getRank();
  for (int64_t size : grid.getShape())
    if (ShapedType::isDynamic(size))
      return op->emitOpError()
             << "expected sizes of grid @" << grid.getSymName()
             << " to be constants, got ?";
  return success();
}

FailureOr<LevelLowering::Request> LevelLowering::start(AllReduceOp op) {
  shard::GridOp grid = getGrid(op, op.getGridAttr());
  if (failed(verifySum(op)) || failed(verifyGridShape(op, grid)))
    return failure();
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  // The calls need dense memory that nothing else uses.
  Value copy = bufferization::AllocTensorOp::create(
      b, loc, type, ValueRange(), op.getInput(), /*size_hint=*/Value(),
      /*memory_space=*/Attribute());
  auto bufferType = MemRefType::get(type.getShape(), type.getElementType());
  Value buffer = bufferization::ToBufferOp::create(b, loc, bufferType, copy);
  Value index = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  Type i64 = b.getI64Type();
  Value address = arith::IndexCastOp::create(b, loc, i64, index);
  Value data =
      LLVM::IntToPtrOp::create(b, loc, runtime.getPointerType(), address);
  int64_t known = 1;
  Value count;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      known *= size;
      continue;
    }
    Value number = arith::IndexCastOp::create(
        b, loc, i64, tensor::DimOp::create(b, loc, op.getInput(), dim));
    count =
        count ? Value(arith::MulIOp::create(b, loc, count, number)) : number;
  }
  Value factor = arith::ConstantIntOp::create(b, loc, known, 64);
  count = count ? Value(arith::MulIOp::create(b, loc, count, factor)) : factor;
  auto text = op->getAttrOfType<StringAttr>(kCollectiveAttrName);
  std::string fallback;
  llvm::raw_string_ostream(fallback) << op->getName() << " " << type;
  Value collective = runtime.getCollective(
      b, loc, text ? text.getValue() : StringRef(fallback), grid,
      *getElementNumber(type.getElementType()), getGridAxesOf(op, grid));
  Value number = runtime.call(b, loc, kStart, {collective, data, count}, i64);
  if (!number)
    return failure();
  return Request{op, buffer, number};
}

LogicalResult LevelLowering::run() {
  SmallVector<Request> requests;
  for (AllReduceOp op : level.ops) {
    FailureOr<Request> request = start(op);
    if (failed(request))
      return failure();
    requests.push_back(*request);
  }
  OpBuilder b(level.firstUser);
  Value status;
  for (const Request &request : requests) {
    Location loc = request.op->getLoc();
    Value own = runtime.call(b, loc, kWait, request.number, b.getI32Type());
    if (!own)
      return failure();
    if (status) {
      Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
      Value isSuccess =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, status, zero);
      own = arith::SelectOp::create(b, loc, isSuccess, own, status);
    }
    status = own;
  }
  if (failed(runtime.check(b, level.firstUser->getLoc(), status)))
    return failure();
  for (Request &request : requests) {
    Value sum = bufferization::ToTensorOp::create(
        b, request.op.getLoc(), request.op.getType(), request.buffer,
        /*restrict=*/true, /*writable=*/true);
    request.op.replaceAllUsesWith(sum);
    request.op.erase();
  }
  return success();
}

/// The coordinates of this process in the grid, row-major, along `axes`; along
/// all axes if `axes` is empty.
static LogicalResult lowerIndex(RuntimeBuilder &runtime, Operation *op,
                                shard::GridOp grid,
                                ArrayRef<shard::GridAxis> axes, bool isLinear) {
  if (failed(verifyGridShape(op, grid)))
    return failure();
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value collective = runtime.getCollective(b, loc, op->getName().getStringRef(),
                                           grid, /*dtype=*/0, {});
  Value number =
      runtime.call(b, loc, kProcessIndex, collective, b.getI64Type());
  if (!number)
    return failure();
  Value linear = arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
  if (isLinear) {
    op->getResult(0).replaceAllUsesWith(linear);
    op->erase();
    return success();
  }
  SmallVector<Value> coordinates(grid.getRank());
  for (int64_t axis = grid.getRank() - 1; axis >= 0; --axis) {
    Value size = arith::ConstantIndexOp::create(b, loc, grid.getShape()[axis]);
    coordinates[axis] = arith::RemSIOp::create(b, loc, linear, size);
    linear = arith::DivSIOp::create(b, loc, linear, size);
  }
  SmallVector<Value> results;
  for (shard::GridAxis axis : axes)
    results.push_back(coordinates[axis]);
  op->replaceAllUsesWith(axes.empty() ? coordinates : results);
  op->erase();
  return success();
}

namespace {
struct BNGradCollectivesToRuntimePass
    : bngrad::impl::BNGradCollectivesToRuntimePassBase<
          BNGradCollectivesToRuntimePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    RuntimeBuilder runtime(module);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
      for (const CollectiveLevel &level : sortByCollectives(function))
        if (failed(LevelLowering(runtime, level).run()))
          return signalPassFailure();
      if (failed(lowerRest(runtime, function)))
        return signalPassFailure();
    }
    for (auto grid : llvm::make_early_inc_range(module.getOps<shard::GridOp>()))
      if (SymbolTable::symbolKnownUseEmpty(grid, module))
        grid.erase();
  }

private:
  /// Lowers indices of processes, and reports what is left.
  static LogicalResult lowerRest(RuntimeBuilder &runtime,
                                 func::FuncOp function) {
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa_and_present<shard::ShardDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      LogicalResult result = success();
      if (auto linear = dyn_cast<shard::ProcessLinearIndexOp>(op))
        result = lowerIndex(runtime, op, getGrid(op, linear.getGridAttr()), {},
                            /*isLinear=*/true);
      else if (auto multi = dyn_cast<shard::ProcessMultiIndexOp>(op))
        result = lowerIndex(runtime, op, getGrid(op, multi.getGridAttr()),
                            multi.getAxes(), /*isLinear=*/false);
      else
        result = op->emitOpError()
                 << "expected shard.all_reduce alone after partition, got "
                    "another op of the shard dialect";
      if (failed(result))
        return failure();
    }
    return success();
  }
};
} // namespace
