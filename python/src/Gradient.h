//===- Gradient.h - gradients of arrays -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_GRADIENT_H
#define BNGRAD_PYTHON_SRC_GRADIENT_H

#include "Array.h"

#include "Runtime/Operands.h"

#include <string>

namespace bngrad::python {

/// A call of the C library.
struct Call {
  /// Makes a call with all tensors absent and the default options.
  explicit Call(OpKind op);

  bool isOutput(int operand) const { return bngrad::isOutput(op, operand); }

  OpKind op;
  bngradBatchNormBackwardOptions_t options;
  /// The keyword of the statistic: variance or inv_std.
  const char *statistic = "variance";
  /// The elements per channel, for an op that takes them.
  int64_t count = 0;
  bool has[kNumOperands];
  Array arrays[kNumOperands];
};

/// Computes the outputs. Copies operands that no ready kernel takes directly,
/// such as operands with gaps or with different layouts. Throws the errors of
/// the C library. Needs the GIL, and releases it for large arrays.
void execute(const Call &call);

/// How a call is computed.
struct Explanation {
  /// The C library's description.
  std::string description;
  /// Why no kernel takes the operands directly; empty if one does.
  std::string reason;
  bool isCopied[kNumOperands];
};

/// Explains `execute`, without data.
Explanation explain(const Call &call);

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_GRADIENT_H
