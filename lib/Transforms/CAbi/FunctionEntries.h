//===- FunctionEntries.h - C entries of a function ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_FUNCTIONENTRIES_H
#define BNGRAD_LIB_TRANSFORMS_CABI_FUNCTIONENTRIES_H

#include "BNGrad/Dialect/Alignment.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::bngrad {

/// An exported function and the means to add C entries that call it.
class FunctionEntries {
public:
  /// If `status` is not null, each entry calls it after the function and
  /// returns its value as the status.
  FunctionEntries(func::FuncOp function, StringRef name, func::FuncOp status);

  func::FuncOp getFunction() const { return function; }
  StringRef getName() const { return name; }
  Location getLoc() const { return function.getLoc(); }
  const LLVMTypeConverter &getConverter() const { return *converter; }

  /// The types of the parameters: arguments, then results. They do not include
  /// the workspace and the threads.
  ArrayRef<Type> getParameters() const { return parameters; }
  /// The number of arguments, which are the first parameters. Needs a shape
  /// function.
  unsigned getNumArguments() const;
  /// The name of a parameter in error messages.
  std::string getParameterName(unsigned i) const;

  /// Whether a pointer to its data fully describes each buffer.
  bool hasPointerForm() const;

  /// The function that computes the size of the workspace in bytes from the
  /// parameters, or null if the function has no workspace.
  func::FuncOp getWorkspaceFunction() const { return workspace; }
  /// Whether a call without a workspace must map memory for one.
  bool mapsWorkspace() const;
  /// The function that checks sizes and computes the sizes of the results, or
  /// null if there is none.
  func::FuncOp getShapeFunction() const { return shapes; }

  /// Adds the public function `name` at the end of the module, and sets the
  /// insertion point of `b` into it.
  static func::FuncOp addFunction(OpBuilder &b, func::FuncOp exported,
                                  const Twine &name, ArrayRef<Type> types,
                                  Type result);

  /// The type in C of an argument of `type`.
  static Type getCType(Type type);

  /// Adds the public function `entryName` with the C types of the parameters
  /// and `more`, and sets the insertion point of `b` into it.
  func::FuncOp addEntry(OpBuilder &b, const Twine &entryName,
                        ArrayRef<Type> more, Type result) const;

  /// Converts the parameters of a C entry to operands of the function. The
  /// buffers are given as pointers to their data or as pointers to their
  /// descriptors, and the scalars as C passes them.
  SmallVector<Value> fromPointers(OpBuilder &b, ValueRange values) const;
  SmallVector<Value> fromDescriptors(OpBuilder &b, ValueRange values) const;

  /// Loads the data pointers from the descriptors in `values`, and leaves
  /// scalars as they are.
  SmallVector<Value> getPointers(OpBuilder &b, ValueRange values) const;

  /// Calls the function and returns its status, an i32. `memory` is the
  /// workspace, aligned to kBufferAlignment, and `threads` is a pointer to a
  /// bngrad_threads_t.
  Value call(OpBuilder &b, ArrayRef<Value> operands, Value memory,
             Value threads) const;
  /// Like `call`, but allocates the workspace and uses OpenMP's threads.
  Value callAlone(OpBuilder &b, ArrayRef<Value> operands) const;

private:
  // Mutable because the methods of op handles are not const.
  mutable func::FuncOp function, status, workspace, shapes;
  std::string name;
  SmallVector<Type> parameters;
  std::shared_ptr<LLVMTypeConverter> converter;
  bool hasThreads = false;
};

/// Adds NAME_checked, NAME_diagnose and NAME_workspace. If `infer` is true and
/// the function has a shape function, also adds NAME_infer.
void addCheckedEntries(const FunctionEntries &exported, bool infer);

/// Adds the helper functions that checked entries call to `module`.
LogicalResult addCheckHelpers(ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_FUNCTIONENTRIES_H
