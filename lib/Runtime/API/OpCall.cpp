//===- OpCall.cpp - descriptors and calls of ops --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpCall.h"

#include "Error.h"

#include <algorithm>
#include <array>
#include <new>
#include <string>

using namespace bngrad;

namespace {
using Descriptor = OpDescriptor;

/// The arguments of a call.
struct Arguments {
  char *workspace;
  size_t workspaceSize;
  void *data[kNumOperands];
  void *stream;
};

/// A call that an executor runs, at the start of its workspace.
struct Task {
  const Descriptor *descriptor;
  CallData call;
  bngradCompletion_t done[kNumOperands];
};
} // namespace

static size_t findWorkspaceSize(const Descriptor &descriptor) {
  size_t size = descriptor.plan->getWorkspaceSize();
  // The task is stored in host memory.
  if (!descriptor.handle->cuda)
    size += alignUp(sizeof(Task));
  // The caller's workspace need not be aligned.
  return size == 0 ? 0 : size + kBufferAlignment - 1;
}

/// Lists the operands that are present.
static void setOperands(Descriptor &descriptor) {
  const Problem &problem = descriptor.problem;
  descriptor.numOperands = 0;
  for (bool isOutput : {true, false}) {
    for (int i = 0; i < kNumOperands; ++i) {
      auto operand = static_cast<Operand>(i);
      if (problem.has[i] && problem.isOutput(operand) == isOutput)
        descriptor.operands[descriptor.numOperands++] = operand;
    }
    if (isOutput)
      descriptor.numOutputs = descriptor.numOperands;
  }
}

/// Sets the bytes from one element of a parameter to the next.
static void setSteps(Descriptor &descriptor) {
  for (int i = 0; i < descriptor.numOperands; ++i) {
    Operand operand = descriptor.operands[i];
    const Tensor &tensor = descriptor.problem.tensors[operand];
    int dims[BNGRAD_MAX_RANK], count = 0;
    for (int dim = 0; dim < tensor.rank; ++dim)
      if (tensor.shape[dim] > 1)
        dims[count++] = dim;
    descriptor.steps[operand] = 0;
    if (count > 0)
      descriptor.steps[operand] = std::max<int64_t>(
          getVectorStride(tensor, dims, count) * getBytes(tensor.dtype), 0);
  }
}

/// Assigns `values`, the arguments of the function that makes the descriptor of
/// an op or, if `ofCall`, of the function that computes it.
template <typename T>
static std::array<T *, kNumOperands> assign(OpKind op, bool ofCall,
                                            std::initializer_list<T *> values) {
  std::array<T *, kNumOperands> assigned = {};
  const auto *next = values.begin();
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    if (detail::isArgument(info, op, ofCall))
      assigned[static_cast<size_t>(info.role)] = *next++;
  return assigned;
}

template <typename Descriptor, typename Options>
bngradStatus_t bngrad::createOp(OpKind op, bngradHandle_t handle,
                                Descriptor **descriptor, const Options *options,
                                std::initializer_list<const Tensor *> tensors) {
  if (!handle)
    return fail(BNGRAD_NULL_POINTER, "handle: expected a handle, got null");
  if (!descriptor)
    return fail(BNGRAD_NULL_POINTER, "descriptor: expected a place for one, "
                                     "got null");
  try {
    // makeProblem, setOperands and setSteps set the rest.
    std::unique_ptr<Descriptor> created(new Descriptor);
    created->handle = handle;
    bngradStatus_t status = makeProblem(
        op, options, assign(op, /*ofCall=*/false, tensors), created->problem);
    if (status == BNGRAD_SUCCESS)
      status = makePlan(created->problem, *handle, created->plan);
    if (status != BNGRAD_SUCCESS)
      return status;
    setOperands(*created);
    setSteps(*created);
    *descriptor = created.release();
    return succeed();
  } catch (const std::bad_alloc &) {
    return fail(BNGRAD_INTERNAL_ERROR, "out of memory");
  }
}

#define INSTANTIATE(Op)                                                        \
  template bngradStatus_t bngrad::createOp(                                    \
      OpKind, bngradHandle_t, bngradBatchNorm##Op##Descriptor **,              \
      const bngradBatchNorm##Op##Options_t *,                                  \
      std::initializer_list<const Tensor *>);
INSTANTIATE(Backward)
INSTANTIATE(Training)
INSTANTIATE(Inference)
#undef INSTANTIATE

bngradStatus_t bngrad::getWorkspaceSize(const OpDescriptor *descriptor,
                                        size_t *size) {
  if (!descriptor)
    return fail(BNGRAD_NULL_POINTER,
                "descriptor: expected a descriptor, got null");
  if (!size)
    return fail(BNGRAD_NULL_POINTER, "size: expected a place for it, got null");
  *size = findWorkspaceSize(*descriptor);
  return succeed();
}

