//===- DeviceBuffers.h - the buffers of a group on the device ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_DEVICEBUFFERS_H
#define BNGRAD_LIB_TRANSFORMS_DEVICEBUFFERS_H

#include "ScheduledGroup.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::bngrad {

/// Where the kernels of one group find their operands. Everything is done on
/// one stream, in the order of the ops.
class DeviceBuffers {
public:
  /// Gives every operand of `group` a buffer on the device and makes its
  /// members read and write there: a copy of a buffer of the host, or the
  /// buffer itself where it is an argument of the function and
  /// `deviceArguments` says that those are on the device. Says in a remark what
  /// is copied.
  DeviceBuffers(OpBuilder &b, const ScheduledGroup &group,
                bool deviceArguments);

  /// A token of the stream.
  Value getStream() const { return stream; }
  /// What sum `i` of the reduction starts with; null: what its output holds.
  Value getInitialValue(unsigned i) const { return initialValues.lookup(i); }
  /// True if `memref` starts at a multiple of 16 bytes, as far as is known.
  bool isAligned(Value memref) const;
  /// An i1: what `generics` read or write along loop `inner` starts at
  /// multiples of 16 bytes; null where that is known.
  Value testAlignment(OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                      unsigned inner) const;
  /// In the scope of a test that has succeeded.
  void setAligned(bool tested) { isTestedAligned = tested; }
  /// A buffer for the time of the group.
  Value allocate(OpBuilder &b, MemRefType type, ValueRange sizes);
  /// Ends the time of a buffer early, in the block of its allocation.
  void free(OpBuilder &b, Value memref);
  /// Copies results back, frees and waits.
  void finish(OpBuilder &b);

private:
  struct Access {
    bool isRead = false, isWritten = false;
  };
  Value getDevice(OpBuilder &b, Value memref);
  Value mirror(OpBuilder &b, Value root, Access access);
  void copy(OpBuilder &b, Value to, Value from) const;

  Location loc;
  Value stream;
  DenseMap<Value, Access> accesses; // by root
  bool deviceArguments;
  bool isTestedAligned = false;
  DenseMap<Value, Value> devices;                // by memref of the host
  DenseMap<std::pair<Value, Type>, Value> views; // by source and type
  SmallVector<Value> allocated;
  SmallVector<std::pair<Value, Value>> results;    // of the device, of the host
  SmallVector<std::pair<Value, Value>> denseForms; // dense, strided
  DenseMap<unsigned, Value> initialValues;
};

/// Makes copies of the device of copies from and to the arguments of
/// `function`, which are buffers of the device, where both sides are dense.
/// What the host gives a dense argument as a whole (a count, zeros where there
/// is nothing to sum) it writes to a buffer of its own, which is copied.
void copyDeviceArguments(RewriterBase &rewriter, func::FuncOp function);

/// Checks that nothing but kernels and copies of the device accesses the
/// arguments of `function`, which are buffers of the device.
///
/// Errors: a diagnostic at what accesses one, and failure.
LogicalResult verifyDeviceArguments(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_DEVICEBUFFERS_H
