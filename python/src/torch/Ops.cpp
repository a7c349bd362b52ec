//===- Ops.cpp - the ops of the namespace bngrad --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"

using namespace bngrad;
using namespace bngrad::torch;

static const char *const kSchemas[] = {
    "batch_norm_backward(Tensor grad_output, Tensor input, Tensor mean, "
    "Tensor? scale=None, Tensor? variance=None, Tensor? inv_std=None, "
    "float epsilon=0.0, Tensor? mask=None, int[] feature_dims=[1], "
    "str statistics=\"batch\", bool[3] output_mask=[True, True, True]) -> "
    "(Tensor grad_input, Tensor grad_scale, Tensor grad_offset)",
    "batch_norm_backward_reduce(Tensor grad_output, Tensor input, "
    "Tensor mean, Tensor? mask=None, int[] feature_dims=[1]) -> Tensor",
    "batch_norm_backward_elemt(Tensor grad_output, Tensor input, Tensor mean, "
    "Tensor sums, Tensor count, Tensor? scale=None, "
    "Tensor? variance=None, Tensor? inv_std=None, float epsilon=0.0, "
    "Tensor? mask=None, int[] feature_dims=[1]) -> Tensor"};

namespace {
/// Takes the arguments of a kernel one after the other. All must be taken, so
/// that none leaks.
class Arguments {
public:
  explicit Arguments(const StableIValue *stack) : next(stack) {}

  Tensor takeTensor() {
    Tensor tensor;
    isGood &= tensor.take(unpack<AtenTensorHandle>(*next++));
    return tensor;
  }

  Tensor takeOptionalTensor() {
    Tensor tensor;
    isGood &= tensor.takeOptional(*next++);
    return tensor;
  }

  double takeDouble() { return unpack<double>(*next++); }

  void takeFeatureDims(Problem &problem);
  bngradStatistics_t takeStatistics();
  void takeMask(Problem &problem);

  /// Whether all were valid; if not, the error of this thread is set.
  bool areGood() const { return isGood; }

private:
  const StableIValue *next;
  bool isGood = true;
};
} // namespace

void Arguments::takeFeatureDims(Problem &problem) {
  const Tensor &input = problem.tensors[Input];
  bngradBatchNormBackwardOptions_t &options = problem.options;
  auto list = unpack<StableListHandle>(*next++);
  size_t size = 0;
  if (torch_list_size(list, &size))
    isGood = failByTorch("torch_list_size");
  else if (size < 1 || size > BNGRAD_MAX_FEATURE_DIMS)
    isGood = fail("feature_dims: expected 1 to %d dims, got %zu",
                  BNGRAD_MAX_FEATURE_DIMS, size);
  for (size_t i = 0; isGood && i < size; ++i) {
    StableIValue item = 0;
    if (torch_list_get_item(list, i, &item)) {
      isGood = failByTorch("torch_list_get_item");
      break;
    }
    auto dim = unpack<int64_t>(item);
    if (dim < -input.rank || dim >= input.rank) {
      isGood = fail("feature_dims: expected dims of input, %lld to %lld, "
                    "got %lld",
                    static_cast<long long>(-input.rank),
                    static_cast<long long>(input.rank - 1),
                    static_cast<long long>(dim));
      break;
    }
    options.feature_dims[options.num_feature_dims++] =
        static_cast<int>(dim < 0 ? dim + input.rank : dim);
  }
  torch_delete_list(list);
}

bngradStatistics_t Arguments::takeStatistics() {
  auto string = unpack<StringHandle>(*next++);
  const char *text = "";
  if (torch_string_c_str(string, &text))
    isGood = failByTorch("torch_string_c_str");
  bool isGlobal = std::strcmp(text, "global") == 0;
  if (isGood && !isGlobal && std::strcmp(text, "batch") != 0)
    isGood =
        fail("statistics: expected \"batch\" or \"global\", got \"%s\"", text);
  torch_delete_string(string);
  return isGlobal ? BNGRAD_STATISTICS_GLOBAL : BNGRAD_STATISTICS_BATCH;
}

void Arguments::takeMask(Problem &problem) {
  auto list = unpack<StableListHandle>(*next++);
  // PyTorch does not check the schema's bool[3].
  size_t size = 0;
  if (torch_list_size(list, &size))
    isGood = failByTorch("torch_list_size");
  else if (size != kNumOutputs)
    isGood =
        fail("output_mask: expected %d values, got %zu", kNumOutputs, size);
  for (size_t i = 0; isGood && i < size; ++i) {
    StableIValue item = 0;
    if (torch_list_get_item(list, i, &item))
      isGood = failByTorch("torch_list_get_item");
    problem.wants[i] = unpack<bool>(item);
  }
  torch_delete_list(list);
}

