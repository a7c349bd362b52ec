//===- Pipelines.h - stages and pipelines --------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PIPELINES_H
#define BNGRAD_TRANSFORMS_PIPELINES_H

#include "BNGrad/Transforms/Target.h"

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::bngrad {

/// The stages of a pipeline, in order; what holds after each is in the README.
enum class Stage { Import, Decompose, Fuse, Group, Bufferize, Apply, Lower };

/// A property that a target may be said to have or not.
enum class Feature { Host, Present, Absent };

/// Options of `--bngrad-to-linalg`.
struct ToLinalgPipelineOptions : PassPipelineOptions<ToLinalgPipelineOptions> {
  Option<Stage> stopAfter{
      *this, "stop-after",
      llvm::cl::desc("Last stage to run (import, decompose, fuse)"),
      llvm::cl::init(Stage::Fuse),
      llvm::cl::values(
          clEnumValN(Stage::Import, "import", "other dialects to bngrad"),
          clEnumValN(Stage::Decompose, "decompose", "bngrad to linalg"),
          clEnumValN(Stage::Fuse, "fuse", "element-wise fusion"))};
};

/// Options of `--bngrad-cpu-pipeline`.
struct CpuPipelineOptions : PassPipelineOptions<CpuPipelineOptions> {
  Option<Stage> stopAfter{
      *this, "stop-after",
      llvm::cl::desc("Last stage to run (import, decompose, fuse, group, "
                     "bufferize, apply, lower)"),
      llvm::cl::init(Stage::Lower),
      llvm::cl::values(
          clEnumValN(Stage::Import, "import", "other dialects to bngrad"),
          clEnumValN(Stage::Decompose, "decompose", "bngrad to linalg"),
          clEnumValN(Stage::Fuse, "fuse", "element-wise fusion"),
          clEnumValN(Stage::Group, "group", "groups and their schedules"),
          clEnumValN(Stage::Bufferize, "bufferize",
                     "buffers; results become out-parameters"),
          clEnumValN(Stage::Apply, "apply", "loops"),
          clEnumValN(Stage::Lower, "lower", "LLVM dialect"))};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Schedule for every group, such as "
                     "#bngrad.schedule<loops>; empty: chosen"),
      llvm::cl::init("")};
  Option<int64_t> vectorBits{
      *this, "vector-bits",
      llvm::cl::desc("Target: length of a vector register; 0: the host's"),
      llvm::cl::init(0)};
  Option<int64_t> threads{
      *this, "threads",
      llvm::cl::desc("Target: threads that run at a time; 0: the host's"),
      llvm::cl::init(0)};
  Option<int64_t> l1Bytes{
      *this, "l1-bytes",
      llvm::cl::desc("Target: first-level data cache; 0: the host's"),
      llvm::cl::init(0)};
  Option<int64_t> lastLevelBytes{
      *this, "last-level-bytes",
      llvm::cl::desc("Target: last-level cache; 0: the host's"),
      llvm::cl::init(0)};
  Option<Feature> fma{
      *this, "fma",
      llvm::cl::desc("Target: vectors have a fused multiply-add (host, true, "
                     "false)"),
      llvm::cl::init(Feature::Host),
      llvm::cl::values(clEnumValN(Feature::Host, "host", "as the host"),
                       clEnumValN(Feature::Present, "true", "yes"),
                       clEnumValN(Feature::Absent, "false", "no"))};

  /// The target that the options describe.
  Target getTarget() const;
};

/// Parts of the pipelines, one per stage, for pass managers on a module.
void addImportPasses(OpPassManager &pm);
void addDecomposePasses(OpPassManager &pm);
void addFusePasses(OpPassManager &pm);
/// An empty `schedule` is chosen for `target`.
void addGroupPasses(OpPassManager &pm, StringRef schedule,
                    const Target &target);
void addBufferizePasses(OpPassManager &pm);
void addCpuApplyPasses(OpPassManager &pm);
void addCpuLowerPasses(OpPassManager &pm);

/// bngrad on tensors to linalg on tensors, for other compilers to go on from.
void buildToLinalgPipeline(OpPassManager &pm,
                           const ToLinalgPipelineOptions &options);

/// bngrad on tensors to the LLVM dialect, multi-threaded through OpenMP. A
/// function's results become out-parameters after its arguments.
void buildCpuPipeline(OpPassManager &pm, const CpuPipelineOptions &options);

/// Registers `--bngrad-to-linalg` and `--bngrad-cpu-pipeline`.
void registerPipelines();

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_PIPELINES_H
