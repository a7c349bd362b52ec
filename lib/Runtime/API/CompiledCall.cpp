//===- CompiledCall.cpp - calls of kernels compiled at run time -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledCall.h"

#include "CompiledKernel.h"
#include "Error.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

using namespace bngrad;

/// The order of the parameters of a kernel. The count follows sums that are an
/// input; epsilon follows the variance.
static constexpr Operand kParameters[] = {
    GradOutput, Input, Scale,     Mean,      Statistic,
    Sums,       Mask,  GradInput, GradScale, GradOffset};

/// Whether epsilon is a parameter of the kernel. The kernel then adds it to the
/// variance before the op, in the type of arithmetic. The op requires one type
/// for all per-channel inputs, so the others are widened as well.
static bool isEpsilonParameter(const Problem &problem) {
  return problem.has[Statistic] && !problem.isInvStd;
}

static Operand toOperand(int i) { return static_cast<Operand>(i); }

/// Finds the dims of more than one element, in the order of memory. If none of
/// them is a feature dim, it adds one of size 1.
void CompiledCall::findDims(const Problem &problem, Dims &dims) {
  const Tensor &input = problem.tensors[Input];
  bool isEmpty = input.numElements == 0;
  int order[BNGRAD_MAX_RANK], count = 0;
  for (int dim = 0; dim < input.rank; ++dim)
    if (isEmpty || input.shape[dim] > 1)
      order[count++] = dim;
  std::sort(order, order + count, [&](int lhs, int rhs) {
    int64_t left = input.strides[lhs], right = input.strides[rhs];
    return left > right || (left == right && lhs < rhs);
  });
  bool hasFeature = std::any_of(
      order, order + count, [&](int dim) { return problem.isFeatureDim(dim); });
  if (!hasFeature) {
    dims.sizes[0] = 1;
    dims.isFeature[0] = true;
    for (auto &strides : dims.strides)
      strides[0] = 1;
    dims.count = 1;
  }
  for (int i = 0; i < count; ++i, ++dims.count) {
    dims.sizes[dims.count] = input.shape[order[i]];
    dims.isFeature[dims.count] = problem.isFeatureDim(order[i]);
    auto *feature =
        std::find(problem.featureDims,
                  problem.featureDims + problem.numFeatureDims, order[i]);
    for (int k = 0; k < kNumOperands; ++k) {
      const Tensor tensor = k == Sums && problem.has[Sums]
                                ? getRow(problem.tensors[Sums])
                                : problem.tensors[k];
      int64_t &stride = dims.strides[k][dims.count];
      stride = 1;
      if (!problem.has[k])
        continue;
      if (isData(k))
        stride = tensor.strides[order[i]];
      else if (dims.isFeature[dims.count])
        stride = tensor.strides[feature - problem.featureDims];
    }
  }
  if (!isEmpty)
    return;
  // Data without elements get row-major strides.
  for (int k = 0; k < kNumOperands; ++k) {
    int64_t product = 1;
    for (int i = dims.count; i-- > 0 && isData(k);) {
      dims.strides[k][i] = product;
      product *= std::max<int64_t>(dims.sizes[i], 1);
    }
  }
}

/// Joins adjacent dims that can be joined in all tensors.
void CompiledCall::joinDims(const Problem &problem, Dims &dims) {
  int last = 0;
  for (int i = 1; i < dims.count; ++i) {
    bool areOne = dims.isFeature[last] == dims.isFeature[i];
    for (int k = 0; k < kNumOperands; ++k)
      if (problem.has[k] && (isData(k) || dims.isFeature[i]))
        areOne &= dims.strides[k][last] == dims.strides[k][i] * dims.sizes[i];
    if (areOne) {
      dims.sizes[last] *= dims.sizes[i];
    } else {
      ++last;
      dims.sizes[last] = dims.sizes[i];
      dims.isFeature[last] = dims.isFeature[i];
    }
    for (auto &strides : dims.strides)
      strides[last] = strides[i];
  }
  dims.count = last + 1;
}

/// Sets the descriptor of an operand.
void CompiledCall::describe(Operand operand, const Dims &dims) {
  MemRef &memref = memrefs[operand];
  memref = {};
  int rank = 0, numFeatures = std::count(dims.isFeature,
                                         dims.isFeature + dims.count, true);
  int memrefRank = isData(operand) ? dims.count : numFeatures;
  if (operand == Sums) {
    ++memrefRank;
    memref.sizesAndStrides[0] = 2;
    int64_t &rowStride = memref.sizesAndStrides[memrefRank];
    rowStride = 1;
    for (int i = 0; i < dims.count; ++i)
      if (dims.isFeature[i])
        rowStride *= dims.sizes[i];
    rank = 1;
  }
  for (int i = 0; i < dims.count; ++i) {
    if (!isData(operand) && !dims.isFeature[i])
      continue;
    memref.sizesAndStrides[rank] = dims.sizes[i];
    memref.sizesAndStrides[memrefRank + rank] = dims.strides[operand][i];
    ++rank;
  }
}

