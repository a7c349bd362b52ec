//===- Module.cpp - modules and kernels -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"
#include "Abi.h"
#include "Nvtx.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace bngrad::cuda {

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// `log` of the driver's assembler as part of one line.
static Line onOneLine(std::string_view log) {
  Line result;
  log = log.substr(0, log.find_last_not_of("\n; ") + 1);
  for (char c : log) {
    if (c != '\n')
      result.append(c);
    else if (!result.empty() && result.view().back() != ';')
      result.append(';');
  }
  return result;
}

/// Reports that none of `images` fits the device of `context`.
static void reportNoImage(const std::vector<Image> &images,
                          const Context &context) {
  Line got;
  for (const Image &image : images)
    got.append(got.empty() ? "" : ", ", printChip(*image.chip),
               image.isPtx ? " (PTX)" : " (binary)");
  report(kNoDriverCode, Line("loading a module on ", context.describeDevice(),
                             ": expected an image that fits ",
                             printChip({context.capability}), ", got ", got));
}

CUmodule Module::load(const Context &context) {
  // Insert the entry first: a module without one would not be unloaded.
  CUmodule &entry = loaded[&context];
  if (entry)
    return entry;
  Range range("bngrad: module load");
  const Image *image = chooseImage(images, context.capability);
  if (!image) {
    reportNoImage(images, context);
    return nullptr;
  }

  // A fatbinary may hold PTX, so it may have a log as well.
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log)),
                    reinterpret_cast<void *>(intptr_t(image->optLevel))};
  unsigned numOptions = std::size(options) - (image->isPtx ? 0 : 1);
  CUmodule handle = nullptr;
  CUresult result = context.driver.cuModuleLoadDataEx(
      &handle, image->data, numOptions, options, values);
  if (result != CUDA_SUCCESS) {
    Line message("cuModuleLoadDataEx on ", context.describeDevice(), ": ",
                 describe(context.driver, result));
    Line text = onOneLine({log, strnlen(log, sizeof(log))});
    if (!text.empty())
      message.append(": ", text);
    report(result, message);
    return nullptr;
  }
  entry = handle;
  return handle;
}

