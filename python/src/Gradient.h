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

#include "../../lib/Runtime/Operands.h"

#include <string>

namespace bngrad::python {

/// A call of the C library.
struct Call {
  /// All tensors absent, and the default options.
  explicit Call(Part part);

  bool isOutput(int operand) const { return bngrad::isOutput(part, operand); }

  Part part;
  bngradBatchNormBackwardOptions_t options;
  /// The keyword of the statistic: variance or inv_std.
  const char *statistic = "variance";
  /// Of Elemt: the elements per channel.
  int64_t count = 0;
  bool has[kNumOperands];
  Array arrays[kNumOperands];
};

/// Computes the outputs. Operands that no ready kernel takes as they are, such
/// as those with gaps or of several layouts, are copied. Throws the error of
/// the C library. Needs Python's lock, and releases it for large arrays.
void execute(const Call &call);

/// How a call is computed.
struct Explanation {
  /// Of the C library.
  std::string description;
  /// Why no kernel takes the operands as they are; empty: one does.
  std::string reason;
  bool isCopied[kNumOperands];
};

/// Explains `execute`, without data.
Explanation explain(const Call &call);

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_GRADIENT_H
