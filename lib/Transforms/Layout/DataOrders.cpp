//===- DataOrders.cpp - orders of the dims of data in memory --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DataOrders.h"
#include "Schedule/ChooseCpuSchedule.h"

using namespace mlir;
using namespace mlir::bngrad;

std::optional<llvm::SetVector<Value>>
mlir::bngrad::getData(const ScheduledGroup &group) {
  llvm::SetVector<Value> data;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      if (!isDataMap(map))
        continue;
      if (!map.isIdentity())
        return std::nullopt;
      data.insert(operand.get());
    }
  for (linalg::GenericOp generic : group.getMembers())
    for (OpOperand &operand : generic->getOpOperands()) {
      bool isOfData = generic.getNumLoops() == group.numLoops &&
                      isDataMap(generic.getMatchingIndexingMap(&operand));
      if (!isOfData && data.contains(operand.get()))
        return std::nullopt;
    }
  return data;
}

SmallVector<SmallVector<int64_t>>
mlir::bngrad::getOrders(const ScheduledGroup &group) {
  SmallVector<int64_t> rowMajor, sums;
  for (unsigned loop : llvm::seq(group.numLoops)) {
    rowMajor.push_back(loop);
    if (!group.isFeature(loop))
      sums.push_back(loop);
  }
  // Add NHWC, NCHW and CNHW, no matter how the loops are ordered.
  SmallVector<int64_t> features(group.features.begin(), group.features.end());
  auto withFeaturesAt = [&](unsigned position) {
    SmallVector<int64_t> order(sums);
    order.insert(order.begin() + position, features.begin(), features.end());
    return order;
  };
  SmallVector<SmallVector<int64_t>> orders = {rowMajor};
  for (unsigned position : {static_cast<unsigned>(sums.size()), 1u, 0u})
    if (SmallVector<int64_t> order = withFeaturesAt(position);
        !llvm::is_contained(orders, order))
      orders.push_back(order);
  return orders;
}

SmallVector<ReassociationIndices>
mlir::bngrad::getRowLoops(const ScheduledGroup &group,
                          ArrayRef<int64_t> order) {
  SmallVector<ReassociationIndices> merged;
  for (auto [position, loop] : llvm::enumerate(order)) {
    if (position == 0 ||
        group.isFeature(loop) != group.isFeature(order[position - 1]))
      merged.emplace_back();
    merged.back().push_back(position);
  }
  return merged;
}

bool mlir::bngrad::mayMergeRows(const ScheduledGroup &group,
                                ArrayRef<int64_t> order,
                                ArrayRef<ReassociationIndices> mergedLoops) {
  SmallVector<bool> isFeature;
  for (const ReassociationIndices &positions : mergedLoops)
    isFeature.push_back(group.isFeature(order[positions.front()]));
  auto keepsLoops = [&](AffineMap map) {
    return isDataMap(map) ||
           llvm::none_of(mergedLoops, [&](const ReassociationIndices &merged) {
             return merged.size() > 1 &&
                    llvm::any_of(merged, [&](int64_t position) {
                      return map.isFunctionOfDim(order[position]);
                    });
           });
  };
  return group.features.size() == 1 &&
         (hasLoopsOf(ScheduleKind::Rows, isFeature) ||
          hasLoopsOf(ScheduleKind::Channels, isFeature)) &&
         llvm::all_of(group.getDataGenerics(), [&](linalg::GenericOp generic) {
           return !generic.hasIndexSemantics() &&
                  llvm::all_of(generic.getIndexingMapsArray(), keepsLoops);
         });
}
