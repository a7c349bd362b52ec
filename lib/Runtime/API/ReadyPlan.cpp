//===- ReadyPlan.cpp - gradients by the ready kernels ---------------------===//
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
#include <utility>

using namespace bngrad;
using mlir::bngrad::ScheduleKind;
using mlir::bngrad::ScheduleReuse;
namespace limits = mlir::bngrad::limits;

namespace {
/// A descriptor of MLIR's memrefs, of rank 3 at most.
struct MemRef {
  void *allocated, *aligned;
  int64_t offset;
  /// `rank` sizes, then `rank` strides.
  int64_t sizesAndStrides[6];
};
} // namespace

static MemRef makeVector(void *data, int64_t size, int64_t stride) {
  return {data, data, 0, {size, stride}};
}

ReadyPlan::Uses ReadyPlan::getUses(bngradKernelKind_t kind) {
  struct Kernel {
    int results;
    bool isBatch;
  };
  enum { batch = true, global = false };
  static constexpr Kernel kKernels[] = {
#define KERNEL(kind, name, op, statistics, results, ...) {results, statistics},
      BNGRAD_READY_KERNELS(KERNEL, unused)
#undef KERNEL
  };
  auto [results, isBatch] = kKernels[kind];
  Uses uses;
  uses.gradInput = results & BNGRAD_GRAD_INPUT;
  uses.gradScale = results & BNGRAD_GRAD_SCALE;
  uses.gradOffset = results & BNGRAD_GRAD_OFFSET;
  uses.scale = uses.gradInput;
  uses.invStd = uses.gradInput || uses.gradScale;
  uses.mean = uses.gradScale || (uses.gradInput && isBatch);
  return uses;
}

/// The kernel that computes all gradients.
bngradKernelKind_t ReadyPlan::choose() const {
  if (part == Part::Reduce)
    return BNGRAD_KERNEL_SCALE_OFFSET;
  if (part == Part::Elemt)
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
  return problem.has[operand] &&
         problem.tensors[operand].dtype == problem.accumulator &&
         layout.strides[operand] == 1 &&
         (operand != Statistic || problem.isInvStd);
}

const char *ReadyPlan::create(const Problem &problem,
                              const bngradKernels_t *available) {
  if (!available)
    return "this CPU is older than the ready kernels";
  kernels = available;
  type = problem.tensors[Input].dtype;
  isF64 = problem.accumulator == BNGRAD_DTYPE_F64;
  if (isF64 != (type == BNGRAD_DTYPE_F64))
    return "its parameters are of f64, its data are not";
  if (problem.has[GradInput] && problem.tensors[GradInput].dtype != type)
    return "grad_input is of another type than input";
  if (const char *reason = findLayout(problem, layout))
    return reason;
  part = problem.part;
  epsilon = problem.epsilon;
  epsilonF32 = static_cast<float>(epsilon);
  isBatch = problem.isBatch;
  isInvStd = problem.isInvStd;
  std::copy_n(problem.has, kNumOperands, has);
  for (int i = 0; i < kNumOperands; ++i) {
    types[i] = problem.tensors[i].dtype;
    direct[i] = isDirect(problem, static_cast<Operand>(i));
  }
  addTables();
  return nullptr;
}

void ReadyPlan::addTable(Table table, int64_t rows) {
  offsets[table] = kernelOffset;
  kernelOffset +=
      static_cast<int64_t>(alignUp(static_cast<size_t>(rows * getRowBytes())));
}

void ReadyPlan::addTables() {
  std::fill_n(offsets, kNumTables, -1);
  kernelOffset = 0;
  constexpr std::pair<Operand, Table> kTables[] = {
      {Scale, ScaleTable},
      {Mean, MeanTable},
      {Statistic, InvStdTable},
      {GradScale, GradScaleTable},
      {GradOffset, GradOffsetTable}};
  for (auto [operand, table] : kTables)
    if (!direct[operand])
      addTable(table);
  if (part == Part::Reduce)
    addTable(OnesTable);
  bngradKernelKind_t kinds[3] = {choose()};
  int numKinds = 1;
  if (isInSteps()) {
    kinds[numKinds++] =
        isBatch ? BNGRAD_KERNEL_SCALE_OFFSET : chooseFirstStep();
    kinds[numKinds++] =
        isBatch ? BNGRAD_KERNEL_ELEMT : BNGRAD_KERNEL_GLOBAL_INPUT;
    if (isBatch) {
      addTable(OnesTable);
      addTable(SumsTable, 2);
    }
  }
  size_t most = 0;
  for (int i = 0; i < numKinds; ++i) {
    size_t size = 0;
    runKernel({}, kinds[i], {}, &size);
    most = std::max(most, size);
  }
  workspaceSize = kernelOffset + most;
}