namespace {
/// Writes the module of a kernel.
class ModuleWriter {
public:
  /// `rank` and `isRowMajor` of data and of parameters.
  ModuleWriter(const Problem &problem, const int (&rank)[2],
               const bool (&isRowMajor)[2], bool takesEpsilon)
      : problem(problem), takesEpsilon(takesEpsilon), rank{rank[0], rank[1]},
        isRowMajor{isRowMajor[0], isRowMajor[1]} {}

  std::string write(const bool *isFeature, int count) const;

private:
  static std::string getValue(Operand operand) {
    return std::string("%") + getName(operand);
  }
  /// Whether an operand is widened to the type of arithmetic before the op.
  bool isWidened(Operand operand) const {
    return takesEpsilon &&
           (operand == Scale || operand == Mean || operand == Statistic) &&
           problem.tensors[operand].dtype != problem.accumulator;
  }
  std::string getType(Operand operand, bool isTensor) const;
  /// The type of a tensor as an operand of the op.
  std::string getWideType(Operand operand) const;
  std::string getAttributes(Part part, const bool *isFeature, int count) const;
  std::string getResultTypes(Part part) const;

  const Problem &problem;
  bool takesEpsilon;
  int rank[2];
  bool isRowMajor[2];
};
} // namespace

std::string ModuleWriter::getType(Operand operand, bool isTensor) const {
  int which = isData(operand) ? 0 : 1;
  std::string type = isTensor ? "tensor<" : "memref<";
  if (operand == Sums)
    type += "2x";
  for (int i = 0; i < rank[which]; ++i)
    type += "?x";
  // A gradient that is not wanted may have any type.
  bngradDtype_t dtype = problem.has[operand]
                            ? problem.tensors[operand].dtype
                            : problem.tensors[which ? Mean : Input].dtype;
  type += dtype == BNGRAD_DTYPE_BOOL ? "i1" : getName(dtype);
  if (!isTensor && !isRowMajor[which]) {
    int numStrides = rank[which] + (operand == Sums ? 1 : 0);
    type += ", strided<[";
    for (int i = 0; i < numStrides; ++i)
      type += i ? ", ?" : "?";
    type += "]>";
  }
  return type + ">";
}

std::string ModuleWriter::getWideType(Operand operand) const {
  if (!isWidened(operand))
    return getType(operand, true);
  std::string type = "tensor<";
  for (int i = 0; i < rank[1]; ++i)
    type += "?x";
  return type + getName(problem.accumulator) + ">";
}

/// The op without its operands, attributes and types.
static const char *getOp(Part part) {
  switch (part) {
  case Part::Whole:
    return "%whole:3 = bngrad.batch_norm_backward";
  case Part::Reduce:
    return "%reduce:2 = bngrad.batch_norm_backward_reduce";
  case Part::Elemt:
    return "%elemt = bngrad.batch_norm_backward_elemt";
  }
  return "";
}

/// The result of these ops.
static std::string getResult(Part part, Operand output) {
  if (output == Sums)
    return "%reduce#0";
  return part == Part::Elemt ? "%elemt" : "%whole#" + std::to_string(output);
}

/// Throws if memory runs out; a stream would silently drop the rest.
static void append(std::string &text,
                   std::initializer_list<std::string_view> pieces) {
  for (std::string_view piece : pieces)
    text += piece;
}

std::string ModuleWriter::getAttributes(Part part, const bool *isFeature,
                                        int count) const {
  std::string text = " {feature_dims = array<i64";
  const char *separator = ": ";
  for (int i = 0; i < count; ++i)
    if (isFeature[i]) {
      append(text, {separator, std::to_string(i)});
      separator = ", ";
    }
  text += ">";
  if (part == Part::Whole)
    append(text, {", statistics = #bngrad.statistics<",
                  problem.isBatch ? "batch" : "global", ">"});
  text += "}";
  return text;
}

std::string ModuleWriter::getResultTypes(Part part) const {
  switch (part) {
  case Part::Whole:
    return getType(GradInput, true) + ", " + getType(GradScale, true) + ", " +
           getType(GradOffset, true);
  case Part::Reduce:
    return getType(Sums, true) + ", tensor<i64>";
  case Part::Elemt:
    return getType(GradInput, true);
  }
  return "";
}

