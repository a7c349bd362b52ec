//===- DataOrders.h - orders of the dims of data in memory ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LAYOUT_DATAORDERS_H
#define BNGRAD_LIB_TRANSFORMS_LAYOUT_DATAORDERS_H

#include "Schedule/ScheduledGroup.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::bngrad {

/// Returns the memrefs with one element per iteration, or nothing if one of
/// them is also used per channel, or its dims are not in the order of the
/// loops.
std::optional<llvm::SetVector<Value>> getData(const ScheduledGroup &group);

/// The orders in which dense data may lie in memory, row-major first. Each
/// order lists the loops from the slowest to the fastest.
SmallVector<SmallVector<int64_t>> getOrders(const ScheduledGroup &group);

/// Groups adjacent loops of `order` that are all features or all reduced. The
/// groups contain positions in `order`.
SmallVector<ReassociationIndices> getRowLoops(const ScheduledGroup &group,
                                              ArrayRef<int64_t> order);

/// Whether a vectorized schedule supports data in `order` with contiguous rows,
/// and `rowLoops`, the result of getRowLoops, can be merged. Loops that are
/// merged with others may index only data operands.
bool mayMergeRows(const ScheduledGroup &group, ArrayRef<int64_t> order,
                  ArrayRef<ReassociationIndices> rowLoops);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_DATAORDERS_H
