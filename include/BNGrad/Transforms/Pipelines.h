//===- Pipelines.h - stages and pipelines --------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PIPELINES_H
#define BNGRAD_TRANSFORMS_PIPELINES_H

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Pass/PassOptions.h"
#include "llvm/ADT/Sequence.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::bngrad {

/// The stages of a pipeline, in order. docs/architecture.md describes them.
enum class Stage {
  Import,
  Partition,
  Decompose,
  Fuse,
  Group,
  Bufferize,
  Apply,
  Lower
};

/// The names of the stages in `stop-after`, in order.
inline constexpr StringLiteral kStageNames[] = {
    "import", "partition", "decompose", "fuse",
    "group",  "bufferize", "apply",     "lower"};

/// The stage with a name, if there is one.
std::optional<Stage> findStage(StringRef name);

/// How a module is compiled for the CPU. If `schedule` is empty, one is chosen
/// for `target`.
struct CpuOptions {
  std::string schedule;
  Target target;
};

/// How a module is compiled for NVIDIA GPUs. An empty `schedule` becomes one
/// that all chips of `kernels` can run.
struct CudaOptions {
  std::string schedule;
  std::string activeClusters;
  KernelOptions kernels;
  bool deviceArguments = false;
};

/// Whether a target has a property: as the host has it, or stated explicitly.
enum class Feature { Host, Present, Absent };

/// An option with one of several values; the error for any other lists them.
template <typename EnumT>
class EnumOption : public ::mlir::detail::PassOptions::Option<EnumT> {
public:
  using Base = ::mlir::detail::PassOptions::Option<EnumT>;
  using Base::Base;
  using Base::operator=;

private:
  bool handleOccurrence(unsigned, StringRef name, StringRef text) final {
    auto &parser = this->getParser();
    std::string names;
    for (unsigned i : llvm::seq(parser.getNumOptions())) {
      if (parser.getOption(i) == text) {
        *this = static_cast<const llvm::cl::OptionValue<EnumT> &>(
                    parser.getOptionValue(i))
                    .getValue();
        return false;
      }
      if (i > 0)
        names += i + 1 < parser.getNumOptions() ? ", " : " or ";
      names += parser.getOption(i);
    }
    return this->error("expected " + names + ", got '" + text + "'", name);
  }
};

/// The values of an option for a Feature.
inline auto getFeatureValues() {
  return llvm::cl::values(clEnumValN(Feature::Host, "host", "as the host"),
                          clEnumValN(Feature::Present, "true", "yes"),
                          clEnumValN(Feature::Absent, "false", "no"));
}

/// The last stage to run, `stop-after`: a stage up to `last`, the default.
/// `apply` and `lower` describe the IR after these two stages.
class StopAfterOption : public EnumOption<Stage> {
public:
  StopAfterOption(::mlir::detail::PassOptions &parent, Stage last,
                  StringRef apply = "", StringRef lower = "");
  using EnumOption::operator=;
};

/// Options of `--bngrad-to-linalg`.
struct ToLinalgPipelineOptions : PassPipelineOptions<ToLinalgPipelineOptions> {
  StopAfterOption stopAfter{*this, Stage::Fuse};
};

/// Options of `--bngrad-cpu-pipeline`.
struct CpuPipelineOptions : PassPipelineOptions<CpuPipelineOptions> {
  StopAfterOption stopAfter{*this, Stage::Lower, "loops", "LLVM dialect"};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Schedule for every group, such as "
                     "#bngrad.schedule<loops>; empty: chosen"),
      llvm::cl::init("")};
  Option<int64_t> vectorBits{
      *this, "vector-bits",
      llvm::cl::desc(
          "Target: length of a vector register in bits; 0: the host's"),
      llvm::cl::init(0)};
  Option<int64_t> threads{
      *this, "threads",
      llvm::cl::desc("Target: threads that run at a time; 0: the host's, -1: "
                     "as many as a call has"),
      llvm::cl::init(0)};
  Option<int64_t> l1Bytes{
      *this, "l1-bytes",
      llvm::cl::desc("Target: first-level data cache in bytes; 0: the host's"),
      llvm::cl::init(0)};
  Option<int64_t> lastLevelBytes{
      *this, "last-level-bytes",
      llvm::cl::desc("Target: last-level cache in bytes; 0: the host's"),
      llvm::cl::init(0)};
  Option<bool> exportC{
      *this, "export-c",
      llvm::cl::desc("Export public functions to C (--bngrad-export-c)"),
      llvm::cl::init(false)};
  Option<bool> packed{
      *this, "packed",
      llvm::cl::desc("With export-c: only entries that take packed parameters"),
      llvm::cl::init(false)};
  Option<bool> infer{
      *this, "infer",
      llvm::cl::desc("With export-c: NAME_infer, which computes the sizes of "
                     "the results"),
      llvm::cl::init(false)};
  EnumOption<Feature> fma{
      *this, "fma",
      llvm::cl::desc("Target: vectors have a fused multiply-add (host, true, "
                     "false)"),
      llvm::cl::init(Feature::Host), getFeatureValues()};
  EnumOption<Feature> bf16Conversion{
      *this, "bf16-conversion",
      llvm::cl::desc("Target: an instruction converts vectors of f32 to bf16 "
                     "and flushes subnormals (host, true, false)"),
      llvm::cl::init(Feature::Host), getFeatureValues()};
  EnumOption<Feature> f16Conversion{
      *this, "f16-conversion",
      llvm::cl::desc("Target: instructions convert vectors of f32 to f16 and "
                     "back (host, true, false)"),
      llvm::cl::init(Feature::Host), getFeatureValues()};

  CpuOptions getOptions() const;
};

