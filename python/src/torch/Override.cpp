//===- Override.cpp - batch norms of aten ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Override.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

using namespace bngrad;
using namespace bngrad::torch;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

bool bngrad::torch::borrow(StableIValue slot, Tensor &tensor) {
  return tensor.borrow(unpack<AtenTensorHandle>(slot));
}

bool bngrad::torch::borrowOptional(StableIValue slot, Tensor &tensor) {
  auto *value = unpack<StableIValue *>(slot);
  return !value || borrow(*value, tensor);
}

void bngrad::torch::freeTensors(const StableIValue *stack, int count) {
  for (int i = 0; i < count; ++i)
    aoti_torch_delete_tensor_object(unpack<AtenTensorHandle>(stack[i]));
}

void bngrad::torch::freeOptionalTensors(const StableIValue *stack, int count) {
  for (int i = 0; i < count; ++i)
    if (AtenTensorHandle handle = takeOptional(stack[i]))
      aoti_torch_delete_tensor_object(handle);
}

bool bngrad::torch::isCoveredData(const Tensor &tensor) {
  return tensor && tensor.isStrided && tensor.hasKnownType() &&
         tensor.rank >= 2 && tensor.rank <= BNGRAD_MAX_RANK;
}

bool bngrad::torch::haveSameSizes(const Tensor &lhs, const Tensor &rhs) {
  return lhs.rank == rhs.rank &&
         std::equal(lhs.sizes, lhs.sizes + lhs.rank, rhs.sizes);
}

bool bngrad::torch::isParameter(const Tensor &tensor, const Tensor &input) {
  return tensor.isStrided && tensor.device == input.device &&
         tensor.hasKnownType() && tensor.rank == 1 &&
         tensor.sizes[0] == input.sizes[1];
}

bool bngrad::torch::isParameterType(const Tensor &parameter,
                                    const Tensor &input) {
  return parameter.dtype == input.dtype ||
         (parameter.hasKnownType() && parameter.getType() == BNGRAD_DTYPE_F32 &&
          input.getType() != BNGRAD_DTYPE_F64);
}

/// Whether strides are channels-last by the rules of PyTorch's
/// suggest_memory_format. `order` lists the dims, innermost first.
static bool isChannelsLast(const Tensor &input, const int *order) {
  if (input.strides[1] == 0)
    return false;
  int64_t least = 0;
  for (int64_t i = 0; i < input.rank; ++i) {
    int dim = order[i];
    if (input.sizes[dim] == 0 || input.strides[dim] < least)
      return false;
    // PyTorch says no for ambiguous strides, such as those of N x 1 x 1 x 1.
    if (dim == 0 && least == input.strides[1])
      return false;
    least = input.strides[dim];
    if (input.sizes[dim] > 1)
      least *= input.sizes[dim];
  }
  return true;
}

