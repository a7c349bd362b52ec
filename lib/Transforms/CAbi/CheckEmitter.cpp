//===- CheckEmitter.cpp - checks of arguments -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A check is a condition, a status, and a message about the expected and the
// actual value. Checks are emitted in groups: a group evaluates all of its
// conditions and reports the first that fails, and it reads only data that the
// preceding groups have checked. A message is stored as a byte with the status,
// followed by a printf format.
//
//===----------------------------------------------------------------------===//

#include "CheckEmitter.h"
#include "CheckBuilder.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/ExportC.h"
#include "BNGrad/Transforms/CAbi/Threads.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::bngrad;

/// The size of a bngrad_threads_t, and the offsets of its fields `count` and
/// `run`, in bytes.
static constexpr int64_t kThreadsBytes = 32, kCountOffset = 16, kRunOffset = 24;

void CheckEmitter::require(Value holds, Status status, const Twine &text,
                           Value expected, Value actual) {
  checks.push_back({holds, expected, actual});
  texts.push_back(std::string(1, static_cast<char>(status)) + text.str());
}

/// The address of a constant array of `count` elements.
static Value createConstant(OpBuilder &b, Location loc, const Twine &name,
                            Type elementType, size_t count, Attribute value,
                            ModuleOp module) {
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(elementType, count),
        /*isConstant=*/true, LLVM::Linkage::Internal, name.str(), value);
  }
  return LLVM::AddressOfOp::create(b, loc, global);
}

Value CheckEmitter::report(const EntryArguments &arguments,
                           ArrayRef<std::string> texts, StringRef suffix,
                           Value number, Value expected, Value actual) {
  std::string all;
  SmallVector<int32_t> starts;
  for (const std::string &text : texts) {
    starts.push_back(all.size());
    all += text;
    all += '\0';
  }
  auto module = exported.getFunction()->getParentOfType<ModuleOp>();
  std::string name = (exported.getName() + "." + prefix + suffix).str();
  Value textsAddress = createConstant(b, loc, name + ".texts", b.getI8Type(),
                                      all.size(), b.getStringAttr(all), module);
  Value startsAddress =
      createConstant(b, loc, name + ".starts", b.getI32Type(), starts.size(),
                     b.getI32TensorAttr(starts), module);
  return LLVM::CallOp::create(
             b, loc, TypeRange(b.getI32Type()), "bngrad_report",
             ValueRange{textsAddress, startsAddress, number, expected, actual,
                        arguments.text, arguments.textSize})
      .getResult();
}

Value CheckEmitter::finish(const EntryArguments &arguments, StringRef suffix,
                           function_ref<Value()> next) {
  if (checks.empty())
    return next();
  Value none = constant(-1), number = none, expected = none, actual = none;
  auto select = [&](Value holds, Value ifHolds, Value otherwise) -> Value {
    return arith::SelectOp::create(b, loc, holds, ifHolds, otherwise);
  };
  for (int64_t i = checks.size(); i-- > 0;) {
    const Check &check = checks[i];
    number = select(check.holds, number, constant(i));
    if (!check.expected)
      continue;
    expected = select(check.holds, expected, check.expected);
    actual = select(check.holds, actual, check.actual);
  }
  SmallVector<std::string> group = std::move(texts);
  checks.clear();
  texts.clear();
  auto choice = scf::IfOp::create(b, loc, b.getI32Type(), isEqual(number, none),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, loc, next());
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(
      b, loc, report(arguments, group, suffix, number, expected, actual));
  return choice.getResult(0);
}

void CheckEmitter::requireDescriptors(ValueRange parameters) {
  for (auto [i, type] : llvm::enumerate(exported.getParameters()))
    if (isa<MemRefType>(type))
      require(
          compare(arith::CmpIPredicate::ne, toInt(parameters[i]), constant(0)),
          Status::NullPointer, name(i) + ": expected a descriptor, got null");
}

