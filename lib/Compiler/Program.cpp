//===- Program.cpp - functions compiled in this process -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Libcalls.h"
#include "TargetMachine.h"

#include "BNGrad/Compiler/Compiler.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <dlfcn.h>

using namespace mlir;
using namespace mlir::bngrad;

CompiledProgram::CompiledProgram(MLIRContext *context,
                                 std::unique_ptr<ExecutionEngine> engine)
    : context(context), engine(std::move(engine)) {}
CompiledProgram::CompiledProgram(CompiledProgram &&) noexcept = default;
CompiledProgram &
CompiledProgram::operator=(CompiledProgram &&) noexcept = default;
CompiledProgram::~CompiledProgram() = default;

/// The first symbol that `module` uses but that neither this process, `symbols`
/// nor the library `handle` defines; empty if there is none.
static std::string findUnknownSymbol(const llvm::Module &module,
                                     ArrayRef<CompiledProgram::Symbol> symbols,
                                     void *handle) {
  for (const llvm::GlobalValue &value : module.global_values()) {
    StringRef name = value.getName();
    if (!value.isDeclaration() || value.use_empty() ||
        name.starts_with("llvm.") ||
        llvm::is_contained(llvm::make_first_range(symbols), name) ||
        dlsym(RTLD_DEFAULT, name.str().c_str()) ||
        (handle && dlsym(handle, name.str().c_str())))
      continue;
    return name.str();
  }
  return "";
}

FailureOr<CompiledProgram> CompiledProgram::create(ModuleOp module,
                                                   ArrayRef<Symbol> symbols,
                                                   StringRef library) {
  if (failed(verifyLowered(module)))
    return failure();
  std::string reason;
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(CodeGenTarget(), /*isJit=*/true, reason);
  if (!machine)
    return module.emitError(reason);
  // The engine loads it again, but would not report an error.
  void *handle = nullptr;
  if (!library.empty()) {
    handle = dlopen(library.str().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return module.emitError("cannot load ") << dlerror();
  }
  llvm::scope_exit close([&] {
    if (handle)
      dlclose(handle);
  });
  ExecutionEngineOptions options;
  // `transformer` is a function_ref, so the callable must outlive create().
  std::string unknown;
  auto transform = [&, &machine = *machine](llvm::Module *llvmModule) {
    llvm::Error error = optimize(*llvmModule, machine);
    unknown = findUnknownSymbol(*llvmModule, symbols, handle);
    addFloatConversions(*llvmModule);
    return error;
  };
  options.transformer = transform;
  SmallVector<StringRef> libraries;
  if (!library.empty())
    libraries.push_back(library);
  options.sharedLibPaths = libraries;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  llvm::Expected<std::unique_ptr<ExecutionEngine>> engine =
      ExecutionEngine::create(module, options, std::move(machine));
  if (!engine)
    return module.emitError(llvm::toString(engine.takeError()));
  // LLVM's own report would be less clear.
  if (!unknown.empty())
    return module.emitError("expected ops that need only libc and "
                            "libm, got a use of '")
           << unknown << "'";

  (*engine)->registerSymbols([&](llvm::orc::MangleAndInterner interner) {
    llvm::orc::SymbolMap map;
    for (auto [name, address] : symbols)
      map[interner(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                             llvm::JITSymbolFlags::Exported};
    return map;
  });
  // Constructors register the kernels.
  if (!library.empty())
    (*engine)->initialize();
  return CompiledProgram(module.getContext(), std::move(*engine));
}

void *CompiledProgram::lookup(StringRef name) const {
  llvm::Expected<void *> address = engine->lookup(name);
  if (address)
    return *address;
  emitError(UnknownLoc::get(context), llvm::toString(address.takeError()));
  return nullptr;
}

CompiledProgram::PackedFunction
CompiledProgram::lookupPacked(StringRef name) const {
  llvm::Expected<PackedFunction> address = engine->lookupPacked(name);
  if (address)
    return *address;
  emitError(UnknownLoc::get(context), llvm::toString(address.takeError()));
  return nullptr;
}
