//===- ReadyCudaPlan.cpp - ops by the ready kernels for GPUs --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadyCudaPlan.h"

#include "Error.h"

#include <algorithm>
#include <cstdint>

using namespace bngrad;

namespace {
/// The scalars after the tensors: none; epsilon; epsilon and the factors of
/// running statistics.
enum class Scalars { NoScalars, Epsilon, Update };

/// The parameters of a kernel.
struct CudaKernel {
  static constexpr int kMostTensors = 9;

  Scalars scalars;
  int numTensors;
  Operand tensors[kMostTensors];
};
} // namespace

template <typename... Roles>
static constexpr CudaKernel makeCudaKernel(Scalars scalars, Roles... roles) {
  return {scalars, int(sizeof...(roles)), {roles...}};
}

static const CudaKernel &getCudaKernel(bngradCudaKernelKind_t kind) {
  static constexpr CudaKernel kKernels[] = {
#define KERNEL(kind, name, scalars, ...)                                       \
  makeCudaKernel(Scalars::scalars, __VA_ARGS__),
      BNGRAD_READY_CUDA_KERNELS(KERNEL)
#undef KERNEL
  };
  return kKernels[kind];
}

/// Why no kernel computes the problem, whatever its layout; null if one does.
const char *ReadyCudaPlan::findUncovered(const Problem &problem) {
  bngradDtype_t type = problem.tensors[Input].dtype;
  if (type == BNGRAD_DTYPE_F64)
    return "its data are of f64";
  if (problem.accumulator == BNGRAD_DTYPE_F64)
    return "its parameters are of f64, its data are not";
  if (problem.has[GradInput] && problem.tensors[GradInput].dtype != type)
    return "grad_input is of another type than input";
  if (problem.has[Output] && problem.tensors[Output].dtype != type)
    return "output is of another type than input";
  if (problem.has[Mask])
    return "it has a mask";
  if (hasRelu(problem.op))
    return "it has a ReLU";
  if (problem.op == OpKind::Backward && problem.has[Sums])
    return "it returns sums and gradients";
  return nullptr;
}

/// Finds the kernels that compute the wanted results, in their order.
void ReadyCudaPlan::chooseKernels(const Problem &problem) {
  auto add = [&](bngradCudaKernelKind_t kind) { kinds[numKinds++] = kind; };
  switch (problem.op) {
  case OpKind::Training:
    return add(has[Output] ? BNGRAD_CUDA_KERNEL_TRAINING
                           : BNGRAD_CUDA_KERNEL_STATISTICS);
  case OpKind::Inference:
    return add(BNGRAD_CUDA_KERNEL_INFERENCE);
  case OpKind::BackwardReduce:
    return add(BNGRAD_CUDA_KERNEL_SCALE_OFFSET);
  case OpKind::BackwardElemt:
    return add(BNGRAD_CUDA_KERNEL_ELEMT);
  case OpKind::Backward:
    break;
  case OpKind::BackwardRelu:
  case OpKind::TrainingRelu:
    return; // findUncovered refuses them.
  }
  if (has[GradInput] && problem.isBatch)
    return add(BNGRAD_CUDA_KERNEL_BATCH);
  if (has[GradScale] || has[GradOffset])
    add(BNGRAD_CUDA_KERNEL_SCALE_OFFSET);
  if (has[GradInput])
    add(BNGRAD_CUDA_KERNEL_GLOBAL_INPUT);
}

/// Whether kernels can use the caller's vector unconverted.
bool ReadyCudaPlan::isDirect(const Problem &problem, Operand operand) const {
  // The reduce half writes both rows of the sums, which are of f32.
  if (op == OpKind::BackwardReduce)
    if (operand == GradScale || operand == GradOffset)
      return true;
  return has[operand] && types[operand] == BNGRAD_DTYPE_F32 &&
         layout.strides[operand] == 1 &&
         (operand != Statistic || problem.isInvStd);
}

void ReadyCudaPlan::addVectors(const Problem &problem) {
  for (int i = 0; i < numKinds; ++i) {
    const CudaKernel &kernel = getCudaKernel(kinds[i]);
    for (int k = 0; k < kernel.numTensors; ++k)
      if (getInfo(kernel.tensors[k]).shape == RoleShape::Channel)
        hasVector[kernel.tensors[k]] = true;
  }
  for (int i = 0; i < kNumOperands; ++i) {
    if (!hasVector[i])
      continue;
    direct[i] = isDirect(problem, static_cast<Operand>(i));
    if (direct[i])
      continue;
    offsets[i] = kernelOffset;
    kernelOffset += alignUp(static_cast<size_t>(layout.channels) * 4);
  }
}