std::string ModuleWriter::write(const bool *isFeature, int count) const {
  std::string text, body, end;
  // The operands of the op, and of the reduce half beside it.
  std::string operands, reduced;
  append(text, {"func.func @", kCompiledName, "("});
  const char *separator = "";
  for (Operand operand : kParameters) {
    if (!problem.has[operand])
      continue;
    std::string value = getValue(operand), type = getType(operand, false);
    std::string tensor = getType(operand, true), wide = getWideType(operand);
    append(text, {separator, value, ": ", type});
    separator = ", ";
    if (problem.isOutput(operand)) {
      append(end, {"  bufferization.materialize_in_destination ",
                   getResult(problem.part, operand), " in restrict writable ",
                   value, " : (", tensor, ", ", type, ") -> ()\n"});
      continue;
    }
    append(body, {"  ", value, "_t = bufferization.to_tensor ", value,
                  " restrict : ", type, " to ", tensor, "\n"});
    std::string given = value + "_t";
    if (isWidened(operand)) {
      append(body, {"  ", value, "_w = arith.extf ", given, " : ", tensor,
                    " to ", wide, "\n"});
      given = value + "_w";
    }
    if (operand == Statistic && takesEpsilon) {
      std::string element = getName(problem.accumulator);
      append(text, {", %epsilon: ", element});
      append(body,
             {"  %sum = linalg.map ins(", given, " : ", wide, ") outs(", given,
              " : ", wide, ") (%in: ", element, ", %out: ", element,
              ") {\n    %in_sum = arith.addf %in, %epsilon : ", element,
              "\n    linalg.yield %in_sum : ", element, "\n  }\n"});
      given = "%sum";
    }
    const char *name = operand != Statistic ? getName(operand)
                       : problem.isInvStd   ? "inv_std"
                                            : "variance";
    std::string clause;
    append(clause, {" ", name, "(", given, " : ", wide, ")"});
    operands += clause;
    if (operand != Scale && operand != Statistic)
      reduced += clause;
    if (operand == Sums) {
      text += ", %count: memref<i64>";
      body += "  %count_t = bufferization.to_tensor %count restrict : "
              "memref<i64> to tensor<i64>\n";
      operands += " count(%count_t : tensor<i64>)";
    }
  }
  auto writeOp = [&](Part part, const std::string &operands) {
    append(body,
           {"  ", getOp(part), operands, getAttributes(part, isFeature, count),
            " : ", getResultTypes(part), "\n"});
  };
  writeOp(problem.part, operands);
  if (problem.part == Part::Whole && problem.has[Sums])
    writeOp(Part::Reduce, reduced);
  append(text, {") {\n", body, end, "  return\n}\n"});
  return text;
}

bngradStatus_t CompiledCall::create(const Problem &problem,
                                    const bngradHandle &handle,
                                    std::string &error) {
  cuda = handle.cuda;
  device = handle.device;
  part = problem.part;
  Dims dims;
  findDims(problem, dims);
  joinDims(problem, dims);
  int rank[2] = {dims.count, 0};
  bool isRowMajor[2] = {true, true};
  for (int k = 0; k < kNumOperands; ++k) {
    has[k] = problem.has[k];
    if (!has[k])
      continue;
    bool isVector = !isData(k);
    int64_t product = 1;
    for (int i = dims.count; i-- > 0;) {
      if (isVector && !dims.isFeature[i])
        continue;
      isRowMajor[isVector] &= dims.strides[k][i] == product;
      product *= dims.sizes[i];
    }
    describe(toOperand(k), dims);
  }
  takesEpsilon = isEpsilonParameter(problem);
  if (problem.accumulator == BNGRAD_DTYPE_F64)
    epsilon.f64 = problem.epsilon;
  else
    epsilon.f32 = static_cast<float>(problem.epsilon);
  rank[1] = static_cast<int>(
      std::count(dims.isFeature, dims.isFeature + dims.count, true));
  ModuleWriter writer(problem, rank, isRowMajor, takesEpsilon);
  bngradStatus_t status = BNGRAD_SUCCESS;
  CompiledTarget target = {handle.chip, cuda ? cuda->path : ""};
  // Sums that are returned along with gradients are computed only once.
  target.inHalves = part == Part::Whole && has[Sums];
  kernel = findCompiledKernel(writer.write(dims.isFeature, dims.count), target,
                              status, error);
  if (!kernel)
    return status;
  Parameters parameters;
  setParameters({}, parameters);
  workspaceSize = kernel->get_workspace_size(parameters.pointers);
  return BNGRAD_SUCCESS;
}

void CompiledCall::setParameters(const CallData &call,
                                 Parameters &parameters) const {
  int i = 0;
  auto add = [&](const MemRef &memref, void *data) {
    MemRef &added = parameters.memrefs[i];
    added = memref;
    added.allocated = added.aligned = data;
    parameters.pointers[i++] = &added;
  };
  for (Operand operand : kParameters) {
    if (has[operand])
      add(memrefs[operand], call.data[operand]);
    // The kernel only reads both.
    if (operand == Statistic && takesEpsilon)
      parameters.pointers[i++] = const_cast<decltype(epsilon) *>(&epsilon);
    if (operand == Sums && part == Part::Elemt)
      add({}, const_cast<int64_t *>(call.count));
  }
}

bngradStatus_t CompiledCall::run(const CallData &call) const {
  Parameters parameters;
  setParameters(call, parameters);
  if (!cuda)
    return getStatus(
        kernel->call(parameters.pointers, call.workspace, call.threads));
  CudaScope scope(*cuda, device, call.stream);
  kernel->call(parameters.pointers, call.workspace, nullptr);
  if (const char *text = scope.takeError(); *text)
    return fail(BNGRAD_INTERNAL_ERROR, "%s", text);
  return BNGRAD_SUCCESS;
}
