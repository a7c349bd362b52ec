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

/// Whether `name` is a valid parameter name in C since C99 and in C++ since
/// C++11, no matter which standard headers have been included.
bool isCParameterName(StringRef name);

/// The reason why `--bngrad-export-c` cannot export a function called `name`:
/// either it is not a C identifier, or C or C++ reserves it (the reason then
/// includes the first version that does). Empty if it can be exported.
std::string findExportNameError(StringRef name);

/// Whether `--bngrad-export-c` exports scalars and buffers of this type.
bool isExportedElementType(Type type);

/// Whether a pointer to the data fully describes a buffer of `type`, because
/// its sizes, strides and offset are static. `--bngrad-export-c` passes such
/// buffers as pointers.
bool isKnownFromPointer(MemRefType type);

/// Returns distinct C identifiers for the arguments and then the results of
/// `function`, which is at the bngrad level. An argument takes the name in its
/// location or else the name of the bngrad operand that it is passed as; a
/// result takes the name of the bngrad result that it returns. All others are
/// numbered.
std::vector<std::string> nameParameters(func::FuncOp function);

/// An attribute of exported functions: the names of their parameters.
inline constexpr StringLiteral kParametersAttrName = "bngrad.parameters";

/// Attributes of exported functions: the function that computes the sizes of
/// their results (`--bngrad-add-shape-functions`), and its error messages,
/// which are printf formats that take the expected and the actual size.
inline constexpr StringLiteral kShapesAttrName = "bngrad.shapes";
inline constexpr StringLiteral kSizeErrorsAttrName = "bngrad.size_errors";

/// An attribute of exported functions whose last argument is a workspace: the
/// function that computes its size in bytes (`--bngrad-plan-workspace`).
inline constexpr StringLiteral kWorkspaceAttrName = "bngrad.workspace";

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_EXPORTC_H