bngradStatus_t bngrad::describeOp(const OpDescriptor *descriptor, char *text,
                                  size_t size) {
  if (!descriptor)
    return fail(BNGRAD_NULL_POINTER,
                "descriptor: expected a descriptor, got null");
  if (!text)
    return fail(BNGRAD_NULL_POINTER, "text: expected memory, got null");
  const bngradHandle &handle = *descriptor->handle;
  Description description;
  description.add("part", mlir::bngrad::getInfo(descriptor->problem.op).part);
  descriptor->plan->describe(handle.hasThreads ? &handle.threads : nullptr,
                             description);
  if (size < description.getSize())
    return fail(BNGRAD_BAD_PARAM, "size: expected at least %zu, got %zu",
                description.getSize(), size);
  std::copy_n(description.getText(), description.getSize(), text);
  return succeed();
}

/// Whether two ranges of bytes overlap.
static bool overlap(const char *lhs, int64_t lhsBytes, const char *rhs,
                    int64_t rhsBytes) {
  return lhsBytes > 0 && rhsBytes > 0 && lhs < rhs + rhsBytes &&
         rhs < lhs + lhsBytes;
}

/// Whether two tensors overlap or may overlap.
static bool overlap(const Descriptor &descriptor, const Arguments &arguments,
                    Operand lhs, Operand rhs) {
  const Tensor &left = descriptor.problem.tensors[lhs];
  const Tensor &right = descriptor.problem.tensors[rhs];
  auto *leftData = static_cast<const char *>(arguments.data[lhs]);
  auto *rightData = static_cast<const char *>(arguments.data[rhs]);
  if (!overlap(leftData, left.bytes, rightData, right.bytes))
    return false;
  // The elements of one may lie between those of the other.
  int64_t step = descriptor.steps[lhs];
  if (step == 0 || step != descriptor.steps[rhs])
    return true;
  int64_t distance = (rightData - leftData) % step;
  if (distance < 0)
    distance += step;
  return distance < getBytes(left.dtype) ||
         distance + getBytes(right.dtype) > step;
}

/// Whether an op computes `output` in place of `operand` if they are the same
/// tensor. It may store elements of grad_residual before it reads others for
/// the last time, but only reads grad_output along with them.
static bool mayBeInPlace(const Problem &problem, Operand output,
                         Operand operand) {
  return isData(output) && isData(operand) && !problem.isOutput(operand) &&
         (output != GradResidual || operand == GradOutput);
}

/// Whether `output` is computed in place of `operand`.
static bool isInPlace(const Descriptor &descriptor, const Arguments &arguments,
                      Operand output, Operand operand) {
  const Problem &problem = descriptor.problem;
  return mayBeInPlace(problem, output, operand) &&
         arguments.data[output] == arguments.data[operand] &&
         problem.tensors[output].dtype == problem.tensors[operand].dtype &&
         haveSameStrides(problem.tensors[output], problem.tensors[operand]);
}

static bngradStatus_t verifyMemory(const Descriptor &descriptor,
                                   const Arguments &arguments) {
  const Problem &problem = descriptor.problem;
  for (int i = 0; i < descriptor.numOperands; ++i) {
    Operand operand = descriptor.operands[i];
    const Tensor *tensor = &problem.tensors[operand];
    if (tensor->bytes == 0)
      continue;
    auto *data = static_cast<const char *>(arguments.data[operand]);
    if (!data)
      return fail(BNGRAD_NULL_POINTER, "%s: expected data, got null",
                  getName(operand));
    auto width = static_cast<uintptr_t>(getBytes(tensor->dtype));
    uintptr_t rest = reinterpret_cast<uintptr_t>(data) % width;
    if (rest != 0)
      return fail(BNGRAD_BAD_PARAM,
                  "%s: expected an address that is a multiple of %d, got a "
                  "remainder of %d",
                  getName(operand), static_cast<int>(width),
                  static_cast<int>(rest));
    if (overlap(data, tensor->bytes, arguments.workspace,
                static_cast<int64_t>(findWorkspaceSize(descriptor))))
      return fail(BNGRAD_BAD_PARAM,
                  "workspace: expected memory apart from that of %s, got an "
                  "overlap",
                  getName(operand));
  }
  for (int i = 0; i < descriptor.numOutputs; ++i)
    for (int j = i + 1; j < descriptor.numOperands; ++j) {
      Operand output = descriptor.operands[i], other = descriptor.operands[j];
      if (overlap(descriptor, arguments, output, other) &&
          !isInPlace(descriptor, arguments, output, other))
        return fail(BNGRAD_BAD_PARAM,
                    "%s: expected memory apart from that of %s, got an overlap",
                    getName(output), getName(other));
    }
  return BNGRAD_SUCCESS;
}

