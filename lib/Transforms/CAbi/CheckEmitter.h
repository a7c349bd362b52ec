//===- CheckEmitter.h - checks of arguments ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_CHECKEMITTER_H
#define BNGRAD_LIB_TRANSFORMS_CABI_CHECKEMITTER_H

#include "FunctionEntries.h"

#include "BNGrad/Transforms/CAbi/Status.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::bngrad {

/// The parameters of a C entry: the parameters of the function, then the ones
/// that checked entries add.
struct EntryArguments {
  ValueRange parameters;
  Value workspace, workspaceSize, threads, text, textSize;
};

/// Emits the checks of one function.
class CheckEmitter {
public:
  CheckEmitter(const FunctionEntries &exported, OpBuilder &b)
      : exported(exported), b(b), loc(exported.getLoc()),
        pointer(LLVM::LLVMPointerType::get(b.getContext())) {}

  /// Emits all checks and returns the status, an i32.
  Value emit(const EntryArguments &arguments);

  /// Emits the checks of the arguments, followed by stores of the dynamic sizes
  /// of the results to their descriptors, and returns the status. Needs a shape
  /// function.
  Value emitInference(const EntryArguments &arguments);

private:
  struct Check {
    Value holds, expected, actual; // i1, i64, i64; expected and actual may be
                                   // null
  };

  void require(Value holds, Status status, const Twine &text,
               Value expected = {}, Value actual = {});
  /// Ends a group of checks. Returns the status of the first check that fails,
  /// or the status that `next` emits if all of them hold.
  Value finish(const EntryArguments &arguments, StringRef suffix,
               function_ref<Value()> next);
  Value report(const EntryArguments &arguments, ArrayRef<std::string> texts,
               StringRef suffix, Value number, Value expected, Value actual);

  void requireDescriptors(ValueRange parameters);
  void requireBuffer(unsigned i, MemRefType type, MemRefDescriptor descriptor);
  void requireProduct(unsigned i, ArrayRef<Value> sizes);
  void requireStrides(unsigned i, MemRefType type, ArrayRef<Value> sizes,
                      MemRefDescriptor descriptor, Value isEmpty);
  void requireThreads(Value threads);
  void requireBuffers(const EntryArguments &arguments, unsigned count);
  void requireResultSizes(const EntryArguments &arguments, unsigned first,
                          ArrayRef<Value> sizes);
  Value storeResultSizes(const EntryArguments &arguments, unsigned first,
                         ArrayRef<Value> sizes);
  /// Emits the code that uses the computed sizes of the results, and returns
  /// its status, an i32. The results are the parameters from `first` on.
  using UseSizes = function_ref<Value(unsigned first, ArrayRef<Value> sizes)>;
  Value checkShapes(const EntryArguments &arguments, UseSizes use);
  void requireWorkspace(const EntryArguments &arguments);

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
  StringRef prefix; // the prefix of the names of constants
  SmallVector<Check> checks;
  SmallVector<std::string> texts; // the messages of `checks`
};

/// The size that NAME_workspace returns. It includes padding, because the
/// caller's memory may start at any address.
Value createWorkspaceSize(OpBuilder &b, const FunctionEntries &exported,
                          ValueRange descriptors);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_CHECKEMITTER_H