void CheckEmitter::requireBuffer(unsigned i, MemRefType type,
                                 MemRefDescriptor descriptor) {
  SmallVector<Value> sizes;
  Value isEmpty = arith::ConstantIntOp::create(b, loc, 0, 1);
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    Value actual = descriptor.size(b, loc, dim);
    sizes.push_back(actual);
    isEmpty = either(isEmpty, isEqual(actual, constant(0)));
    if (ShapedType::isDynamic(size))
      require(compare(arith::CmpIPredicate::sge, actual, constant(0)),
              Status::BadShape,
              name(i) + ": expected size of dim " + Twine(dim) +
                  " to be at least %lld, got %lld",
              constant(0), actual);
    else
      require(isEqual(actual, constant(size)), Status::BadShape,
              name(i) + ": expected size of dim " + Twine(dim) +
                  " to be %lld, got %lld",
              constant(size), actual);
  }
  if (!type.hasStaticShape())
    requireProduct(i, sizes);
  Value address = toInt(descriptor.alignedPtr(b, loc));
  require(
      either(compare(arith::CmpIPredicate::ne, address, constant(0)), isEmpty),
      Status::NullPointer, name(i) + ": expected data, got null");
  requireStrides(i, type, sizes, descriptor, isEmpty);
  int64_t bytes = type.getElementType().isIndex()
                      ? 8
                      : getStorageBytes(type.getElementType());
  Value rest = arith::AndIOp::create(b, loc, address, constant(bytes - 1));
  require(isEqual(rest, constant(0)), Status::BadParam,
          name(i) + ": expected an address that is a multiple of %lld, got a "
                    "remainder of %lld",
          constant(bytes), rest);
}

/// Requires that products of `sizes` do not overflow. Such sizes are possible
/// even though no memory has that many elements, because a stride may be 0.
void CheckEmitter::requireProduct(unsigned i, ArrayRef<Value> sizes) {
  Value product = constant(1), one = constant(1), zero = constant(0);
  Value most = constant(std::numeric_limits<int64_t>::max());
  for (Value size : sizes) {
    // A size of 0 must not hide an overflow of the other sizes' product.
    Value factor = arith::MaxSIOp::create(b, loc, size, one);
    auto next = arith::MulUIExtendedOp::create(b, loc, product, factor);
    product = arith::SelectOp::create(
        b, loc, isEqual(next.getHigh(), zero),
        arith::MinUIOp::create(b, loc, next.getLow(), most), most);
  }
  require(compare(arith::CmpIPredicate::ule, product, constant(kMostElements)),
          Status::BadShape,
          name(i) + ": expected a product of sizes of at most %lld, got %lld",
          constant(kMostElements), product);
}

void CheckEmitter::requireStrides(unsigned i, MemRefType type,
                                  ArrayRef<Value> sizes,
                                  MemRefDescriptor descriptor, Value isEmpty) {
  bool isRowMajor = type.getLayout().isIdentity();
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  int64_t offset = 0;
  // Exported buffers are strided.
  if (!isRowMajor && failed(type.getStridesAndOffset(strides, offset)))
    return;
  Value product = constant(1);
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    Value expected =
        ShapedType::isDynamic(strides[dim]) ? Value() : constant(strides[dim]);
    if (isRowMajor) {
      expected = product;
      product = b.createOrFold<arith::MulIOp>(loc, product, sizes[dim]);
    }
    if (!expected)
      continue;
    Value actual = descriptor.stride(b, loc, dim);
    // The stride of a dim with one element is not used.
    Value isUnused = either(isEmpty, isEqual(sizes[dim], constant(1)));
    require(either(isUnused, isEqual(actual, expected)), Status::BadStrides,
            name(i) + ": expected stride of dim " + Twine(dim) +
                " to be %lld, got %lld",
            expected, actual);
  }
  if (ShapedType::isDynamic(offset))
    return;
  Value actual = descriptor.offset(b, loc);
  require(either(isEmpty, isEqual(actual, constant(offset))),
          Status::BadStrides,
          name(i) + ": expected offset to be %lld, got %lld", constant(offset),
          actual);
}