/// Checks the number of elements per channel of the elemt half. The caller has
/// already checked its memory.
static bngradStatus_t verifyCount(const Descriptor &descriptor,
                                  const Arguments &arguments) {
  auto *count = static_cast<const int64_t *>(arguments.data[Count]);
  if (!count)
    return fail(BNGRAD_NULL_POINTER, "count: expected data, got null");
  constexpr auto kWidth = static_cast<int>(sizeof(*count));
  auto rest = static_cast<int>(reinterpret_cast<uintptr_t>(count) % kWidth);
  if (rest != 0)
    return fail(BNGRAD_BAD_PARAM,
                "count: expected an address that is a multiple of %d, got a "
                "remainder of %d",
                kWidth, rest);
  auto *bytes = reinterpret_cast<const char *>(count);
  if (overlap(bytes, kWidth, arguments.workspace,
              static_cast<int64_t>(findWorkspaceSize(descriptor))))
    return fail(BNGRAD_BAD_PARAM,
                "workspace: expected memory apart from that of count, got an "
                "overlap");
  if (overlap(bytes, kWidth,
              static_cast<const char *>(arguments.data[GradInput]),
              descriptor.problem.tensors[GradInput].bytes))
    return fail(BNGRAD_BAD_PARAM,
                "grad_input: expected memory apart from that of count, got an "
                "overlap");
  // On a GPU the count is in device memory and is not read here.
  if (descriptor.handle->cuda)
    return BNGRAD_SUCCESS;
  // The count of the mean's elements: a mask may make it less than the input's.
  int64_t least = descriptor.problem.tensors[Input].numElements > 0 ? 1 : 0;
  if (*count < least)
    return fail(BNGRAD_BAD_PARAM, "count: expected at least %lld, got %lld",
                static_cast<long long>(least), static_cast<long long>(*count));
  return BNGRAD_SUCCESS;
}

/// Checks the arguments of a call.
static bngradStatus_t verifyCall(OpKind op, const Descriptor *descriptor,
                                 const Arguments &arguments) {
  if (!descriptor)
    return fail(BNGRAD_NULL_POINTER,
                "descriptor: expected a descriptor, got null");
  if (descriptor->problem.op != op)
    return fail(BNGRAD_BAD_PARAM,
                "descriptor: expected a descriptor of %s, got one of %s",
                getName(op), getName(descriptor->problem.op));
  size_t size = findWorkspaceSize(*descriptor);
  if (arguments.workspaceSize < size)
    return fail(BNGRAD_INSUFFICIENT_WORKSPACE,
                "workspace_size: expected at least %zu, got %zu", size,
                arguments.workspaceSize);
  if (!arguments.workspace && size > 0)
    return fail(BNGRAD_NULL_POINTER, "workspace: expected memory, got null");
  if (bngradStatus_t status = verifyMemory(*descriptor, arguments))
    return status;
  return isInput(op, Count) ? verifyCount(*descriptor, arguments)
                            : BNGRAD_SUCCESS;
}

/// The aligned start of a workspace, where the task of the call is stored.
static char *align(char *workspace) {
  uintptr_t address = reinterpret_cast<uintptr_t>(workspace);
  return workspace + (alignUp(address) - address);
}

static CallData makeCall(const Descriptor &descriptor,
                         const Arguments &arguments) {
  CallData call;
  std::copy_n(arguments.data, kNumOperands, call.data);
  call.workspace = align(arguments.workspace);
  call.stream = arguments.stream;
  call.threads = nullptr;
  if (!descriptor.handle->cuda) {
    call.workspace += alignUp(sizeof(Task));
    call.threads = descriptor.handle->getThreads();
  }
  return call;
}

/// `data` are the data arguments of the function in C, in its order.
static Arguments makeArguments(OpKind op, Workspace workspace,
                               std::initializer_list<const void *> data,
                               void *stream) {
  Arguments arguments = {
      static_cast<char *>(workspace.data), workspace.size, {}, stream};
  std::array<const void *, kNumOperands> assigned =
      assign(op, /*ofCall=*/true, data);
  // A call writes only to outputs.
  std::transform(
      assigned.begin(), assigned.end(), arguments.data,
      [](const void *pointer) { return const_cast<void *>(pointer); });
  return arguments;
}

bngradStatus_t bngrad::runOp(OpKind op, const OpDescriptor *descriptor,
                             Workspace workspace,
                             std::initializer_list<const void *> data,
                             void *stream) {
  Arguments arguments = makeArguments(op, workspace, data, stream);
  if (bngradStatus_t status = verifyCall(op, descriptor, arguments))
    return status;
  if (bngradStatus_t status =
          descriptor->plan->run(makeCall(*descriptor, arguments)))
    return status;
  return succeed();
}

