//===- BNGradOps.h - shared definitions of the ops ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The methods that BNGrad_BatchNormOp of BNGradOps.td defines for every op.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_DIALECT_BNGRADOPS_H
#define BNGRAD_LIB_DIALECT_BNGRADOPS_H

#include "BNGrad/Dialect/BNGrad.h"

namespace mlir::bngrad::detail {

template <typename T>
using HasEpsilon = decltype(std::declval<T>().getEpsilon());

/// The operands of an op by role, null if absent, and its attributes.
struct Operands {
  /// Collects the operands of an op or of its adaptor, which have these
  /// `roles`.
  template <typename T>
  Operands(T op, ArrayRef<Role> roles)
      : featureDims(op.getFeatureDims()), values(getValues(op)),
        hasStatistic(llvm::is_contained(roles, Role::Variance)) {
    for (auto [i, role] : llvm::enumerate(roles))
      for (Value value : op.getODSOperands(i))
        of[static_cast<uint32_t>(role)] = value;
    if constexpr (llvm::is_detected<HasEpsilon, T>::value)
      epsilon = op.getEpsilon().convertToDouble();
  }

  Value operator[](Role role) const { return of[static_cast<uint32_t>(role)]; }

  Value of[kNumRoles];
  ArrayRef<int64_t> featureDims;
  ValueRange values;
  double epsilon = 0;
  /// Whether the op has variance or inv_std.
  bool hasStatistic;

private:
  static ValueRange getValues(BatchNormOpInterface op) {
    return op->getOperands();
  }
  template <typename T> static ValueRange getValues(T adaptor) {
    return adaptor.getOperands();
  }
};

/// Verifies the constraints that follow from the roles of `op`.
LogicalResult verify(BatchNormOpInterface op);

/// Infers the types of results of `roles`, and reports operands that the
/// verifier rejects at `location`, if there is one.
LogicalResult inferTypes(std::optional<Location> location,
                         const Operands &operands, ArrayRef<Role> roles,
                         SmallVectorImpl<Type> &types);

/// Sizes that disagree at run time are undefined behaviour, so only an op whose
/// operands all have static shapes may be speculated.
Speculation::Speculatability getSpeculatability(BatchNormOpInterface op);

/// Adds the sizes of each result: attributes for static sizes, sizes of input
/// for dynamic ones.
LogicalResult reifyResultShapes(BatchNormOpInterface op, OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes);

/// Generates checks of the shape constraints for dynamic sizes, which compare
/// every operand and result with input.
void generateSizeChecks(
    BatchNormOpInterface op, OpBuilder &builder, Location loc,
    function_ref<std::string(Operation *, StringRef)> generateErrorMessage);

/// Adds every size known from the operands to the given result types. The
/// verifier reports sizes that disagree, with the constraint.
void refineTypes(ArrayRef<Type> inferred, SmallVectorImpl<Type> &returnTypes);

} // namespace mlir::bngrad::detail

#endif // BNGRAD_LIB_DIALECT_BNGRADOPS_H
