//===- RuntimeScenarios.cpp - calls of the runtime ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   scenario NAME N   makes allocation N fail; 0: none
//
// Prints `allocations=A live=L errors=E status=S`. Exit 3 if what was computed
// without an error is wrong, 4 if the status and the number of lines do not
// agree, 5 if the scenario fails where there is memory again.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Reference/Npy.h"
#include "BNGrad/Runtime/Cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" {
__attribute__((weak)) void failAllocation(long which);
__attribute__((weak)) long countAllocations();
__attribute__((weak)) long countLiveAllocations();
}

using bngrad::Array;

static int numErrors = 0;

static void countError(const char *message, void *) {
  numErrors += 1;
  if (std::strchr(message, '\n') && std::strchr(message, '\n')[1] != '\0')
    std::abort();
}

static const char *const kPath = "scenario.npy";

/// Makes `array`, or counts the error.
static bool makeArray(Array &array) {
  static const std::vector<int64_t> kShape = {3, 5};
  std::string error;
  bool isMade =
      bngrad::allocateArray(bngrad::ElementType::F32, kShape, array, error);
  numErrors += !error.empty();
  return isMade;
}

static bool writeFile() {
  static const std::string kFile = kPath;
  Array array;
  std::string error;
  if (!makeArray(array))
    return false;
  std::memset(array.data.data(), 7, array.data.size());
  bool isWritten = bngrad::writeNpy(kFile, array, error);
  numErrors += !error.empty();
  return isWritten;
}

static bool readFile() {
  static const std::string kFile = kPath;
  Array array;
  std::string error;
  if (!bngrad::readNpy(kFile, array, error)) {
    numErrors += !error.empty();
    return false;
  }
  if (array.shape.size() != 2 || array.data.data()[59] != 7)
    std::exit(3);
  return true;
}

static char text[] = ".version 8.0\n"
                     ".target sm_90\n"
                     ".address_size 64\n"
                     ".global .align 4 .b8 variable[64];\n"
                     ".visible .entry one(.param .u64 p) { ret; }\n"
                     ".visible .entry none() { ret; }\n";

static bool launch() {
  void *module = mgpuModuleLoadJIT(text, 3);
  void *function = mgpuModuleGetFunction(module, "one");
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  uint64_t value = 5;
  void *params[] = {&value};
  mgpuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr, 1);
  mgpuLaunchClusterKernel(function, 2, 1, 1, 2, 1, 1, 32, 1, 1, 65536, stream,
                          params, nullptr);
  mgpuEventRecord(event, stream);
  mgpuEventSynchronize(event);
  mgpuStreamSynchronize(stream);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
  mgpuModuleUnload(module);
  return true;
}

static bool images() {
  bngradCudaImage_t images[] = {
      {"sm_80", BNGRAD_CUDA_IMAGE_PTX, 3, sizeof(text) - 1, text},
      {"sm_90", BNGRAD_CUDA_IMAGE_PTX, 3, sizeof(text) - 1, text}};
  void *module = bngradCudaModuleLoad(images, 2);
  void *function = mgpuModuleGetFunction(module, "none");
  mgpuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr,
                   0);
  mgpuModuleUnload(module);
  return true;
}

static bool copies() {
  char host[256];
  std::memset(host, 3, sizeof(host));
  void *device = mgpuMemAlloc(sizeof(host), nullptr, 0);
  mgpuMemcpy(device, host, sizeof(host), nullptr);
  mgpuMemset32(device, 0, 16, nullptr);
  mgpuMemcpy(host, device, sizeof(host), nullptr);
  mgpuMemFree(device, nullptr);
  int64_t descriptor[] = {reinterpret_cast<int64_t>(host),
                          reinterpret_cast<int64_t>(host), 0, 64, 1};
  mgpuMemHostRegisterMemRef(1, descriptor, 4);
  mgpuMemHostUnregisterMemRef(1, descriptor, 4);
  return true;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  const struct {
    const char *name;
    bool (*run)();
  } kScenarios[] = {{"write", writeFile},
                    {"read", readFile},
                    {"launch", launch},
                    {"images", images},
                    {"copies", copies}};
  bool (*run)() = nullptr;
  for (const auto &each : kScenarios)
    if (!std::strcmp(each.name, argv[1]))
      run = each.run;
  if (!run || !failAllocation)
    return 2;
  writeFile();
  bngradCudaSetErrorHandler(countError, nullptr);
  failAllocation(std::strtol(argv[2], nullptr, 10));
  bool isDone = run();
  int status = bngradCudaTakeStatus();
  long allocations = countAllocations(), live = countLiveAllocations();
  failAllocation(0);
  std::printf("allocations=%ld live=%ld errors=%d status=%d\n", allocations,
              live, numErrors, status);
  if (numErrors != (!isDone || status != 0))
    return 4;
  // Where the driver was loaded in part, there is none from then on.
  bool isUsable = run() && bngradCudaTakeStatus() == 0;
  return isUsable || status == -1 ? 0 : 5;
}
