//===- TargetMachine.cpp - machine code through LLVM ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetMachine.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/HostCpu.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/LLVMTranslationInterface.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Config/Targets.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace mlir::bngrad;

static llvm::Triple getTriple(const CodeGenTarget &target) {
  if (target.triple.empty())
    return llvm::Triple(llvm::sys::getProcessTriple());
  return llvm::Triple(llvm::Triple::normalize(target.triple));
}

/// Whether generated code follows the machine's C calling convention and its
/// conversions of f16 and bf16.
static bool isSupported(const llvm::Triple &triple) {
  bool isKnown = triple.getArch() == llvm::Triple::x86_64 ||
                 triple.getArch() == llvm::Triple::aarch64;
  // x32 and ILP32 have 32-bit pointers; Windows passes arguments differently.
  bool isShort =
      triple.isX32() || triple.getEnvironment() == llvm::Triple::GNUILP32;
  return isKnown && !isShort && triple.isOSBinFormatELF() &&
         !triple.isOSWindows();
}

bool mlir::bngrad::isNative(const CodeGenTarget &target) {
  llvm::Triple host(llvm::sys::getProcessTriple());
  return getTriple(target).getArch() == host.getArch() &&
         (target.cpu.empty() || target.cpu == "native");
}

int64_t mlir::bngrad::getSveBits(const CodeGenTarget &target,
                                 const llvm::TargetMachine &machine) {
  if (!machine.getTargetTriple().isAArch64() || isNative(target) ||
      !machine.getMCSubtargetInfo()->checkFeatures("+sve"))
    return 0;
  // LLVM does not know the lengths. Other CPUs have registers of 128 bits, like
  // NEON, or of an unknown length.
  return llvm::StringSwitch<int64_t>(target.cpu)
      .Case("a64fx", 512)
      .Cases({"neoverse-v1", "fujitsu-monaka"}, 256)
      .Default(0);
}

void mlir::bngrad::useSve(llvm::Module &module, int64_t bits) {
  if (bits == 0)
    return;
  unsigned granules = bits / 128; // vscale
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(
          module.getContext(), granules, granules));
}

/// Registers LLVM's targets for the supported machines, once.
static void initializeTargets() {
  static const bool isDone = [] {
#if LLVM_HAS_X86_TARGET
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
#endif
#if LLVM_HAS_AARCH64_TARGET
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
#endif
    return true;
  }();
  (void)isDone;
}

/// LLVM's target for `triple`; null and a reason on failure.
static const llvm::Target *findTarget(const CodeGenTarget &target,
                                      const llvm::Triple &triple,
                                      std::string &reason) {
  initializeTargets();
  std::string host = llvm::sys::getProcessTriple(), error;
  const llvm::Target *registered =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (triple.getArch() == llvm::Triple::UnknownArch) {
    reason = "triple: expected one such as " + host + ", got '" +
             target.triple + "'";
    return nullptr;
  }
  if (!registered || (!target.triple.empty() && !isSupported(triple))) {
    reason = "triple: expected an x86_64 or aarch64 with pointers of 64 bits "
             "and ELF object files, such as " +
             host + ", got '" + (target.triple.empty() ? host : target.triple) +
             "'";
    return nullptr;
  }
  return registered;
}

/// Why code cannot be generated for `cpu`, which is not this machine's; empty
/// if it can.
static std::string findCpuError(const llvm::Target &registered,
                                const llvm::Triple &triple, StringRef cpu) {
  std::string host = HostCpu::get().name;
  if (cpu == "native")
    return ("cpu: expected a CPU of " + triple.getArchName() +
            ", got 'native', which is this machine's " + host)
        .str();
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      registered.createMCSubtargetInfo(triple, "", ""));
  if (!subtarget || !subtarget->isCPUStringValid(cpu))
    return ("cpu: expected native or a CPU that LLVM knows, such as this "
            "machine's " +
            host + ", got '" + cpu + "'")
        .str();
  subtarget.reset(registered.createMCSubtargetInfo(triple, cpu, ""));
  if (triple.isX86() && !subtarget->checkFeatures("+64bit"))
    return ("cpu: expected a CPU of 64 bits, such as x86-64, got '" + cpu + "'")
        .str();
  return "";
}

/// Why code cannot be generated with `features`; empty if it can.
static std::string findFeatureError(const llvm::Target &registered,
                                    const llvm::Triple &triple,
                                    StringRef features) {
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      registered.createMCSubtargetInfo(triple, "", ""));
  SmallVector<StringRef> all;
  features.split(all, ',');
  for (StringRef feature : all) {
    StringRef name = feature.drop_front(feature.empty() ? 0 : 1);
    bool isKnown = llvm::any_of(
        subtarget->getAllProcessorFeatures(),
        [&](const llvm::SubtargetFeatureKV &kv) { return name == kv.Key; });
    if (!isKnown || (feature[0] != '+' && feature[0] != '-'))
      return ("features: expected + or - and a feature that LLVM knows, such "
              "as +avx2, got '" +
              feature + "'")
          .str();
  }
  return "";
}

