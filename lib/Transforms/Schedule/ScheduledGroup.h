//===- ScheduledGroup.h - members of a group, their loops -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The structure of a group, for --bngrad-group and --bngrad-apply-schedule: the
// roles of its generics, and the order of its loops in memory.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_SCHEDULE_SCHEDULEDGROUP_H
#define BNGRAD_LIB_TRANSFORMS_SCHEDULE_SCHEDULEDGROUP_H

#include "Utils/Utils.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mlir::bngrad {

/// True if `map` has every loop once, in any order.
inline bool isDataMap(AffineMap map) { return map.isPermutation(); }

/// True if the loops of `a` and `b` are known to have the same sizes: static
/// ones, or those of an operand that both index alike.
bool haveSameLoops(linalg::GenericOp a, linalg::GenericOp b);

/// The source of `value`, if it is a view that merging loops creates.
Value getViewed(Value value);

/// The map from loops over data to those that are `features`.
AffineMap getFeatureMap(MLIRContext *context, unsigned numLoops,
                        ArrayRef<unsigned> features);

/// The dims of an operand that `map` indexes, grouped by merged loop.
SmallVector<ReassociationIndices>
getMergedDims(AffineMap map, ArrayRef<ReassociationIndices> mergedLoops);

/// The values that a reduction yields, as (result, value in the body).
struct ReductionValues {
  SmallVector<std::pair<unsigned, Value>> terms;  // of the sums
  SmallVector<std::pair<unsigned, Value>> stores; // an element per iteration
};

/// True if the body of `generic` reads data that is no operand.
bool readsBeside(linalg::GenericOp generic);

/// True if `generic`, with a loop for each feature, reads and writes values of
/// its channel, or one value for all.
bool isChannelwise(linalg::GenericOp generic);

/// Describes an op between the members that can move neither before nor after
/// their loops; empty: there is none.
std::string findObstacleBetween(ArrayRef<linalg::GenericOp> members);

/// The reason where getReductionValues has none.
inline constexpr StringLiteral kNotSums =
    "expected every result of the reduction to be a sum with "
    "fastmath<reassoc>, indexed by the parallel loops";

/// The values of a generic whose results are sums with fastmath<reassoc>,
/// indexed by its parallel loops, or have an element per iteration; nothing if
/// one is neither, or if there is no sum.
std::optional<ReductionValues> getReductionValues(linalg::GenericOp generic);

/// The generics of a group, in the order of their block.
using GroupMembers = SmallVector<linalg::GenericOp>;

/// The generics of a group, on tensors or memrefs, by role.
///
/// The loops over the data are those of the reduction and of the element-wise
/// generics; `features` are the ones that tell channels apart, all others are
/// summed over.
struct ScheduledGroup {
  linalg::GenericOp reduction;                // null: none
  SmallVector<linalg::GenericOp> channelwise; // one iteration per channel
  SmallVector<linalg::GenericOp> elementwise; // one per element
  SmallVector<unsigned> features;             // loops over the data, ascending
  unsigned numLoops = 0;                      // over the data

  /// Sorts `members`, in the order of their block, or says in `reason` why they
  /// are no group.
  static std::optional<ScheduledGroup> get(ArrayRef<linalg::GenericOp> members,
                                           std::string &reason);

  bool isFeature(unsigned loop) const {
    return llvm::is_contained(features, loop);
  }
  /// The members with loops over the data.
  SmallVector<linalg::GenericOp> getDataGenerics() const;
  /// All members, in the order of their block.
  GroupMembers getMembers() const;
  /// As getMembers, for a pass that replaces them.
  SmallVector<linalg::GenericOp *> getMemberSlots();
  /// The static or dynamic sizes of the loops over the data.
  SmallVector<int64_t> getLoopSizes() const;
  /// The loops over the data, grouped by merged loop. Adjacent loops of a kind
  /// can be merged if every operand of every member allows it: by the order of
  /// its dims and, of a memref, by its strides. Tensors will be dense.
  SmallVector<ReassociationIndices> getMergeableLoops() const;
  /// Those on tensors; on memrefs, whose loops are merged already, each loop.
  SmallVector<ReassociationIndices> getMergedLoops() const;
  /// The per-channel loops over the same indices as `mergedLoop`.
  ReassociationIndices
  getChannelLoops(const ReassociationIndices &mergedLoop) const;
};

/// Emits a remark of `pass` that `generic` was not converted, and why.
void emitMissed(linalg::GenericOp generic, StringRef pass, const Twine &text);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_SCHEDULEDGROUP_H
