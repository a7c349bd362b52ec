//===- Handlers.cpp - batch normalization as custom calls of XLA ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Handlers of XLA's typed FFI for CPUs and for CUDA. Operands and results are
// row-major and in the order of the op in Roles.def, but scalars come last. The
// attribute has_<operand> or wants_<result> tells whether one that may be
// absent is present; a scalar may be an attribute instead.
//
// On a GPU, data are in its memory, which is never accessed here: a scalar is
// an operand of two s32, the halves of an int64_t, low half first, which JAX
// can make without 64-bit types. Work is submitted to XLA's stream, and the
// workspace is XLA's.
//
// The attribute `rank` is the rank of input. Buffers of a higher rank hold a
// batch of problems from `jax.vmap`: all have the same number of additional
// leading dims. An operand that the problems share has size 1 there.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"
#include "Threads.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace bngrad;
using namespace bngrad::jax;
namespace ffi = xla::ffi;

namespace {
/// The attributes of a custom call.
struct Attributes {
  int64_t rank;
  ffi::Span<const int64_t> featureDims;
  double epsilon = 0;
  std::string_view statistics = "batch", statistic = "variance";
  int64_t count = 0;
  /// Whether operands and results are present, for those that may be absent.
  bool has[kNumOperands] = {};
};

/// A buffer of XLA; `data` may be null if it has no elements.
struct Buffer {
  XLA_FFI_DataType dtype;
  char *data;
  int64_t rank;
  const int64_t *sizes;
  bool isResult;
};

/// The buffers of a call by operand.
class Buffers {
public:
  /// Null if absent.
  const Buffer *operator[](int operand) const {
    return has[operand] ? &buffers[operand] : nullptr;
  }
  void set(int operand, const ffi::AnyBuffer &buffer, bool isResult) {
    has[operand] = true;
    buffers[operand] = {static_cast<XLA_FFI_DataType>(buffer.element_type()),
                        static_cast<char *>(buffer.untyped_data()),
                        static_cast<int64_t>(buffer.dimensions().size()),
                        buffer.dimensions().begin(), isResult};
  }

private:
  bool has[kNumOperands] = {};
  Buffer buffers[kNumOperands];
};

/// Where a call runs.
struct Device {
  bool isCuda;
  int number; // of CUDA
  /// Of a CPU.
  ffi::ThreadPool *pool;
  /// Of CUDA.
  void *stream;
  ffi::ScratchAllocator *memory;

  /// Whether XLA initializes an execution, in which nothing runs yet.
  bool isInitializing() const { return isCuda && !memory; }
};

/// Memory of the host that is freed at the end.
class Workspace {
public:
  explicit Workspace(size_t size)
      : data(size <= sizeof(small) ? small : std::malloc(size)) {
    if (!data)
      throw std::bad_alloc();
  }
  ~Workspace() {
    if (data != small)
      std::free(data);
  }
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;

  void *get() const { return data; }

private:
  /// Suffices for tiny problems, which take less than a microsecond.
  char small[1 << 15];
  void *data;
};
} // namespace

static const char *getName(int operand) { return getInfo(operand).name; }

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static ffi::Error invalid(std::string text) {
  return ffi::Error(ffi::ErrorCode::kInvalidArgument,
                    "bngrad: " + std::move(text));
}

/// `subject: expected EXPECTED, got ACTUAL`.
static ffi::Error invalid(std::string_view subject, std::string_view expected,
                          int64_t actual) {
  std::string text(subject);
  return invalid(text.append(": expected ")
                     .append(expected)
                     .append(", got ")
                     .append(std::to_string(actual)));
}

/// The error of the last call of the C library.
static ffi::Error makeError(bngradStatus_t status) {
  std::string text = bngradGetLastError();
  ffi::ErrorCode code = ffi::ErrorCode::kInvalidArgument;
  if (status == BNGRAD_COMPILER_NOT_FOUND)
    code = ffi::ErrorCode::kUnimplemented;
  else if (status == BNGRAD_DEVICE_NOT_SUPPORTED)
    code = ffi::ErrorCode::kFailedPrecondition;
  else if (status == BNGRAD_INTERNAL_ERROR)
    code = text == "out of memory" ? ffi::ErrorCode::kResourceExhausted
                                   : ffi::ErrorCode::kInternal;
  return ffi::Error(code, "bngrad: " + text);
}

