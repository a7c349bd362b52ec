//===- ExportC.h - names and types of exported functions ------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CABI_EXPORTC_H
#define BNGRAD_TRANSFORMS_CABI_EXPORTC_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <string>
#include <vector>

namespace mlir::bngrad {

/// Whether libc or libm defines `name`.
bool isCLibraryName(StringRef name);

/// Whether `name` is a valid parameter name in every version of C from C99 and
/// of C++ from C++11, after any headers of the standards.
bool isCParameterName(StringRef name);

/// The reason why `--bngrad-export-c` cannot export a function called `name`:
/// it is not an identifier of C, or C or C++ reserve it, with the version since
/// which they do. Empty if it can be exported.
std::string findExportNameError(StringRef name);

/// Whether `--bngrad-export-c` exports scalars and buffers of this type.
bool isExportedElementType(Type type);

/// Whether `--bngrad-export-c` passes a buffer of `type` as a pointer: its
/// sizes, strides and offset are static.
bool isKnownFromPointer(MemRefType type);

/// Distinct C identifiers for the arguments of `function`, which is at the
/// bngrad level, followed by its results. An argument is named after its
/// location, or after the operand of a gradient that it is; a result, after the
/// result of a gradient. Others are numbered.
std::vector<std::string> nameParameters(func::FuncOp function);

/// On exported functions: the names of their parameters.
inline constexpr StringLiteral kParametersAttrName = "bngrad.parameters";

/// On exported functions: the function that computes the sizes of their results
/// (`--bngrad-add-shape-functions`), and the texts of its errors: formats of
/// printf for the expected and the actual size.
inline constexpr StringLiteral kShapesAttrName = "bngrad.shapes";
inline constexpr StringLiteral kSizeErrorsAttrName = "bngrad.size_errors";

/// On exported functions: the function that computes the size of their
/// workspace in bytes (`--bngrad-plan-workspace`). Their last argument is the
/// workspace.
inline constexpr StringLiteral kWorkspaceAttrName = "bngrad.workspace";

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_EXPORTC_H
