//===- ResultName.h - names of results -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_COMMON_RESULTNAME_H
#define BNGRAD_TOOLS_COMMON_RESULTNAME_H

#include "mlir/IR/Value.h"

#include <string>

namespace mlir::bngrad {

/// The name that a bngrad op gives its result `value`, such as "grad_input";
/// empty for any other value.
std::string getResultName(Value value);

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_RESULTNAME_H
