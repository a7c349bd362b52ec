//===- DimClass.h - loops and dims with one index ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_DIMCLASS_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_DIMCLASS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::bngrad {

/// `op` if it is a generic on tensors whose loops may be split, or null.
linalg::GenericOp getSplittable(Operation *op);

/// True if `value`, a tensor.empty or a linalg.fill of one, is created anew for
/// each reader, so that it does not connect its readers.
bool isRemade(Value value);

/// The dims of a reshape: the dims of its coarse side, and for each of them a
/// group of dims of its fine side.
struct Reshape {
  explicit Reshape(tensor::ExpandShapeOp op)
      : op(op), coarse(op.getSrc()), fine(op.getResult()),
        groups(op.getReassociationIndices()) {}
  explicit Reshape(tensor::CollapseShapeOp op)
      : op(op), coarse(op.getResult()), fine(op.getSrc()),
        groups(op.getReassociationIndices()) {}

  /// Null if `op` is not a reshape, or reshapes a tensor of rank 0.
  static std::optional<Reshape> get(Operation *op) {
    std::optional<Reshape> reshape;
    if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
      reshape.emplace(expand);
    else if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
      reshape.emplace(collapse);
    if (reshape && reshape->groups.empty())
      return std::nullopt;
    return reshape;
  }

  int64_t getFineSize(int64_t dim) const {
    return cast<RankedTensorType>(fine.getType()).getDimSize(dim);
  }

  Operation *op;
  Value coarse, fine;
  SmallVector<ReassociationIndices> groups;
};

/// All loops and dims that share the index of one dim.
class DimClass {
public:
  DimClass(Value value, int64_t dim) {
    addDim(value, dim);
    while (!pending.empty()) {
      auto [next, nextDim] = pending.pop_back_val();
      visit(next, nextDim);
    }
  }

  bool hasDim(Value value, int64_t dim) const {
    return dims.contains({value, dim});
  }
  bool hasLoop(Operation *generic, int64_t loop) const {
    return loops.contains({generic, loop});
  }

  /// The generics and reshapes that the class runs through.
  const SetVector<Operation *> &getOps() const { return ops; }
  /// The static size of its dims, or kDynamic; none if they disagree.
  std::optional<int64_t> getSize() const {
    return sizesAgree ? std::optional<int64_t>(size) : std::nullopt;
  }

private:
  void addDim(Value value, int64_t dim);
  void addLoop(linalg::GenericOp generic, int64_t loop);
  void visit(Value value, int64_t dim);
  void visitReshape(const Reshape &reshape, Value value, int64_t dim);

  DenseSet<std::pair<Value, int64_t>> dims;
  DenseSet<std::pair<Operation *, int64_t>> loops;
  SetVector<Operation *> ops;
  SmallVector<std::pair<Value, int64_t>> pending;
  int64_t size = ShapedType::kDynamic;
  bool sizesAgree = true;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_DIMCLASS_H
