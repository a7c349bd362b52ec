//===- Program.h - an IR file, ready to run ------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_PROGRAM_H
#define BNGRAD_RUNNER_PROGRAM_H

#include "Sharding.h"

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/Reference/Array.h"
#include "BNGrad/Transforms/Schedule/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>

namespace mlir::bngrad {

/// Type and shape of one argument or result; ShapedType::kDynamic if only the
/// data determine a size.
struct ArrayType {
  ::bngrad::ElementType elementType;
  std::vector<int64_t> shape;
};

/// The type of an array's elements; nothing if arrays cannot have it.
std::optional<::bngrad::ElementType> getElementType(Type type);

/// Where and how a function runs.
struct Execution {
  /// Empty to choose one.
  std::string schedule;
  /// The CPU, which also runs ops outside of groups.
  Target target = Target::host();
  /// The GPUs to compile for, such as sm_90; empty for the CPU alone.
  std::string chip;
  /// The clusters that they run at once, as in CudaPipelineOptions.
  std::string activeClusters;
  /// The library that runs kernels, with the functions of Runtime/Cuda.h.
  std::string library;
};

/// How an argument is used, as far as its random values depend on it.
enum class ArgumentRole { Data, Statistic };

/// The location and message of a run-time check of sizes, and whether the two
/// sizes follow the message.
struct SizeErrorText {
  std::string text;
  bool hasSizes;
};

/// One function of an IR file and the code generated for it.
class Program {
public:
  /// Reads `path` ("-" for standard input) and finds the function `entry`
  /// (empty for the only public one).
  ///
  /// Errors: one line on standard error and failure.
  static FailureOr<Program> load(MLIRContext *context, StringRef path,
                                 StringRef entry,
                                 const ImportOptions &options = {});

  /// The function's name in the file.
  StringRef getEntry() const { return entry; }
  /// Its name in getModule() and in compiled code. No library has this name.
  static constexpr StringLiteral kSymbol = "bngrad_runner_entry";
  ArrayRef<ArrayType> getArgumentTypes() const { return argumentTypes; }
  ArrayRef<ArrayType> getResultTypes() const { return resultTypes; }
  ArgumentRole getRole(unsigned argument);

  /// Returns the function of one process if this one has shard annotations, and
  /// removes these, so that this is the function on whole arrays. Nothing if it
  /// has none.
  ///
  /// Errors: one line on standard error and failure.
  FailureOr<std::optional<Program>> partition();
  /// The sharding of the function of one process.
  const Sharding &getSharding() const { return sharding; }

  /// Compiles the function through the pipeline of its target.
  LogicalResult compile(const Execution &execution);
  /// Compiles only the checks of sizes. This is the function on whole arrays;
  /// processes run `other`.
  LogicalResult compileShapes(const Program &other);
  double getCompileMilliseconds() const { return compileMilliseconds; }
  /// The schedules of the function's groups, comma-separated; `none` without
  /// groups.
  StringRef getSchedules() const { return schedules; }

  /// Whether a schedule computes each sum whose order is free.
  bool hasScheduledSums() const { return scheduledSums; }

  /// Checks the arguments' sizes against each other, and returns the types of
  /// the results. The data are not used.
  FailureOr<ArrayRef<ArrayType>>
  computeResultTypes(MutableArrayRef<::bngrad::Array> arguments);

  /// Checks the arguments' sizes against each other and allocates the results.
  FailureOr<std::vector<::bngrad::Array>>
  prepareResults(MutableArrayRef<::bngrad::Array> arguments);

  /// Runs the compiled function.
  LogicalResult run(MutableArrayRef<::bngrad::Array> arguments,
                    MutableArrayRef<::bngrad::Array> results);

  /// The module of only the function as it was read, at the bngrad level.
  ModuleOp getModule() { return *source; }

private:
  /// Sets the types from `function`, the entry.
  LogicalResult setTypes(func::FuncOp function);

  // The steps of compile, each on a copy of `source`.

  /// Adds the shape function, and makes both functions callable from C.
  LogicalResult addEntryPoints(ModuleOp module);
  /// Runs the stages up to the choice of schedules and records the choice.
  LogicalResult chooseSchedules(ModuleOp module, const Execution &execution);
  /// Generates code that calls `library` for the lowered `module`.
  LogicalResult generateCode(ModuleOp module, StringRef library);

  OwningOpRef<ModuleOp> source;
  std::string entry;
  std::vector<ArrayType> argumentTypes, resultTypes;
  Sharding sharding;
  /// Whether this is the function on whole arrays, whose sizes all processes
  /// check.
  bool isOfAll = false;
  std::optional<CompiledProgram> code;
  std::vector<SizeErrorText> sizeErrors;
  std::string schedules;
  bool scheduledSums = true;
  double compileMilliseconds = 0;
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_PROGRAM_H
