//===- ReadyPlan.cpp - ops by the ready kernels ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadyPlan.h"

#include "Error.h"

#include "../../Transforms/Schedule/SizeRules.h"

#include <algorithm>
#include <cstdio>
#include <thread>

using namespace bngrad;
using mlir::bngrad::ScheduleKind;
using mlir::bngrad::ScheduleReuse;
namespace limits = mlir::bngrad::limits;

static ReadyMemRef makeVector(void *data, int64_t size, int64_t stride) {
  return {data, data, 0, {size, stride}};
}

const ReadyPlan::Kernel &ReadyPlan::getKernel(bngradKernelKind_t kind) {
  enum Bit : unsigned {
    None = 0,
#define BNGRAD_ROLE(role, ...) role = 1U << ::bngrad::role,
#include "BNGrad/Dialect/Roles.def"
  };
  static constexpr Kernel kKernels[] = {
#define KERNEL(kind, name, op, statistics, results, parameters, ...)           \
  {OpKind::op, results, parameters},
      BNGRAD_READY_KERNELS(KERNEL, unused)
#undef KERNEL
  };
  return kKernels[kind];
}

/// The kernel that computes all results.
bngradKernelKind_t ReadyPlan::choose() const {
  if (op == OpKind::Training)
    return has[Output] ? BNGRAD_KERNEL_TRAINING : BNGRAD_KERNEL_STATISTICS;
  if (op == OpKind::Inference)
    return BNGRAD_KERNEL_INFERENCE;
  if (op == OpKind::BackwardReduce)
    return BNGRAD_KERNEL_SCALE_OFFSET;
  if (op == OpKind::BackwardElemt)
    return BNGRAD_KERNEL_ELEMT;
  if (!has[GradInput])
    return chooseFirstStep();
  if (isBatch)
    return BNGRAD_KERNEL_BATCH;
  if (has[GradScale])
    return BNGRAD_KERNEL_GLOBAL;
  return has[GradOffset] ? BNGRAD_KERNEL_GLOBAL_INPUT_OFFSET
                         : BNGRAD_KERNEL_GLOBAL_INPUT;
}

/// The kernel that computes all but grad_input.
bngradKernelKind_t ReadyPlan::chooseFirstStep() const {
  return has[GradScale] ? BNGRAD_KERNEL_SCALE_OFFSET : BNGRAD_KERNEL_OFFSET;
}

/// Whether kernels can use the caller's data unconverted.
bool ReadyPlan::isDirect(const Problem &problem, Operand operand) const {
  return problem.has[operand] && hasVector[operand] &&
         problem.tensors[operand].dtype == problem.accumulator &&
         layout.strides[operand] == 1 &&
         (operand != Statistic || problem.isInvStd);
}

const char *ReadyPlan::create(const Problem &problem,
                              const bngradKernels_t *available) {
  if (!available)
    return "this CPU is older than the ready kernels";
  if (hasRelu(problem.op))
    return "it has a ReLU";
  kernels = available;
  type = problem.tensors[Input].dtype;
  isF64 = problem.accumulator == BNGRAD_DTYPE_F64;
  if (isF64 != (type == BNGRAD_DTYPE_F64))
    return "its parameters are of f64, its data are not";
  if (problem.has[GradInput] && problem.tensors[GradInput].dtype != type)
    return "grad_input is of another type than input";
  if (problem.has[Output] && problem.tensors[Output].dtype != type)
    return "output is of another type than input";
  if (const char *reason = findLayout(problem, layout))
    return reason;
  op = problem.op;
  epsilon = problem.epsilon;
  epsilonF32 = static_cast<float>(epsilon);
  isBatch = problem.isBatch;
  isInvStd = problem.isInvStd;
  factors = problem.getUpdateFactors();
  std::copy_n(problem.has, kNumOperands, has);
  OpKind kernelOp = getKernel(choose()).op;
  for (int i = 0; i < kNumOperands; ++i) {
    types[i] = problem.tensors[i].dtype;
    hasVector[i] = getInfo(i).shape == RoleShape::Channel &&
                   (isInput(kernelOp, i) || isResult(kernelOp, i));
    direct[i] = isDirect(problem, static_cast<Operand>(i));
  }
  addTables();
  return nullptr;
}

void ReadyPlan::addTable(int table, int64_t rows) {
  offsets[table] = kernelOffset;
  kernelOffset +=
      static_cast<int64_t>(alignUp(static_cast<size_t>(rows * getRowBytes())));
}