/// Options of `--bngrad-cuda-pipeline`.
struct CudaPipelineOptions : PassPipelineOptions<CudaPipelineOptions> {
  StopAfterOption stopAfter{*this, Stage::Lower, "kernels and their launches",
                            "embedded kernels and LLVM dialect"};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Schedule for every group, such as "
                     "#bngrad.schedule<two_pass, block_accesses = 1024, "
                     "sum_blocks = 16>; empty: "
                     "one that all chips can run"),
      llvm::cl::init("")};
  Option<std::string> chip{
      *this, "chip",
      llvm::cl::desc("Target: GPUs, comma-separated, such as sm_80,sm_90"),
      llvm::cl::init("sm_90")};
  Option<std::string> activeClusters{
      *this, "active-clusters",
      llvm::cl::desc("Target: clusters that a GPU runs at once, SIZE:ONE:TWO "
                     "for each size, with one block and with two on a "
                     "multiprocessor, comma-separated, such as "
                     "4:31:62,8:15:30; empty: assumed for the chip"),
      llvm::cl::init("")};
  Option<std::string> features{
      *this, "features",
      llvm::cl::desc("Version of PTX for all chips, such as +ptx80; empty: "
                     "ptx80, or the first version that supports the chip"),
      llvm::cl::init("")};
  EnumOption<CudaFormat> format{
      *this, "format", llvm::cl::desc("How kernels are embedded"),
      llvm::cl::init(CudaFormat::Isa),
      llvm::cl::values(
          clEnumValN(CudaFormat::Isa, "isa",
                     "PTX, assembled by the driver; needs no toolkit"),
          clEnumValN(CudaFormat::Bin, "bin", "cubin; needs ptxas"),
          clEnumValN(CudaFormat::Fatbin, "fatbin",
                     "cubin and PTX; needs ptxas and fatbinary"))};
  Option<unsigned> optLevel{*this, "opt-level",
                            llvm::cl::desc("Optimization of kernels, 0 to 3"),
                            llvm::cl::init(3)};
  Option<bool> deviceArguments{
      *this, "device-arguments",
      llvm::cl::desc("Arguments and results are in device memory; otherwise "
                     "they are in host memory and copied"),
      llvm::cl::init(false)};
  Option<bool> exportC{
      *this, "export-c",
      llvm::cl::desc("Export public functions to C (--bngrad-export-c), which "
                     "return the status of the thread"),
      llvm::cl::init(false)};
  Option<bool> packed{
      *this, "packed",
      llvm::cl::desc("With export-c: only entries that take packed parameters"),
      llvm::cl::init(false)};
  Option<bool> infer{
      *this, "infer",
      llvm::cl::desc("With export-c: NAME_infer, which computes the sizes of "
                     "the results"),
      llvm::cl::init(false)};

  CudaOptions getOptions() const;
};

/// Adds the passes of the stages from `first` to `last`, for pass managers on a
/// module. The header of each stage declares its own.
void addCpuStages(OpPassManager &pm, Stage first, Stage last,
                  const CpuOptions &options);
void addCudaStages(OpPassManager &pm, Stage first, Stage last,
                   const CudaOptions &options);

/// Converts bngrad on tensors to linalg on tensors, from which other compilers
/// continue.
void buildToLinalgPipeline(OpPassManager &pm,
                           const ToLinalgPipelineOptions &options);

/// Lowers bngrad on tensors to the LLVM dialect, multi-threaded. A function's
/// results become out-parameters after its arguments.
void buildCpuPipeline(OpPassManager &pm, const CpuPipelineOptions &options);

/// Lowers bngrad on tensors to kernels for NVIDIA GPUs, embedded in host code
/// in the LLVM dialect that calls the functions of BNGrad/Runtime/Cuda.h. A
/// function's results become out-parameters after its arguments. Ops outside of
/// groups run on the host.
void buildCudaPipeline(OpPassManager &pm, const CudaPipelineOptions &options);

/// Registers `--bngrad-to-linalg`, `--bngrad-cpu-pipeline` and
/// `--bngrad-cuda-pipeline`.
void registerPipelines();

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_PIPELINES_H
