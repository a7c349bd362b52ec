//===- CheckedEntries.cpp - entries that check their arguments ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each check is a condition, a status, and a text with the expected and the
// actual value. All of a group are evaluated, and the first that fails is
// reported; a group reads only what the groups before have checked. The texts
// are formats of printf, whose first byte is the status.
//
//===----------------------------------------------------------------------===//

#include "FunctionEntries.h"
#include "HelperFunctions.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Lower/ExportC.h"
#include "BNGrad/Transforms/Lower/Status.h"
#include "BNGrad/Transforms/Lower/Threads.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The size of a bngrad_threads_t, and the offsets of its functions.
static constexpr int64_t kThreadsBytes = 32, kCountOffset = 16, kRunOffset = 24;

/// bngrad_report returns the status of the text that starts at
/// `texts[starts[number]]`, and prints that to `text`, of `size` bytes, if it
/// is not null.
static constexpr StringLiteral kHelpers = R"mlir(
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
llvm.func internal @bngrad_report(%texts: !llvm.ptr, %starts: !llvm.ptr, %number: i64, %expected: i64, %actual: i64, %text: !llvm.ptr, %size: i64) -> i32 attributes {passthrough = ["cold", "noinline"]} {
  %null = llvm.mlir.zero : !llvm.ptr
  %slot = llvm.getelementptr %starts[%number] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %start = llvm.load %slot : !llvm.ptr -> i32
  %format = llvm.getelementptr %texts[%start] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %status_byte = llvm.load %format : !llvm.ptr -> i8
  %status = llvm.zext %status_byte : i8 to i32
  %words = llvm.getelementptr %format[1] : (!llvm.ptr) -> !llvm.ptr, i8
  %is_null = llvm.icmp "eq" %text, %null : !llvm.ptr
  llvm.cond_br %is_null, ^return, ^print
^print:
  %length = llvm.call @snprintf(%text, %size, %words, %expected, %actual) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>) : (!llvm.ptr, i64, !llvm.ptr, i64, i64) -> i32
  llvm.br ^return
^return:
  llvm.return %status : i32
}
)mlir";

namespace {
/// The parameters of NAME_checked in C: those of the function, and more.
struct Arguments {
  ValueRange parameters;
  Value workspace, workspaceSize, threads, text, textSize;
};

/// Emits the checks of one function.
class CheckEmitter {
public:
  CheckEmitter(const FunctionEntries &exported, OpBuilder &b)
      : exported(exported), b(b), loc(exported.getLoc()),
        pointer(LLVM::LLVMPointerType::get(b.getContext())) {}

  /// Emits all checks; the i32 is the status.
  Value emit(const Arguments &arguments);

private:
  struct Check {
    Value holds, expected, actual; // i1, i64, i64; the latter may be null
  };

  void require(Value holds, Status status, const Twine &text,
               Value expected = {}, Value actual = {});
  /// Ends a group: the status of its first check that fails, or that of `next`.
  Value finish(const Arguments &arguments, StringRef suffix,
               function_ref<Value()> next);
  Value report(const Arguments &arguments, ArrayRef<std::string> texts,
               StringRef suffix, Value number, Value expected, Value actual);

  void requireDescriptors(ValueRange parameters);
  void requireBuffer(unsigned i, MemRefType type, MemRefDescriptor descriptor);
  void requireStrides(unsigned i, MemRefType type, ArrayRef<Value> sizes,
                      MemRefDescriptor descriptor, Value isEmpty);
  void requireThreads(Value threads);
  void requireResultSizes(const Arguments &arguments, unsigned first,
                          ArrayRef<Value> sizes);
  Value checkShapes(const Arguments &arguments, function_ref<Value()> next);
  void requireWorkspace(const Arguments &arguments);

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, lhs, rhs);
  }
  Value isEqual(Value lhs, Value rhs) {
    return compare(arith::CmpIPredicate::eq, lhs, rhs);
  }
  Value either(Value lhs, Value rhs) {
    return b.createOrFold<arith::OrIOp>(loc, lhs, rhs);
  }
  Value toInt(Value address) {
    return LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), address);
  }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  }
  std::string name(unsigned i) const {
    std::string name = exported.getParameterName(i), escaped;
    for (char c : name)
      escaped += c == '%' ? std::string("%%") : std::string(1, c);
    return escaped;
  }

  const FunctionEntries &exported;
  OpBuilder &b;
  Location loc;
  Type pointer;
  SmallVector<Check> checks;
  SmallVector<std::string> texts; // of the checks
};
} // namespace

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