//===----------------------------------------------------------------------===//
// Descriptions for the C library
//===----------------------------------------------------------------------===//

/// The C library's type; false if it has none.
static bool convert(XLA_FFI_DataType type, bngradDtype_t &dtype) {
  switch (type) {
  case XLA_FFI_DataType_F16:
    dtype = BNGRAD_DTYPE_F16;
    return true;
  case XLA_FFI_DataType_BF16:
    dtype = BNGRAD_DTYPE_BF16;
    return true;
  case XLA_FFI_DataType_F32:
    dtype = BNGRAD_DTYPE_F32;
    return true;
  case XLA_FFI_DataType_F64:
    dtype = BNGRAD_DTYPE_F64;
    return true;
  case XLA_FFI_DataType_PRED:
    dtype = BNGRAD_DTYPE_BOOL;
    return true;
  default:
    return false;
  }
}

static ffi::Error setOptions(const Attributes &attributes, OpOptions &options) {
  auto isOneOf = [](std::string_view value, std::string_view first,
                    std::string_view second) {
    return value == first || value == second;
  };
  if (!isOneOf(attributes.statistics, "batch", "global"))
    return invalid("statistics: expected batch or global, got " +
                   std::string(attributes.statistics));
  if (!isOneOf(attributes.statistic, "variance", "inv_std"))
    return invalid("statistic: expected variance or inv_std, got " +
                   std::string(attributes.statistic));
  size_t count = attributes.featureDims.size();
  if (count < 1 || count > BNGRAD_MAX_FEATURE_DIMS)
    return invalid("feature_dims",
                   "1 to " + std::to_string(BNGRAD_MAX_FEATURE_DIMS) + " dims",
                   count);
  options = {};
  options.struct_size = sizeof(bngradBatchNormBackwardOptions_t);
  options.epsilon = attributes.epsilon;
  options.statistics = attributes.statistics == "batch"
                           ? BNGRAD_STATISTICS_BATCH
                           : BNGRAD_STATISTICS_GLOBAL;
  options.statistic = attributes.statistic == "variance"
                          ? BNGRAD_STATISTIC_VARIANCE
                          : BNGRAD_STATISTIC_INV_STD;
  options.num_feature_dims = static_cast<int>(count);
  for (size_t i = 0; i < count; ++i)
    // The C library reports dims that input does not have.
    options.feature_dims[i] = static_cast<int>(
        std::clamp<int64_t>(attributes.featureDims[i], -1, INT_MAX));
  return ffi::Error::Success();
}

/// The rank that an operand has in one problem.
static int64_t getRank(int operand, const Attributes &attributes, bool isCuda) {
  int64_t numFeatureDims = attributes.featureDims.size();
  switch (getInfo(operand).shape) {
  case RoleShape::Data:
    return attributes.rank;
  case RoleShape::Channel:
    return numFeatureDims;
  case RoleShape::Sums:
    return numFeatureDims + 1;
  case RoleShape::Scalar:
    return isCuda ? 1 : 0;
  }
  return 0;
}

/// Checks the type of a scalar, whose rank has been checked.
static ffi::Error checkScalar(int operand, const Buffer &buffer, bool isCuda) {
  bool isHalves = buffer.dtype == XLA_FFI_DataType_S32 && buffer.rank > 0 &&
                  buffer.sizes[buffer.rank - 1] == 2;
  if (isCuda && !isHalves)
    return invalid(std::string(getName(operand)) +
                   ": expected two s32 on a GPU");
  if (!isCuda && buffer.dtype != XLA_FFI_DataType_S32 &&
      buffer.dtype != XLA_FFI_DataType_S64)
    return invalid(std::string(getName(operand)) +
                   ": expected dtype s32 or s64");
  return ffi::Error::Success();
}