void ReadyPlan::addTables() {
  std::fill_n(offsets, kNumOperands + 1, -1);
  kernelOffset = 0;
  for (int i = 0; i < kNumOperands; ++i)
    if (Operand operand = getParameter(i);
        hasVector[operand] && !direct[operand])
      addTable(operand);
  if (op == OpKind::BackwardReduce)
    addTable(kOnes);
  bngradKernelKind_t kinds[3] = {choose()};
  int numKinds = 1;
  if (isInSteps()) {
    kinds[numKinds++] =
        isBatch ? BNGRAD_KERNEL_SCALE_OFFSET : chooseFirstStep();
    kinds[numKinds++] =
        isBatch ? BNGRAD_KERNEL_ELEMT : BNGRAD_KERNEL_GLOBAL_INPUT;
    if (isBatch) {
      addTable(kOnes);
      addTable(Sums, 2);
    }
  }
  size_t most = 0;
  for (int i = 0; i < numKinds; ++i) {
    size_t size = 0;
    runKernel({}, kinds[i], &size);
    most = std::max(most, size);
  }
  workspaceSize = kernelOffset + most;
}

char *ReadyPlan::getTable(const CallData &call, int table) const {
  if (!call.workspace || offsets[table] < 0)
    return nullptr;
  return call.workspace + offsets[table];
}

void ReadyPlan::fill(char *table, double value) const {
  if (isF64)
    std::fill_n(reinterpret_cast<double *>(table), layout.channels, value);
  else
    std::fill_n(reinterpret_cast<float *>(table), layout.channels,
                static_cast<float>(value));
}

void ReadyPlan::convert(bngradPackedFunction_t function, void *from,
                        int64_t fromStride, void *to, int64_t toStride) const {
  ReadyMemRef source = makeVector(from, layout.channels, fromStride);
  ReadyMemRef destination = makeVector(to, layout.channels, toStride);
  const void *factor = isF64 ? static_cast<const void *>(&epsilon)
                             : static_cast<const void *>(&epsilonF32);
  void *parameters[] = {&source, &destination, const_cast<void *>(factor)};
  function(parameters, nullptr, nullptr);
}

void ReadyPlan::prepare(const CallData &call, unsigned parameters) const {
  for (int i = 0; i < kNumOperands; ++i) {
    if (!hasVector[i] || direct[i] || !(parameters >> i & 1))
      continue;
    if (!has[i]) {
      fill(getTable(call, i), i == Offset ? 0 : 1); // absent
      continue;
    }
    const auto &functions = i == Statistic && !isInvStd
                                ? kernels->inv_std[isF64]
                                : kernels->widen[isF64];
    convert(functions[types[i]], call.data[i], layout.strides[i],
            getTable(call, i), 1);
  }
}

/// Converts results from tables to the caller's tensors.
void ReadyPlan::finish(const CallData &call) const {
  for (int i = 0; i < kNumOperands; ++i)
    if (isResult(op, i) && hasVector[i] && has[i] && !direct[i])
      convert(kernels->narrow[isF64][types[i]], getTable(call, i), 1,
              call.data[i], layout.strides[i]);
}

/// Updates running statistics in f64, from statistics that are not rounded.
void ReadyPlan::update(const CallData &call) const {
  const ElementType wide = isF64 ? ElementType::F64 : ElementType::F32;
  const CallData vectors = getVectors(call);
  auto updateFrom = [&](Operand running, Operand batch, double factor) {
    if (!has[running])
      return;
    const ElementType own = toElementType(types[running]);
    for (int64_t i = 0; i < layout.channels; ++i) {
      int64_t place = i * layout.strides[running];
      double kept = factors.kept * loadAsDouble(own, call.data[running], place);
      double added = factor * loadAsDouble(wide, vectors.data[batch], i);
      storeRounded(own, call.data[running], place, kept + added);
    }
  };
  updateFrom(RunningMean, Mean, factors.mean);
  updateFrom(RunningVariance, Variance, factors.variance);
}

CallData ReadyPlan::getVectors(const CallData &call) const {
  CallData vectors = call;
  for (int i = 0; i < kNumOperands; ++i)
    if (hasVector[i] && !direct[i])
      vectors.data[i] = getTable(call, i);
  return vectors;
}

