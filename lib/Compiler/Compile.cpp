//===- Compile.cpp - from the bngrad level to an output -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Libcalls.h"
#include "TargetMachine.h"

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The CPU for which `machine` generates code. Uses this machine's cache sizes
/// only if the code is for this machine.
static Target getTarget(const llvm::TargetMachine &machine,
                        const CompileOptions &options) {
  Target host = Target::host();
  Target target = isNative(options.codeGen) ? host : Target();
  target.threads = options.threads ? options.threads : host.threads;
  const llvm::MCSubtargetInfo &subtarget = *machine.getMCSubtargetInfo();
  const llvm::Triple &triple = machine.getTargetTriple();
  target.setFeatures(triple, [&](StringRef feature) {
    return triple.isX86() && subtarget.checkFeatures(("+" + feature).str());
  });
  if (int64_t bits = getSveBits(options.codeGen, machine))
    target.vectorBits = bits;
  return target;
}

static LogicalResult lower(ModuleOp module, const CompileOptions &options,
                           const Target &target, Stage last = Stage::Lower) {
  PassManager pm(module.getContext());
  // Verify only the result: verifying each pass would take a third more.
  pm.enableVerifier(false);
  switch (options.device) {
  case Device::Cpu: {
    CpuPipelineOptions pipeline;
    pipeline.stopAfter = last;
    pipeline.schedule = options.schedule;
    pipeline.vectorBits = target.vectorBits;
    pipeline.threads = options.threads < 0 ? -1 : target.threads;
    pipeline.l1Bytes = target.l1Bytes;
    pipeline.lastLevelBytes = target.lastLevelBytes;
    auto toFeature = [](bool isPresent) {
      return isPresent ? Feature::Present : Feature::Absent;
    };
    pipeline.fma = toFeature(target.fma);
    pipeline.bf16Conversion = toFeature(target.bf16Conversion);
    pipeline.f16Conversion = toFeature(target.f16Conversion);
    pipeline.exportC = true;
    pipeline.packed = options.packed;
    pipeline.infer = options.infer;
    buildCpuPipeline(pm, pipeline);
    break;
  }
  case Device::Cuda: {
    CudaPipelineOptions pipeline;
    pipeline.stopAfter = last;
    pipeline.schedule = options.schedule;
    if (!options.cuda.chips.empty())
      pipeline.chip = options.cuda.chips;
    pipeline.activeClusters = options.cuda.activeClusters;
    pipeline.format = options.cuda.format;
    pipeline.deviceArguments = options.cuda.deviceArguments;
    pipeline.exportC = true;
    pipeline.packed = options.packed;
    pipeline.infer = options.infer;
    buildCudaPipeline(pm, pipeline);
    break;
  }
  }
  return failure(failed(pm.run(module)) || failed(verify(module)));
}

/// The text of the only module of kernels.
static FailureOr<std::string> getPtx(ModuleOp module) {
  SmallVector<gpu::BinaryOp> binaries(module.getOps<gpu::BinaryOp>());
  if (binaries.size() != 1) {
    std::string names;
    for (gpu::BinaryOp binary : binaries)
      names += (names.empty() ? ": " : ", ") + binary.getName().str();
    return module.emitError("expected one group of loops, as a .ptx has one "
                            "module of kernels, got ")
           << binaries.size() << names;
  }
  auto object = cast<gpu::ObjectAttr>(binaries.front().getObjects()[0]);
  return object.getObject().getValue().rtrim('\0').str();
}

/// Removes the compile times of kernels, so that the same input gives the same
/// text.
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

/// The prefixes of the functions that generated code calls in its device's
/// library.
static ArrayRef<StringRef> getLibraryPrefixes(Device device) {
  static constexpr StringRef kCpu[] = {"dlopen", "dlsym", "bngradAllReduce",
                                       "bngradProcessIndex"};
  static constexpr StringRef kCuda[] = {"mgpu", "bngradCuda", "bngradAllReduce",
                                        "bngradProcessIndex"};
  return device == Device::Cpu ? ArrayRef(kCpu) : ArrayRef(kCuda);
}

/// Adds attributes so that other tools (for x86, `llc -disable-lsr`) generate
/// the same code from the text.
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

