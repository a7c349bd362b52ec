//===- ModuleTest.cpp - modules and kernels ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

namespace {
class ModuleTest : public CudaTest {
protected:
  /// The text of the image that a device loads.
  std::string choose(int major, int minor,
                     const std::vector<bngradCudaImage_t> &images) {
    fake::setDevice(kDevice, {major, minor});
    fake::setCurrent(fake::createContext(kDevice));
    void *module = bngradCudaModuleLoad(images.data(), images.size());
    loadedModules().push_back(module);
    fake::takeCalls();
    launch(mgpuModuleGetFunction(module, "kernel"));
    std::string loaded;
    const std::string prefix = "cuModuleLoadDataEx ";
    for (const std::string &call : fake::takeCalls())
      if (call.rfind(prefix, 0) == 0)
        loaded += call.substr(prefix.size());
    return loaded;
  }

  static bngradCudaImage_t ptx(const char *chip, const char *text) {
    return {chip, BNGRAD_CUDA_IMAGE_PTX, 3, 0, text};
  }
  static bngradCudaImage_t binary(const char *chip, const char *text) {
    return {chip, BNGRAD_CUDA_IMAGE_BINARY, 0, 0, text};
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Choice of an image
//===----------------------------------------------------------------------===//

TEST_F(ModuleTest, ChoosesByDevice) {
  std::vector<bngradCudaImage_t> images = {
      ptx("sm_75", "ptx75"),      binary("sm_80", "binary80"),
      ptx("sm_80", "ptx80"),      ptx("sm_90", "ptx90"),
      binary("sm_90a", "bin90a"), ptx("sm_100f", "ptx100f"),
      ptx("sm_120a", "ptx120a"),
  };
  EXPECT_EQ(choose(7, 5, images), "ptx75");
  EXPECT_EQ(choose(8, 0, images), "binary80");
  EXPECT_EQ(choose(8, 6, images), "binary80");
  EXPECT_EQ(choose(9, 0, images), "bin90a");
  EXPECT_EQ(choose(10, 0, images), "ptx100f");
  EXPECT_EQ(choose(10, 3, images), "ptx100f");
  EXPECT_EQ(choose(11, 0, images), "ptx90");
  EXPECT_EQ(choose(12, 0, images), "ptx120a");
  EXPECT_EQ(choose(12, 1, images), "ptx90");
}

TEST_F(ModuleTest, ChoosesTheNewestBinary) {
  std::vector<bngradCudaImage_t> images = {
      ptx("sm_86", "ptx86"),         binary("sm_80", "binary80"),
      binary("sm_86", "binary86"),   binary("sm_90", "binary90"),
      binary("sm_100", "binary100"), ptx("sm_80", "ptx80")};
  EXPECT_EQ(choose(8, 0, images), "binary80");
  EXPECT_EQ(choose(8, 6, images), "binary86");
  EXPECT_EQ(choose(8, 9, images), "binary86");
  EXPECT_EQ(choose(9, 0, images), "binary90");
  EXPECT_EQ(choose(10, 3, images), "binary100");
  EXPECT_EQ(choose(12, 0, images), "ptx86");
}

TEST_F(ModuleTest, FatbinariesAlsoHavePtx) {
  auto fatbin = [](const char *chip, const char *text) -> bngradCudaImage_t {
    return {chip, BNGRAD_CUDA_IMAGE_FATBIN, 3, 0, text};
  };
  std::vector<bngradCudaImage_t> images = {
      fatbin("sm_80", "fatbin80"), fatbin("sm_90", "fatbin90"),
      fatbin("sm_100", "fatbin100"), ptx("sm_86", "ptx86")};
  EXPECT_EQ(choose(8, 6, images), "fatbin80");
  EXPECT_EQ(choose(9, 0, images), "fatbin90");
  EXPECT_EQ(choose(10, 3, images), "fatbin100");
  // Its PTX.
  EXPECT_EQ(choose(12, 0, images), "fatbin100");
  EXPECT_EQ(choose(7, 5, images), "");
  EXPECT_EQ(bngradCudaTakeStatus(), -1);
  takeErrors();
}

TEST_F(ModuleTest, ChoosesTheMostSpecialAmongEquals) {
  std::vector<bngradCudaImage_t> images = {
      binary("sm_100", "first"), binary("sm_100", "second"),
      binary("sm_100a", "special"), binary("sm_100f", "family")};
  EXPECT_EQ(choose(10, 0, images), "special");
  EXPECT_EQ(choose(10, 3, images), "family");
  images.pop_back();
  EXPECT_EQ(choose(10, 3, images), "first");
}

TEST_F(ModuleTest, NothingFits) {
  std::vector<bngradCudaImage_t> images = {ptx("sm_100", "ptx"),
                                           binary("sm_80", "binary"),
                                           ptx("sm_103a", "special")};
  EXPECT_EQ(choose(9, 0, images), "");
  EXPECT_EQ(bngradCudaTakeStatus(), -1);
  EXPECT_EQ(takeErrors(),
            "bngrad: error: loading a module on device 1 (NVIDIA Fake): "
            "expected an image that fits sm_90, got sm_100 (PTX), sm_80 "
            "(binary), sm_103a (PTX)\n");
  EXPECT_EQ(choose(7, 5, {binary("sm_80", "b"), ptx("sm_80", "p")}), "");
  EXPECT_EQ(bngradCudaTakeStatus(), -1);
  // Images of a family do not run on another family, even a newer one.
  EXPECT_EQ(choose(12, 0, {ptx("sm_100f", "p")}), "");
  EXPECT_EQ(bngradCudaTakeStatus(), -1);
  EXPECT_EQ(choose(10, 0, {ptx("sm_103f", "p")}), "");
  EXPECT_EQ(bngradCudaTakeStatus(), -1);
  takeErrors();
}

TEST_F(ModuleTest, ImagesThatCannotBeRight) {
  auto load = [](bngradCudaImage_t image) {
    EXPECT_EQ(bngradCudaModuleLoad(&image, 1), nullptr);
  };
  for (const char *chip :
       {"", "sm", "sm_", "sm_9", "sm_9a", "sm_90b", "sm_90aa", "sm_a", "gfx90a",
        "compute_90", "sm_1000", "sm_-90"}) {
    load(ptx(chip, "text"));
    expectError(-1, std::string("bngradCudaModuleLoad: expected a chip such as "
                                "sm_90, got '") +
                        chip + "'");
  }
  load(ptx(nullptr, "text"));
  expectError(-1, "bngradCudaModuleLoad: expected a chip such as sm_90, got "
                  "''");
  load({"sm_90", 3, 0, 0, "text"});
  expectError(-1, "bngradCudaModuleLoad: expected the format of an image in "
                  "[0, 2], got 3");
  load({"sm_90", BNGRAD_CUDA_IMAGE_PTX, 5, 0, "text"});
  expectError(-1, "bngradCudaModuleLoad: expected opt_level in [0, 4], got 5");
  load(ptx("sm_90", nullptr));
  expectError(-1, "bngradCudaModuleLoad: expected the data of an image, got "
                  "null");
  EXPECT_EQ(bngradCudaModuleLoad(nullptr, 0), nullptr);
  expectError(-1, "bngradCudaModuleLoad: expected at least one image");
  EXPECT_EQ(mgpuModuleLoad(nullptr, 4), nullptr);
  expectError(-1, "mgpuModuleLoad: expected the data of an image, got null");
  EXPECT_EQ(mgpuModuleGetFunction(nullptr, "kernel"), nullptr);
  expectError(-1, "mgpuModuleGetFunction: expected a module and the name of a "
                  "kernel, got null");
}

// The array of images may be freed before the images.
TEST_F(ModuleTest, ImagesAreCopied) {
  std::string chip = "sm_90";
  bngradCudaImage_t image = ptx(chip.c_str(), "text");
  void *module = bngradCudaModuleLoad(&image, 1);
  loadedModules().push_back(module);
  image = {};
  chip = "sm_10";
  launch(mgpuModuleGetFunction(module, "kernel"));
  EXPECT_EQ(fake::takeLaunches().size(), 1u);
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

TEST_F(ModuleTest, OptLevel) {
  void *module = loadPtx("ptx", 3);
  launch(mgpuModuleGetFunction(module, "kernel"));
  EXPECT_EQ(fake::getOptLevel(), 3);
  launch(mgpuModuleGetFunction(loadModule(), "kernel"));
  EXPECT_EQ(fake::getOptLevel(), -1) << "an option of PTX alone";
  EXPECT_EQ(loadPtx("ptx", -1), nullptr);
  expectError(-1, "mgpuModuleLoadJIT: expected opt_level in [0, 4], got -1");
}

TEST_F(ModuleTest, LogIsPartOfTheError) {
  void *module = loadPtx("bad ptx", 2);
  launch(mgpuModuleGetFunction(module, "kernel"));
  expectError(218, "cuModuleLoadDataEx on device 1 (NVIDIA Fake): "
                   "CUDA_ERROR_INVALID_PTX (218): a PTX JIT compilation "
                   "failed: ptxas line 1; error : wrong;ptxas fatal");
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

TEST_F(ModuleTest, LoadedOnceByManyThreads) {
  void *module = loadModule();
  runInThreads([&](int) {
    for (int j = 0; j < 100; ++j)
      launch(mgpuModuleGetFunction(module, "kernel"));
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  });
  EXPECT_EQ(fake::takeLaunches().size(), 800u);
  Calls others;
  for (const std::string &call : fake::takeCalls())
    if (call != "cuLaunchKernelEx kernel")
      others.push_back(call);
  EXPECT_EQ(others,
            (Calls{"cuModuleLoadDataEx module", "cuModuleGetFunction kernel"}));
}

TEST_F(ModuleTest, LoadedOncePerContext) {
  void *module = loadModule();
  void *kernel = mgpuModuleGetFunction(module, "kernel");
  EXPECT_EQ(mgpuModuleGetFunction(module, "kernel"), kernel);
  void *other = mgpuModuleGetFunction(module, "other");
  EXPECT_NE(other, kernel);
  EXPECT_EQ(fake::takeCalls(), Calls()) << "before the first launch";

  CUcontext first = fake::getCurrent();
  CUcontext second = fake::createContext(kDevice);
  Calls load = {"cuModuleLoadDataEx module", "cuModuleGetFunction kernel",
                "cuModuleGetFunction other", "cuLaunchKernelEx kernel"};
  launch(kernel);
  EXPECT_EQ(fake::takeCalls(), load);
  fake::setCurrent(second);
  launch(kernel);
  EXPECT_EQ(fake::takeCalls(), load);
  launch(other);
  EXPECT_EQ(fake::takeCalls(), Calls{"cuLaunchKernelEx other"});
  fake::setCurrent(first);
  launch(kernel);
  EXPECT_EQ(fake::takeCalls(), Calls{"cuLaunchKernelEx kernel"});
}

// A later launch may be part of a capture, in which nothing can be loaded.
TEST_F(ModuleTest, OneLaunchLoadsAllKernels) {
  void *module = loadModule();
  std::vector<void *> kernels;
  for (const char *name : {"reduce", "missing", "finish", "apply"})
    kernels.push_back(mgpuModuleGetFunction(module, name));
  launch(kernels[0]);
  fake::takeCalls();
  for (const char *function :
       {"cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetAttribute"})
    fake::fail(function, 900);
  launch(kernels[2]);
  launch(kernels[3]);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuLaunchKernelEx finish", "cuLaunchKernelEx apply"}));
  fake::succeedAgain();
  // A kernel that the module lacks is an error of its own launch alone.
  launch(kernels[1]);
  expectError(500, "cuModuleGetFunction of 'missing' on device 1 (NVIDIA "
                   "Fake): CUDA_ERROR_NOT_FOUND (500): named symbol not "
                   "found");
}

// A thread that captures a stream forbids the others what they need for that,
// unless they relax their mode.
TEST_F(ModuleTest, LoadedBesideACapture) {
  void *kernel = mgpuModuleGetFunction(loadModule(), "kernel");
  auto *captured = static_cast<fake::CUstream>(mgpuStreamCreate());
  fake::beginCapture(captured);
  launch(kernel);
  EXPECT_EQ(bngradCudaGetClusterSlots(4, 1), 33);
  EXPECT_EQ(fake::takeLaunches().size(), 1u);
  // The mode is that of before.
  EXPECT_FALSE(fake::isCaptureRelaxed());
  fake::endCaptures();
  mgpuStreamDestroy(captured);
}

TEST_F(ModuleTest, KernelThatIsNotThere) {
  void *kernel = mgpuModuleGetFunction(loadModule(), "missing");
  EXPECT_NE(kernel, nullptr);
  for (int i = 0; i < 2; ++i) {
    launch(kernel);
    expectError(500, "cuModuleGetFunction of 'missing' on device 1 (NVIDIA "
                     "Fake): CUDA_ERROR_NOT_FOUND (500): named symbol not "
                     "found");
  }
}

//===----------------------------------------------------------------------===//
// Unloading
//===----------------------------------------------------------------------===//

TEST_F(ModuleTest, UnloadedWhereItsContextExists) {
  // A context other than the current one may be destroyed, but not a primary
  // one that the runtime retains.
  void *module = loadModule();
  void *kernel = mgpuModuleGetFunction(module, "kernel");
  launch(kernel);
  fake::setCurrent(nullptr);
  launch(kernel);
  CUcontext current = fake::createContext(kDevice);
  fake::setCurrent(current);
  launch(kernel);
  fake::takeCalls();
  unloadModule(module);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuModuleUnload", "cuModuleUnload"}));
  EXPECT_EQ(fake::getCurrent(), current);
  unloadModule(nullptr);
}

// At the end of a process there may be no handler and no driver, and after a
// fault of the device every call returns its error.
TEST_F(ModuleTest, UnloadingReportsNothing) {
  for (int code : {1, 4, 700})
    for (const char *function : {"cuModuleUnload", "cuCtxPushCurrent"}) {
      void *module = loadModule();
      launch(mgpuModuleGetFunction(module, "kernel"));
      fake::fail(function, code);
      unloadModule(module);
      fake::succeedAgain();
      EXPECT_EQ(bngradCudaTakeStatus(), 0);
    }
}

// The process ends as usual where the fault was the last event, and its only
// report is that of the call that noticed it.
TEST_F(ModuleTest, ProcessEndsAfterAFault) {
  EXPECT_EXIT(
      {
        bngradCudaSetErrorHandler(nullptr, nullptr);
        static void *module = loadModule();
        launch(mgpuModuleGetFunction(module, "kernel"));
        std::atexit([] { mgpuModuleUnload(module); });
        for (const char *function :
             {"cuStreamSynchronize", "cuCtxGetCurrent", "cuCtxPushCurrent",
              "cuCtxPopCurrent", "cuCtxGetId", "cuModuleUnload"})
          fake::fail(function, 700);
        bngradCudaTakeStatus();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}
