//===- FunctionEntries.h - the entries of a function ---------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_FUNCTIONENTRIES_H
#define BNGRAD_LIB_TRANSFORMS_CABI_FUNCTIONENTRIES_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::bngrad {

/// A function that C calls by its entries.
class FunctionEntries {
public:
  /// `status`: its value after a call is the status of the call; null: none.
  FunctionEntries(func::FuncOp function, StringRef name, func::FuncOp status);

  func::FuncOp getFunction() const { return function; }
  StringRef getName() const { return name; }
  Location getLoc() const { return function.getLoc(); }
  const LLVMTypeConverter &getConverter() const { return *converter; }

  /// The types of the parameters: arguments, then results.
  ArrayRef<Type> getParameters() const { return parameters; }
  /// The number of arguments, which are the first parameters. Needs a shape
  /// function.
  unsigned getNumArguments() const;
  /// The name of a parameter, for texts.
  std::string getParameterName(unsigned i) const;

  /// Whether a pointer says all about each parameter.
  bool hasPointerForm() const;

  /// The function of the parameters that computes the size of the workspace in
  /// bytes; null if none is needed.
  func::FuncOp getWorkspaceFunction() const { return workspace; }
  /// Whether a call that gets no workspace maps memory for one.
  bool mapsWorkspace() const;
  /// The function that checks sizes and computes those of the results; null:
  /// not known.
  func::FuncOp getShapeFunction() const { return shapes; }

  /// Adds the public function `name` after those of the module, and sets the
  /// insertion point of `b` into it.
  static func::FuncOp addFunction(OpBuilder &b, func::FuncOp exported,
                                  const Twine &name, ArrayRef<Type> types,
                                  Type result);

  /// The type that C passes for an argument of `type`.
  static Type getCType(Type type);

  /// Adds the public function `entryName` with the C types of the parameters
  /// and `more`, and sets the insertion point of `b` into it.
  func::FuncOp addEntry(OpBuilder &b, const Twine &entryName,
                        ArrayRef<Type> more, Type result) const;

  /// The parameters from pointers to their data, or from pointers to their
  /// descriptors; scalars as C passes them.
  SmallVector<Value> fromPointers(OpBuilder &b, ValueRange values) const;
  SmallVector<Value> fromDescriptors(OpBuilder &b, ValueRange values) const;

  /// The pointers to the data of descriptors; scalars as they are.
  SmallVector<Value> getPointers(OpBuilder &b, ValueRange values) const;

  /// Calls the function with memory for a workspace, which starts at a multiple
  /// of 64, and a bngrad_threads_t; the i32 is its status.
  Value call(OpBuilder &b, ArrayRef<Value> operands, Value memory,
             Value threads) const;
  /// The same, with a workspace of its own and OpenMP's threads.
  Value callAlone(OpBuilder &b, ArrayRef<Value> operands) const;

private:
  // Handles, whose methods are not const.
  mutable func::FuncOp function, status, workspace, shapes;
  std::string name;
  SmallVector<Type> parameters;
  std::shared_ptr<LLVMTypeConverter> converter;
  bool hasThreads = false;
};

/// The alignment of the memory that a function takes for its workspace, in
/// bytes.
inline constexpr int64_t kWorkspaceAlignment = 64;

/// Adds NAME_checked, NAME_diagnose and NAME_workspace; `infer`: and
/// NAME_infer, if the function has a shape function.
void addCheckedEntries(const FunctionEntries &exported, bool infer);

/// Adds the functions that these call to `module`.
LogicalResult addCheckHelpers(ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_FUNCTIONENTRIES_H