/// Runs a kernel, or computes the size of its workspace.
bngradStatus_t ReadyPlan::runKernel(const CallData &vectors,
                                    bngradKernelKind_t kind,
                                    size_t *size) const {
  const Kernel &info = getKernel(kind);
  ReadyMemRef memrefs[kNumOperands];
  void *parameters[kNumOperands + 1];
  int count = 0, numMemrefs = 0;
  auto add = [&](Operand operand) {
    memrefs[numMemrefs] =
        makeReadyMemRef(layout, operand, vectors.data[operand]);
    parameters[count++] = &memrefs[numMemrefs++];
  };
  for (const mlir::bngrad::OpOperandInfo &operand : mlir::bngrad::kOpOperands)
    if (auto role = static_cast<Operand>(operand.role);
        operand.op == info.op && isInput(info.op, role) &&
        (role != Mask || has[Mask]))
      add(role);
  if (info.op == OpKind::Training) // which only reads it
    parameters[count++] = const_cast<double *>(&epsilon);
  for (const mlir::bngrad::OpOperandInfo &operand : mlir::bngrad::kOpOperands)
    if (auto role = static_cast<Operand>(operand.role);
        operand.op == info.op && info.has(role))
      add(role);
  const bngradKernel_t &kernel =
      kernels->kernels[type][kind][layout.inner != 1][has[Mask]];
  if (size) {
    *size = kernel.get_workspace_size(parameters);
    return BNGRAD_SUCCESS;
  }
  return getStatus(kernel.call(parameters, vectors.workspace + kernelOffset,
                               vectors.threads));
}

bngradStatus_t ReadyPlan::run(const CallData &call) const {
  bngradKernelKind_t kind = choose();
  prepare(call, getKernel(kind).parameters);
  CallData vectors = getVectors(call);
  bngradStatus_t status =
      op == OpKind::BackwardReduce
          ? runReduce(vectors, static_cast<char *>(call.data[Sums]))
          : runKernel(vectors, kind);
  if (status != BNGRAD_SUCCESS)
    return status;
  update(call);
  finish(call);
  return status;
}

/// Computes the sums, which are grad_offset and grad_scale for an inv_std of 1.
bngradStatus_t ReadyPlan::runReduce(CallData vectors, char *sums) const {
  char *ones = getTable(vectors, kOnes);
  fill(ones, 1);
  vectors.data[Statistic] = ones;
  vectors.data[GradOffset] = sums;
  vectors.data[GradScale] = sums + getRowBytes();
  return runKernel(vectors, BNGRAD_KERNEL_SCALE_OFFSET);
}

/// Computes grad_scale and grad_offset, and the sums for grad_input.
bngradStatus_t ReadyPlan::runSums(const CallData &call) const {
  // This also prepares the parameters of grad_input.
  prepare(call, getKernel(BNGRAD_KERNEL_BATCH).parameters);
  CallData vectors = getVectors(call);
  if (isBatch) {
    char *sums = getTable(call, Sums);
    if (bngradStatus_t status = runReduce(vectors, sums))
      return status;
    ReadyMemRef from = makeVector(sums + getRowBytes(), layout.channels, 1);
    ReadyMemRef factor =
        makeVector(vectors.data[Statistic], layout.channels, 1);
    ReadyMemRef to = makeVector(vectors.data[GradScale], layout.channels, 1);
    void *parameters[] = {&from, &factor, &to};
    kernels->multiply[isF64](parameters, nullptr, nullptr);
    convert(kernels->widen[isF64][isF64 ? BNGRAD_DTYPE_F64 : BNGRAD_DTYPE_F32],
            sums, 1, vectors.data[GradOffset], 1);
  } else if (bngradStatus_t status = runKernel(vectors, chooseFirstStep())) {
    return status;
  }
  finish(call);
  return BNGRAD_SUCCESS;
}

/// Computes grad_input after runSums.
bngradStatus_t ReadyPlan::runLastStep(const CallData &call) const {
  int64_t count = layout.outer * layout.inner;
  CallData vectors = getVectors(call);
  vectors.data[Sums] = getTable(call, Sums);
  vectors.data[Count] = &count;
  return runKernel(vectors,
                   isBatch ? BNGRAD_KERNEL_ELEMT : BNGRAD_KERNEL_GLOBAL_INPUT);
}

bngradStatus_t ReadyPlan::runInSteps(const CallData &call, Done done) const {
  // These are copies, because the last report may destroy this plan.
  bool isReported[kNumOperands];
  for (int i = 0; i < kNumOperands; ++i)
    isReported[i] = has[i] && isWritten(op, i);
  const bool inSteps = isInSteps();
  const OpKind kind = op;
  bngradStatus_t status = inSteps ? runSums(call) : run(call);
  forEachWritten(kind, [&](Operand operand) {
    if (status == BNGRAD_SUCCESS && inSteps && operand == GradInput)
      status = runLastStep(call);
    if (status == BNGRAD_SUCCESS && isReported[operand])
      done(operand);
  });
  return status;
}