std::unique_ptr<llvm::TargetMachine>
mlir::bngrad::createTargetMachine(const CodeGenTarget &target, bool isJit,
                                  std::string &reason) {
  llvm::Triple triple = getTriple(target);
  const llvm::Target *registered = findTarget(target, triple, reason);
  if (!registered)
    return nullptr;
  std::string cpu = target.cpu.empty() ? "generic" : target.cpu, features;
  if (isNative(target)) {
    if (failed(HostCpu::verify(reason)))
      return nullptr;
    HostCpu host = HostCpu::get();
    cpu = std::move(host.name);
    features = std::move(host.features);
  } else {
    reason = findCpuError(*registered, triple, cpu);
    if (!reason.empty())
      return nullptr;
  }
  if (!target.features.empty()) {
    reason = findFeatureError(*registered, triple, target.features);
    if (!reason.empty())
      return nullptr;
    features += (features.empty() ? "" : ",") + target.features;
  }
  std::optional<llvm::Reloc::Model> relocation;
  llvm::TargetOptions options;
  if (!isJit) {
    relocation = llvm::Reloc::PIC_;
    // Avoid .ctors, which lld drops.
    options.UseInitArray = true;
  }
  return std::unique_ptr<llvm::TargetMachine>(registered->createTargetMachine(
      triple, cpu, features, options, relocation, std::nullopt,
      llvm::CodeGenOptLevel::Default, isJit));
}

LogicalResult mlir::bngrad::verifyTarget(const CodeGenTarget &target,
                                         std::string &reason) {
  return success(createTargetMachine(target, /*isJit=*/false, reason) !=
                 nullptr);
}

/// LLVM's passes for code whose loops are already vectorized and unrolled. They
/// take less than half the time of its default passes, and kernels for large
/// data are as fast. Without indvars, NHWC of 1024x1024 takes 1.4 % longer.
static constexpr char kPasses[] =
    "function(sroa,early-cse<memssa>,simplifycfg),"
    "inline,globaldce,"
    "function(simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),loop(indvars),gvn,dse,simplifycfg,"
    "instcombine<no-verify-fixpoint>),"
    "mergefunc";

/// Whether calls of `function` are fast even with poor code: it has no loops
/// and computes neither floats nor vectors. Entries and their checks are such
/// functions.
static bool isShort(const llvm::Function &function) {
  SmallVector<std::pair<const llvm::BasicBlock *, const llvm::BasicBlock *>>
      backEdges;
  llvm::FindFunctionBackedges(function, backEdges);
  auto isData = [](const llvm::Value *value) {
    llvm::Type *type = value->getType();
    return type->isVectorTy() || type->isFloatingPointTy();
  };
  return backEdges.empty() &&
         llvm::none_of(llvm::instructions(function),
                       [&](const llvm::Instruction &instruction) {
                         return isData(&instruction) ||
                                llvm::any_of(instruction.operand_values(),
                                             isData);
                       });
}

/// Makes LLVM generate code for short functions fast. This saves a tenth of the
/// time to compile a gradient with its checks.
static void generateShortFunctionsFast(llvm::Module &module) {
  for (llvm::Function &function : module) {
    // optnone excludes size attributes, which were requested.
    if (function.isDeclaration() || function.hasOptSize() ||
        function.hasFnAttribute(llvm::Attribute::AlwaysInline) ||
        !isShort(function))
      continue;
    function.addFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::OptimizeNone);
  }
}

namespace {
/// Omits loop strength reduction in code generation. It takes a sixth of the
/// time to compile a gradient, and kernels are as fast without it: the arrays
/// of a loop share an index, which x86 adds to the address of an access.
class CodeGenGate : public llvm::OptPassGate {
public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(StringRef passName, StringRef) const override {
    return passName != "Loop Strength Reduction";
  }
};
} // namespace

llvm::Error mlir::bngrad::optimize(llvm::Module &module,
                                   llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kPasses))
    return error;
  passes.run(module, modules);
  generateShortFunctionsFast(module);
  // Never destroyed: threads may compile while the process ends.
  static CodeGenGate &gate = *new CodeGenGate;
  if (machine.getTargetTriple().isX86())
    module.getContext().setOptPassGate(gate);
  return llvm::Error::success();
}

LogicalResult mlir::bngrad::verifyLowered(ModuleOp module) {
  // An op that was not lowered leaves casts, but reporting the op is clearer.
  Operation *cast = nullptr;
  WalkResult walk = module.walk([&](Operation *op) {
    // These are lowered only if everything else is.
    if (isa<ParallelOp, NumThreadsOp, YieldOp>(op))
      return WalkResult::advance();
    if (isa<UnrealizedConversionCastOp>(op)) {
      cast = cast ? cast : op;
      return WalkResult::advance();
    }
    if (op->getName().getDialect() &&
        op->getName()
            .getDialect()
            ->getRegisteredInterface<LLVMTranslationDialectInterface>())
      return WalkResult::advance();
    emitError(op->getLoc())
        << "expected an op that can be lowered to LLVM IR, got '"
        << op->getName() << "'";
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  if (cast)
    return emitError(cast->getLoc())
           << "expected types that can be lowered to LLVM IR, got "
           << cast->getOperandTypes().front() << " to "
           << cast->getResultTypes().front();
  return success();
}
