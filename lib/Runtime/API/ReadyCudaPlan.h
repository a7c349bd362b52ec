//===- ReadyCudaPlan.h - ops by the ready kernels for GPUs ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_READYCUDAPLAN_H
#define BNGRAD_LIB_RUNTIME_API_READYCUDAPLAN_H

#include "Handle.h"
#include "Plan.h"

#include "../CudaKernels/CudaKernels.h"

#include <string>

namespace bngrad {

/// Computes an op by the ready kernels for GPUs, which have dynamic sizes and
/// take all of their parameters: dense vectors of f32 over the channels, and an
/// inv_std. Other parameters are first converted to vectors in the workspace,
/// all by one launch, and results are converted back by another launch.
class ReadyCudaPlan : public Plan {
public:
  /// Plans `problem`. Null on success, otherwise the reason why it cannot.
  const char *create(const Problem &problem, const bngradHandle &handle,
                     const bngradCudaKernels_t &kernels);

  bngradStatus_t run(const CallData &call) const override;
  /// All results become final at the end.
  bngradStatus_t runInSteps(const CallData &call, Done done) const override;
  void describe(const bngrad_threads_t *threads,
                Description &description) const override;

private:
  /// The addresses of one call by operand.
  using Addresses = void *[kNumOperands];
  /// The ops on vectors before or after the kernels, and the operands that they
  /// read and write: the vector in the workspace, or the caller's tensor.
  struct VectorOps {
    struct Place {
      Operand operand;
      bool isCallers;
    };
    int count = 0;
    bngradVectorOp_t ops[BNGRAD_MOST_VECTOR_OPS];
    Place from[BNGRAD_MOST_VECTOR_OPS], to[BNGRAD_MOST_VECTOR_OPS];
  };

  static const char *findUncovered(const Problem &problem);
  void chooseKernels(const Problem &problem);
  bool isDirect(const Problem &problem, Operand operand) const;
  void addVectors(const Problem &problem);
  VectorOps::Place getVector(Operand operand) const;
  void addOp(VectorOps &all, const bngradVectorOp_t &op, VectorOps::Place from,
             VectorOps::Place to) const;
  void addOpsBefore(const Problem &problem);
  void addOpsAfter(const Problem &problem);
  /// For any addresses, in bytes.
  size_t findKernelWorkspaceSize(bngradCudaKernelKind_t kind) const;

  void *getAddress(const CallData &call, VectorOps::Place place) const;
  void launch(const VectorOps &all, const CallData &call) const;
  /// Runs a kernel or, if `size` is not null, computes the size of its
  /// workspace.
  void runKernel(bngradCudaKernelKind_t kind, const Addresses &addresses,
                 void *workspace, size_t *size = nullptr) const;

  const bngradCudaKernels_t *kernels;
  const CudaLibrary *cuda;
  int device;
  std::string chip;
  OpKind op;
  bngradDtype_t type; // of the data
  Layout layout;
  double epsilon;
  Problem::UpdateFactors factors; // of running statistics
  bngradCudaKernelKind_t kinds[2];
  int numKinds = 0;
  bool has[kNumOperands];
  bngradDtype_t types[kNumOperands];
  /// Whether kernels have a vector over the channels for an operand, whether it
  /// is the caller's, and otherwise where it is in the workspace.
  bool hasVector[kNumOperands] = {}, direct[kNumOperands] = {};
  size_t offsets[kNumOperands] = {}, kernelOffset = 0;
  VectorOps before, after;
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_READYCUDAPLAN_H
