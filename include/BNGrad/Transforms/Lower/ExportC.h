//===- ExportC.h - names and types of exported functions ------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_LOWER_EXPORTC_H
#define BNGRAD_TRANSFORMS_LOWER_EXPORTC_H

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace mlir::bngrad {

/// Whether libc or libm defines `name`.
bool isCLibraryName(StringRef name);

/// Whether `name` is a valid parameter name in every version of C from C99 and
/// of C++ from C++11, after any headers of the standards.
bool isCParameterName(StringRef name);

/// The reason why `--bngrad-export-c` cannot export a function called `name`:
/// it is not an identifier of C, or C or C++ reserve it, since which version.
/// Empty if it can be exported.
std::string findExportNameError(StringRef name);

/// Whether `--bngrad-export-c` exports scalars and buffers of this type.
bool isExportedElementType(Type type);

/// Whether `--bngrad-export-c` passes a buffer of `type` as a pointer: its
/// sizes, strides and offset are static.
bool isKnownFromPointer(MemRefType type);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_LOWER_EXPORTC_H