Value CheckEmitter::report(const Arguments &arguments,
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
  std::string name = (exported.getName() + ".").str() + suffix.str();
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

Value CheckEmitter::finish(const Arguments &arguments, StringRef suffix,
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
    // That of a dim with one element is not used.
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
  // Of a table that is not there, one that is right.
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

/// Requires the dynamic sizes of the results, which are the parameters from
/// `first` on, to be `sizes`.
void CheckEmitter::requireResultSizes(const Arguments &arguments,
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

Value CheckEmitter::checkShapes(const Arguments &arguments,
                                function_ref<Value()> next) {
  func::FuncOp shapes = exported.getShapeFunction();
  if (!shapes)
    return next();
  // Number, expected and actual size of an error.
  Value three = LLVM::ConstantOp::create(b, loc, b.getI64Type(), 3);
  Value error = LLVM::AllocaOp::create(b, loc, pointer, b.getI64Type(), three);
  // Its arguments are those of the function, the error, and maybe threads.
  unsigned last = shapes.getNumArguments() - 1;
  bool hasThreads = shapes.getArgAttr(last, kThreadsAttrName) != nullptr;
  unsigned numArguments = last - hasThreads;
  SmallVector<Value> operands =
      exported.fromDescriptors(b, arguments.parameters);
  operands.truncate(numArguments);
  operands.push_back(error);
  if (hasThreads)
    operands.push_back(arguments.threads);
  auto call = func::CallOp::create(b, loc, shapes, operands);
  SmallVector<Value> sizes(call.getResults());
  if (!returnsStatus(shapes)) {
    requireResultSizes(arguments, numArguments, sizes);
    return finish(arguments, "results", next);
  }

  Value status = sizes.pop_back_val();
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
  auto choice = scf::IfOp::create(b, loc, b.getI32Type(), isEqual(status, zero),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choice.thenBlock());
  requireResultSizes(arguments, numArguments, sizes);
  scf::YieldOp::create(b, loc, finish(arguments, "results", next));
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
  // Memory may have run out, too.
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

/// The size that NAME_workspace returns: its memory may start anywhere.
static Value createWorkspaceSize(OpBuilder &b, const FunctionEntries &exported,
                                 ValueRange descriptors) {
  Location loc = exported.getLoc();
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
  func::FuncOp function = exported.getWorkspaceFunction();
  if (!function)
    return zero;
  Value size = func::CallOp::create(b, loc, function,
                                    exported.fromDescriptors(b, descriptors))
                   .getResult(0);
  Value rest =
      arith::ConstantIntOp::create(b, loc, kWorkspaceAlignment - 1, 64);
  Value isNone =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, size, zero);
  Value padded = arith::AddIOp::create(b, loc, size, rest);
  return arith::SelectOp::create(b, loc, isNone, zero, padded);
}

void CheckEmitter::requireWorkspace(const Arguments &arguments) {
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

Value CheckEmitter::emit(const Arguments &arguments) {
  requireDescriptors(arguments.parameters);
  return finish(arguments, "descriptors", [&] {
    for (auto [i, type] : llvm::enumerate(exported.getParameters())) {
      auto buffer = dyn_cast<MemRefType>(type);
      if (!buffer)
        continue;
      Value loaded = LLVM::LoadOp::create(
          b, loc, exported.getConverter().convertType(buffer),
          arguments.parameters[i]);
      requireBuffer(i, buffer, MemRefDescriptor(loaded));
    }
    requireThreads(arguments.threads);
    return finish(arguments, "buffers", [&] {
      return checkShapes(arguments, [&] {
        requireWorkspace(arguments);
        return finish(arguments, "workspace", [&]() -> Value {
          return arith::ConstantIntOp::create(b, loc, 0, 32);
        });
      });
    });
  });
}

/// i32 NAME.check(parameters, workspace, workspace_size, threads, text,
/// text_size): the status.
static func::FuncOp addCheckFunction(const FunctionEntries &exported) {
  OpBuilder b(exported.getFunction().getContext());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  func::FuncOp check =
      exported.addEntry(b, exported.getName() + ".check",
                        {pointer, i64, pointer, pointer, i64}, b.getI32Type());
  check.setPrivate();
  check->setAttr("llvm.linkage", LLVM::LinkageAttr::get(
                                     b.getContext(), LLVM::Linkage::Internal));
  ValueRange all = check.getArguments();
  ValueRange more = all.take_back(5);
  Arguments arguments{all.drop_back(5), more[0], more[1],
                      more[2],          more[3], more[4]};
  Value status = CheckEmitter(exported, b).emit(arguments);
  func::ReturnOp::create(b, exported.getLoc(), status);
  return check;
}

/// int32_t NAME_checked(descriptors, void *workspace, size_t workspace_size,
/// const bngrad_threads_t *threads).
static void addCheckedEntry(const FunctionEntries &exported,
                            func::FuncOp check) {
  OpBuilder b(exported.getFunction().getContext());
  Location loc = exported.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  func::FuncOp entry = exported.addEntry(b, exported.getName() + "_checked",
                                         {pointer, i64, pointer}, i32);
  SmallVector<Value> all(entry.getArguments());
  all.push_back(LLVM::ZeroOp::create(b, loc, pointer));
  all.push_back(LLVM::ConstantOp::create(b, loc, i64, 0));
  Value status = func::CallOp::create(b, loc, check, all).getResult(0);
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
  Value isValid =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, status, zero);
  auto choice = scf::IfOp::create(
      b, loc, isValid,
      [&](OpBuilder &b, Location loc) {
        ValueRange arguments = entry.getArguments();
        SmallVector<Value> operands =
            exported.fromDescriptors(b, arguments.drop_back(3));
        Value start =
            LLVM::PtrToIntOp::create(b, loc, i64, arguments.take_back(3)[0]);
        Value rest =
            arith::ConstantIntOp::create(b, loc, kWorkspaceAlignment - 1, 64);
        Value mask =
            arith::ConstantIntOp::create(b, loc, -kWorkspaceAlignment, 64);
        start = arith::AddIOp::create(b, loc, start, rest);
        start = arith::AndIOp::create(b, loc, start, mask);
        Value memory = LLVM::IntToPtrOp::create(b, loc, pointer, start);
        Value result = exported.call(b, operands, memory, arguments.back());
        Value isSuccess = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::eq, result, zero);
        Value failed = arith::ConstantIntOp::create(
            b, loc, static_cast<int64_t>(Status::InternalError), 32);
        Value code = arith::SelectOp::create(b, loc, isSuccess, zero, failed);
        scf::YieldOp::create(b, loc, code);
      },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, status);
      });
  func::ReturnOp::create(b, loc, choice.getResult(0));
}

