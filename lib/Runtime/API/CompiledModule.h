//===- CompiledModule.h - modules of compiled kernels -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_COMPILEDMODULE_H
#define BNGRAD_LIB_RUNTIME_API_COMPILEDMODULE_H

#include "Problem.h"

#include <string>

namespace bngrad {

/// Dims of a compiled kernel, outermost first.
struct CompiledDims {
  int count = 0;
  int64_t sizes[BNGRAD_MAX_RANK + 1];
  bool isFeature[BNGRAD_MAX_RANK + 1];
  /// For each operand; parameters have strides only for feature dims.
  int64_t strides[kNumOperands][BNGRAD_MAX_RANK + 1];
};

/// Whether epsilon is a parameter of the kernel, after the tensors.
bool isEpsilonParameter(const Problem &problem);

/// Whether the reduce half computes sums in addition to the whole gradient.
bool returnsSums(const Problem &problem);

/// Writes the MLIR module of a kernel, whose function takes the tensors of the
/// problem as memrefs. Its functions throw std::bad_alloc.
class ModuleWriter {
public:
  /// Of data, which have all `dims`, and of parameters, which have the feature
  /// dims, whether they are row-major.
  ModuleWriter(const Problem &problem, const CompiledDims &dims,
               const bool (&isRowMajor)[2])
      : problem(problem), dims(dims), isRowMajor{isRowMajor[0], isRowMajor[1]} {
  }

  /// The module for the sizes of the dims if `isStatic`, else for any sizes.
  std::string write(bool isStatic);

private:
  static std::string getValue(Operand operand) {
    return std::string("%") + getName(operand);
  }
  /// Whether a statistic of the batch enters a running one, before it is
  /// rounded.
  bool isForUpdate(Operand result) const {
    return getBase(problem.op) == OpKind::Training &&
           ((result == Mean && problem.has[RunningMean]) ||
            (result == Variance && problem.has[RunningVariance]));
  }
  std::string getType(Operand operand, bool isTensor) const;
  std::string getVectorType(bngradDtype_t dtype) const;
  /// The value that a result is stored from.
  std::string getSource(Operand result) const;
  /// The ops that give a result its type and store it.
  std::string getStore(Operand result) const;
  /// The ops that compute and store the new value of a running statistic.
  std::string getUpdate(Operand running, Operand batch,
                        const char *factor) const;
  /// The type of a tensor as an operand or result of the op.
  std::string getWideType(Operand operand) const;
  /// The ReLU of a forward pass.
  std::string getRelu() const;
  /// The gradient of a ReLU.
  std::string getReluGradient() const;
  /// The element-wise op with this body, which yields %z.
  std::string getMap(const std::string &operands, const std::string &types,
                     const std::string &init, const std::string &arguments,
                     const std::string &body) const;
  std::string getAttributes(OpKind op) const;
  /// The op with these operands, and its results.
  std::string getOp(OpKind op, const std::string &operands,
                    const std::string &attributes) const;

  void setShapes(bool isStatic);

  const Problem &problem;
  const CompiledDims &dims;
  bool isRowMajor[2];
  int rank[2];
  /// As in a type, such as "32x64x".
  std::string shape[2];
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_COMPILEDMODULE_H
