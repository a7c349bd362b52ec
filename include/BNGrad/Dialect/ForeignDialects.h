//===- ForeignDialects.h - dialects of other projects -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_FOREIGNDIALECTS_H
#define BNGRAD_DIALECT_FOREIGNDIALECTS_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::bngrad {

/// Registers stand-ins for the dialects of StableHLO, MHLO, Shardy and
/// torch-mlir. Ops are read in generic form; types and attributes stay opaque.
/// Any other form is an error that mentions the generic form. This is for
/// programs that lack these dialects; a compiler that has them registers its
/// own.
void registerForeignDialects(DialectRegistry &registry);

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_FOREIGNDIALECTS_H
