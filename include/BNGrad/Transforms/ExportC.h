//===- ExportC.h - what C can call and pass ------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_EXPORTC_H
#define BNGRAD_TRANSFORMS_EXPORTC_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::bngrad {

/// Whether the libraries of C and mathematics have something called `name`.
bool isCLibraryName(StringRef name);

/// Why `--bngrad-export-c` exports no function called `name`: it is no
/// identifier of C, a keyword of C or C++, or reserved. Empty: it does.
StringRef findExportNameError(StringRef name);

/// Whether `--bngrad-export-c` exports scalars and buffers of this type.
bool isExportedElementType(Type type);

/// Whether a pointer says all about a buffer of `type`, so that
/// `--bngrad-export-c` passes it so: its sizes, strides and offset are known.
bool isKnownFromPointer(MemRefType type);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_EXPORTC_H
