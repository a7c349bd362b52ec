//===- Override.cpp - aten::native_batch_norm_backward on the CPU ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"

#include <utility>

using namespace bngrad;
using namespace bngrad::torch;

namespace argument {
/// The arguments of aten::native_batch_norm_backward.
enum Argument {
  GradOut,
  Input,
  Weight,
  RunningMean,
  RunningVar,
  SaveMean,
  SaveInvStd,
  Train,
  Epsilon,
  OutputMask,
  kNumArguments
};
} // namespace argument

/// Calls PyTorch's own kernel, which Python keeps. It sets the error by
/// bngradTorchSetError: before 2.13, PyTorch has no function that returns it.
static bool callOriginal(StableIValue *stack) {
  fail("aten::native_batch_norm_backward of PyTorch failed");
  return !torch_call_dispatcher("bngrad::_original_native_batch_norm_backward",
                                "", stack, TORCH_ABI_VERSION);
}

/// Borrows the tensor of a slot.
static bool borrow(StableIValue slot, Tensor &tensor) {
  return tensor.borrow(unpack<AtenTensorHandle>(slot));
}

static bool borrowOptional(StableIValue slot, Tensor &tensor) {
  auto *value = unpack<StableIValue *>(slot);
  return !value || borrow(*value, tensor);
}

static bool isParameter(const Tensor &tensor, const Tensor &input) {
  return tensor.isStridedOnCpu && tensor.hasKnownType() && tensor.rank == 1 &&
         tensor.sizes[0] == input.sizes[1];
}

/// Whether the kernels compute the same as ATen's kernel, which takes
/// parameters in the type of the data or in f32.
static bool isCovered(const Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  const Tensor &gradOutput = problem.tensors[GradOutput];
  for (const Tensor *data : {&input, &gradOutput})
    if (!*data || !data->isStridedOnCpu || !data->hasKnownType() ||
        data->rank < 2 || data->rank > BNGRAD_MAX_RANK ||
        data->rank != input.rank || data->dtype != input.dtype)
      return false;
  for (int64_t dim = 0; dim < input.rank; ++dim)
    if (input.sizes[dim] != gradOutput.sizes[dim])
      return false;
  const Tensor &mean = problem.tensors[Mean];
  if (mean.dtype != input.dtype && (mean.getType() != BNGRAD_DTYPE_F32 ||
                                    input.getType() == BNGRAD_DTYPE_F64))
    return false;
  for (Operand operand : {Mean, Statistic, Scale}) {
    const Tensor &parameter = problem.tensors[operand];
    if (!parameter && operand == Scale)
      continue;
    if (!parameter || !isParameter(parameter, input) ||
        parameter.dtype != mean.dtype)
      return false;
  }
  return true;
}

/// Whether strides are channels-last by the rules of PyTorch's is_contiguous
/// and suggest_memory_format. `order` lists the dims, innermost first.
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

/// The strides of ATen's grad_input.
static Strides getGradInputStrides(const Tensor &input) {
  static const int order2d[] = {1, 3, 2, 0}, order3d[] = {1, 4, 3, 2, 0};
  Strides strides;
  const int *order = input.rank == 4   ? order2d
                     : input.rank == 5 ? order3d
                                       : nullptr;
  if (!order || !isChannelsLast(input, order)) {
    setContiguous(input.rank, input.sizes, strides.values);
    return strides;
  }
  int64_t product = 1;
  for (int64_t i = 0; i < input.rank; ++i) {
    strides.values[order[i]] = product;
    product *= input.sizes[order[i]];
  }
  return strides;
}

/// Reads the output mask, a list of three.
static bool readMask(StableIValue slot, bool (&wants)[3]) {
  auto list = unpack<StableListHandle>(slot);
  size_t size = 0;
  if (torch_list_size(list, &size) || size != 3)
    return false;
  for (size_t i = 0; i < 3; ++i) {
    StableIValue item = 0;
    if (torch_list_get_item(list, i, &item))
      return false;
    wants[i] = unpack<bool>(item);
  }
  return true;
}

