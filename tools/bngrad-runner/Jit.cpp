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

#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::bngrad;

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
  auto optimizer = makeOptimizer(*machine);
  options.transformer = optimizer;
  SmallVector<StringRef> libraries;
  if (!library.empty())
    libraries.push_back(library);
  options.sharedLibPaths = libraries;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine = ExecutionEngine::create(module, options, std::move(machine));
  if (!engine)
    return fail(engine.takeError());

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
    packed.push_back(&pointer);
  if (llvm::Error error =
          engine->invokePacked(("_mlir_ciface_" + function).str(), packed))
    return reportError(llvm::toString(std::move(error)));
  return success();
}
