//===- Alignment.h - alignment of buffers -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled functions, the kernels, the C library and the Python package share
// this alignment. It does not use MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_ALIGNMENT_H
#define BNGRAD_DIALECT_ALIGNMENT_H

#include <cstddef>
#include <cstdint>

namespace mlir::bngrad {

/// A cache line, in bytes; streaming stores start at one.
inline constexpr int64_t kLineBytes = 64;

/// The alignment of workspaces, of the buffers in them, and of arrays that we
/// allocate, in bytes: a cache line, which is also enough for the vectors of
/// any target.
inline constexpr int64_t kBufferAlignment = kLineBytes;

/// `bytes` rounded up to a multiple of kBufferAlignment.
constexpr size_t alignUp(size_t bytes) {
  constexpr size_t alignment = kBufferAlignment;
  return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_ALIGNMENT_H
