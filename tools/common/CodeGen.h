//===- CodeGen.h - machine code through LLVM --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_COMMON_CODEGEN_H
#define BNGRAD_TOOLS_COMMON_CODEGEN_H

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <memory>
#include <string>

namespace llvm {
class Error;
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::bngrad {

/// Where code is to run.
struct CodeGenTarget {
  /// Empty: this machine's.
  std::string triple;
  /// A name that LLVM knows, or `native`. Empty: native for this machine's
  /// architecture, generic for any other.
  std::string cpu;
  /// Whether code is loaded by the process that makes it; else it is position
  /// independent.
  bool isJit = false;
};

/// Whether code for `target` is for this machine's CPU.
bool isNative(const CodeGenTarget &target);

/// Makes a target machine at the level of optimization that all code is
/// compiled with. Needs the targets that llvm::InitializeAllTargets() and the
/// like, or their native part, register.
///
/// Errors: one line on standard error and null: a triple or CPU that LLVM does
///         not know; a triple given that is not an x86_64 or aarch64 with
///         pointers of 64 bits and ELF, which is all that we have tested; an
///         x86 CPU of 32 bits.
std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const CodeGenTarget &target);

/// Checks that `module`, which the pipelines have lowered, has nothing left
/// that is not translated to LLVM IR.
///
/// Errors: a diagnostic at the op, and failure.
LogicalResult verifyLowered(ModuleOp module);

/// LLVM's optimizations for `machine`, which must outlive the function.
std::function<llvm::Error(llvm::Module *)>
makeOptimizer(llvm::TargetMachine &machine);

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_CODEGEN_H
