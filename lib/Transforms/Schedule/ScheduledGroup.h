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

/// True if `map` contains every loop once, in any order.
inline bool isDataMap(AffineMap map) { return map.isPermutation(); }

/// True if the loops of `a` and `b` are known to have the same sizes: their
/// sizes are static, or both index an operand in the same way.
bool haveSameLoops(linalg::GenericOp a, linalg::GenericOp b);

/// The source of `value` if that is a view that loop merging creates.
Value getViewed(Value value);

/// The map from the loops over data to the `features`.
AffineMap getFeatureMap(MLIRContext *context, unsigned numLoops,
                        ArrayRef<unsigned> features);

/// The dims of an operand that `map` indexes, grouped by merged loop.
SmallVector<ReassociationIndices>
getMergedDims(AffineMap map, ArrayRef<ReassociationIndices> mergedLoops);

/// The values that a reduction yields, as (result, value in the body).
struct ReductionValues {
  SmallVector<std::pair<unsigned, Value>> terms;  // of the sums
  SmallVector<std::pair<unsigned, Value>> stores; // one element per iteration
};

/// True if the body of `generic` reads data that is not an operand.
bool readsBeside(linalg::GenericOp generic);

/// True if the per-channel `generic` reads, besides its operands, only elements
/// of its own channel, such as the first one: elements that one of `data`
/// reads as an operand, in loops of which `features` identify the channel.
/// From memory that none of `data` writes, it may read any element.
bool readsOwnChannelBeside(linalg::GenericOp generic,
                           ArrayRef<linalg::GenericOp> data,
                           ArrayRef<unsigned> features);

/// True if `generic`, with a loop for each feature, reads and writes only
/// values of its channel, or one value for all.
bool isChannelwise(linalg::GenericOp generic);

/// Describes an op between the members that can move neither before nor after
/// their loops; empty if there is none.
std::string findObstacleBetween(ArrayRef<linalg::GenericOp> members);

/// The reason if getReductionValues returns nothing.
inline constexpr StringLiteral kNotSums =
    "expected every result of the reduction to be a sum with "
    "fastmath<reassoc>, indexed by the parallel loops";

/// The values of a generic each of whose results is a sum with
/// fastmath<reassoc>, indexed by the parallel loops, or has one element per
/// iteration; nothing if a result is neither, or if none is a sum.
std::optional<ReductionValues> getReductionValues(linalg::GenericOp generic);

/// The generics of a group, in the order of their block.
using GroupMembers = SmallVector<linalg::GenericOp>;

/// Sums, and the per-channel values that are computed next. The first stage of
/// a group may have no sums.
struct Stage {
  linalg::GenericOp reduction;                // null if none
  SmallVector<linalg::GenericOp> channelwise; // one iteration per channel
};

/// The generics of a group, on tensors or memrefs, by role: the stages in their
/// order, then the element-wise generics. A stage may read the values of the
/// stages before it.
///
/// Reductions and element-wise generics loop over the data. The indices of
/// `features` identify a channel; all other loops are summed over.
struct ScheduledGroup {
  SmallVector<Stage> stages;                  // at least one
  SmallVector<linalg::GenericOp> elementwise; // one iteration per element
  SmallVector<unsigned> features;             // loops over the data, ascending
  unsigned numLoops = 0;                      // over the data

  /// Sorts `members`, given in the order of their block, or says in `reason`
  /// why they do not form a group.
  static std::optional<ScheduledGroup> get(ArrayRef<linalg::GenericOp> members,
                                           std::string &reason);

  bool isFeature(unsigned loop) const {
    return llvm::is_contained(features, loop);
  }
  /// The reductions of all stages.
  SmallVector<linalg::GenericOp> getReductions() const;
  /// The per-channel generics of all stages.
  SmallVector<linalg::GenericOp> getChannelwise() const;
  /// The members with loops over the data.
  SmallVector<linalg::GenericOp> getDataGenerics() const;
  /// All members, in the order of their block.
  GroupMembers getMembers() const;
  /// Like getMembers, for a pass that replaces the members.
  SmallVector<linalg::GenericOp *> getMemberSlots();
  /// The static or dynamic sizes of the loops over the data.
  SmallVector<int64_t> getLoopSizes() const;
  /// The loops over the data, grouped by merged loop. Adjacent loops of a kind
  /// can be merged if every operand of every member allows it by the order of
  /// its dims and, for a memref, by its strides. Tensors will be dense.
  SmallVector<ReassociationIndices> getMergeableLoops() const;
  /// On tensors, the mergeable loops; on memrefs, the loops, already merged.
  SmallVector<ReassociationIndices> getMergedLoops() const;
  /// The per-channel loops over the same indices as `mergedLoop`.
  ReassociationIndices
  getChannelLoops(const ReassociationIndices &mergedLoop) const;
};

/// Emits a remark of `pass` that says why `generic` was not converted.
void emitMissed(linalg::GenericOp generic, StringRef pass, const Twine &text);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_SCHEDULEDGROUP_H