void CheckEmitter::requireThreads(Value threads) {
  // A null pointer selects OpenMP; use values that pass all checks for it.
  Value isNull = isEqual(toInt(threads), constant(0));
  auto fields = scf::IfOp::create(
      b, loc, isNull,
      [&](OpBuilder &b, Location loc) {
        Value size = arith::ConstantIntOp::create(b, loc, kThreadsBytes, 64);
        scf::YieldOp::create(b, loc, ValueRange{size, size, size});
      },
      [&](OpBuilder &b, Location loc) {
        SmallVector<Value> fields;
        for (int64_t offset : {int64_t(0), kCountOffset, kRunOffset}) {
          Value slot =
              LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), threads,
                                  LLVM::GEPArg(static_cast<int32_t>(offset)));
          fields.push_back(LLVM::LoadOp::create(b, loc, b.getI64Type(), slot));
        }
        scf::YieldOp::create(b, loc, fields);
      });
  require(compare(arith::CmpIPredicate::uge, fields.getResult(0),
                  constant(kThreadsBytes)),
          Status::BadParam,
          "threads: expected struct_size to be at least %lld, got %lld",
          constant(kThreadsBytes), fields.getResult(0));
  for (auto [i, field] : {std::pair(1, "count"), std::pair(2, "run")})
    require(compare(arith::CmpIPredicate::ne, fields.getResult(i), constant(0)),
            Status::NullPointer,
            Twine("threads: expected a function ") + field + ", got null");
}

/// Requires that the dynamic sizes of the results are `sizes`. The results are
/// the parameters from `first` on.
void CheckEmitter::requireResultSizes(const EntryArguments &arguments,
                                      unsigned first, ArrayRef<Value> sizes) {
  ArrayRef<Type> parameters = exported.getParameters();
  for (unsigned i = first; i < parameters.size(); ++i) {
    auto type = cast<MemRefType>(parameters[i]);
    Value loaded =
        LLVM::LoadOp::create(b, loc, exported.getConverter().convertType(type),
                             arguments.parameters[i]);
    MemRefDescriptor descriptor(loaded);
    for (int64_t dim : llvm::seq(type.getRank())) {
      if (!type.isDynamicDim(dim))
        continue;
      Value expected = toI64(sizes.consume_front());
      Value actual = descriptor.size(b, loc, dim);
      require(isEqual(actual, expected), Status::BadShape,
              name(i) + ": expected size of dim " + Twine(dim) +
                  " to be %lld, got %lld",
              expected, actual);
    }
  }
}

/// Stores `sizes` as the dynamic sizes in the descriptors of the results.
Value CheckEmitter::storeResultSizes(const EntryArguments &arguments,
                                     unsigned first, ArrayRef<Value> sizes) {
  ArrayRef<Type> parameters = exported.getParameters();
  for (unsigned i = first; i < parameters.size(); ++i) {
    auto type = cast<MemRefType>(parameters[i]);
    Type descriptor = exported.getConverter().convertType(type);
    for (int64_t dim : llvm::seq(type.getRank())) {
      if (!type.isDynamicDim(dim))
        continue;
      // The sizes are the fourth field of a descriptor.
      LLVM::GEPArg path[] = {0, 3, static_cast<int32_t>(dim)};
      Value slot = LLVM::GEPOp::create(b, loc, pointer, descriptor,
                                       arguments.parameters[i], path);
      LLVM::StoreOp::create(b, loc, toI64(sizes.consume_front()), slot);
    }
  }
  return arith::ConstantIntOp::create(b, loc, 0, 32);
}

Value CheckEmitter::checkShapes(const EntryArguments &arguments, UseSizes use) {
  func::FuncOp shapes = exported.getShapeFunction();
  // Memory for the number of an error, its expected size and its actual size.
  Value three = LLVM::ConstantOp::create(b, loc, b.getI64Type(), 3);
  Value error = LLVM::AllocaOp::create(b, loc, pointer, b.getI64Type(), three);
  // The shape function takes the arguments of the function, the memory for an
  // error, and possibly threads.
  unsigned numArguments = exported.getNumArguments();
  SmallVector<Value> operands =
      exported.fromDescriptors(b, arguments.parameters);
  operands.truncate(numArguments);
  operands.push_back(error);
  if (shapes.getNumArguments() > operands.size())
    operands.push_back(arguments.threads);
  auto call = func::CallOp::create(b, loc, shapes, operands);
  SmallVector<Value> sizes(call.getResults());
  if (!returnsStatus(shapes))
    return use(numArguments, sizes);

  Value status = sizes.pop_back_val();
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
  auto choice = scf::IfOp::create(b, loc, b.getI32Type(), isEqual(status, zero),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, loc, use(numArguments, sizes));
  b.setInsertionPointToEnd(choice.elseBlock());
  SmallVector<Value> fields;
  for (int32_t i : {0, 1, 2}) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), error,
                                     LLVM::GEPArg(i));
    fields.push_back(LLVM::LoadOp::create(b, loc, b.getI64Type(), slot));
  }
  SmallVector<std::string> formats;
  for (auto text : exported.getFunction()
                       ->getAttrOfType<ArrayAttr>(kSizeErrorsAttrName)
                       .getAsRange<StringAttr>())
    formats.push_back(std::string(1, static_cast<char>(Status::BadShape)) +
                      text.str());
  // The shape function may also have run out of memory.
  Value outOfMemory =
      arith::ConstantIntOp::create(b, loc, kOutOfMemoryStatus, 32);
  auto reason =
      scf::IfOp::create(b, loc, b.getI32Type(), isEqual(status, outOfMemory),
                        /*withElseRegion=*/true);
  scf::YieldOp::create(b, loc, reason.getResult(0));
  b.setInsertionPointToEnd(reason.thenBlock());
  Value internal = arith::ConstantIntOp::create(
      b, loc, static_cast<int64_t>(Status::InternalError), 32);
  scf::YieldOp::create(b, loc, internal);
  b.setInsertionPointToEnd(reason.elseBlock());
  scf::YieldOp::create(
      b, loc,
      report(arguments, formats, "sizes", fields[0], fields[1], fields[2]));
  return choice.getResult(0);
}

