//===- SharedObject.h - links shared objects --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILE_SHAREDOBJECT_H
#define BNGRAD_COMPILE_SHAREDOBJECT_H

#include "common/Outputs.h"

namespace mlir::bngrad {

/// Adds to `outputs` a shared object linked from the object file `object`, libm
/// and those of `libraries` that it calls. It finds these at their current
/// paths or, if `besideToo`, also in its own folder.
///
/// Errors: one line on standard error and failure: no linker on PATH, or the
///         first error of the linker.
LogicalResult addSharedObject(Outputs &outputs, StringRef path,
                              StringRef object, ArrayRef<std::string> libraries,
                              bool besideToo);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILE_SHAREDOBJECT_H
