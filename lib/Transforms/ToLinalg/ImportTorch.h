//===- ImportTorch.h - reads one op of torch ------------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORTTORCH_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORTTORCH_H

#include "Import.h"

namespace mlir::bngrad {

/// Reads and replaces one op of torch.
///
/// Errors: a diagnostic at the op.
class TorchImporter {
public:
  TorchImporter(OpBuilder &b, Operation *op, TorchCasts casts)
      : b(b), op(op), casts(casts) {}

protected:
  FailureOr<bool> readBool(unsigned operand, StringRef name);
  FailureOr<double> readFloat(unsigned operand, StringRef name);
  /// Operand `operand` as a builtin tensor; null for None.
  FailureOr<Value> readTensor(unsigned operand, StringRef name);
  /// Like readTensor, for operands that must be present.
  LogicalResult readTensor(unsigned operand, StringRef name, Value &value,
                           StringRef condition = "");
  /// The builtin type of a result.
  FailureOr<RankedTensorType> readResultType(unsigned result);
  LogicalResult verifyUnused(unsigned result, const Twine &reason);
  /// Checks that operand `operand`, a running statistic that the op updates in
  /// place, is None.
  LogicalResult verifyNotUpdated(unsigned operand, StringRef name);
  /// Replaces a result by a builtin tensor of the same shape.
  LogicalResult replaceResult(unsigned result, Value value);
  /// Copies `value`, a builtin tensor, to operand `operand`, which the op
  /// updates in place, by torch.aten.copy_. Later ops read the result of the
  /// copy.
  LogicalResult copyToOperand(unsigned operand, StringRef name, Value value);

  OpBuilder &b;
  Operation *op;
  TorchCasts casts;
};

/// Replaces a forward pass of torch; nothing for any other op.
std::optional<LogicalResult> importTorchForward(OpBuilder &b, Operation *op,
                                                StringRef name,
                                                TorchCasts casts);

/// Replaces an op of torch's synchronized forward pass: batch_norm_stats,
/// batch_norm_gather_stats_with_counts or batch_norm_elemt; nothing for any
/// other op.
std::optional<LogicalResult> importTorchStatistics(OpBuilder &b, Operation *op,
                                                   StringRef name,
                                                   TorchCasts casts);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_IMPORTTORCH_H