void CheckEmitter::requireWorkspace(const EntryArguments &arguments) {
  if (!exported.getWorkspaceFunction())
    return;
  Value size = createWorkspaceSize(b, exported, arguments.parameters);
  require(compare(arith::CmpIPredicate::ule, size, arguments.workspaceSize),
          Status::InsufficientWorkspace,
          "workspace_size: expected at least %lld, got %lld", size,
          arguments.workspaceSize);
  require(either(compare(arith::CmpIPredicate::ne, toInt(arguments.workspace),
                         constant(0)),
                 isEqual(size, constant(0))),
          Status::NullPointer, "workspace: expected memory, got null");
}

void CheckEmitter::requireBuffers(const EntryArguments &arguments,
                                  unsigned count) {
  for (auto [i, type] :
       llvm::enumerate(exported.getParameters().take_front(count))) {
    auto buffer = dyn_cast<MemRefType>(type);
    if (!buffer)
      continue;
    Value loaded = LLVM::LoadOp::create(
        b, loc, exported.getConverter().convertType(buffer),
        arguments.parameters[i]);
    requireBuffer(i, buffer, MemRefDescriptor(loaded));
  }
}

Value CheckEmitter::emit(const EntryArguments &arguments) {
  auto checkWorkspace = [&] {
    requireWorkspace(arguments);
    return finish(arguments, "workspace", [&]() -> Value {
      return arith::ConstantIntOp::create(b, loc, 0, 32);
    });
  };
  requireDescriptors(arguments.parameters);
  return finish(arguments, "descriptors", [&] {
    requireBuffers(arguments, exported.getParameters().size());
    requireThreads(arguments.threads);
    return finish(arguments, "buffers", [&] {
      if (!exported.getShapeFunction())
        return checkWorkspace();
      return checkShapes(arguments, [&](unsigned first, ArrayRef<Value> sizes) {
        requireResultSizes(arguments, first, sizes);
        return finish(arguments, "results", checkWorkspace);
      });
    });
  });
}

Value CheckEmitter::emitInference(const EntryArguments &arguments) {
  prefix = "infer.";
  requireDescriptors(arguments.parameters);
  return finish(arguments, "descriptors", [&] {
    requireBuffers(arguments, exported.getNumArguments());
    return finish(arguments, "buffers", [&] {
      return checkShapes(arguments, [&](unsigned first, ArrayRef<Value> sizes) {
        return storeResultSizes(arguments, first, sizes);
      });
    });
  });
}

Value mlir::bngrad::createWorkspaceSize(OpBuilder &b,
                                        const FunctionEntries &exported,
                                        ValueRange descriptors) {
  Location loc = exported.getLoc();
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
  func::FuncOp function = exported.getWorkspaceFunction();
  if (!function)
    return zero;
  Value size = func::CallOp::create(b, loc, function,
                                    exported.fromDescriptors(b, descriptors))
                   .getResult(0);
  Value rest = arith::ConstantIntOp::create(b, loc, kBufferAlignment - 1, 64);
  Value isNone =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, size, zero);
  Value padded = arith::AddIOp::create(b, loc, size, rest);
  return arith::SelectOp::create(b, loc, isNone, zero, padded);
}
