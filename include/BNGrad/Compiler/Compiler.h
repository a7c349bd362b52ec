//===- Compiler.h - from the bngrad level to machine code -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles modules to object files or to functions of this process. A module
// may contain gradients of any imported dialect, and calls between its
// functions. Its context gets the dialects and interfaces of
// registerAllDialects (InitAll.h). Errors are diagnostics of the module.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILER_COMPILER_H
#define BNGRAD_COMPILER_COMPILER_H

#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace mlir::bngrad {

/// The form of compiled code. PTX is the text of the only module of kernels.
enum class OutputKind { MLIR, LLVMIR, Assembly, Object, PTX };

/// The device of the gradients; the code around them runs on a CPU.
enum class Device { Cpu, Cuda };

/// The CPU for which code is generated: x86_64 or aarch64 with 64-bit pointers
/// and ELF object files.
struct CodeGenTarget {
  /// Empty for this machine's.
  std::string triple;
  /// A name that LLVM knows, or `native`, which is HostCpu::get(). Empty means
  /// native for this machine's architecture and generic for any other.
  std::string cpu;
  /// Features to add to those of `cpu`, as LLVM names them, comma-separated:
  /// `+avx512bf16`.
  std::string features;
};

/// How to import a module.
struct ImportOptions {
  /// Whether its sums may be added in any order (`--bngrad-reassociate-sums`).
  bool reassociateSums = false;
};

/// How to compile for Device::Cuda.
struct CudaCompileOptions {
  std::string chips;          // comma-separated; empty for the default
  std::string activeClusters; // as in CudaPipelineOptions
  CudaFormat format = CudaFormat::Isa;
  bool deviceArguments = false;
};

/// How to compile.
struct CompileOptions {
  Device device = Device::Cpu;
  CudaCompileOptions cuda; // for Device::Cuda
  CodeGenTarget codeGen;
  std::string schedule; // empty to choose one
  /// For Device::Cpu: 0 for this machine's, -1 for as many as a call has.
  int64_t threads = 0;
  bool packed = false; // entries that only take packed parameters
  bool infer = false;  // NAME_infer, which computes result sizes
};

/// Checks that code can be generated for `target`.
///
/// Errors: failure, and a `reason` that begins with the name of the field, or
///         with BNGRAD_ISA for a bad value of that environment variable.
LogicalResult verifyTarget(const CodeGenTarget &target, std::string &reason);

/// Brings `module` to the bngrad level and makes each public function
/// self-contained: imports foreign gradients, inlines calls, and drops unused
/// private functions.
///
/// Errors: a diagnostic and failure, also for an op that no dialect knows or
///         that prints, a function without a body, and one that calls itself.
LogicalResult importModule(ModuleOp module, const ImportOptions &options = {});

/// Imports `module` and runs the stages up to `last` on it, as `compile` does.
///
/// Errors: a diagnostic and failure.
LogicalResult runStages(ModuleOp module, const CompileOptions &options,
                        Stage last);

/// Imports and lowers `module`, and returns it in the form `kind`.
/// docs/ahead-of-time.md describes its functions in C.
///
/// Errors: a diagnostic and failure.
FailureOr<std::string> compile(ModuleOp module, const CompileOptions &options,
                               OutputKind kind);

/// The bytes of an object file. It needs libc, libm and, for Device::Cuda,
/// BNGrad::CudaRuntime.
///
/// Errors: a diagnostic and failure.
FailureOr<std::string> compileToObject(ModuleOp module,
                                       const CompileOptions &options);

/// Functions of a module, compiled in this process. They may be called as long
/// as the program exists, by several threads at once.
class CompiledProgram {
public:
  /// A symbol that generated code may use, and its address.
  using Symbol = std::pair<StringRef, void *>;

  /// Generates code for `module`, already lowered to the LLVM dialect. The code
  /// may use `symbols`, whatever this process exports, and the shared library
  /// at the path `library`, unless that is empty.
  ///
  /// Errors: a diagnostic and failure.
  static FailureOr<CompiledProgram> create(ModuleOp module,
                                           ArrayRef<Symbol> symbols = {},
                                           StringRef library = "");

  CompiledProgram(CompiledProgram &&) noexcept;
  CompiledProgram &operator=(CompiledProgram &&) noexcept;
  ~CompiledProgram();

  /// The address of the C function `name`; null and a diagnostic of an unknown
  /// location if there is none.
  void *lookup(StringRef name) const;

  /// Calls a function with an array of pointers to each argument and to the
  /// returned value.
  using PackedFunction = void (*)(void **);

  /// A function that calls `name`; null as in `lookup`.
  PackedFunction lookupPacked(StringRef name) const;

private:
  CompiledProgram(MLIRContext *context,
                  std::unique_ptr<ExecutionEngine> engine);

  MLIRContext *context;
  std::unique_ptr<ExecutionEngine> engine;
};

/// Imports and lowers `module`, and generates code for this machine:
/// `options.codeGen` must be empty. The program has the functions of an object
/// file under their names in C. The functions of BNGrad::CudaRuntime are in the
/// shared library at the path `cudaLibrary`, or in this process.
///
/// Errors: a diagnostic and failure.
FailureOr<CompiledProgram> compileToProgram(ModuleOp module,
                                            const CompileOptions &options,
                                            StringRef cudaLibrary = "");

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILER_COMPILER_H
