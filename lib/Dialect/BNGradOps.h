//===- BNGradOps.h - shared definitions of the ops ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The methods that BNGrad_GradientOp of BNGradOps.td defines for every op.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_DIALECT_BNGRADOPS_H
#define BNGRAD_LIB_DIALECT_BNGRADOPS_H

#include "BNGrad/Dialect/BNGrad.h"

namespace mlir::bngrad::detail {

/// Sizes that disagree at run time are undefined behaviour, so only an op whose
/// operands all have static shapes may be speculated.
Speculation::Speculatability getSpeculatability(GradientOpInterface op);

/// Adds the sizes of each result: attributes for static sizes, sizes of input
/// for dynamic ones.
LogicalResult reifyResultShapes(GradientOpInterface op, OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes);

/// Generates checks of the shape constraints for dynamic sizes, which compare
/// every operand and result with input.
void generateSizeChecks(
    GradientOpInterface op, OpBuilder &builder, Location loc,
    function_ref<std::string(Operation *, StringRef)> generateErrorMessage);

/// Adds every size known from the operands to the given result types. The
/// verifier reports sizes that disagree, with the constraint.
void refineTypes(ArrayRef<Type> inferred, SmallVectorImpl<Type> &returnTypes);

} // namespace mlir::bngrad::detail

#endif // BNGRAD_LIB_DIALECT_BNGRADOPS_H