Module::~Module() {
  for (const auto &[context, handle] : loaded) {
    if (!handle || !isAlive(*context))
      continue;
    const Driver &driver = context->driver;
    CUcontext popped = nullptr;
    if (driver.cuCtxPushCurrent(context->handle) != CUDA_SUCCESS)
      continue;
    driver.cuModuleUnload(handle);
    driver.cuCtxPopCurrent(&popped);
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

Kernel *Module::getKernel(std::string_view name) {
  {
    std::shared_lock<std::shared_mutex> lock(kernelsMutex);
    auto found = kernels.find(name);
    if (found != kernels.end())
      return &found->second;
  }
  std::unique_lock<std::shared_mutex> lock(kernelsMutex);
  return &kernels.try_emplace(std::string(name), *this, name).first->second;
}

LoadedKernel *Kernel::find(const Context &context) const {
  LoadedKernel *kernel = first.load(std::memory_order_acquire);
  while (kernel && &kernel->context != &context)
    kernel = kernel->next.get();
  return kernel;
}

LoadedKernel *Kernel::load(const Context &context) {
  if (LoadedKernel *kernel = find(context))
    return kernel;
  std::lock_guard<std::mutex> lock(module.loadMutex);
  if (LoadedKernel *kernel = find(context))
    return kernel;

  // Another thread may capture a stream.
  RelaxedScope relaxed(context.driver);
  CUmodule handle = module.load(context);
  if (!handle)
    return nullptr;
  const char *call = nullptr;
  CUresult result = add(context, handle, call);
  if (!context.check(result, call, name.c_str()))
    return nullptr;
  LoadedKernel *kernel = owner.get();
  module.loadKernels(context, handle);
  return kernel;
}

/// Whether the kernels of `module` wait for the kernel ahead of them.
static bool waitsFirst(const Driver &driver, CUmodule module) {
  CUdeviceptr address = 0;
  size_t size = 0;
  return driver.cuModuleGetGlobal(&address, &size, module,
                                  BNGRAD_CUDA_KERNELS_WAIT_SYMBOL) ==
         CUDA_SUCCESS;
}

CUresult Kernel::add(const Context &context, CUmodule handle,
                     const char *&call) {
  const Driver &driver = context.driver;
  KernelProperties properties;
  CUfunction &function = properties.function;
  call = "cuModuleGetFunction";
  CUresult result = driver.cuModuleGetFunction(&function, handle, name.c_str());
  if (result != CUDA_SUCCESS)
    return result;
  // This also loads the code where the driver loads it lazily.
  call = "cuFuncGetAttribute";
  result = driver.cuFuncGetAttribute(
      &properties.staticShared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  if (result == CUDA_SUCCESS)
    result = driver.cuFuncGetAttribute(&properties.maxThreads,
                                       CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                       function);
  if (result != CUDA_SUCCESS)
    return result;
  properties.waitsFirst = waitsFirst(driver, handle);
  auto made = std::make_unique<LoadedKernel>(context, name, properties);
  made->next = std::move(owner);
  owner = std::move(made);
  first.store(owner.get(), std::memory_order_release);
  return CUDA_SUCCESS;
}

void Module::loadKernels(const Context &context, CUmodule handle) {
  std::shared_lock<std::shared_mutex> lock(kernelsMutex);
  const char *call = nullptr;
  for (auto &[name, kernel] : kernels)
    if (!kernel.find(context))
      kernel.add(context, handle, call);

  int carveout = 0;
  for (const auto &[name, kernel] : kernels)
    if (const LoadedKernel *loaded = kernel.find(context))
      carveout = std::max(carveout, loaded->getLeastCarveout());
  for (const auto &[name, kernel] : kernels)
    if (LoadedKernel *loaded = kernel.find(context))
      loaded->preferCarveout(carveout);
}

//===----------------------------------------------------------------------===//
// Exported functions
//===----------------------------------------------------------------------===//

/// The error of the exported function `call`: `expected <expected...>`.
template <typename... Parts>
static void *reportExpected(const char *call, const Parts &...expected) {
  report(kNoDriverCode, Line(call, ": expected ", expected...));
  return nullptr;
}

/// Makes a module of `images` after checking them.
static void *makeModule(const char *call, std::vector<Image> images) {
  for (const Image &image : images) {
    if (!image.data)
      return reportExpected(call, "the data of an image, got null");
    if (image.isPtx && (image.optLevel < 0 || image.optLevel > 4))
      return reportExpected(call, "opt_level in [0, 4], got ", image.optLevel);
  }
  return new Module(std::move(images));
}

/// Implements `call`, a form of bngradCudaModuleLoad.
static void *makeModule(const char *call, const bngradCudaImage_t *images,
                        int64_t numImages) {
  if (!images || numImages < 1)
    return reportExpected(call, "at least one image");
  std::vector<Image> result;
  for (int64_t i = 0; i < numImages; ++i) {
    const bngradCudaImage_t &image = images[i];
    std::string_view name = image.chip ? image.chip : "";
    std::optional<Chip> chip = parseChip(name);
    if (!chip)
      return reportExpected(call, "a chip such as sm_90, got '", name, "'");
    if (image.format < BNGRAD_CUDA_IMAGE_PTX ||
        image.format > BNGRAD_CUDA_IMAGE_FATBIN)
      return reportExpected(call, "the format of an image in [0, 2], got ",
                            image.format);
    if (image.format != BNGRAD_CUDA_IMAGE_PTX)
      result.push_back({image.data, /*isPtx=*/false, image.opt_level, chip});
    if (image.format != BNGRAD_CUDA_IMAGE_BINARY)
      result.push_back({image.data, /*isPtx=*/true, image.opt_level, chip});
  }
  return makeModule(call, std::move(result));
}

} // namespace bngrad::cuda

using namespace bngrad::cuda;

void *mgpuModuleLoad(void *data, uint64_t) {
  if (hasError())
    return nullptr;
  return guard(__func__, [&, call = __func__] {
    return makeModule(call, {{data, /*isPtx=*/false, /*optLevel=*/0, {}}});
  });
}

void *mgpuModuleLoadJIT(void *data, int32_t optLevel) {
  if (hasError())
    return nullptr;
  return guard(__func__, [&, call = __func__] {
    return makeModule(call, {{data, /*isPtx=*/true, optLevel, {}}});
  });
}

void *bngradCudaModuleLoad(const bngradCudaImage_t *images, int64_t numImages) {
  if (hasError())
    return nullptr;
  return guard(__func__, [&, call = __func__] {
    return makeModule(call, images, numImages);
  });
}

void mgpuModuleUnload(void *module) {
  guard(__func__, [&] { delete static_cast<Module *>(module); });
}

void *mgpuModuleGetFunction(void *module, const char *name) {
  if (hasError())
    return nullptr;
  if (!module || !name)
    return reportExpected(__func__,
                          "a module and the name of a kernel, got null");
  return guard(__func__, [&]() -> void * {
    return static_cast<Module *>(module)->getKernel(name);
  });
}