/// Takes scale, variance, inv_std and epsilon.
static bool takeStatistic(Arguments &arguments, Problem &problem) {
  problem.tensors[Scale] = arguments.takeOptionalTensor();
  Tensor variance = arguments.takeOptionalTensor();
  Tensor invStd = arguments.takeOptionalTensor();
  problem.options.epsilon = arguments.takeDouble();
  if (!variance == !invStd)
    return fail("expected either variance or inv_std, got %s",
                variance ? "both" : "none");
  problem.options.statistic =
      invStd ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;
  problem.tensors[Statistic] =
      static_cast<Tensor &&>(invStd ? invStd : variance);
  return true;
}

/// The strides of empty_like: input's if it is dense, else PyTorch's choice.
static bool getStridesLike(const Tensor &input, Strides &strides) {
  if (!input.isStridedOnCpu || input.rank > BNGRAD_MAX_RANK)
    return true; // Reported with the other errors.
  if (isDense(input.rank, input.sizes, input.strides)) {
    std::memcpy(strides.values, input.strides, input.rank * sizeof(int64_t));
    return true;
  }
  AtenTensorHandle handle = nullptr;
  if (aoti_torch_new_tensor_handle(input.get(), &handle))
    return failByTorch("aoti_torch_new_tensor_handle");
  StableIValue stack[6] = {pack(handle)};
  if (torch_call_dispatcher("aten::empty_like", "", stack, TORCH_ABI_VERSION))
    return failByTorch("aten::empty_like");
  Tensor like;
  if (!like.take(unpack<AtenTensorHandle>(stack[0])))
    return false;
  std::memcpy(strides.values, like.strides, like.rank * sizeof(int64_t));
  return true;
}

/// Takes the tensors that all ops begin with.
static void takeData(Arguments &arguments, Problem &problem) {
  for (Operand operand : {GradOutput, Input, Mean})
    problem.tensors[operand] = arguments.takeTensor();
}

static bool runGradient(StableIValue *stack) {
  Arguments arguments(stack);
  Problem problem(OpKind::Backward);
  takeData(arguments, problem);
  bool isGood = takeStatistic(arguments, problem);
  problem.tensors[Mask] = arguments.takeOptionalTensor();
  arguments.takeFeatureDims(problem);
  problem.options.statistics = arguments.takeStatistics();
  arguments.takeMask(problem);
  Strides strides;
  if (!isGood || !arguments.areGood() ||
      !getStridesLike(problem.tensors[Input], strides) ||
      !compute(problem, strides))
    return false;
  for (int i = 0; i < kNumOutputs; ++i)
    stack[i] = problem.tensors[i].release();
  return true;
}

static bool runReduce(StableIValue *stack) {
  Arguments arguments(stack);
  Problem problem(OpKind::BackwardReduce);
  takeData(arguments, problem);
  problem.tensors[Mask] = arguments.takeOptionalTensor();
  arguments.takeFeatureDims(problem);
  if (!arguments.areGood() ||
      !compute(problem, getDenseStrides(problem.tensors[Input])))
    return false;
  stack[0] = problem.tensors[Sums].release();
  return true;
}

static bool runElemt(StableIValue *stack) {
  Arguments arguments(stack);
  Problem problem(OpKind::BackwardElemt);
  takeData(arguments, problem);
  problem.tensors[Sums] = arguments.takeTensor();
  problem.tensors[Count] = arguments.takeTensor();
  bool isGood = takeStatistic(arguments, problem);
  problem.tensors[Mask] = arguments.takeOptionalTensor();
  arguments.takeFeatureDims(problem);
  Strides strides;
  if (!isGood || !arguments.areGood() ||
      !getStridesLike(problem.tensors[Input], strides) ||
      !compute(problem, strides))
    return false;
  stack[0] = problem.tensors[GradInput].release();
  return true;
}

/// A kernel that has nothing to destroy when it throws an error.
template <bool (*run)(StableIValue *)>
static void kernel(StableIValue *stack, uint64_t, uint64_t) {
  if (!run(stack))
    raise();
}

/// Registers the ops permanently when the library is loaded: PyTorch would call
/// their kernels even after the library was unloaded.
[[gnu::constructor]] static void registerOps() {
  TorchLibraryHandle definitions = nullptr, kernels = nullptr;
  if (aoti_torch_library_init_def("bngrad", __FILE__, __LINE__, &definitions) ||
      aoti_torch_library_init_impl("bngrad", "CPU", __FILE__, __LINE__,
                                   &kernels))
    return;
  for (const char *schema : kSchemas)
    aoti_torch_library_def(definitions, schema);
  torch_library_impl(kernels, "batch_norm_backward", kernel<runGradient>,
                     TORCH_ABI_VERSION);
  torch_library_impl(kernels, "batch_norm_backward_reduce", kernel<runReduce>,
                     TORCH_ABI_VERSION);
  torch_library_impl(kernels, "batch_norm_backward_elemt", kernel<runElemt>,
                     TORCH_ABI_VERSION);
}
