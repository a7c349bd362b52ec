//===- CompiledCall.h - calls of compiled kernels ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_COMPILEDCALL_H
#define BNGRAD_LIB_RUNTIME_API_COMPILEDCALL_H

#include "CompiledModule.h"
#include "Handle.h"
#include "Plan.h"

#include "../Kernels/Kernels.h"

#include <memory>
#include <string>

namespace bngrad {

/// Calls of a kernel that is compiled for the types and layouts of a problem:
/// on a CPU with dynamic sizes, on a GPU for its sizes, while the process has
/// few such kernels. Dims are in the order of memory, and adjacent dims are
/// joined where all tensors allow it, so that many shapes share one kernel. All
/// values of momentum share it, too, and except in training all values of
/// epsilon.
class CompiledCall {
public:
  /// Errors: those of findCompiledKernel.
  bngradStatus_t create(const Problem &problem, const bngradHandle &handle,
                        std::string &error);

  /// In bytes.
  size_t getWorkspaceSize() const { return workspaceSize; }

  bngradStatus_t run(const CallData &call) const;

private:
  /// A descriptor of MLIR's memrefs, of any rank.
  struct MemRef {
    void *allocated, *aligned;
    int64_t offset;
    int64_t sizesAndStrides[2 * (BNGRAD_MAX_RANK + 1)];
  };
  /// The descriptors of a call, in the order of the kernel's parameters.
  struct Parameters {
    MemRef memrefs[kNumOperands];
    void *pointers[kNumOperands + 4];
  };
  void findDims(const Problem &problem, CompiledDims &dims) const;
  static void joinDims(const Problem &problem, CompiledDims &dims);
  void describe(Operand operand, const CompiledDims &dims);
  /// For any addresses, in bytes.
  size_t findWorkspaceSize() const;
  void setParameters(const CallData &call, Parameters &parameters) const;

  std::shared_ptr<const bngradKernel_t> kernel;
  size_t workspaceSize = 0;
  /// Null on a CPU.
  const CudaLibrary *cuda = nullptr;
  int device = 0;
  bool has[kNumOperands];
  MemRef memrefs[kNumOperands];
  /// The scalar parameters of the kernel, and whether it takes them.
  bool takesEpsilon = false, takesUpdate = false;
  double epsilon = 0;
  Problem::UpdateFactors factors;
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_COMPILEDCALL_H
