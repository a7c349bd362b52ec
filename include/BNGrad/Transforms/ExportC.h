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

#include <string>

namespace mlir::bngrad {

/// Whether the libraries of C and mathematics have something called `name`.
bool isCLibraryName(StringRef name);

/// Whether a header can call a parameter `name` in every version of C from C99
/// and of C++ from C++11, whatever headers of the standards precede it.
bool isCParameterName(StringRef name);

/// Why `--bngrad-export-c` exports no function called `name`: it is no
/// identifier of C, or C or C++ have it for something else, and since which
/// version. Empty: it does.
std::string findExportNameError(StringRef name);

/// Whether `--bngrad-export-c` exports scalars and buffers of this type.
bool isExportedElementType(Type type);

/// Whether a pointer says all about a buffer of `type`, so that
/// `--bngrad-export-c` passes it so: its sizes, strides and offset are known.
bool isKnownFromPointer(MemRefType type);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_EXPORTC_H