char *ReadyPlan::getTable(const CallData &call, Table table) const {
  if (!call.workspace || offsets[table] < 0)
    return nullptr;
  return call.workspace + offsets[table];
}

void *ReadyPlan::getVector(const CallData &call, Operand operand,
                           Table table) const {
  return direct[operand] ? call.data[operand] : getTable(call, table);
}

void ReadyPlan::fillOnes(char *table) const {
  if (isF64)
    std::fill_n(reinterpret_cast<double *>(table), layout.channels, 1.0);
  else
    std::fill_n(reinterpret_cast<float *>(table), layout.channels, 1.0f);
}

void ReadyPlan::convert(bngradPackedFunction_t function, void *from,
                        int64_t fromStride, void *to, int64_t toStride) const {
  MemRef source = makeVector(from, layout.channels, fromStride);
  MemRef destination = makeVector(to, layout.channels, toStride);
  const void *factor = isF64 ? static_cast<const void *>(&epsilon)
                             : static_cast<const void *>(&epsilonF32);
  void *parameters[] = {&source, &destination, const_cast<void *>(factor)};
  function(parameters, nullptr, nullptr);
}

/// Fills the tables that kernels read.
void ReadyPlan::prepare(const CallData &call, const Uses &uses) const {
  auto fill = [&](bool isUsed, Operand operand, Table table,
                  const bngradPackedFunction_t(&functions)[BNGRAD_NUM_FLOATS]) {
    if (isUsed && has[operand] && !direct[operand])
      convert(functions[types[operand]], call.data[operand],
              layout.strides[operand], getTable(call, table), 1);
  };
  fill(uses.scale, Scale, ScaleTable, kernels->widen[isF64]);
  if (uses.scale && !has[Scale])
    fillOnes(getTable(call, ScaleTable));
  fill(uses.mean, Mean, MeanTable, kernels->widen[isF64]);
  fill(uses.invStd, Statistic, InvStdTable,
       isInvStd ? kernels->widen[isF64] : kernels->inv_std[isF64]);
}

/// Converts a result from a table to the caller's tensor.
void ReadyPlan::finish(const CallData &call, Operand operand) const {
  if (!has[operand] || direct[operand])
    return;
  Table table = operand == GradScale ? GradScaleTable : GradOffsetTable;
  convert(kernels->narrow[isF64][types[operand]], getTable(call, table), 1,
          call.data[operand], layout.strides[operand]);
}

ReadyPlan::Vectors ReadyPlan::getVectors(const CallData &call) const {
  return {getVector(call, Scale, ScaleTable),
          getVector(call, Mean, MeanTable),
          getVector(call, Statistic, InvStdTable),
          getVector(call, GradScale, GradScaleTable),
          getVector(call, GradOffset, GradOffsetTable),
          call.data[Sums],
          call.count};
}

/// Runs a kernel, or computes the size of its workspace.
bngradStatus_t ReadyPlan::runKernel(const CallData &call,
                                    bngradKernelKind_t kind,
                                    const Vectors &vectors,
                                    size_t *size) const {
  int64_t outer = layout.outer, channels = layout.channels;
  int64_t inner = layout.inner, plane = channels * inner;
  bool hasInner = inner != 1;
  auto makeData = [&](Operand operand) -> MemRef {
    void *data = call.data[operand];
    if (hasInner)
      return {data, data, 0, {outer, channels, inner, plane, inner, 1}};
    return {data, data, 0, {outer, channels, channels, 1}};
  };
  auto vector = [&](void *data) { return makeVector(data, channels, 1); };
  MemRef gradOutput = makeData(GradOutput), input = makeData(Input);
  MemRef mask = makeData(Mask), gradInput = makeData(GradInput);
  MemRef scale = vector(vectors.scale), mean = vector(vectors.mean);
  MemRef invStd = vector(vectors.invStd);
  MemRef gradScale = vector(vectors.gradScale);
  MemRef gradOffset = vector(vectors.gradOffset);
  MemRef sums = {vectors.sums, vectors.sums, 0, {2, channels, channels, 1}};
  // The kernel only reads it.
  auto *number = const_cast<int64_t *>(vectors.count);
  MemRef count = {number, number, 0, {}};

  void *parameters[11] = {&gradOutput, &input, &scale, &mean, &invStd};
  int n = 5;
  if (has[Mask])
    parameters[n++] = &mask;
  if (kind == BNGRAD_KERNEL_ELEMT) {
    parameters[n++] = &sums;
    parameters[n++] = &count;
  }
  Uses uses = getUses(kind);
  if (uses.gradInput)
    parameters[n++] = &gradInput;
  if (uses.gradScale)
    parameters[n++] = &gradScale;
  if (uses.gradOffset)
    parameters[n++] = &gradOffset;
  const bngradKernel_t &kernel =
      kernels->kernels[type][kind][hasInner][has[Mask]];
  if (size) {
    *size = kernel.get_workspace_size(parameters);
    return BNGRAD_SUCCESS;
  }
  return getStatus(
      kernel.call(parameters, call.workspace + kernelOffset, call.threads));
}

