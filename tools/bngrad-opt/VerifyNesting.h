//===- VerifyNesting.h - the nesting of what MLIR parses --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parsers have no limit of nesting but the stack. These functions check
// everything that bngrad-opt lets MLIR parse. Each prints one error.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_BNGRAD_OPT_VERIFYNESTING_H
#define BNGRAD_TOOLS_BNGRAD_OPT_VERIFYNESTING_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir {
class DialectRegistry;
class MlirOptMainConfig;
class PassManager;
} // namespace mlir

namespace mlir::bngrad {

/// Checks pipelines and options of passes among the arguments.
LogicalResult verifyArguments(ArrayRef<const char *> arguments);

/// Checks the input, split like the tool splits it, also the pipeline of a
/// reproducer that is going to be run; and the file of IRDL.
LogicalResult verifyInputs(llvm::MemoryBufferRef input,
                           const MlirOptMainConfig &config,
                           const DialectRegistry &registry);

/// Checks the files of transform libraries that passes of `pm` are going to
/// load.
LogicalResult verifyLibraries(const PassManager &pm,
                              const DialectRegistry &registry);

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_BNGRAD_OPT_VERIFYNESTING_H
