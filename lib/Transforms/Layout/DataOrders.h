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

namespace mlir::bngrad {

/// The possible orders of dense data in memory, row-major first. Each lists the
/// loops from the slowest to the fastest.
SmallVector<SmallVector<int64_t>> getOrders(const ScheduledGroup &group);

/// Adjacent loops of a kind (feature or not) in `order`, by their positions in
/// it.
SmallVector<ReassociationIndices> getRowLoops(const ScheduledGroup &group,
                                              ArrayRef<int64_t> order);

/// Whether there are vector loops for data in `order` with contiguous rows, and
/// `rowLoops`, the result of getRowLoops, can be merged: only data are indexed
/// by several of them.
bool mayMergeRows(const ScheduledGroup &group, ArrayRef<int64_t> order,
                  ArrayRef<ReassociationIndices> rowLoops);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_DATAORDERS_H
