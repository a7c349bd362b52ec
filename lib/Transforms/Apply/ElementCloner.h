//===- ElementCloner.h - clones the computation of one element  -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules emit the loops; only this file knows how to compute an element of a
// linalg.generic, or a vector of elements.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_ELEMENTCLONER_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_ELEMENTCLONER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::bngrad {

/// Reads the arguments of a generic's body, as scalars or vectors.
struct ElementReader {
  /// The value of a used block argument; it may already be extended if only
  /// extensions use it. If null, ops that depend on it are not cloned.
  function_ref<Value(OpBuilder &, OpOperand &)> readOperand;
  /// The index of a loop.
  function_ref<Value(OpBuilder &, unsigned)> readIndex;
};

/// Clones the body of `generic` without its terminator. An op with an operand
/// that is a vector of `lanes` elements becomes that op on vectors; other ops
/// stay scalar. With `fma`, a sum or difference of a product becomes one fused
/// operation if both allow it. Returns the mapping from the body's values to
/// the clones.
///
/// Errors: none; vectors need `isVectorizable`.
IRMapping cloneElement(OpBuilder &b, linalg::GenericOp generic,
                       ElementReader reader, int64_t lanes = 1,
                       bool fma = false);

/// True if every op of the body of `generic` can work on vectors.
bool isVectorizable(linalg::GenericOp generic);

/// `value` as a vector of `lanes` elements.
Value broadcastTo(OpBuilder &b, Location loc, Value value, int64_t lanes);

/// The indices of an operand that is read by `map` in loops with indices `ivs`;
/// indices of loops that the map does not use may be null.
SmallVector<Value> applyMap(OpBuilder &b, Location loc, AffineMap map,
                            ArrayRef<Value> ivs);

/// Loads and stores of scalar loops.
///
/// Shapes: `ivs` holds one index per loop of the generic; a null index means
/// that its loop does not exist yet.
class ElementCloner {
public:
  explicit ElementCloner(linalg::GenericOp generic)
      : generic(generic), args(generic.getBody()->getNumArguments()),
        unread(args.size()) {}

  /// Loads once every operand that depends on no missing loop; inner loops
  /// reuse the loads of outer ones.
  void load(OpBuilder &b, ArrayRef<Value> ivs);

  /// The element of output `i`, all of whose loops must exist.
  Value loadOutput(OpBuilder &b, ArrayRef<Value> ivs, unsigned i);

  /// Leaves out output `i` and the ops that depend on it, as schedules add up
  /// the sums.
  void leaveOutOutput(unsigned i) { unread.set(generic.getNumDpsInputs() + i); }

  /// Clones the body without its terminator; all loops must exist. Returns the
  /// mapping from the body's values to the clones.
  IRMapping clone(OpBuilder &b, ArrayRef<Value> ivs);

  /// Stores `value` to the element of output `i`.
  void store(OpBuilder &b, ArrayRef<Value> ivs, unsigned i, Value value);

private:
  linalg::GenericOp generic;
  SmallVector<Value> args;     // by block argument, null until loaded
  llvm::SmallBitVector unread; // by block argument
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_ELEMENTCLONER_H
