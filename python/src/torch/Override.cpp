//===- Override.cpp - batch norms of aten on the CPU ----------------------===//
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

namespace {
/// A kernel of PyTorch that this library can replace.
enum Replaced { Backward, Forward, kNumReplaced };

/// The arguments of aten::native_batch_norm_backward.
namespace backward {
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
  OutputMask
};
} // namespace backward

/// The arguments of aten::native_batch_norm.
namespace forward {
enum Argument {
  Input,
  Weight,
  Bias,
  RunningMean,
  RunningVar,
  Training,
  Momentum,
  Epsilon
};
} // namespace forward
} // namespace

/// Calls PyTorch's own kernel, which Python keeps. It sets the error by
/// bngradTorchSetError: before 2.13, PyTorch has no function that returns it.
static bool callOriginal(Replaced replaced, StableIValue *stack) {
  static const char *const names[] = {
      "bngrad::_original_native_batch_norm_backward",
      "bngrad::_original_native_batch_norm"};
  fail("%s: PyTorch's kernel failed", names[replaced]);
  return !torch_call_dispatcher(names[replaced], "", stack, TORCH_ABI_VERSION);
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

static bool isData(const Tensor &tensor) {
  return tensor && tensor.isStridedOnCpu && tensor.hasKnownType() &&
         tensor.rank >= 2 && tensor.rank <= BNGRAD_MAX_RANK;
}

/// Whether ATen's kernels take parameters of a type: that of the data, or f32
/// with data of 16 bits.
static bool isParameterType(const Tensor &parameter, const Tensor &input) {
  return parameter.dtype == input.dtype ||
         (parameter.hasKnownType() && parameter.getType() == BNGRAD_DTYPE_F32 &&
          input.getType() != BNGRAD_DTYPE_F64);
}

/// Whether the kernels compute the same as ATen's gradient.
static bool isCovered(const Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  const Tensor &gradOutput = problem.tensors[GradOutput];
  if (!isData(input) || !isData(gradOutput) || gradOutput.rank != input.rank ||
      gradOutput.dtype != input.dtype)
    return false;
  for (int64_t dim = 0; dim < input.rank; ++dim)
    if (input.sizes[dim] != gradOutput.sizes[dim])
      return false;
  const Tensor &mean = problem.tensors[Mean];
  for (Operand operand : {Mean, Statistic, Scale}) {
    const Tensor &parameter = problem.tensors[operand];
    if (!parameter && operand == Scale)
      continue;
    if (!parameter || !isParameter(parameter, input) ||
        parameter.dtype != mean.dtype)
      return false;
  }
  return isParameterType(mean, input);
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

/// The strides of ATen's output and grad_input: channels-last if input is dense
/// in this order and not row-major as well, or has strides like it. In the
/// forward pass with parameters that are not dense, ATen asks for the latter.
static Strides getResultStrides(const Tensor &input,
                                bool hasDenseParameters = true) {
  static const int order2d[] = {1, 3, 2, 0}, order3d[] = {1, 4, 3, 2, 0};
  Strides rowMajor, channelsLast;
  setContiguous(input.rank, input.sizes, rowMajor.values);
  const int *order = input.rank == 4   ? order2d
                     : input.rank == 5 ? order3d
                                       : nullptr;
  if (!order || (hasDenseParameters && hasStrides(input, rowMajor.values)))
    return rowMajor;
  int64_t product = 1;
  for (int64_t i = 0; i < input.rank; ++i) {
    channelsLast.values[order[i]] = product;
    product *= input.sizes[order[i]];
  }
  bool isDense = hasDenseParameters && hasStrides(input, channelsLast.values);
  return isDense || isChannelsLast(input, order) ? channelsLast : rowMajor;
}

/// Reads the output mask, a list of three.
static bool readMask(StableIValue slot, bool (&wants)[kNumOperands]) {
  auto list = unpack<StableListHandle>(slot);
  size_t size = 0;
  if (torch_list_size(list, &size) || size != kNumOutputs)
    return false;
  for (size_t i = 0; i < size; ++i) {
    StableIValue item = 0;
    if (torch_list_get_item(list, i, &item))
      return false;
    wants[i] = unpack<bool>(item);
  }
  return true;
}

static bool readOperands(const StableIValue *stack, Problem &problem) {
  bool train = unpack<bool>(stack[backward::Train]);
  double epsilon = unpack<double>(stack[backward::Epsilon]);
  OpOptions &options = problem.options;
  options.num_feature_dims = 1;
  options.feature_dims[0] = 1;
  options.statistics =
      train ? BNGRAD_STATISTICS_BATCH : BNGRAD_STATISTICS_GLOBAL;
  options.statistic =
      train ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;
  options.epsilon = train ? 0 : epsilon;
  auto &of = problem.tensors;
  return borrow(stack[backward::GradOut], of[GradOutput]) &&
         borrow(stack[backward::Input], of[Input]) &&
         borrowOptional(stack[backward::Weight], of[Scale]) &&
         borrowOptional(
             stack[train ? backward::SaveMean : backward::RunningMean],
             of[Mean]) &&
         borrowOptional(
             stack[train ? backward::SaveInvStd : backward::RunningVar],
             of[Statistic]);
}

/// Frees the tensors of `count` slots, of which the first `required` are not
/// optional.
static void freeTensors(const StableIValue *stack, int count, int required) {
  for (int i = 0; i < count; ++i)
    if (auto handle = i < required ? unpack<AtenTensorHandle>(stack[i])
                                   : takeOptional(stack[i]))
      aoti_torch_delete_tensor_object(handle);
}

/// Computes the gradient if the kernels cover it. Does not take the arguments.
static bool computeBackward(const StableIValue *stack, Problem &problem) {
  auto &wants = problem.wants;
  if (!readMask(stack[backward::OutputMask], wants) ||
      !readOperands(stack, problem) || !isCovered(problem))
    return false;
  if (!wants[GradInput] && !wants[GradScale] && !wants[GradOffset])
    return true;
  return compute(problem, getResultStrides(problem.tensors[Input]));
}

static bool runBackward(StableIValue *stack) {
  {
    Problem problem(OpKind::Backward);
    if (computeBackward(stack, problem)) {
      freeTensors(stack, backward::Train, backward::Weight);
      torch_delete_list(unpack<StableListHandle>(stack[backward::OutputMask]));
      for (int i = 0; i < kNumOutputs; ++i)
        stack[i] = problem.tensors[i].release();
      return true;
    }
  }
  // No result of a failed call uses memory while PyTorch computes.
  return callOriginal(Backward, stack);
}

static bool readForwardOperands(const StableIValue *stack, Problem &problem) {
  bool isTraining = problem.op == OpKind::Training;
  OpOptions &options = problem.options;
  options.num_feature_dims = 1;
  options.feature_dims[0] = 1;
  options.epsilon = unpack<double>(stack[forward::Epsilon]);
  options.momentum = isTraining ? unpack<double>(stack[forward::Momentum]) : 0;
  options.hasUnbiasedRunningVariance = isTraining;
  problem.wants[Variance] = false;
  auto &of = problem.tensors;
  return borrow(stack[forward::Input], of[Input]) &&
         borrowOptional(stack[forward::Weight], of[Scale]) &&
         borrowOptional(stack[forward::Bias], of[Offset]) &&
         borrowOptional(stack[forward::RunningMean],
                        of[isTraining ? RunningMean : Mean]) &&
         borrowOptional(stack[forward::RunningVar],
                        of[isTraining ? RunningVariance : Statistic]);
}

/// Whether the kernels compute the same as ATen's forward pass, and the type of
/// its statistics.
static bool isForwardCovered(Problem &problem) {
  bool isTraining = problem.op == OpKind::Training;
  const Tensor &input = problem.tensors[Input];
  // ATen refuses data without elements.
  if (!isData(input) || input.isEmpty())
    return false;
  const Tensor &mean = problem.tensors[isTraining ? RunningMean : Mean];
  const Tensor &variance =
      problem.tensors[isTraining ? RunningVariance : Statistic];
  if (static_cast<bool>(mean) != static_cast<bool>(variance) ||
      (!isTraining && !mean))
    return false;
  const Tensor *parameters[] = {&mean, &variance, &problem.tensors[Scale],
                                &problem.tensors[Offset]};
  const Tensor *typed = nullptr;
  for (const Tensor *parameter : parameters) {
    if (!*parameter)
      continue;
    if (!typed)
      typed = parameter;
    if (!isParameter(*parameter, input) || parameter->dtype != typed->dtype)
      return false;
  }
  problem.channelType = typed ? typed->dtype : input.dtype;
  return !typed || isParameterType(*typed, input);
}

/// Whether the elements of every parameter are contiguous.
static bool areDense(const Problem &problem) {
  for (Operand operand :
       {Scale, Offset, Mean, Statistic, RunningMean, RunningVariance}) {
    const Tensor &parameter = problem.tensors[operand];
    if (parameter && parameter.sizes[0] > 1 && parameter.strides[0] != 1)
      return false;
  }
  return true;
}

static bool runForward(StableIValue *stack) {
  bool isTraining = unpack<bool>(stack[forward::Training]);
  {
    Problem problem(isTraining ? OpKind::Training : OpKind::Inference);
    auto &of = problem.tensors;
    const int64_t none = 0, one = 1;
    Tensor noMean, noInvStd; // as in ATen's evaluation
    if (readForwardOperands(stack, problem) && isForwardCovered(problem) &&
        compute(problem, getResultStrides(of[Input], areDense(problem))) &&
        (isTraining ||
         (noMean.makeEmpty(problem.channelType, 1, &none, &one) &&
          noInvStd.makeEmpty(problem.channelType, 1, &none, &one)))) {
      freeTensors(stack, forward::Training, forward::Weight);
      stack[0] = of[Output].release();
      stack[1] = (isTraining ? of[Mean] : noMean).release();
      stack[2] = (isTraining ? of[InvStd] : noInvStd).release();
      return true;
    }
  }
  return callOriginal(Forward, stack);
}

/// A kernel that has nothing to destroy when it throws an error.
template <bool (*run)(StableIValue *)>
static void replacement(StableIValue *stack, uint64_t, uint64_t) {
  if (!run(stack))
    raise();
}

static TorchLibraryHandle libraries[kNumReplaced];

extern "C" {
/// Registers a kernel; 0 on success. Python counts the calls, one at a time.
[[gnu::visibility("default")]] int bngradTorchEnable(int replaced) {
  TorchLibraryHandle &library = libraries[replaced];
  if (library)
    return 0;
  // Without a handle, PyTorch's kernel would compute everything.
  if (!getHandle())
    return 1;
  fail("PyTorch refused to replace its kernel");
  if (aoti_torch_library_init_impl("aten", "CPU", __FILE__, __LINE__, &library))
    return 1;
  if (!(replaced == Backward
            ? torch_library_impl(library, "native_batch_norm_backward",
                                 replacement<runBackward>, TORCH_ABI_VERSION)
            : torch_library_impl(library, "native_batch_norm",
                                 replacement<runForward>, TORCH_ABI_VERSION)))
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
[[gnu::visibility("default")]] int bngradTorchDisable(int replaced) {
  TorchLibraryHandle &library = libraries[replaced];
  if (!library)
    return 0;
  fail("PyTorch refused to restore its kernel");
  return aoti_torch_delete_library_object(std::exchange(library, nullptr));
}
}
