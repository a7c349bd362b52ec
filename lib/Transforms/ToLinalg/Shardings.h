//===- Shardings.h - the texts of shardings ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes of Shardy are opaque, and shardings of XLA are strings. These
// functions read both, and check that values are on one device or replicated on
// all.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_SHARDINGS_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_SHARDINGS_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace mlir::bngrad {

/// The sizes of the axes of a mesh, by name.
using Mesh = llvm::StringMap<int64_t>;

/// Begins an error at the op of a sharding.
using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// Reads an attribute such as `#sdy.mesh<["x"=2, "y"=4], device_ids=[0, 1]>`.
///
/// Errors: a diagnostic, and failure.
FailureOr<Mesh> parseMesh(Attribute attribute, EmitError emitError);

/// Checks an attribute of Shardy, in which all axes that split a value or its
/// computation have one device. `meshes` are the meshes of the module; an
/// attribute without a mesh uses `mesh`, which others set.
///
/// Errors: a diagnostic, and failure.
LogicalResult verifyOneDevice(Attribute attribute,
                              const llvm::StringMap<Mesh> &meshes,
                              std::optional<Mesh> &mesh, EmitError emitError);

/// The same for a sharding of XLA, such as `{devices=[2,1]0,1}`. A sharding
/// that does not give a number of devices spans `numDevices` devices.
///
/// Errors: a diagnostic, and failure.
LogicalResult verifyOneDevice(StringRef text, int64_t numDevices,
                              EmitError emitError);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_SHARDINGS_H
