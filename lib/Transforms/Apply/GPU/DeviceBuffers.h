//===- DeviceBuffers.h - the buffers of a group on the device ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_DEVICEBUFFERS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_DEVICEBUFFERS_H

#include "Schedule/ScheduledGroup.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::bngrad {

/// Provides the device buffers of a group's kernels. Everything runs on one
/// stream, in the order of the ops.
class DeviceBuffers {
public:
  /// Gives every operand of `group` a device buffer that its members use: a
  /// copy of the host buffer, or the buffer itself if it is an argument of the
  /// function and `deviceArguments` says that arguments are in device memory. A
  /// remark names the copies.
  DeviceBuffers(OpBuilder &b, const ScheduledGroup &group,
                bool deviceArguments);

  /// A token of the stream.
  Value getStream() const { return stream; }
  /// The initial value of sum `i` of stage `stage`; null to use its output's.
  Value getInitialValue(unsigned stage, unsigned i) const {
    return initialValues.lookup({stage, i});
  }
  /// True if nothing but the group reads `memref`.
  bool isTemporary(Value memref) const;
  /// True if `memref` is known to be aligned to 16 bytes.
  bool isAligned(Value memref) const;
  /// An i1: whether the operands of `generics` along loop `inner` are aligned
  /// to 16 bytes; null if they are known to be.
  Value testAlignment(OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                      unsigned inner) const;
  /// Called in the scope of a test that has succeeded.
  void setAligned(bool tested) { isTestedAligned = tested; }
  /// Allocates a buffer that lives as long as the group.
  Value allocate(OpBuilder &b, MemRefType type, ValueRange sizes);
  /// Frees a buffer early, in the block of its allocation.
  void free(OpBuilder &b, Value memref);
  /// Copies results back, frees buffers and waits.
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
  DenseMap<Value, Value> devices;                // by host memref
  DenseMap<std::pair<Value, Type>, Value> views; // by source and type
  SmallVector<Value> allocated;
  SmallVector<std::pair<Value, Value>> results;    // device, host
  SmallVector<std::pair<Value, Value>> denseForms; // dense, strided
  DenseMap<std::pair<unsigned, unsigned>, Value> initialValues; // stage, sum
};

/// Converts dense copies from and to the arguments of `function`, which are in
/// device memory, to device copies. If host code writes a whole dense argument
/// (a count, or zeros if there is nothing to sum), it writes a host buffer that
/// is then copied.
void copyDeviceArguments(RewriterBase &rewriter, func::FuncOp function);

/// Checks that only kernels and device copies access the arguments of
/// `function`, which are device buffers.
///
/// Errors: a diagnostic at the access, and failure.
LogicalResult verifyDeviceArguments(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_DEVICEBUFFERS_H
