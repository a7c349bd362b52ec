//===- Ops.cpp - the ops of the namespace bngrad --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"

#include <vector>

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
    "Tensor? mask=None, int[] feature_dims=[1]) -> Tensor",
    "batch_norm_training(Tensor input, Tensor? scale=None, "
    "Tensor? offset=None, float epsilon=1e-05, int[] feature_dims=[1], "
    "bool[4] output_mask=[True, True, True, True]) -> "
    "(Tensor output, Tensor mean, Tensor variance, Tensor inv_std)",
    "batch_norm_inference(Tensor input, Tensor mean, Tensor? scale=None, "
    "Tensor? offset=None, Tensor? variance=None, Tensor? inv_std=None, "
    "float epsilon=0.0, int[] feature_dims=[1]) -> Tensor",
    // In graphs of torch.compile only, with the feature dim 1.
    "_batch_norm_training_relu(Tensor input, Tensor? scale, Tensor? offset, "
    "Tensor? residual, float epsilon, bool[4] output_mask) -> "
    "(Tensor output, Tensor mean, Tensor variance, Tensor inv_std)",
    "_batch_norm_backward_relu(Tensor grad_output, Tensor input, Tensor mean, "
    "Tensor inv_std, Tensor? scale, Tensor output, "
    "bool[4] output_mask) -> (Tensor grad_input, Tensor grad_scale, "
    "Tensor grad_offset, Tensor grad_residual)"};

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

/// The results of an op, in the order in which it returns them.
static std::vector<Operand> listResults(OpKind op) {
  std::vector<Operand> results;
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    if (auto operand = static_cast<Operand>(info.role);
        info.op == op && isResult(op, operand))
      results.push_back(operand);
  return results;
}

void Arguments::takeMask(Problem &problem) {
  auto list = unpack<StableListHandle>(*next++);
  std::vector<Operand> results = listResults(problem.op);
  // PyTorch does not check the size in the schema.
  size_t size = 0;
  if (torch_list_size(list, &size))
    isGood = failByTorch("torch_list_size");
  else if (size != results.size())
    isGood =
        fail("output_mask: expected %zu values, got %zu", results.size(), size);
  for (size_t i = 0; isGood && i < size; ++i) {
    StableIValue item = 0;
    if (torch_list_get_item(list, i, &item))
      isGood = failByTorch("torch_list_get_item");
    problem.wants[results[i]] = unpack<bool>(item);
  }
  torch_delete_list(list);
}

/// Takes scale, in the forward pass offset, variance, inv_std and epsilon.
static bool takeStatistic(Arguments &arguments, Problem &problem) {
  problem.tensors[Scale] = arguments.takeOptionalTensor();
  if (isForward(problem.op))
    problem.tensors[Offset] = arguments.takeOptionalTensor();
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

/// Makes and computes the results, and puts them on the stack.
static bool computeResults(Problem &problem, StableIValue *stack) {
  Strides strides;
  if (!getStridesLike(problem.tensors[Input], strides) ||
      !compute(problem, strides))
    return false;
  for (Operand operand : listResults(problem.op))
    *stack++ = problem.tensors[operand].release();
  return true;
}

/// Takes the tensors that all ops of the gradient begin with.
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
  return isGood && arguments.areGood() && computeResults(problem, stack);
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
  return isGood && arguments.areGood() && computeResults(problem, stack);
}

/// The type of mean, variance and inv_std.
static int32_t getStatisticsType(const Problem &problem) {
  for (Operand operand : {Input, Scale, Offset}) {
    const Tensor &tensor = problem.tensors[operand];
    if (tensor && tensor.hasKnownType() && tensor.getType() == BNGRAD_DTYPE_F64)
      return toTorchType(BNGRAD_DTYPE_F64);
  }
  return toTorchType(BNGRAD_DTYPE_F32);
}

static bool runTraining(StableIValue *stack) {
  Arguments arguments(stack);
  Problem problem(OpKind::Training);
  problem.tensors[Input] = arguments.takeTensor();
  problem.tensors[Scale] = arguments.takeOptionalTensor();
  problem.tensors[Offset] = arguments.takeOptionalTensor();
  problem.options.epsilon = arguments.takeDouble();
  arguments.takeFeatureDims(problem);
  arguments.takeMask(problem);
  problem.channelType = getStatisticsType(problem);
  return arguments.areGood() && computeResults(problem, stack);
}

