//===- Annotations.h - shard annotations of a function -------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Upstream's passes end the process, or continue with wrong types, if a program
// is not as they expect. These functions report such a program, or bring it
// into the form that upstream expects.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_PARTITION_ANNOTATIONS_H
#define BNGRAD_LIB_TRANSFORMS_PARTITION_ANNOTATIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mlir::bngrad {

/// True if an op of `function` is a `shard.shard`.
bool hasAnnotations(func::FuncOp function);

/// Checks a function with annotations of the user, before propagation.
///
/// Errors: a diagnostic at the op or argument.
LogicalResult verifyAnnotations(func::FuncOp function);

/// The shardings of a function's arguments and results; null for values that
/// are not sharded.
struct FunctionShardings {
  shard::GridOp grid;
  std::vector<shard::Sharding> arguments, results;
};

/// Checks a function after propagation, and completes its annotations: each
/// tensor has one for its definition, and each use of it has one for the user.
///
/// Errors: a diagnostic at the op or argument, for a tensor without an
///         annotation, or with several that differ.
FailureOr<FunctionShardings> completeAnnotations(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_PARTITION_ANNOTATIONS_H