/// The vector of an operand that kernels read or write.
ReadyCudaPlan::VectorOps::Place
ReadyCudaPlan::getVector(Operand operand) const {
  return {operand, direct[operand]};
}

void ReadyCudaPlan::addOp(VectorOps &all, const bngradVectorOp_t &op,
                          VectorOps::Place from, VectorOps::Place to) const {
  auto getStride = [&](VectorOps::Place place) -> long long {
    return place.isCallers ? layout.strides[place.operand] : 1;
  };
  auto getType = [&](VectorOps::Place place) -> int {
    return place.isCallers ? types[place.operand] : BNGRAD_DTYPE_F32;
  };
  bngradVectorOp_t &added = all.ops[all.count];
  added = op;
  added.from_stride = getStride(from);
  added.from_type = getType(from);
  added.to_stride = getStride(to);
  added.to_type = getType(to);
  all.from[all.count] = from;
  all.to[all.count] = to;
  ++all.count;
}

/// Fills the vectors of operands that the kernels read.
void ReadyCudaPlan::addOpsBefore(const Problem &problem) {
  for (int i = 0; i < kNumOperands; ++i) {
    auto operand = static_cast<Operand>(i);
    // In a reduce half, the sums are grad_scale and grad_offset for an inv_std
    // of 1.
    bool isOnes = op == OpKind::BackwardReduce && operand == Statistic;
    bool isUpdated = getUse(op, i) == OperandUse::Updated;
    if (!hasVector[i] || direct[i] || !(isInput(op, i) || isUpdated || isOnes))
      continue;
    bngradVectorOp_t vectorOp = {};
    if (!has[i] || isUpdated) {
      // Absent, or updated after the kernel.
      vectorOp.kind = BNGRAD_VECTOR_FILL;
      vectorOp.value = operand == Offset || isUpdated ? 0 : 1;
    } else if (operand == Statistic && !problem.isInvStd) {
      vectorOp.kind = BNGRAD_VECTOR_INV_STD;
      vectorOp.value = epsilon;
    } else {
      vectorOp.kind = BNGRAD_VECTOR_CONVERT;
    }
    addOp(before, vectorOp, {operand, true}, getVector(operand));
  }
}

/// Gives results their types and strides, and updates running statistics that
/// the kernel has not updated.
void ReadyCudaPlan::addOpsAfter(const Problem &problem) {
  for (int i = 0; i < kNumOperands; ++i) {
    auto operand = static_cast<Operand>(i);
    if (!has[i] || direct[i])
      continue;
    bngradVectorOp_t vectorOp = {};
    if (hasVector[i] && isResult(op, i)) {
      vectorOp.kind = BNGRAD_VECTOR_CONVERT;
      addOp(after, vectorOp, getVector(operand), {operand, true});
    } else if (getUse(op, i) == OperandUse::Updated) {
      vectorOp.kind = BNGRAD_VECTOR_UPDATE;
      vectorOp.value = factors.kept;
      vectorOp.factor =
          operand == RunningMean ? factors.mean : factors.variance;
      addOp(after, vectorOp,
            getVector(operand == RunningMean ? Mean : Variance),
            {operand, true});
    }
  }
}

const char *ReadyCudaPlan::create(const Problem &problem,
                                  const bngradHandle &handle,
                                  const bngradCudaKernels_t &available) {
  if (handle.capability < BNGRAD_LEAST_CUDA_CAPABILITY)
    return "the GPU is older than " BNGRAD_LEAST_CUDA_CHIP;
  if (const char *reason = findUncovered(problem))
    return reason;
  if (const char *reason = findLayout(problem, layout))
    return reason;
  kernels = &available;
  cuda = handle.cuda;
  device = handle.device;
  chip = handle.chip;
  op = problem.op;
  type = problem.tensors[Input].dtype;
  epsilon = problem.epsilon;
  factors = problem.getUpdateFactors();
  std::copy_n(problem.has, kNumOperands, has);
  for (int i = 0; i < kNumOperands; ++i)
    types[i] = problem.tensors[i].dtype;
  chooseKernels(problem);
  addVectors(problem);
  addOpsBefore(problem);
  addOpsAfter(problem);
  size_t most = 0;
  for (int i = 0; i < numKinds; ++i)
    most = std::max(most, findKernelWorkspaceSize(kinds[i]));
  workspaceSize = kernelOffset + most;
  return nullptr;
}