static bool readOperands(const StableIValue *stack, Problem &problem) {
  bool train = unpack<bool>(stack[argument::Train]);
  double epsilon = unpack<double>(stack[argument::Epsilon]);
  bngradBatchNormBackwardOptions_t &options = problem.options;
  options.num_feature_dims = 1;
  options.feature_dims[0] = 1;
  options.statistics =
      train ? BNGRAD_STATISTICS_BATCH : BNGRAD_STATISTICS_GLOBAL;
  options.statistic =
      train ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;
  options.epsilon = train ? 0 : epsilon;
  auto &of = problem.tensors;
  return borrow(stack[argument::GradOut], of[GradOutput]) &&
         borrow(stack[argument::Input], of[Input]) &&
         borrowOptional(stack[argument::Weight], of[Scale]) &&
         borrowOptional(
             stack[train ? argument::SaveMean : argument::RunningMean],
             of[Mean]) &&
         borrowOptional(
             stack[train ? argument::SaveInvStd : argument::RunningVar],
             of[Statistic]);
}

/// Frees the arguments of a kernel that did not pass them on.
static void freeArguments(StableIValue *stack) {
  for (int i = argument::GradOut; i <= argument::SaveInvStd; ++i) {
    auto handle = i <= argument::Input ? unpack<AtenTensorHandle>(stack[i])
                                       : takeOptional(stack[i]);
    if (handle)
      aoti_torch_delete_tensor_object(handle);
  }
  torch_delete_list(unpack<StableListHandle>(stack[argument::OutputMask]));
}

/// Computes the gradient if the kernels cover it. Does not take the arguments.
static bool compute(const StableIValue *stack, Problem &problem) {
  auto &wants = problem.wants;
  if (!readMask(stack[argument::OutputMask], wants) ||
      !readOperands(stack, problem) || !isCovered(problem))
    return false;
  if (!wants[0] && !wants[1] && !wants[2])
    return true;
  return compute(problem, getGradInputStrides(problem.tensors[Input]));
}

static bool run(StableIValue *stack) {
  {
    Problem problem(OpKind::Backward);
    if (compute(stack, problem)) {
      freeArguments(stack);
      for (int i = 0; i < kNumOutputs; ++i)
        stack[i] = problem.tensors[i].release();
      return true;
    }
  }
  // No result of a failed call uses memory while PyTorch computes.
  return callOriginal(stack);
}

static void kernel(StableIValue *stack, uint64_t, uint64_t) {
  if (!run(stack))
    raise();
}

static TorchLibraryHandle library;

extern "C" {
/// Registers the kernel; 0 on success. Python counts the calls, one at a time.
[[gnu::visibility("default")]] int bngradTorchEnable() {
  if (library)
    return 0;
  // Without a handle, PyTorch's kernel would compute every gradient.
  if (!getHandle())
    return 1;
  fail("PyTorch refused to replace its kernel");
  if (aoti_torch_library_init_impl("aten", "CPU", __FILE__, __LINE__, &library))
    return 1;
  if (!torch_library_impl(library, "native_batch_norm_backward", kernel,
                          TORCH_ABI_VERSION))
    return 0;
  aoti_torch_delete_library_object(std::exchange(library, nullptr));
  return 1;
}

/// The error of this thread.
[[gnu::visibility("default")]] const char *bngradTorchGetError() {
  return getError();
}

/// Sets the error of this thread.
[[gnu::visibility("default")]] void bngradTorchSetError(const char *message) {
  fail("%s", message);
}

/// Removes the kernel, so that PyTorch uses its own again.
[[gnu::visibility("default")]] int bngradTorchDisable() {
  if (!library)
    return 0;
  fail("PyTorch refused to restore its kernel");
  return aoti_torch_delete_library_object(std::exchange(library, nullptr));
}
}