/// Runs a copy of the task: the caller may free the workspace as soon as the
/// last result is done.
static bngradStatus_t runTask(const Task task) {
  bool isDone[kNumOperands] = {};
  auto complete = [&](Operand operand, bngradStatus_t status,
                      const char *message) {
    isDone[operand] = true;
    if (const bngradCompletion_t &done = task.done[operand]; done.function)
      done.function(done.context, status, message);
  };
  const Plan &plan = *task.descriptor->plan;
  const OpKind op = task.descriptor->problem.op;
  auto succeedWith = [](void *context, Operand operand) {
    (*static_cast<decltype(complete) *>(context))(operand, BNGRAD_SUCCESS, "");
  };
  bngradStatus_t status = plan.runInSteps(task.call, {succeedWith, &complete});
  if (status == BNGRAD_SUCCESS)
    return status;
  // These functions may call the library, which replaces the error text.
  const ErrorText text;
  forEachWritten(op, [&](Operand operand) {
    if (!isDone[operand])
      complete(operand, status, text.get());
  });
  return fail(status, "%s", text.get());
}

/// The entry of `done`, which may be null, for a result of the function in C;
/// null for any other operand.
static const bngradCompletion_t *findDone(const Descriptor &descriptor,
                                          int operand,
                                          const bngradCompletion_t *done) {
  OpKind op = descriptor.problem.op;
  if (!done || !isWritten(op, operand))
    return nullptr;
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands) {
    if (info.op != op)
      continue;
    if (static_cast<int>(info.role) == operand)
      return done;
    ++done;
  }
  return nullptr;
}

/// Submits the call to `executor`, or runs it in the calling thread if null.
static bngradStatus_t submit(const Descriptor &descriptor,
                             const Arguments &arguments,
                             const bngradExecutor_t *executor,
                             const bngradCompletion_t *done) {
  if (executor && executor->struct_size < sizeof(*executor))
    return fail(BNGRAD_BAD_PARAM,
                "executor: expected struct_size to be at least %zu, got %zu",
                sizeof(*executor), executor->struct_size);
  if (executor && !executor->submit)
    return fail(BNGRAD_NULL_POINTER,
                "executor: expected a function submit, got null");
  auto *task = new (align(arguments.workspace)) Task();
  task->descriptor = &descriptor;
  task->call = makeCall(descriptor, arguments);
  for (int i = 0; i < kNumOperands; ++i)
    if (const bngradCompletion_t *completion = findDone(descriptor, i, done);
        completion && descriptor.problem.has[i])
      task->done[i] = *completion;
  if (!executor) {
    bngradStatus_t status = runTask(*task);
    return status == BNGRAD_SUCCESS ? succeed() : status;
  }
  auto run = [](void *argument) { runTask(*static_cast<Task *>(argument)); };
  if (int status = executor->submit(executor->context, run, task))
    return fail(BNGRAD_INTERNAL_ERROR,
                "executor: expected submit to return 0, got %d", status);
  return succeed();
}

/// Submits the call to its stream, and records the events of `done` there.
static bngradStatus_t submitToStream(const Descriptor &descriptor,
                                     const Arguments &arguments,
                                     const bngradExecutor_t *executor,
                                     const bngradCompletion_t *done) {
  if (executor)
    return fail(BNGRAD_BAD_PARAM,
                "executor: expected null on a GPU, whose stream runs the call, "
                "got one");
  for (int i = 0; i < kNumOperands; ++i)
    if (const bngradCompletion_t *completion = findDone(descriptor, i, done);
        completion && completion->function)
      return fail(BNGRAD_BAD_PARAM,
                  "done: expected an event for %s on a GPU, got a function",
                  getName(static_cast<Operand>(i)));
  if (bngradStatus_t status =
          descriptor.plan->run(makeCall(descriptor, arguments)))
    return status;
  const bngradHandle &handle = *descriptor.handle;
  CudaScope scope(*handle.cuda, handle.device, arguments.stream);
  for (int i = 0; i < kNumOperands; ++i)
    if (const bngradCompletion_t *completion = findDone(descriptor, i, done);
        completion && descriptor.problem.has[i] && completion->context)
      handle.cuda->recordEvent(completion->context, arguments.stream);
  if (const char *text = scope.takeError(); *text)
    return fail(BNGRAD_INTERNAL_ERROR, "%s", text);
  return succeed();
}

bngradStatus_t bngrad::submitOp(OpKind op, const OpDescriptor *descriptor,
                                Workspace workspace,
                                std::initializer_list<const void *> data,
                                void *stream, const bngradExecutor_t *executor,
                                const bngradCompletion_t *done) {
  Arguments arguments = makeArguments(op, workspace, data, stream);
  if (bngradStatus_t status = verifyCall(op, descriptor, arguments))
    return status;
  return (descriptor->handle->cuda ? submitToStream : submit)(
      *descriptor, arguments, executor, done);
}
