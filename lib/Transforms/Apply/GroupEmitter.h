//===- GroupEmitter.h - base of the CPU and GPU emitters --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GROUPEMITTER_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GROUPEMITTER_H

#include "Schedule/ScheduledGroup.h"
#include "Sums.h"
#include "Utils/IndexBuilder.h"

#include "BNGrad/Dialect/BNGrad.h"

namespace mlir::bngrad {

/// The elements of `values` that belong to `loops`; `values` has one per loop.
SmallVector<Value> pick(ArrayRef<Value> values, ArrayRef<unsigned> loops);

/// A group on memrefs, and the code that all schedules have in common: guards,
/// index arithmetic, sums, per-channel generics. Sums and per-channel
/// values are those of the `current` stage.
class GroupEmitter {
public:
  /// Emits the sizes of the loops at the insertion point of `b`, which must
  /// dominate all that is emitted later.
  GroupEmitter(OpBuilder &b, const ScheduledGroup &group);

  using Body = function_ref<void(OpBuilder &)>;
  using ValuesBody = function_ref<SmallVector<Value>(OpBuilder &)>;

  IndexBuilder at(OpBuilder &b) const { return {b, loc}; }
  Value constant(OpBuilder &b, int64_t value) const {
    return at(b).constant(value);
  }

  /// Emits a guard. Creates no op for a constant condition.
  void emitIf(OpBuilder &b, Value condition, Body thenBody) const;
  void emitIf(OpBuilder &b, Value condition, Body thenBody,
              Body elseBody) const;
  /// The results of `thenBody` if `condition` holds, else `otherwise`.
  SmallVector<Value> emitIf(OpBuilder &b, Value condition, ValuesBody thenBody,
                            ValueRange otherwise) const;

  /// Sets the `ivs` of `loops` to the indices of iteration `position`, a number
  /// below the product of their sizes.
  void delinearize(OpBuilder &b, Value position, ArrayRef<unsigned> loops,
                   MutableArrayRef<Value> ivs) const;

  /// Makes stage `number` of the group the current one.
  void enterStage(unsigned number);

  // Sums.
  unsigned numSums() const { return sumTypes.size(); }
  FloatType sumType(unsigned i) const { return sumTypes[i]; }
  /// 0 in the type of sum `i`: a scalar, or a vector of `lanes`.
  Value zero(OpBuilder &b, unsigned i, std::optional<int64_t> lanes = {}) const;
  /// A zero without an error for each sum.
  Accumulators zeroSums(OpBuilder &b, std::optional<int64_t> lanes = {}) const;
  /// sum + error of each.
  SmallVector<Value> joinErrors(OpBuilder &b, ArrayRef<Accumulator> sums) const;
  /// The per-channel generics for the channel with indices `features`.
  void emitChannelwise(OpBuilder &b, ArrayRef<Value> features) const;

  ScheduledGroup group;
  Location loc;
  unsigned stageNumber = 0; // of the current stage in the group
  Stage current;
  ReductionValues values;          // of its reduction, if it has one
  SmallVector<FloatType> sumTypes; // of the sums that are added up
  SmallVector<Value> sizes;        // by loop over the data
  SmallVector<unsigned> reduced;   // loops that are summed over, ascending
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GROUPEMITTER_H