/// Describes the tensor of one problem in a buffer of a batch with
/// `batchRank` dims.
static ffi::Error setShape(int operand, const Buffer &buffer,
                           const Attributes &attributes, int64_t batchRank,
                           Problem &problem) {
  int64_t rank = buffer.rank - batchRank;
  int64_t expected = getRank(operand, attributes, problem.isCuda);
  // Without a batch, the C library reports the ranks of tensors.
  if ((batchRank > 0 || isScalar(operand)) && rank != expected)
    return invalid(getName(operand),
                   "rank " + std::to_string(expected + batchRank), buffer.rank);
  if (isScalar(operand))
    return checkScalar(operand, buffer, problem.isCuda);
  if (rank > BNGRAD_MAX_RANK)
    return invalid(getName(operand),
                   "rank of at most " +
                       std::to_string(BNGRAD_MAX_RANK + batchRank),
                   buffer.rank);
  Shape &shape = problem.shapes[operand];
  if (!convert(buffer.dtype, shape.dtype)) {
    std::ostringstream type;
    type << static_cast<ffi::DataType>(buffer.dtype);
    return invalid(std::string(getName(operand)) +
                   ": expected dtype f16, bf16, f32, f64 or bool, got " +
                   type.str());
  }
  problem.has[operand] = true;
  shape.rank = static_cast<int>(rank);
  shape.sizes = buffer.sizes + batchRank;
  return ffi::Error::Success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Reads the `count` of a gradient in memory of the host.
static int64_t readCount(XLA_FFI_DataType type, const void *data) {
  return type == XLA_FFI_DataType_S32 ? *static_cast<const int32_t *>(data)
                                      : *static_cast<const int64_t *>(data);
}

namespace {
/// The problems of a batch, and their positions in the buffers.
class Batch {
public:
  Batch(const Buffers &buffers, const Attributes &attributes)
      : buffers(buffers), sizes(buffers[Input]->rank - attributes.rank, 1) {
    for (int slot = 0; slot < kNumOperands; ++slot)
      if (const Buffer *buffer = buffers[slot]) {
        bytes[slot] = ffi::ByteWidth(static_cast<ffi::DataType>(buffer->dtype));
        for (int64_t dim = rank(); dim < buffer->rank; ++dim)
          bytes[slot] *= buffer->sizes[dim];
      }
  }

  /// Finds the sizes of the batch; operands may have 1 instead.
  ffi::Error setSizes() {
    for (int64_t dim = 0; dim < rank(); ++dim) {
      for (int slot = 0; slot < kNumOperands; ++slot)
        if (buffers[slot] && buffers[slot]->isResult)
          sizes[dim] = buffers[slot]->sizes[dim];
      for (int slot = 0; slot < kNumOperands; ++slot) {
        const Buffer *buffer = buffers[slot];
        if (buffer && buffer->sizes[dim] != sizes[dim] &&
            (buffer->isResult || buffer->sizes[dim] != 1))
          return invalid(getName(slot),
                         "size of dim " + std::to_string(dim) + " to be " +
                             std::to_string(sizes[dim]),
                         buffer->sizes[dim]);
      }
      count *= sizes[dim];
    }
    return ffi::Error::Success();
  }

  int64_t size() const { return count; }

  /// The data of problem `index` in the buffer of a slot; null if absent.
  void *getData(int slot, int64_t index) const {
    const Buffer *buffer = buffers[slot];
    if (!buffer)
      return nullptr;
    // The C library expects an address even for empty tensors.
    static char none;
    if (!buffer->data)
      return &none;
    int64_t place = 0, stride = 1;
    for (int64_t dim = rank(); dim-- > 0;) {
      place += index % sizes[dim] % buffer->sizes[dim] * stride;
      stride *= buffer->sizes[dim];
      index /= sizes[dim];
    }
    return buffer->data + place * bytes[slot];
  }

private:
  int64_t rank() const { return sizes.size(); }

  const Buffers &buffers;
  std::vector<int64_t> sizes;
  int64_t count = 1;
  /// The bytes of one problem.
  int64_t bytes[kNumOperands];
};
} // namespace

/// Computes all problems of a batch, one after another in the workspace.
static ffi::Error runBatch(const Plan &plan, const Batch &batch,
                           const Buffers &buffers, int64_t count,
                           const Device &device, void *workspace) {
  for (int64_t i = 0; i < batch.size(); ++i) {
    void *data[kNumOperands];
    for (int slot = 0; slot < kNumOperands; ++slot)
      data[slot] = batch.getData(slot, i);
    if (!device.isCuda) {
      if (const Buffer *buffer = buffers[Count])
        count = readCount(buffer->dtype, data[Count]);
      data[Count] = &count;
    }
    if (bngradStatus_t status = plan.run(workspace, data, device.stream))
      return makeError(status);
  }
  return ffi::Error::Success();
}

/// Computes all problems of a batch in a new workspace.
static ffi::Error runBatch(const Plan &plan, const Batch &batch,
                           const Buffers &buffers, int64_t count,
                           const Device &device) {
  size_t size = batch.size() > 0 ? plan.getWorkspaceSize() : 0;
  if (!device.isCuda)
    return runBatch(plan, batch, buffers, count, device, Workspace(size).get());
  void *workspace = nullptr;
  if (size > 0)
    workspace = device.memory->Allocate(size).value_or(nullptr);
  if (size > 0 && !workspace)
    return ffi::Error(
        ffi::ErrorCode::kResourceExhausted,
        "bngrad: expected " + std::to_string(size) +
            " bytes of device memory for the workspace, got none");
  return runBatch(plan, batch, buffers, count, device, workspace);
}

/// Assigns the operands or results of an op in `list`.
template <typename List>
static ffi::Error assign(const List &list, OpKind op,
                         const Attributes &attributes, Buffers &buffers) {
  constexpr bool kIsResult = std::is_same_v<List, ffi::RemainingRets>;
  constexpr size_t kCount = std::size(mlir::bngrad::kOpOperands);
  size_t next = 0;
  for (size_t i = 0; i < 2 * kCount; ++i) {
    const mlir::bngrad::OpOperandInfo &info =
        mlir::bngrad::kOpOperands[i % kCount];
    int slot = static_cast<int>(info.role);
    if (info.op != op || !attributes.has[slot] ||
        isScalar(slot) != (i >= kCount) ||
        !(kIsResult ? isResult(op, slot) : isInput(op, slot)))
      continue;
    if (next == list.size())
      return invalid(std::string(getName(slot)) + ": expected one of the " +
                     (kIsResult ? "results" : "operands") + ", got " +
                     std::to_string(next) + " without it");
    auto buffer = list.template get<ffi::AnyBuffer>(next++);
    if (!buffer)
      return buffer.error();
    if constexpr (kIsResult)
      buffers.set(slot, **buffer, true);
    else
      buffers.set(slot, *buffer, false);
  }
  if (next != list.size())
    return invalid(kIsResult ? "results" : "operands", std::to_string(next),
                   list.size());
  return ffi::Error::Success();
}

/// Reads the attributes of an op.
static ffi::Error readAttributes(const ffi::Dictionary &dictionary, OpKind op,
                                 Attributes &attributes) {
  ffi::Error error = ffi::Error::Success();
  auto read = [&](std::string_view name, auto &value) {
    auto found = dictionary.get<std::decay_t<decltype(value)>>(name);
    if (found)
      value = *found;
    else
      error = found.error();
  };
  read("rank", attributes.rank);
  read("feature_dims", attributes.featureDims);
  if (isInput(op, Statistic) || op == OpKind::Training)
    read("epsilon", attributes.epsilon);
  if (isInput(op, Statistic))
    read("statistic", attributes.statistic);
  if (op == OpKind::Backward)
    read("statistics", attributes.statistics);
  if (isInput(op, Count))
    read("count", attributes.count);
  for (int i = 0; i < kNumOperands; ++i) {
    OperandUse use = getUse(op, i);
    attributes.has[i] =
        use == OperandUse::Required || use == OperandUse::Result;
    if (use == OperandUse::Optional ||
        (use == OperandUse::Required && isScalar(i)))
      read(std::string("has_") + getName(i), attributes.has[i]);
    if (use == OperandUse::WantedResult)
      read(std::string("wants_") + getName(i), attributes.has[i]);
  }
  return error;
}

namespace {
/// A call of XLA, which the C library has planned.
struct Call {
  Attributes attributes;
  Buffers buffers;
  std::shared_ptr<const Plan> plan;
};
} // namespace

/// Checks a call, and finds its plan. Throws std::bad_alloc.
static ffi::Error makeCall(OpKind op, const Device &device,
                           const ffi::RemainingArgs &operands,
                           const ffi::RemainingRets &results,
                           const ffi::Dictionary &dictionary, Call &call) {
  Attributes &attributes = call.attributes;
  Buffers &buffers = call.buffers;
  ffi::Error error = readAttributes(dictionary, op, attributes);
  if (error.success())
    error = assign(operands, op, attributes, buffers);
  if (error.success())
    error = assign(results, op, attributes, buffers);
  if (error.failure())
    return error;
  int64_t batchRank = buffers[Input]->rank - attributes.rank;
  if (attributes.rank < 0 || batchRank < 0)
    return invalid("rank",
                   "0 to " + std::to_string(buffers[Input]->rank) +
                       ", the rank of input",
                   attributes.rank);
  if (device.isCuda && isInput(op, Count) && !buffers[Count])
    return invalid("count: expected an operand on a GPU, got an attribute");
  Problem problem = {};
  problem.op = op;
  problem.isCuda = device.isCuda;
  problem.device = device.number;
  error = setOptions(attributes, problem.options);
  for (int slot = 0; slot < kNumOperands; ++slot)
    if (error.success() && buffers[slot])
      error = setShape(slot, *buffers[slot], attributes, batchRank, problem);
  if (error.failure())
    return error;
  if (bngradStatus_t status = Plan::find(problem, call.plan))
    return makeError(status);
  return ffi::Error::Success();
}

/// Runs the function of the C library for `op`. While XLA initializes, it is
/// only planned, for which its kernels are compiled.
static ffi::Error run(OpKind op, const Device &device,
                      const ffi::RemainingArgs &operands,
                      const ffi::RemainingRets &results,
                      const ffi::Dictionary &dictionary) {
  try {
    PoolScope scope(device.pool);
    Call call;
    ffi::Error error =
        makeCall(op, device, operands, results, dictionary, call);
    if (error.failure() || device.isInitializing())
      return error;
    Batch batch(call.buffers, call.attributes);
    error = batch.setSizes();
    if (error.failure())
      return error;
    return runBatch(*call.plan, batch, call.buffers, call.attributes.count,
                    device);
  } catch (const std::bad_alloc &) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                      "bngrad: out of memory");
  }
}

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

