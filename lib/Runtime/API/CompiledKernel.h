//===- CompiledKernel.h - kernels compiled at run time ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_COMPILEDKERNEL_H
#define BNGRAD_LIB_RUNTIME_API_COMPILEDKERNEL_H

#include "../Kernels/Kernels.h"

#include <memory>
#include <string>

namespace bngrad {

/// The name of the function in compiled kernels, and of its packed entries.
inline constexpr char kCompiledName[] = "gradient";
inline constexpr char kCompiledPackedName[] = "gradient_packed";
inline constexpr char kCompiledWorkspaceName[] = "gradient_packed_workspace";

/// How a kernel is compiled.
struct CompiledTarget {
  /// The target GPU and the library that launches call; empty for this CPU.
  std::string chip, library;
  /// Whether the gradient is split into its halves, so that sums that the text
  /// also returns are computed once.
  bool inHalves = false;
};

/// The most kernels for sizes of their own that a process has beside a kernel
/// for any sizes. Each takes some 100 KB, and is never unloaded.
inline constexpr size_t kMostSizes = 64;

/// Whether the kernel of `text`, for some sizes, may be compiled beside that of
/// `anySizes`: up to kMostSizes may. Throws std::bad_alloc.
bool mayHaveOwnKernel(const std::string &anySizes, const std::string &text);

/// The kernel of the MLIR `text`, whose public function is called
/// kCompiledName: from an earlier call, from the cache on disk, or compiled by
/// libBNGradCompiler.so. Calls for one text wait for the first of them. The
/// process keeps the most recent kernels for its CPU; an older one is unloaded
/// when nobody holds it any more. Kernels for GPUs, which may still run them,
/// are all kept.
///
/// Errors: null; `error` is one line, and `status` BNGRAD_COMPILER_NOT_FOUND
///         or BNGRAD_INTERNAL_ERROR. Throws std::bad_alloc.
std::shared_ptr<const bngradKernel_t>
findCompiledKernel(const std::string &text, const CompiledTarget &target,
                   bngradStatus_t &status, std::string &error);

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_COMPILEDKERNEL_H
