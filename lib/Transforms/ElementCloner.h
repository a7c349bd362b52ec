//===- ElementCloner.h - clones the computation of one element  -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops around it are a schedule's; this is the one place that knows how an
// element of a linalg.generic is read and computed.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_ELEMENTCLONER_H
#define BNGRAD_LIB_TRANSFORMS_ELEMENTCLONER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::bngrad {

/// Clones the body of a `linalg.generic` on memrefs, for scalar loops.
///
/// Shapes: `ivs` holds one index per loop of the generic; a null index means
/// that its loop is not there yet.
class ElementCloner {
public:
  explicit ElementCloner(linalg::GenericOp generic)
      : generic(generic), args(generic.getBody()->getNumArguments()) {}

  /// Loads every operand that depends on no missing loop, once; inner loops
  /// reuse what an outer one loaded.
  void load(OpBuilder &b, ArrayRef<Value> ivs);

  /// The element of output `i`, indexed by loops that are all there.
  Value loadOutput(OpBuilder &b, ArrayRef<Value> ivs, unsigned i);

  /// Uses `value` for output `i` instead of loading it.
  void setOutput(unsigned i, Value value) {
    args[generic.getNumDpsInputs() + i] = value;
  }

  /// Clones the body without its terminator; all loops must be there. Returns
  /// the mapping from the body's values to the clones.
  IRMapping clone(OpBuilder &b, ArrayRef<Value> ivs);

  /// Stores `value` to the element of output `i`.
  void store(OpBuilder &b, ArrayRef<Value> ivs, unsigned i, Value value);

private:
  linalg::GenericOp generic;
  SmallVector<Value> args; // by block argument, null until loaded
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_ELEMENTCLONER_H
