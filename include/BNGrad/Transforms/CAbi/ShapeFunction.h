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

/// More elements than any memory can hold, but few enough that adding several
/// such counts does not overflow.
inline constexpr int64_t kMostElements = int64_t(1) << 56;

/// An error that the shape function can report at run time.
struct SizeError {
  Location loc;
  std::string message;
  /// Whether the report appends the expected and the actual size to the
  /// message.
  bool hasSizes;
};

/// Emits the report of the error with the given number. Both sizes are i64, and
/// -1 if the error has none.
using EmitSizeError = function_ref<void(OpBuilder &, Location, int64_t number,
                                        Value actual, Value expected)>;

/// Called once for each return of the shape function. The operands of `op` are
/// the dynamic sizes of the results as index values, in the order of results
/// and dims; the callback may insert ops before `op` and replace its operands.
using EmitSizes = function_ref<void(OpBuilder &, func::ReturnOp op)>;

/// Turns `function`, which is on tensors, into a function that checks at run
/// time the sizes and indices of all ops and computes the sizes of the results,
/// but no data. The checks come from upstream's RuntimeVerifiableOpInterface
/// and, for ops that do not implement it, from SizeChecks.h. Element i of
/// `errors` describes error number i.
///
/// Errors: a diagnostic and failure for
///   * a call, because calls must have been inlined;
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
