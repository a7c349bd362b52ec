//===- Header.h - C headers -------------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILE_HEADER_H
#define BNGRAD_COMPILE_HEADER_H

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/Compiler/Interface.h"

namespace mlir::bngrad {

/// The text of a header for C from C99 and C++ from C++11 that declares
/// `functions`. The include guard depends on `fileName` and the declarations.
/// With `deviceArguments`, arrays are in memory of `device`. With `isSharded`,
/// functions sum over processes.
std::string makeHeader(ArrayRef<ExportedFunction> functions, StringRef fileName,
                       Device device, bool deviceArguments, bool isSharded);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILE_HEADER_H