template <OpKind op> static ffi::Ffi *bindCpu() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .RemainingArgs()
      .RemainingRets()
      .Attrs()
      .To([](ffi::ThreadPool pool, ffi::RemainingArgs operands,
             ffi::RemainingRets results, ffi::Dictionary attributes) {
        Device device = {/*isCuda=*/false, 0, &pool, nullptr, nullptr};
        return run(op, device, operands, results, attributes);
      })
      .release();
}

/// XLA does not capture these calls in its command buffers, as the handler does
/// not have the trait for that: the workspace is XLA's again when the handler
/// returns, but a captured call would use it in each replay.
template <OpKind op> static ffi::Ffi *bindCuda() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::DeviceOrdinal>()
      .Ctx<ffi::PlatformStream<void *>>()
      .Ctx<ffi::ScratchAllocator>()
      .RemainingArgs()
      .RemainingRets()
      .Attrs()
      .To([](int32_t number, void *stream, ffi::ScratchAllocator memory,
             ffi::RemainingArgs operands, ffi::RemainingRets results,
             ffi::Dictionary attributes) {
        Device device = {/*isCuda=*/true, number, nullptr, stream, &memory};
        return run(op, device, operands, results, attributes);
      })
      .release();
}

/// Kernels are compiled before XLA submits the first work of an execution.
template <OpKind op> static ffi::Ffi *bindCudaInitialize() {
  return ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>()
      .Ctx<ffi::DeviceOrdinal>()
      .RemainingArgs()
      .RemainingRets()
      .Attrs()
      .To([](int32_t number, ffi::RemainingArgs operands,
             ffi::RemainingRets results, ffi::Dictionary attributes) {
        Device device = {/*isCuda=*/true, number, nullptr, nullptr, nullptr};
        return run(op, device, operands, results, attributes);
      })
      .release();
}

// Handlers are created when the library is loaded: XLA's macro would create
// them in the first call, with a lock that a fork might leave taken.
#define BNGRAD_HANDLER(symbol, bind)                                           \
  static ffi::Ffi *const symbol##Handler = bind();                             \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error *symbol(     \
      XLA_FFI_CallFrame *frame) {                                              \
    return symbol##Handler->Call(frame);                                       \
  }

#define BNGRAD_OP(op, ...)                                                     \
  BNGRAD_HANDLER(bngradJax##op, bindCpu<OpKind::op>)                           \
  BNGRAD_HANDLER(bngradJax##op##Cuda, bindCuda<OpKind::op>)                    \
  BNGRAD_HANDLER(bngradJax##op##CudaInitialize, bindCudaInitialize<OpKind::op>)
#define BNGRAD_RELU_OP(...)
#include "BNGrad/Dialect/Roles.def"