/// The sums take one pass over the data, and grad_input or output another.
ReadyPlan::Passes ReadyPlan::countPasses() const {
  const Kernel &kernel = getKernel(choose());
  Passes passes = {};
  if (isForward(op)) {
    passes.counts[Output] = kernel.has(Output) ? 1 : 0;
    passes.counts[Input] =
        passes.counts[Output] + (op == OpKind::Training ? 1 : 0);
    return passes;
  }
  bool isElemt = op == OpKind::BackwardElemt;
  int sums =
      !isElemt && (kernel.has(GradScale) || kernel.has(GradOffset)) ? 1 : 0;
  int elements = kernel.has(GradInput) ? 1 : 0;
  passes.counts[GradOutput] = sums + elements;
  passes.counts[Mask] = has[Mask] ? sums + elements : 0;
  // Sums of grad_output alone and global statistics do not read input.
  passes.counts[Input] = (sums && kernel.has(GradScale) ? 1 : 0) +
                         (elements && (isBatch || isElemt) ? 1 : 0);
  passes.counts[GradInput] = elements;
  return passes;
}

/// Describes the schedule and all that follows from it, by the rules that the
/// kernels evaluate.
void ReadyPlan::describeLoops(const bngrad_threads_t *threads,
                              Description &description) const {
  int64_t plane = layout.outer * layout.inner;
  int64_t elements = plane * layout.channels;
  ScheduleKind kind = ScheduleKind::Rows;
  if (layout.inner != 1)
    kind = mlir::bngrad::chooseBySizes({layout.channels, elements, layout.inner,
                                        layout.outer * layout.channels,
                                        getBytes(type)},
                                       [](ScheduleKind) { return true; });
  const mlir::bngrad::ScheduleInfo &schedule = mlir::bngrad::getInfo(kind);
  description.add("schedule", schedule.name);
  int64_t numThreads = 1;
  if (elements >= limits::kSerialElements && threads)
    numThreads = threads->count(threads->context);
  if (elements >= limits::kSerialElements && !threads)
    description.add("threads", "openmp");
  else
    description.add("threads", numThreads);

  Passes passes = countPasses();
  int64_t width = getBytes(type), bytes = 0, readBytes = 0;
  bool isReadAgain = false;
  for (int i = 0; i < kNumOperands; ++i) {
    Operand operand = getParameter(i);
    int count = passes.counts[operand];
    if (count == 0)
      continue;
    char key[64];
    std::snprintf(key, sizeof(key), "passes.%s", bngrad::getName(operand));
    description.add(key, int64_t(count));
    int64_t operandBytes = elements * (operand == Mask ? 1 : width);
    bytes += operandBytes;
    if (isInput(op, operand))
      readBytes += operandBytes;
    isReadAgain |= count > 1;
  }
  // Between the two reads of an element, a thread reads the rest of its
  // channel, its tile, or all data.
  int64_t reuse = readBytes;
  if (schedule.reuse != ScheduleReuse::All && elements > 0) {
    int64_t channels = numThreads;
    if (schedule.reuse == ScheduleReuse::Tile)
      channels *= std::max<int64_t>(
          mlir::bngrad::getTileColumns(limits::kL1Bytes, width) / layout.inner,
          1);
    reuse = std::min(reuse, readBytes / layout.channels *
                                std::min(channels, layout.channels));
  }
  description.add("reuse_bytes", isReadAgain ? reuse : 0);
  if (passes.counts[GradInput] || passes.counts[Output]) {
    // OpenMP has a thread per core unless told otherwise.
    int64_t sharing =
        threads ? numThreads : std::thread::hardware_concurrency();
    int64_t limit = mlir::bngrad::getStreamingLimit(
        mlir::bngrad::SizeArithmetic(), limits::kLastLevelBytes, sharing);
    description.add("streaming", bytes > limit ? 1 : 0);
  }
}

void ReadyPlan::describe(const bngrad_threads_t *threads,
                         Description &description) const {
  description.add("kernel", "ready");
  description.add("isa", kernels->isa);
  description.add("data", bngrad::getName(type));
  description.add("form", layout.inner == 1 ? "rows" : "planes");
  description.add("outer", layout.outer);
  description.add("channels", layout.channels);
  description.add("inner", layout.inner);
  describeLoops(threads, description);
}
