//===- Pipelines.cpp - the stages in order, and the pipelines -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Pipelines.h"

#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Schedule/HostCpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::bngrad;

StopAfterOption::StopAfterOption(::mlir::detail::PassOptions &parent,
                                 Stage last, StringRef apply, StringRef lower)
    : EnumOption(parent, "stop-after", llvm::cl::desc("Last stage to run"),
                 llvm::cl::init(last)) {
  const StringRef texts[] = {"other dialects to bngrad",
                             "sharded functions to those of a process",
                             "bngrad to linalg",
                             "element-wise fusion",
                             "groups and their schedules",
                             "buffers; results become out-parameters",
                             apply,
                             lower};
  for (Stage stage : llvm::enum_seq_inclusive(
           Stage::Import, last, llvm::force_iteration_on_noniterable_enum)) {
    auto i = static_cast<size_t>(stage);
    getParser().addLiteralOption(kStageNames[i], stage, texts[i]);
  }
}

std::optional<Stage> mlir::bngrad::findStage(StringRef name) {
  const StringLiteral *found = llvm::find(kStageNames, name);
  if (found == std::end(kStageNames))
    return std::nullopt;
  return static_cast<Stage>(found - std::begin(kStageNames));
}

/// The order of the stages; `group`, `apply` and `lower` depend on the target.
static void addStages(OpPassManager &pm, Stage first, Stage last,
                      function_ref<void()> group, function_ref<void()> apply,
                      function_ref<void()> lower) {
  for (Stage stage : llvm::enum_seq_inclusive(
           first, last, llvm::force_iteration_on_noniterable_enum)) {
    switch (stage) {
    case Stage::Import:
      addImportPasses(pm);
      break;
    case Stage::Partition:
      addPartitionPasses(pm);
      break;
    case Stage::Decompose:
      addDecomposePasses(pm);
      break;
    case Stage::Fuse:
      addFusePasses(pm);
      break;
    case Stage::Group:
      group();
      break;
    case Stage::Bufferize:
      addBufferizePasses(pm);
      break;
    case Stage::Apply:
      apply();
      break;
    case Stage::Lower:
      lower();
      break;
    }
  }
}

void mlir::bngrad::addCpuStages(OpPassManager &pm, Stage first, Stage last,
                                const CpuOptions &options) {
  addStages(
      pm, first, last,
      [&] { addGroupPasses(pm, options.schedule, options.target); },
      [&] { addCpuApplyPasses(pm); },
      [&] { addCpuLowerPasses(pm, options.target); });
}

void mlir::bngrad::addCudaStages(OpPassManager &pm, Stage first, Stage last,
                                 const CudaOptions &options) {
  addStages(
      pm, first, last,
      [&] {
        addCudaGroupPasses(pm, options.schedule, options.kernels.chip,
                           options.activeClusters);
      },
      [&] {
        addCudaApplyPasses(pm, options.kernels.chip, options.deviceArguments);
      },
      [&] {
        // This runs after the workspace is planned, because buffers in it need
        // no allocation. Buffers for host data are not merged: their copies
        // take longer than the allocations.
        if (options.deviceArguments)
          pm.addNestedPass<func::FuncOp>(createBNGradMergeAllocationsPass());
        addCudaLowerPasses(pm, options.kernels);
      });
}

CpuOptions CpuPipelineOptions::getOptions() const {
  Target target = Target::host();
  auto choose = [](int64_t &fact, int64_t given) {
    if (given != 0)
      fact = given;
  };
  choose(target.vectorBits, vectorBits);
  choose(target.threads, threads);
  if (threads < 0)
    target.threads = 0;
  choose(target.l1Bytes, l1Bytes);
  choose(target.lastLevelBytes, lastLevelBytes);
  if (fma != Feature::Host)
    target.fma = fma == Feature::Present;
  if (bf16Conversion != Feature::Host)
    target.bf16Conversion = bf16Conversion == Feature::Present;
  if (f16Conversion != Feature::Host)
    target.f16Conversion = f16Conversion == Feature::Present;
  return {schedule, target};
}

CudaOptions CudaPipelineOptions::getOptions() const {
  KernelOptions kernels{chip, features, optLevel, format};
  return {schedule, activeClusters, std::move(kernels), deviceArguments};
}

void mlir::bngrad::buildToLinalgPipeline(
    OpPassManager &pm, const ToLinalgPipelineOptions &options) {
  // The stages before `group` are the same for all targets.
  addCpuStages(pm, Stage::Import, options.stopAfter, {});
}

