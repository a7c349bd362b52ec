//===- Nvtx.h - ranges for profilers ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_NVTX_H
#define BNGRAD_RUNTIME_CUDA_NVTX_H

namespace bngrad::cuda {

/// A range that profilers show as `text` in the calling thread until the end of
/// the scope. Does nothing without NVTX.
class Range {
public:
  explicit Range(const char *text);
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;
  ~Range();
};

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_NVTX_H
