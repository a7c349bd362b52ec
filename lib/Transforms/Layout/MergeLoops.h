//===- MergeLoops.h - merging of a group's loops ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LAYOUT_MERGELOOPS_H
#define BNGRAD_LIB_TRANSFORMS_LAYOUT_MERGELOOPS_H

#include "Schedule/ScheduledGroup.h"

namespace mlir::bngrad {

/// Merges loops of generics.
class LoopMerger {
public:
  /// `dataViews` maps data operands to the memrefs that replace them, which
  /// have a dim for each merged loop. All other operands are collapsed.
  explicit LoopMerger(RewriterBase &rewriter) : rewriter(rewriter) {}
  LoopMerger(RewriterBase &rewriter, DenseMap<Value, Value> dataViews)
      : rewriter(rewriter), dataViews(std::move(dataViews)) {}

  /// Replaces `generic` by a generic with merged loops.
  linalg::GenericOp merge(linalg::GenericOp generic,
                          ArrayRef<ReassociationIndices> mergedLoops);

private:
  Value getView(Location loc, Value operand, AffineMap map,
                ArrayRef<ReassociationIndices> mergedLoops);
  /// Rewrites the `linalg.index` ops, which refer to the original loops, in
  /// terms of the merged loops.
  void splitIndices(linalg::GenericOp merged,
                    ArrayRef<ReassociationIndices> mergedLoops,
                    ValueRange sizes);

  RewriterBase &rewriter;
  DenseMap<Value, Value> dataViews;
  // Keyed by source and type, so that generics that read the same data share a
  // view.
  DenseMap<std::pair<Value, Type>, Value> views;
};

/// Merges adjacent loops if every operand of `group` allows it, so that dense
/// NCHW data have three loops and NHWC data two, and updates `group`. Generics
/// that share an operand share its view. Groups on tensors are unchanged.
void mergeLoops(RewriterBase &rewriter, ScheduledGroup &group);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_MERGELOOPS_H