/// int32_t NAME_diagnose(as NAME_checked, char *text, size_t text_size).
static void addDiagnoseEntry(const FunctionEntries &exported,
                             func::FuncOp check) {
  OpBuilder b(exported.getFunction().getContext());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  func::FuncOp entry =
      exported.addEntry(b, exported.getName() + "_diagnose",
                        {pointer, i64, pointer, pointer, i64}, b.getI32Type());
  auto call =
      func::CallOp::create(b, exported.getLoc(), check, entry.getArguments());
  func::ReturnOp::create(b, exported.getLoc(), call.getResults());
}

/// size_t NAME_workspace(descriptors): 0 where one of them is null.
static void addWorkspaceEntry(const FunctionEntries &exported) {
  OpBuilder b(exported.getFunction().getContext());
  Location loc = exported.getLoc();
  Type i64 = b.getI64Type();
  func::FuncOp entry =
      exported.addEntry(b, exported.getName() + "_workspace", {}, i64);
  Value isNull = arith::ConstantIntOp::create(b, loc, 0, 1);
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
  for (auto [type, value] :
       llvm::zip_equal(exported.getParameters(), entry.getArguments()))
    if (isa<MemRefType>(type)) {
      Value address = LLVM::PtrToIntOp::create(b, loc, i64, value);
      Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         address, zero);
      isNull = b.createOrFold<arith::OrIOp>(loc, isNull, same);
    }
  auto choice = scf::IfOp::create(
      b, loc, isNull,
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, zero); },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(
            b, loc, createWorkspaceSize(b, exported, entry.getArguments()));
      });
  func::ReturnOp::create(b, loc, choice.getResult(0));
}

void mlir::bngrad::addCheckedEntries(const FunctionEntries &exported) {
  func::FuncOp check = addCheckFunction(exported);
  addCheckedEntry(exported, check);
  addDiagnoseEntry(exported, check);
  addWorkspaceEntry(exported);
}

LogicalResult mlir::bngrad::addCheckHelpers(ModuleOp module) {
  return addHelperFunctions(module, kHelpers, "prints errors");
}
