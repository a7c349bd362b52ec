//===- TargetMachine.h - machine code through LLVM --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILER_TARGETMACHINE_H
#define BNGRAD_COMPILER_TARGETMACHINE_H

#include "BNGrad/Compiler/Compiler.h"

namespace llvm {
class Error;
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::bngrad {

/// Whether code for `target` is for this machine's CPU.
bool isNative(const CodeGenTarget &target);

/// The length in bits of the SVE registers of the AArch64 CPU that `target`
/// names; 0 if it has none or the length is unknown. It is unknown for this
/// machine, as systems may give a process shorter registers than its CPU has.
int64_t getSveBits(const CodeGenTarget &target,
                   const llvm::TargetMachine &machine);

/// Lets code in `module` use SVE registers of exactly `bits` bits, or none if
/// it is 0.
void useSve(llvm::Module &module, int64_t bits);

/// Makes a target machine at the optimization level of all code. With `isJit`,
/// the process that makes the code loads it; otherwise the code is position
/// independent.
///
/// Errors: null, and a `reason` like that of verifyTarget.
std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const CodeGenTarget &target, bool isJit,
                    std::string &reason);

/// Runs LLVM's optimizations for `machine` on `module`. For x86, code of its
/// context is generated without strength reduction from then on.
llvm::Error optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// Checks that `module`, which the pipelines have lowered, contains only what
/// can be translated to LLVM IR.
///
/// Errors: a diagnostic at the op, and failure.
LogicalResult verifyLowered(ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILER_TARGETMACHINE_H