size_t
ReadyCudaPlan::findKernelWorkspaceSize(bngradCudaKernelKind_t kind) const {
  // It depends on which addresses are aligned: each of the data, and all
  // parameters together.
  const CudaKernel &kernel = getCudaKernel(kind);
  int bits[kNumOperands] = {}, numBits = 1;
  for (int i = 0; i < kernel.numTensors; ++i)
    if (isData(kernel.tensors[i]))
      bits[kernel.tensors[i]] = numBits++;
  size_t most = 0;
  for (int unaligned = 0; unaligned < 1 << numBits; ++unaligned) {
    Addresses addresses;
    for (int i = 0; i < kNumOperands; ++i)
      addresses[i] = reinterpret_cast<void *>(
          static_cast<uintptr_t>(unaligned >> bits[i] & 1));
    size_t size = 0;
    runKernel(kind, addresses, nullptr, &size);
    most = std::max(most, size);
  }
  return most;
}

void *ReadyCudaPlan::getAddress(const CallData &call,
                                VectorOps::Place place) const {
  if (!place.isCallers)
    return call.workspace + offsets[place.operand];
  if (op == OpKind::BackwardReduce) {
    auto *sums = static_cast<float *>(call.data[Sums]);
    if (place.operand == GradOffset)
      return sums;
    if (place.operand == GradScale)
      return sums + layout.channels;
  }
  return call.data[place.operand];
}

void ReadyCudaPlan::launch(const VectorOps &all, const CallData &call) const {
  if (all.count == 0)
    return;
  bngradVectorOps_t ops;
  ops.channels = layout.channels;
  for (int i = 0; i < all.count; ++i) {
    ops.ops[i] = all.ops[i];
    ops.ops[i].from = getAddress(call, all.from[i]);
    ops.ops[i].to = getAddress(call, all.to[i]);
  }
  kernels->launch_vectors(&ops, all.count, call.stream);
}

void ReadyCudaPlan::runKernel(bngradCudaKernelKind_t kind,
                              const Addresses &addresses, void *workspace,
                              size_t *size) const {
  const CudaKernel &kernel = getCudaKernel(kind);
  ReadyMemRef memrefs[CudaKernel::kMostTensors];
  void *parameters[CudaKernel::kMostTensors + 4];
  int count = 0;
  for (; count < kernel.numTensors; ++count) {
    Operand operand = kernel.tensors[count];
    memrefs[count] = makeReadyMemRef(layout, operand, addresses[operand]);
    parameters[count] = &memrefs[count];
  }
  // The kernel only reads them.
  auto add = [&](const double &value) {
    parameters[count++] = const_cast<double *>(&value);
  };
  if (kernel.scalars != Scalars::NoScalars)
    add(epsilon);
  if (kernel.scalars == Scalars::Update) {
    add(factors.kept);
    add(factors.mean);
    add(factors.variance);
  }
  const bngradKernel_t &functions =
      kernels->kernels[type][kind][layout.inner != 1];
  if (size)
    *size = functions.get_workspace_size(parameters);
  else
    functions.call(parameters, workspace, nullptr);
}

bngradStatus_t ReadyCudaPlan::run(const CallData &call) const {
  Addresses addresses;
  for (int i = 0; i < kNumOperands; ++i) {
    auto operand = static_cast<Operand>(i);
    addresses[i] = getAddress(call, {operand, !hasVector[i] || direct[i]});
  }
  CudaScope scope(*cuda, device, call.stream);
  launch(before, call);
  for (int i = 0; i < numKinds; ++i)
    runKernel(kinds[i], addresses, call.workspace + kernelOffset);
  launch(after, call);
  if (const char *text = scope.takeError(); *text)
    return fail(BNGRAD_INTERNAL_ERROR, "%s", text);
  return BNGRAD_SUCCESS;
}

bngradStatus_t ReadyCudaPlan::runInSteps(const CallData &call,
                                         Done done) const {
  // These are copies, because the last report may destroy this plan.
  bool isReported[kNumOperands];
  for (int i = 0; i < kNumOperands; ++i)
    isReported[i] = has[i] && isWritten(op, i);
  const OpKind kind = op;
  bngradStatus_t status = run(call);
  forEachWritten(kind, [&](Operand operand) {
    if (status == BNGRAD_SUCCESS && isReported[operand])
      done(operand);
  });
  return status;
}

void ReadyCudaPlan::describe(const bngrad_threads_t * /*threads*/,
                             Description &description) const {
  description.add("kernel", "ready");
  description.add("chip", chip.c_str());
  description.add("data", bngrad::getName(type));
  description.add("form", layout.inner == 1 ? "rows" : "planes");
  description.add("outer", layout.outer);
  description.add("channels", layout.channels);
  description.add("inner", layout.inner);
}
