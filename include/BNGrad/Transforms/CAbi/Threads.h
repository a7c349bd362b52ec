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

/// Marks the argument of a function that points to a `bngrad_threads_t`, whose
/// threads run the parallel loops. If the pointer is null, OpenMP's threads do.
inline constexpr llvm::StringLiteral kThreadsAttrName = "bngrad.threads";

/// Adds a threads argument, as the last argument, to each function of `module`
/// that contains parallel loops or calls such a function. A function whose
/// address is taken is unchanged.
///
/// Needs: functions on buffers.
void addThreads(ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_THREADS_H
