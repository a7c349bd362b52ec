//===- Threads.h - threads of compiled functions -------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CABI_THREADS_H
#define BNGRAD_TRANSFORMS_CABI_THREADS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::bngrad {

/// The attribute of a function's argument that points to the `bngrad_threads_t`
/// whose threads run its parallel loops; null means OpenMP's.
inline constexpr llvm::StringLiteral kThreadsAttrName = "bngrad.threads";

/// Adds such an argument as the last one of each function of `module` that has
/// parallel loops, or calls one that has. A function whose address is taken is
/// unchanged.
///
/// Needs: functions on buffers.
void addThreads(ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_THREADS_H