static bool runInference(StableIValue *stack) {
  Arguments arguments(stack);
  Problem problem(OpKind::Inference);
  problem.tensors[Input] = arguments.takeTensor();
  problem.tensors[Mean] = arguments.takeTensor();
  bool isGood = takeStatistic(arguments, problem);
  arguments.takeFeatureDims(problem);
  return isGood && arguments.areGood() && computeResults(problem, stack);
}

/// The feature dim of the ops with a ReLU.
static void setFeatureDim(Problem &problem) {
  problem.options.num_feature_dims = 1;
  problem.options.feature_dims[0] = 1;
}

/// Computes by `op`, which takes these operands, maybe undefined, and returns
/// all results of an op with a ReLU; `stack` has a slot more than it takes.
static bool computeApart(const char *op,
                         std::initializer_list<Operand> operands,
                         Problem &problem, StableIValue *stack) {
  StableIValue *next = stack;
  for (Operand operand : operands)
    *next++ = problem.tensors[operand].release();
  *next = pack(problem.options.epsilon);
  return !torch_call_dispatcher(op, "", stack, TORCH_ABI_VERSION) ||
         failByTorch(op);
}

static bool runTrainingRelu(StableIValue *stack) {
  Arguments arguments(stack);
  Problem problem(OpKind::TrainingRelu);
  problem.tensors[Input] = arguments.takeTensor();
  for (Operand operand : {Scale, Offset, Residual})
    problem.tensors[operand] = arguments.takeOptionalTensor();
  problem.options.epsilon = arguments.takeDouble();
  arguments.takeMask(problem);
  setFeatureDim(problem);
  problem.channelType = getStatisticsType(problem);
  if (!arguments.areGood())
    return false;
  return computeResults(problem, stack) ||
         (problem.lacksKernel &&
          computeApart("bngrad::_train_and_rectify",
                       {Input, Scale, Offset, Residual}, problem, stack));
}

static bool runGradientRelu(StableIValue *stack) {
  Arguments arguments(stack);
  Problem problem(OpKind::BackwardRelu);
  takeData(arguments, problem);
  problem.tensors[Statistic] = arguments.takeTensor();
  problem.options.statistic = BNGRAD_STATISTIC_INV_STD;
  problem.tensors[Scale] = arguments.takeOptionalTensor();
  problem.tensors[Output] = arguments.takeTensor();
  arguments.takeMask(problem);
  setFeatureDim(problem);
  if (!arguments.areGood())
    return false;
  return computeResults(problem, stack) ||
         (problem.lacksKernel &&
          computeApart("bngrad::_rectify_and_differentiate",
                       {GradOutput, Input, Mean, Statistic, Scale, Output},
                       problem, stack));
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
  TorchLibraryHandle definitions = nullptr;
  if (aoti_torch_library_init_def("bngrad", __FILE__, __LINE__, &definitions))
    return;
  for (const char *schema : kSchemas)
    aoti_torch_library_def(definitions, schema);
  const struct {
    const char *name;
    void (*kernel)(StableIValue *, uint64_t, uint64_t);
  } ops[] = {{"batch_norm_backward", kernel<runGradient>},
             {"batch_norm_backward_reduce", kernel<runReduce>},
             {"batch_norm_backward_elemt", kernel<runElemt>},
             {"batch_norm_training", kernel<runTraining>},
             {"batch_norm_inference", kernel<runInference>},
             {"_batch_norm_training_relu", kernel<runTrainingRelu>},
             {"_batch_norm_backward_relu", kernel<runGradientRelu>}};
  for (const char *key : {"CPU", "CUDA"}) {
    TorchLibraryHandle kernels = nullptr;
    if (aoti_torch_library_init_impl("bngrad", key, __FILE__, __LINE__,
                                     &kernels))
      return;
    for (auto op : ops)
      torch_library_impl(kernels, op.name, op.kernel, TORCH_ABI_VERSION);
  }
}
