//===- Compile.cpp - from the bngrad level to an output -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Libcalls.h"

#include "common/CommandLine.h"
#include "common/Diagnostics.h"

#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The CPU for which `machine` generates code. The cache sizes of this machine
/// are used only if the code is for this machine.
static Target getTarget(const llvm::TargetMachine &machine, bool isNative,
                        int64_t threads) {
  Target host = Target::host();
  Target target = isNative ? host : Target();
  target.threads = threads ? threads : host.threads;
  const llvm::MCSubtargetInfo &subtarget = *machine.getMCSubtargetInfo();
  const llvm::Triple &triple = machine.getTargetTriple();
  target.setFeatures(triple, [&](StringRef feature) {
    return triple.isX86() && subtarget.checkFeatures(("+" + feature).str());
  });
  return target;
}

static LogicalResult lower(ModuleOp module, const CompileOptions &options,
                           const Target &target) {
  OneLineDiagnostics diagnostics(module.getContext());
  PassManager pm(module.getContext());
  switch (options.device) {
  case Device::Cpu: {
    CpuPipelineOptions pipeline;
    pipeline.schedule = options.schedule;
    pipeline.vectorBits = target.vectorBits;
    pipeline.threads = target.threads;
    pipeline.l1Bytes = target.l1Bytes;
    pipeline.lastLevelBytes = target.lastLevelBytes;
    auto toFeature = [](bool isPresent) {
      return isPresent ? Feature::Present : Feature::Absent;
    };
    pipeline.fma = toFeature(target.fma);
    pipeline.bf16Conversion = toFeature(target.bf16Conversion);
    pipeline.exportC = true;
    buildCpuPipeline(pm, pipeline);
    break;
  }
  case Device::Cuda: {
    CudaPipelineOptions pipeline;
    pipeline.schedule = options.schedule;
    if (!options.cuda.chips.empty())
      pipeline.chip = options.cuda.chips;
    pipeline.format = options.cuda.format;
    pipeline.deviceArguments = options.cuda.deviceArguments;
    pipeline.exportC = true;
    buildCudaPipeline(pm, pipeline);
    break;
  }
  }
  return pm.run(module);
}

std::vector<std::string> mlir::bngrad::getLibraries(Device device) {
  if (device == Device::Cpu)
    return {BNGRAD_LIBOMP};
  return {getOwnLibrary("libBNGradCudaRuntime.so")};
}

/// The text of the only module of kernels.
static FailureOr<std::string> getPtx(ModuleOp module, StringRef path) {
  SmallVector<gpu::BinaryOp> binaries(module.getOps<gpu::BinaryOp>());
  if (binaries.size() != 1) {
    std::string names;
    for (gpu::BinaryOp binary : binaries)
      names += (names.empty() ? ": " : ", ") + binary.getName().str();
    return reportError(path +
                       ": expected one group of loops, as a .ptx has one "
                       "module of kernels, got " +
                       Twine(binaries.size()) + names);
  }
  auto object = cast<gpu::ObjectAttr>(binaries.front().getObjects()[0]);
  return object.getObject().getValue().rtrim('\0').str();
}

/// Removes how long each step of making kernels took, so that the same input
/// gives the same text.
static void removeTimes(ModuleOp module) {
  for (auto binary : module.getOps<gpu::BinaryOp>()) {
    SmallVector<Attribute> objects;
    for (auto object : binary.getObjects().getAsRange<gpu::ObjectAttr>()) {
      NamedAttrList properties(object.getProperties());
      for (NamedAttribute property : llvm::to_vector(properties))
        if (property.getName().strref().ends_with("TimeInMs"))
          properties.erase(property.getName());
      objects.push_back(gpu::ObjectAttr::get(
          module.getContext(), object.getTarget(), object.getFormat(),
          object.getObject(), properties.getDictionary(module.getContext()),
          object.getKernels()));
    }
    binary.setObjectsAttr(ArrayAttr::get(module.getContext(), objects));
  }
}

/// The prefixes of the functions in those libraries.
static ArrayRef<StringRef> getLibraryPrefixes(Device device) {
  static constexpr StringRef kCpu[] = {"__kmpc_", "omp_"};
  static constexpr StringRef kCuda[] = {"mgpu", "bngradCuda"};
  return device == Device::Cpu ? ArrayRef(kCpu) : ArrayRef(kCuda);
}

/// Adds the attributes with which other tools generate the same code from text.
static void describeTarget(llvm::Module &module,
                           const llvm::TargetMachine &machine) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    if (StringRef features = machine.getTargetFeatureString();
        !features.empty())
      function.addFnAttr("target-features", features);
  }
}

FailureOr<std::string> mlir::bngrad::compile(ModuleOp module,
                                             const CompileOptions &options) {
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(options.codeGen);
  if (!machine)
    return failure();
  Target target =
      getTarget(*machine, isNative(options.codeGen), options.threads);
  if (failed(lower(module, options, target)))
    return failure();

  OpBuilder b(module.getContext());
  llvm::DataLayout layout = machine->createDataLayout();
  std::string triple = machine->getTargetTriple().str();
  module->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                  b.getStringAttr(layout.getStringRepresentation()));
  module->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                  b.getStringAttr(triple));
  std::string text;
  if (options.kind == OutputKind::PTX)
    return getPtx(module, options.path);
  if (options.kind == OutputKind::MLIR) {
    removeTimes(module);
    llvm::raw_string_ostream(text) << module << "\n";
    return text;
  }

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule;
  {
    OneLineDiagnostics diagnostics(module.getContext());
    if (failed(verifyLowered(module)))
      return failure();
    llvmModule = translateModuleToLLVMIR(module, llvmContext, "bngrad");
  }
  if (!llvmModule)
    return failure();
  llvmModule->setDataLayout(layout);
  llvmModule->setTargetTriple(machine->getTargetTriple());
  if (llvm::Error error = makeOptimizer(*machine)(llvmModule.get()))
    return reportError(options.path + ": " + llvm::toString(std::move(error)));
  if (failed(verifyCalls(*llvmModule, options.path,
                         getLibraryPrefixes(options.device))))
    return failure();
  addFloatConversions(*llvmModule);
  if (options.kind == OutputKind::LLVMIR) {
    describeTarget(*llvmModule, *machine);
    llvm::raw_string_ostream(text) << *llvmModule;
    return text;
  }

  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager codeGen;
  auto fileType = options.kind == OutputKind::Assembly
                      ? llvm::CodeGenFileType::AssemblyFile
                      : llvm::CodeGenFileType::ObjectFile;
  if (machine->addPassesToEmitFile(codeGen, os, nullptr, fileType))
    return reportError("--mtriple: expected a machine that LLVM makes object "
                       "files for, got '" +
                       triple + "'");
  codeGen.run(*llvmModule);
  return std::string(bytes.begin(), bytes.end());
}