/// Adds all stages of a target by `addStages`, up to `options.stopAfter`.
template <typename Options>
static void
buildPipeline(OpPassManager &pm, const Options &options,
              BNGradExportCPassOptions exportOptions, bool ofDevice,
              function_ref<void(Stage first, Stage last)> addStages) {
  Stage last = options.stopAfter;
  bool isExported = options.exportC && last == Stage::Lower;
  exportOptions.packed = options.packed;
  exportOptions.infer = options.infer;
  addStages(Stage::Import, std::min(last, Stage::Partition));
  // This runs while ops still say how their sizes are related.
  if (isExported && !exportOptions.packed) {
    addInlinePasses(pm);
    pm.addPass(createBNGradAddShapeFunctionsPass());
  }
  if (last > Stage::Partition)
    addStages(Stage::Decompose, std::min(last, Stage::Apply));
  if (last != Stage::Lower)
    return;
  // This runs while there are memrefs, whose types say how C passes them.
  if (isExported) {
    // Packed entries of functions on device buffers take a workspace in device
    // memory.
    BNGradPlanWorkspacePassOptions plan;
    plan.device = ofDevice;
    if (exportOptions.statusFunction.empty() || (ofDevice && options.packed))
      pm.addPass(createBNGradPlanWorkspacePass(plan));
    pm.addPass(createBNGradExportCPass(exportOptions));
  }
  addStages(Stage::Lower, Stage::Lower);
}

void mlir::bngrad::buildCpuPipeline(OpPassManager &pm,
                                    const CpuPipelineOptions &options) {
  CpuOptions given = options.getOptions();
  buildPipeline(
      pm, options, {}, /*ofDevice=*/false,
      [&](Stage first, Stage last) { addCpuStages(pm, first, last, given); });
}

void mlir::bngrad::buildCudaPipeline(OpPassManager &pm,
                                     const CudaPipelineOptions &options) {
  CudaOptions given = options.getOptions();
  BNGradExportCPassOptions exportOptions;
  exportOptions.statusFunction = "bngradCudaTakeStatus";
  buildPipeline(
      pm, options, exportOptions, options.deviceArguments,
      [&](Stage first, Stage last) { addCudaStages(pm, first, last, given); });
}

/// Checks the properties of the host that `options` do not give.
///
/// Errors: failure, and one line `reason`.
template <typename Options>
static LogicalResult verifyHost(const Options &, std::string &) {
  return success();
}
static LogicalResult verifyHost(const CpuPipelineOptions &options,
                                std::string &reason) {
  bool isGiven = options.vectorBits != 0 && options.fma != Feature::Host &&
                 options.bf16Conversion != Feature::Host &&
                 options.f16Conversion != Feature::Host;
  return isGiven ? success() : HostCpu::verify(reason);
}

/// Registers a pipeline of passes on modules. If it were added to another op,
/// upstream would end the process at the first pass.
template <typename Options>
static void registerPipeline(StringRef name, StringRef description,
                             void (*build)(OpPassManager &, const Options &)) {
  auto add = [=](OpPassManager &pm, StringRef text,
                 function_ref<LogicalResult(const Twine &)> emitError) {
    std::optional<StringRef> anchor = pm.getOpName();
    if (anchor && *anchor != ModuleOp::getOperationName())
      return emitError("expected '" + name + "' to run on '" +
                       ModuleOp::getOperationName() + "', got '" + *anchor +
                       "'");
    Options options;
    if (failed(options.parseFromString(text)))
      return failure();
    std::string reason;
    if (failed(verifyHost(options, reason)))
      return emitError(reason);
    build(pm, options);
    return success();
  };
  auto describe =
      [](function_ref<void(const detail::PassOptions &)> handleOptions) {
        handleOptions(Options());
      };
  registerPassPipeline(name, description, add, describe);
}

void mlir::bngrad::registerPipelines() {
  registerPipeline("bngrad-to-linalg",
                   "Decompose bngrad ops into linalg on tensors and fuse",
                   buildToLinalgPipeline);
  registerPipeline("bngrad-cpu-pipeline",
                   "Compile bngrad ops for the CPU, down to LLVM",
                   buildCpuPipeline);
  registerPipeline(
      "bngrad-cuda-pipeline",
      "Compile bngrad ops for NVIDIA GPUs, down to embedded kernels and LLVM",
      buildCudaPipeline);
}