/// Returns the optimized LLVM IR of the lowered `module`, or null after
/// emitting a diagnostic.
static std::unique_ptr<llvm::Module> translate(ModuleOp module,
                                               const CompileOptions &options,
                                               llvm::TargetMachine &machine,
                                               llvm::LLVMContext &llvmContext) {
  if (failed(verifyLowered(module)))
    return nullptr;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, llvmContext, "bngrad");
  if (!llvmModule)
    return nullptr;
  llvmModule->setDataLayout(machine.createDataLayout());
  llvmModule->setTargetTriple(machine.getTargetTriple());
  useSve(*llvmModule, getSveBits(options.codeGen, machine));
  if (llvm::Error error = optimize(*llvmModule, machine)) {
    module.emitError(llvm::toString(std::move(error)));
    return nullptr;
  }
  if (failed(verifyCalls(*llvmModule, module.getLoc(),
                         getLibraryPrefixes(options.device))))
    return nullptr;
  addFloatConversions(*llvmModule);
  return llvmModule;
}

/// The assembly or the object file of `llvmModule`.
static FailureOr<std::string> generateCode(ModuleOp module,
                                           llvm::Module &llvmModule,
                                           llvm::TargetMachine &machine,
                                           llvm::CodeGenFileType type) {
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager codeGen;
  if (machine.addPassesToEmitFile(codeGen, os, nullptr, type))
    return module.emitError("expected a machine that LLVM makes object files "
                            "for, got '")
           << machine.getTargetTriple().str() << "'";
  codeGen.run(llvmModule);
  return std::string(bytes.begin(), bytes.end());
}

LogicalResult mlir::bngrad::runStages(ModuleOp module,
                                      const CompileOptions &options,
                                      Stage last) {
  std::string reason;
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(options.codeGen, /*isJit=*/false, reason);
  if (!machine)
    return module.emitError(reason);
  return failure(
      failed(importModule(module)) ||
      failed(lower(module, options, getTarget(*machine, options), last)));
}

FailureOr<std::string> mlir::bngrad::compile(ModuleOp module,
                                             const CompileOptions &options,
                                             OutputKind kind) {
  std::string reason;
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(options.codeGen, /*isJit=*/false, reason);
  if (!machine)
    return module.emitError(reason);
  if (failed(importModule(module)) ||
      failed(lower(module, options, getTarget(*machine, options))))
    return failure();
  OpBuilder b(module.getContext());
  module->setAttr(
      LLVM::LLVMDialect::getDataLayoutAttrName(),
      b.getStringAttr(machine->createDataLayout().getStringRepresentation()));
  module->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                  b.getStringAttr(machine->getTargetTriple().str()));
  if (kind == OutputKind::PTX)
    return getPtx(module);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (kind == OutputKind::MLIR) {
    removeTimes(module);
    os << module << "\n";
    return text;
  }

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translate(module, options, *machine, llvmContext);
  if (!llvmModule)
    return failure();
  if (kind == OutputKind::LLVMIR) {
    describeTarget(*llvmModule, *machine);
    os << *llvmModule;
    return text;
  }
  return generateCode(module, *llvmModule, *machine,
                      kind == OutputKind::Assembly
                          ? llvm::CodeGenFileType::AssemblyFile
                          : llvm::CodeGenFileType::ObjectFile);
}

FailureOr<std::string>
mlir::bngrad::compileToObject(ModuleOp module, const CompileOptions &options) {
  return compile(module, options, OutputKind::Object);
}

FailureOr<CompiledProgram>
mlir::bngrad::compileToProgram(ModuleOp module, const CompileOptions &options,
                               StringRef cudaLibrary) {
  const CodeGenTarget &codeGen = options.codeGen;
  if (!codeGen.triple.empty() || !codeGen.cpu.empty() ||
      !codeGen.features.empty())
    return module.emitError("expected code for this machine, got triple '")
           << codeGen.triple << "', cpu '" << codeGen.cpu << "' and features '"
           << codeGen.features << "'";
  std::string reason;
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(options.codeGen, /*isJit=*/true, reason);
  if (!machine)
    return module.emitError(reason);
  if (failed(importModule(module)) ||
      failed(lower(module, options, getTarget(*machine, options))))
    return failure();
  if (options.device == Device::Cuda)
    return CompiledProgram::create(module, {}, cudaLibrary);
  return CompiledProgram::create(module);
}
