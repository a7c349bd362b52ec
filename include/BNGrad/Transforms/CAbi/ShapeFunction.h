//===- ShapeFunction.h - functions that compute shapes -------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CABI_SHAPEFUNCTION_H
#define BNGRAD_TRANSFORMS_CABI_SHAPEFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace mlir::bngrad {

/// More elements than any memory has; sums of a few do not overflow.
inline constexpr int64_t kMostElements = int64_t(1) << 56;

/// An error about sizes that do not agree.
struct SizeError {
  Location loc;
  std::string message;
  /// Whether the two sizes follow the message in the report.
  bool hasSizes;
};

/// Emits the report of an error with its number, the actual size, and the
/// expected size; both sizes are i64, and -1 if unknown.
using EmitSizeError = function_ref<void(OpBuilder &, Location, int64_t number,
                                        Value actual, Value expected)>;

/// Emits the end of the function before `op`, which returns the dynamic sizes
/// of the results as index values, in the order of results and dims.
using EmitSizes = function_ref<void(OpBuilder &, func::ReturnOp op)>;

/// Turns `function`, which is on tensors, into one that computes no data: it
/// checks at run time all sizes that ops require, by upstream's interface and
/// for ops of the tensor dialect that lack it, and computes the sizes of the
/// results. Error i becomes element i of `errors`.
///
/// Errors: a diagnostic and failure for
///   * a call, which is to be inlined before;
///   * a reshape whose indices are not consecutive (docs/upstream.md, section
///     14), and a memref.reinterpret_cast of memory whose extent is not known;
///   * an indexing map with a divisor that is not a positive constant;
///   * a cf.assert whose condition, or a result whose size, depends on memory
///     that the function writes.
LogicalResult makeShapeFunction(func::FuncOp function, EmitSizeError emitError,
                                EmitSizes emitSizes,
                                std::vector<SizeError> &errors);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_SHAPEFUNCTION_H
