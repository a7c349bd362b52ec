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

#include <string>

namespace bngrad {

/// The function that compiled kernels have, and its packed entries.
inline constexpr char kCompiledName[] = "gradient";
inline constexpr char kCompiledPackedName[] = "gradient_packed";
inline constexpr char kCompiledWorkspaceName[] = "gradient_packed_workspace";

/// The GPU that a kernel is for, and the library that its launches call; empty:
/// this CPU.
struct CompiledTarget {
  std::string chip, library;
};

/// The kernel of the MLIR `text`, whose public function is called
/// kCompiledName: of an earlier call, of the cache on disk, or compiled by
/// libBNGradCompiler.so. It lives as long as the process. Calls for one text
/// wait for the first of them.
///
/// Errors: null; `error` is one line, and `status` BNGRAD_COMPILER_NOT_FOUND
///         or BNGRAD_INTERNAL_ERROR. Throws std::bad_alloc.
const bngradKernel_t *findCompiledKernel(const std::string &text,
                                         const CompiledTarget &target,
                                         bngradStatus_t &status,
                                         std::string &error);

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_COMPILEDKERNEL_H