bngradStatus_t ReadyPlan::run(const CallData &call) const {
  bngradKernelKind_t kind = choose();
  prepare(call, getUses(kind));
  bngradStatus_t status =
      part == Part::Reduce
          ? runReduce(call, static_cast<char *>(call.data[Sums]))
          : runKernel(call, kind, getVectors(call));
  if (status != 0)
    return status;
  finish(call, GradScale);
  finish(call, GradOffset);
  return BNGRAD_SUCCESS;
}

/// Computes the sums, which are grad_offset and grad_scale for an inv_std of 1.
bngradStatus_t ReadyPlan::runReduce(const CallData &call, char *sums) const {
  char *ones = getTable(call, OnesTable);
  fillOnes(ones);
  Vectors vectors = getVectors(call);
  vectors.invStd = ones;
  vectors.gradOffset = sums;
  vectors.gradScale = sums + getRowBytes();
  return runKernel(call, BNGRAD_KERNEL_SCALE_OFFSET, vectors);
}

/// Computes grad_scale and grad_offset, and the sums for grad_input.
bngradStatus_t ReadyPlan::runSums(const CallData &call) const {
  prepare(call, {true, true, true, true, true, true});
  Vectors vectors = getVectors(call);
  if (isBatch) {
    char *sums = getTable(call, SumsTable);
    if (bngradStatus_t status = runReduce(call, sums))
      return status;
    MemRef from = makeVector(sums + getRowBytes(), layout.channels, 1);
    MemRef factor = makeVector(vectors.invStd, layout.channels, 1);
    MemRef to = makeVector(vectors.gradScale, layout.channels, 1);
    void *parameters[] = {&from, &factor, &to};
    kernels->multiply[isF64](parameters, nullptr, nullptr);
    convert(kernels->widen[isF64][isF64 ? BNGRAD_DTYPE_F64 : BNGRAD_DTYPE_F32],
            sums, 1, vectors.gradOffset, 1);
  } else if (bngradStatus_t status =
                 runKernel(call, chooseFirstStep(), vectors)) {
    return status;
  }
  finish(call, GradScale);
  finish(call, GradOffset);
  return BNGRAD_SUCCESS;
}

bngradStatus_t ReadyPlan::runInSteps(const CallData &call, Done done) const {
  bool inSteps = isInSteps(), wantsInput = has[GradInput];
  bool wantsScale = has[GradScale], wantsOffset = has[GradOffset];
  bngradStatus_t status = inSteps ? runSums(call) : run(call);
  if (status != 0)
    return status;
  if (wantsOffset)
    done(GradOffset);
  if (wantsScale)
    done(GradScale);
  if (inSteps) {
    int64_t count = layout.outer * layout.inner;
    Vectors vectors = getVectors(call);
    vectors.sums = getTable(call, SumsTable);
    vectors.count = &count;
    status = runKernel(
        call, isBatch ? BNGRAD_KERNEL_ELEMT : BNGRAD_KERNEL_GLOBAL_INPUT,
        vectors);
  }
  if (status == 0 && wantsInput)
    done(GradInput);
  return status;
}

/// The sums take one pass over the data, and grad_input another.
ReadyPlan::Passes ReadyPlan::countPasses() const {
  Uses uses = getUses(choose());
  bool isElemt = part == Part::Elemt;
  int sums = !isElemt && (uses.gradScale || uses.gradOffset) ? 1 : 0;
  int elements = uses.gradInput ? 1 : 0;
  Passes passes = {};
  passes.counts[GradOutput] = sums + elements;
  passes.counts[Mask] = has[Mask] ? sums + elements : 0;
  // Sums of grad_output alone and global statistics do not read input.
  passes.counts[Input] = (sums && uses.gradScale ? 1 : 0) +
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
  constexpr std::pair<Operand, const char *> kData[] = {
      {GradOutput, "passes.grad_output"},
      {Input, "passes.input"},
      {Mask, "passes.mask"},
      {GradInput, "passes.grad_input"}};
  for (auto [operand, key] : kData) {
    int count = passes.counts[operand];
    if (count == 0)
      continue;
    description.add(key, int64_t(count));
    int64_t operandBytes = elements * (operand == Mask ? 1 : width);
    bytes += operandBytes;
    if (operand != GradInput)
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
  if (passes.counts[GradInput])
    description.add("streaming", bytes > limits::kLastLevelBytes ? 1 : 0);
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
