//===- Jit.cpp - runs a module in the LLVM dialect ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Jit.h"
#include "common/CodeGen.h"
#include "common/Diagnostics.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <dlfcn.h>

using namespace mlir;
using namespace mlir::bngrad;

/// The first symbol that `module` uses and nobody defines; empty: none.
static std::string findUnknownSymbol(const llvm::Module &module,
                                     ArrayRef<Jit::Symbol> symbols,
                                     StringRef library) {
  void *handle = library.empty() ? nullptr
                                 : dlopen(library.str().c_str(),
                                          RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  std::string unknown;
  for (const llvm::GlobalValue &value : module.global_values()) {
    StringRef name = value.getName();
    if (!value.isDeclaration() || value.use_empty() ||
        name.starts_with("llvm.") ||
        llvm::is_contained(llvm::make_first_range(symbols), name) ||
        dlsym(RTLD_DEFAULT, name.str().c_str()) ||
        (handle && dlsym(handle, name.str().c_str())))
      continue;
    unknown = name.str();
    break;
  }
  if (handle)
    dlclose(handle);
  return unknown;
}

std::unique_ptr<Jit> Jit::create(ModuleOp module, ArrayRef<Symbol> symbols,
                                 StringRef library) {
  auto fail = [](llvm::Error error) -> std::unique_ptr<Jit> {
    (void)reportError(llvm::toString(std::move(error)));
    return nullptr;
  };
  if (failed(verifyLowered(module)))
    return nullptr;
  CodeGenTarget target;
  target.isJit = true;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(target);
  if (!machine)
    return nullptr;
  ExecutionEngineOptions options;
  // A function_ref: the callable must outlive create().
  std::string unknown;
  auto optimize = makeOptimizer(*machine);
  auto transform = [&](llvm::Module *module) {
    llvm::Error error = optimize(module);
    unknown = findUnknownSymbol(*module, symbols, library);
    return error;
  };
  options.transformer = transform;
  SmallVector<StringRef> libraries;
  if (!library.empty())
    libraries.push_back(library);
  options.sharedLibPaths = libraries;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine = ExecutionEngine::create(module, options, std::move(machine));
  if (!engine)
    return fail(engine.takeError());
  // LLVM would report it in words of its own.
  if (!unknown.empty()) {
    (void)reportError("expected ops that need the libraries of C, mathematics "
                      "and OpenMP only, got a use of '" +
                      Twine(unknown) + "'");
    return nullptr;
  }

  auto jit = std::make_unique<Jit>();
  jit->engine = std::move(*engine);
  jit->engine->registerSymbols([&](llvm::orc::MangleAndInterner interner) {
    llvm::orc::SymbolMap map;
    for (auto [name, address] : symbols)
      map[interner(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                             llvm::JITSymbolFlags::Exported};
    return map;
  });
  // Kernels are registered by constructors.
  if (!library.empty())
    jit->engine->initialize();
  return jit;
}

LogicalResult Jit::compile(StringRef function) {
  auto address = engine->lookupPacked(("_mlir_ciface_" + function).str());
  if (!address)
    return reportError(llvm::toString(address.takeError()));
  return success();
}

/// A memref descriptor of `array`: allocated and aligned pointer,
/// offset, sizes, strides (mlir/ExecutionEngine/CRunnerUtils.h).
static std::vector<int64_t> makeDescriptor(::bngrad::Array &array) {
  auto pointer = reinterpret_cast<int64_t>(array.data.data());
  std::vector<int64_t> descriptor = {pointer, pointer, 0};
  llvm::append_range(descriptor, array.shape);
  std::vector<int64_t> strides(array.shape.size(), 1);
  for (size_t i = array.shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * array.shape[i];
  llvm::append_range(descriptor, strides);
  return descriptor;
}

LogicalResult Jit::call(StringRef function,
                        MutableArrayRef<::bngrad::Array> arguments,
                        MutableArrayRef<::bngrad::Array> results) {
  std::vector<std::vector<int64_t>> descriptors;
  for (::bngrad::Array &array : arguments)
    descriptors.push_back(makeDescriptor(array));
  for (::bngrad::Array &array : results)
    descriptors.push_back(makeDescriptor(array));
  // The packed wrapper takes the address of each argument, and each argument
  // is the address of a descriptor.
  std::vector<void *> pointers, packed;
  for (std::vector<int64_t> &descriptor : descriptors)
    pointers.push_back(descriptor.data());
  for (void *&pointer : pointers)
    packed.push_back(static_cast<void *>(&pointer));
  // Of functions that return none it is left alone.
  int32_t status = 0;
  packed.push_back(&status);
  if (llvm::Error error =
          engine->invokePacked(("_mlir_ciface_" + function).str(), packed))
    return reportError(llvm::toString(std::move(error)));
  if (status != 0)
    return reportError("out of memory: cannot allocate what a function needs "
                       "beside its arguments and results");
  return success();
}