bool bngrad::torch::getResultStrides(const Tensor &input, bool isCudnn,
                                     bool hasDenseParameters,
                                     Strides &strides) {
  if (input.device.isCuda() && !isCudnn)
    return getStridesLike(input, strides);
  static const int order2d[] = {1, 3, 2, 0}, order3d[] = {1, 4, 3, 2, 0};
  const int *order = input.rank == 4   ? order2d
                     : input.rank == 5 ? order3d
                                       : nullptr;
  setContiguous(input.rank, input.sizes, strides.values);
  if (!order || (hasDenseParameters && hasStrides(input, strides.values)))
    return true;
  Strides channelsLast;
  int64_t product = 1;
  for (int64_t i = 0; i < input.rank; ++i) {
    channelsLast.values[order[i]] = product;
    product *= input.sizes[order[i]];
  }
  if ((hasDenseParameters && hasStrides(input, channelsLast.values)) ||
      isChannelsLast(input, order))
    strides = channelsLast;
  return true;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

// It sets the error by bngradTorchSetError: before 2.13, PyTorch has no
// function that returns it.
bool bngrad::torch::callOriginal(const char *op, StableIValue *stack) {
  const char *dot = std::strchr(op, '.');
  int length = static_cast<int>(dot ? dot - op : std::strlen(op));
  char name[96];
  snprintf(name, sizeof(name), "bngrad::_original_%.*s", length, op);
  fail("%s: PyTorch's kernel failed", name);
  return !torch_call_dispatcher(name, dot ? dot + 1 : "", stack,
                                TORCH_ABI_VERSION);
}

namespace {
struct Replacement {
  const char *op;
  Kernels kernels;
  void (*kernel)(StableIValue *stack, uint64_t, uint64_t);
};

/// The kernels of a pass of batch norms for a dispatch key, which are replaced
/// together.
struct Pass {
  const char *name;
  const char *key;
  Kernels kernels;
  const Replacement *all;
};
} // namespace

// These kernels have nothing to destroy when they throw an error.
template <size_t i>
static void replaceBackward(StableIValue *stack, uint64_t, uint64_t) {
  if (!runBackward(kBackwardOps[i], stack))
    raise();
}

template <size_t i>
static void replaceForward(StableIValue *stack, uint64_t, uint64_t) {
  if (!runForward(kForwardOps[i], stack))
    raise();
}

/// The kernels that replace ATen's. The last one has no op.
template <size_t... i>
static const Replacement *getBackward(std::index_sequence<i...>) {
  static const Replacement all[] = {
      {kBackwardOps[i].name, kBackwardOps[i].kernels, replaceBackward<i>}...,
      {}};
  return all;
}

template <size_t... i>
static const Replacement *getForward(std::index_sequence<i...>) {
  static const Replacement all[] = {
      {kForwardOps[i].name, kForwardOps[i].kernels, replaceForward<i>}..., {}};
  return all;
}

static const Replacement *const kBackward =
    getBackward(std::make_index_sequence<std::size(kBackwardOps)>());
static const Replacement *const kForward =
    getForward(std::make_index_sequence<std::size(kForwardOps)>());

static const Pass kPasses[] = {{"backward", "CPU", ForCpu, kBackward},
                               {"forward", "CPU", ForCpu, kForward},
                               {"backward", "CUDA", ForCuda, kBackward},
                               {"forward", "CUDA", ForCuda, kForward}};
static TorchLibraryHandle libraries[std::size(kPasses)];

extern "C" {
/// The name of a pass, and the dispatch key of its kernels; null after the last
/// one.
[[gnu::visibility("default")]] const char *bngradTorchGetPass(size_t number) {
  return number < std::size(kPasses) ? kPasses[number].name : nullptr;
}
[[gnu::visibility("default")]] const char *bngradTorchGetKey(size_t number) {
  return number < std::size(kPasses) ? kPasses[number].key : nullptr;
}

/// The name of a kernel that this library can replace, such as
/// "native_batch_norm.out"; null after the last one of the pass.
[[gnu::visibility("default")]] const char *bngradTorchGetReplaced(int pass,
                                                                  int number) {
  const Replacement *each = kPasses[pass].all;
  for (; each->op; ++each)
    if ((each->kernels & kPasses[pass].kernels) && number-- == 0)
      break;
  return each->op;
}

/// Registers the kernels of a pass; 0 on success. Python counts the calls, one
/// at a time.
[[gnu::visibility("default")]] int bngradTorchEnable(int pass) {
  TorchLibraryHandle &library = libraries[pass];
  if (library)
    return 0;
  // Without a handle, PyTorch's kernel would compute everything. On a GPU, the
  // first call reports it, as the process may not have a device yet.
  const auto &[name, key, kernels, all] = kPasses[pass];
  if (kernels == ForCpu && !getHandle(Device::getCpu()))
    return 1;
  fail("PyTorch refused to replace its kernel");
  if (aoti_torch_library_init_impl("aten", key, __FILE__, __LINE__, &library))
    return 1;
  for (const Replacement *each = all; each->op; ++each)
    if ((each->kernels & kernels) &&
        torch_library_impl(library, each->op, each->kernel,
                           TORCH_ABI_VERSION)) {
      aoti_torch_delete_library_object(std::exchange(library, nullptr));
      return 1;
    }
  return 0;
}

/// Whether the C library can compute on a CUDA device, or on a CPU if `device`
/// is -1, with a ReLU or without: 0, or the error of this thread says why not.
[[gnu::visibility("default")]] int bngradTorchVerifyDevice(int device,
                                                           int hasRelu) {
  Device where = {aoti_torch_device_type_cpu(), -1};
  if (device >= 0)
    where = {aoti_torch_device_type_cuda(), device};
  return !canCompute(where, hasRelu != 0);
}

/// The error of this thread.
[[gnu::visibility("default")]] const char *bngradTorchGetError() {
  return getError();
}

/// Sets the error of this thread.
[[gnu::visibility("default")]] void bngradTorchSetError(const char *message) {
  fail("%s", message);
}

/// Removes the kernels of a pass, so that PyTorch uses its own again.
[[gnu::visibility("default")]] int bngradTorchDisable(int pass) {
  TorchLibraryHandle &library = libraries[pass];
  if (!library)
    return 0;
  fail("PyTorch refused to restore its kernel");
  return aoti_torch_delete_library_object(std::exchange(library, nullptr));
}
}
