//===- BNGrad.h - the dialect: ops, attributes, enums --------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only header of the dialect that users include.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_BNGRAD_H
#define BNGRAD_DIALECT_BNGRAD_H

#include "BNGrad/Dialect/Role.h"
#include "BNGrad/Dialect/Schedule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "BNGrad/Dialect/BNGradDialect.h.inc"
#include "BNGrad/Dialect/BNGradEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "BNGrad/Dialect/BNGradAttrs.h.inc"

namespace mlir::bngrad {

/// The ODS name of `role`.
inline StringRef stringifyRole(Role role) { return getInfo(role).name; }

/// Default of BatchNormOpInterface, also used to infer types before the op
/// exists: the widest float element type among `operands`, at least f32.
///
/// Shapes: at least one operand; operands that are not floats do not count.
FloatType getAccumulatorType(ValueRange operands);

} // namespace mlir::bngrad

#include "BNGrad/Dialect/BNGradInterfaces.h.inc"

#define GET_OP_CLASSES
#include "BNGrad/Dialect/BNGradOps.h.inc"

namespace mlir::bngrad {

/// The bytes of an element of `type` in memory; 0 for types that
/// `bngrad.element_cast` does not support.
int64_t getStorageBytes(Type type);

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_BNGRAD_H
