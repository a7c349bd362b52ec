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
#include <vector>

using namespace bngrad;

/// Whether epsilon is a parameter of the kernel, after the tensors.
static bool isEpsilonParameter(const Problem &problem) {
  return problem.op == OpKind::Training ||
         (problem.has[Statistic] && !problem.isInvStd);
}

static Operand toOperand(int i) { return static_cast<Operand>(i); }

/// Whether an operand has a dim of the data, a feature dim or not.
static bool hasDim(int operand, bool isFeature) {
  return isData(operand) || (isFeature && !isScalar(operand));
}

/// Finds the dims of more than one element, in the order of memory. If none of
/// them is a feature dim, it adds one of size 1; on a GPU, which has kernels
/// only for sums, also if all of them are.
void CompiledCall::findDims(const Problem &problem, Dims &dims) const {
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
  auto numFeatures = std::count_if(
      order, order + count, [&](int dim) { return problem.isFeatureDim(dim); });
  auto add = [&](bool isFeature) {
    dims.sizes[dims.count] = 1;
    dims.isFeature[dims.count] = isFeature;
    // As in data without gaps.
    for (int k = 0; k < kNumOperands; ++k)
      dims.strides[k][dims.count] = isData(k) ? input.numElements : 1;
    ++dims.count;
  };
  if (cuda && numFeatures == count)
    add(/*isFeature=*/false);
  if (numFeatures == 0)
    add(/*isFeature=*/true);
  for (int i = 0; i < count; ++i, ++dims.count) {
    dims.sizes[dims.count] = input.shape[order[i]];
    dims.isFeature[dims.count] = problem.isFeatureDim(order[i]);
    auto *feature =
        std::find(problem.featureDims,
                  problem.featureDims + problem.numFeatureDims, order[i]);
    for (int k = 0; k < kNumOperands; ++k) {
      const Tensor tensor = getRow(problem, k);
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
      if (problem.has[k] && hasDim(k, dims.isFeature[i]))
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
  int memrefRank = isData(operand)     ? dims.count
                   : isScalar(operand) ? 0
                                       : numFeatures;
  if (getInfo(operand).shape == RoleShape::Sums) {
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
    if (!hasDim(operand, dims.isFeature[i]))
      continue;
    memref.sizesAndStrides[rank] = dims.sizes[i];
    memref.sizesAndStrides[memrefRank + rank] = dims.strides[operand][i];
    ++rank;
  }
}

/// Whether the reduce half computes sums in addition to the whole gradient.
static bool returnsSums(const Problem &problem) {
  return problem.op == OpKind::Backward && problem.has[Sums];
}

namespace {
/// Writes the module of a kernel.
class ModuleWriter {
public:
  /// Of data, which have all `dims`, and of parameters, which have the feature
  /// dims, whether they are row-major.
  ModuleWriter(const Problem &problem, const CompiledCall::Dims &dims,
               const bool (&isRowMajor)[2])
      : problem(problem), dims(dims), isRowMajor{isRowMajor[0], isRowMajor[1]} {
  }

  /// The module for the sizes of the dims if `isStatic`, else for any sizes.
  std::string write(bool isStatic);

private:
  static std::string getValue(Operand operand) {
    return std::string("%") + getName(operand);
  }
  /// Whether a statistic of the batch enters a running one, before it is
  /// rounded.
  bool isForUpdate(Operand result) const {
    return problem.op == OpKind::Training &&
           ((result == Mean && problem.has[RunningMean]) ||
            (result == Variance && problem.has[RunningVariance]));
  }
  std::string getType(Operand operand, bool isTensor) const;
  std::string getVectorType(bngradDtype_t dtype) const;
  /// The ops that give a result its type and store it.
  std::string getStore(Operand result) const;
  /// The ops that compute and store the new value of a running statistic.
  std::string getUpdate(Operand running, Operand batch,
                        const char *factor) const;
  /// The type of a tensor as an operand or result of the op.
  std::string getWideType(Operand operand) const;
  std::string getAttributes(OpKind op) const;
  /// The op with these operands, and its results.
  std::string getOp(OpKind op, const std::string &operands,
                    const std::string &attributes) const;

  const Problem &problem;
  const CompiledCall::Dims &dims;
  bool isRowMajor[2];
  int rank[2];
  /// As in a type, such as "32x64x".
  std::string shape[2];
};
} // namespace

std::string ModuleWriter::getType(Operand operand, bool isTensor) const {
  std::string type = isTensor ? "tensor<" : "memref<";
  if (isScalar(operand))
    return type + "i64>";
  int which = isData(operand) ? 0 : 1;
  bool isSums = getInfo(operand).shape == RoleShape::Sums;
  if (isSums)
    type += "2x";
  type += shape[which];
  // A gradient that is not wanted may have any type.
  bngradDtype_t dtype = problem.has[operand]
                            ? problem.tensors[operand].dtype
                            : problem.tensors[getTypeOf(operand)].dtype;
  type += dtype == BNGRAD_DTYPE_BOOL ? "i1" : getName(dtype);
  if (!isTensor && !isRowMajor[which]) {
    int numStrides = rank[which] + (isSums ? 1 : 0);
    type += ", strided<[";
    for (int i = 0; i < numStrides; ++i)
      type += i ? ", ?" : "?";
    type += "]>";
  }
  return type + ">";
}

std::string ModuleWriter::getVectorType(bngradDtype_t dtype) const {
  return "tensor<" + shape[1] + getName(dtype) + ">";
}

std::string ModuleWriter::getWideType(Operand operand) const {
  return isForUpdate(operand) ? getVectorType(problem.accumulator)
                              : getType(operand, true);
}

/// The results of an op of the dialect, in its order.
static std::vector<Operand> getResults(OpKind op) {
  std::vector<Operand> results;
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    if (info.op == op && (info.use == OperandUse::Result ||
                          info.use == OperandUse::WantedResult ||
                          info.use == OperandUse::OpResult))
      results.push_back(static_cast<Operand>(info.role));
  return results;
}

/// The value of a result, such as "%whole#1".
static std::string getResult(OpKind op, Operand result) {
  std::string value = std::string("%") + mlir::bngrad::getInfo(op).part;
  std::vector<Operand> results = getResults(op);
  if (results.size() == 1)
    return value;
  auto place = std::find(results.begin(), results.end(), result);
  return value + "#" + std::to_string(place - results.begin());
}

/// Throws if memory runs out; a stream would silently drop the rest.
static void append(std::string &text,
                   std::initializer_list<std::string_view> pieces) {
  for (std::string_view piece : pieces)
    text += piece;
}

std::string ModuleWriter::getAttributes(OpKind op) const {
  std::string text = " {feature_dims = array<i64";
  const char *separator = ": ";
  for (int i = 0; i < dims.count; ++i)
    if (dims.isFeature[i]) {
      append(text, {separator, std::to_string(i)});
      separator = ", ";
    }
  text += ">";
  if (op == OpKind::Backward)
    append(text, {", statistics = #bngrad.statistics<",
                  problem.isBatch ? "batch" : "global", ">"});
  text += "}";
  return text;
}

/// The conversion of `value`, a float or a tensor of floats, to another type.
static std::string getConversion(const std::string &value,
                                 const std::string &to, bngradDtype_t fromDtype,
                                 bngradDtype_t toDtype,
                                 const std::string &types) {
  const char *name =
      getBytes(fromDtype) < getBytes(toDtype) ? "extf" : "truncf";
  return to + " = arith." + name + " " + value + " : " + types + "\n";
}

static std::string getMaterialization(const std::string &value,
                                      const std::string &to,
                                      const std::string &tensor,
                                      const std::string &memref) {
  return "  bufferization.materialize_in_destination " + value +
         " in restrict writable " + to + " : (" + tensor + ", " + memref +
         ") -> ()\n";
}

std::string ModuleWriter::getStore(Operand result) const {
  std::string to = getValue(result);
  std::string value =
      getResult(result == Sums ? OpKind::BackwardReduce : problem.op, result);
  std::string tensor = getType(result, true), wide = getWideType(result), text;
  if (tensor != wide) {
    text = "  " + getConversion(value, to + "_r", problem.accumulator,
                                problem.tensors[result].dtype,
                                wide + " to " + tensor);
    value = to + "_r";
  }
  return text + getMaterialization(value, to, tensor, getType(result, false));
}

std::string ModuleWriter::getUpdate(Operand running, Operand batch,
                                    const char *factor) const {
  std::string value = getValue(running), tensor = getType(running, true),
              memref = getType(running, false), text;
  bngradDtype_t dtype = problem.tensors[running].dtype;
  std::string element = getName(dtype), wide = getName(problem.accumulator);
  append(text, {"  ",
                value,
                "_n = linalg.map ins(",
                value,
                "_t, ",
                getResult(problem.op, batch),
                " : ",
                tensor,
                ", ",
                getWideType(batch),
                ") outs(",
                value,
                "_t : ",
                tensor,
                ") (%old: ",
                element,
                ", %new: ",
                wide,
                ", %out: ",
                element,
                ") {\n"});
  std::string old = "%old", batchValue = "%new", sum = "%both";
  if (dtype != BNGRAD_DTYPE_F64) {
    text += "    " + getConversion(old, "%old_w", dtype, BNGRAD_DTYPE_F64,
                                   element + " to f64");
    old = "%old_w";
  }
  if (problem.accumulator != BNGRAD_DTYPE_F64) {
    text += "    " + getConversion(batchValue, "%new_w", problem.accumulator,
                                   BNGRAD_DTYPE_F64, wide + " to f64");
    batchValue = "%new_w";
  }
  append(text, {"    %kept = arith.mulf ", old, ", %keep : f64\n",
                "    %added = arith.mulf ", batchValue, ", ", factor,
                " : f64\n    %both = arith.addf %kept, %added : f64\n"});
  if (dtype != BNGRAD_DTYPE_F64) {
    text += "    " + getConversion(sum, "%both_r", BNGRAD_DTYPE_F64, dtype,
                                   "f64 to " + element);
    sum = "%both_r";
  }
  append(text, {"    linalg.yield ", sum, " : ", element, "\n  }\n"});
  return text + getMaterialization(value + "_n", value, tensor, memref);
}

std::string ModuleWriter::getOp(OpKind op, const std::string &operands,
                                const std::string &attributes) const {
  std::vector<Operand> results = getResults(op);
  const mlir::bngrad::OpInfo &info = mlir::bngrad::getInfo(op);
  std::string text = std::string("  %") + info.part;
  if (results.size() > 1)
    append(text, {":", std::to_string(results.size())});
  append(text, {" = bngrad.", info.name, operands, attributes, " : "});
  const char *separator = "";
  for (Operand result : results) {
    append(text, {separator, getWideType(result)});
    separator = ", ";
  }
  return text + "\n";
}

std::string ModuleWriter::write(bool isStatic) {
  for (int which : {0, 1}) {
    rank[which] = 0;
    shape[which].clear();
    for (int i = 0; i < dims.count; ++i) {
      if (which == 1 && !dims.isFeature[i])
        continue;
      ++rank[which];
      append(shape[which],
             {isStatic ? std::to_string(dims.sizes[i]) : "?", "x"});
    }
  }
  std::string text, body, end;
  std::string clauses[kNumOperands];
  append(text, {"func.func @", kCompiledName, "("});
  const char *separator = "";
  for (int i = 0; i < kNumOperands; ++i) {
    Operand operand = getParameter(i);
    if (!problem.has[operand])
      continue;
    std::string value = getValue(operand), type = getType(operand, false);
    std::string tensor = getType(operand, true);
    append(text, {separator, value, ": ", type});
    separator = ", ";
    bool isUpdated = getUse(problem.op, operand) == OperandUse::Updated;
    // Old values are read before results are stored: a loop that read them
    // afterwards would not join the op's loops, and a GPU has no others.
    if (isUpdated || !problem.isOutput(operand))
      append(body, {"  ", value, "_t = bufferization.to_tensor ", value,
                    " restrict : ", type, " to ", tensor, "\n"});
    if (isUpdated) {
      end += operand == RunningMean
                 ? getUpdate(RunningMean, Mean, "%mean_factor")
                 : getUpdate(RunningVariance, Variance, "%variance_factor");
      continue;
    }
    if (problem.isOutput(operand)) {
      end += getStore(operand);
      continue;
    }
    const char *name = operand != Statistic ? getName(operand)
                       : problem.isInvStd   ? "inv_std"
                                            : "variance";
    append(clauses[operand], {" ", name, "(", value, "_t : ", tensor, ")"});
  }
  auto writeOp = [&](OpKind op) {
    std::string operands;
    for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
      if (info.op == op)
        operands += clauses[static_cast<size_t>(info.role)];
    body += getOp(op, operands, getAttributes(op));
  };
  writeOp(problem.op);
  if (returnsSums(problem))
    writeOp(OpKind::BackwardReduce);
  if (isEpsilonParameter(problem))
    text += ", %epsilon: f64 {bngrad.epsilon}";
  if (problem.hasUpdate())
    text += ", %keep: f64, %mean_factor: f64, %variance_factor: f64";
  append(text, {") {\n", body, end, "  return\n}\n"});
  return text;
}

bngradStatus_t CompiledCall::create(const Problem &problem,
                                    const bngradHandle &handle,
                                    std::string &error) {
  cuda = handle.cuda;
  device = handle.device;
  Dims dims;
  findDims(problem, dims);
  joinDims(problem, dims);
  bool isRowMajor[2] = {true, true};
  for (int k = 0; k < kNumOperands; ++k) {
    has[k] = problem.has[k];
    if (!has[k])
      continue;
    bool isVector = !isData(k);
    int64_t product = 1;
    for (int i = dims.count; i-- > 0;) {
      if (!hasDim(k, dims.isFeature[i]))
        continue;
      isRowMajor[isVector] &= dims.strides[k][i] == product;
      product *= dims.sizes[i];
    }
    describe(toOperand(k), dims);
  }
  takesEpsilon = isEpsilonParameter(problem);
  epsilon = problem.epsilon;
  takesUpdate = problem.hasUpdate();
  factors = problem.getUpdateFactors();
  ModuleWriter writer(problem, dims, isRowMajor);
  std::string text = writer.write(/*isStatic=*/false);
  // Schedules for a GPU that read data once need their sizes.
  if (cuda && problem.tensors[Input].numElements > 0) {
    std::string ofSizes = writer.write(/*isStatic=*/true);
    if (mayHaveOwnKernel(text, ofSizes))
      text = std::move(ofSizes);
  }
  bngradStatus_t status = BNGRAD_SUCCESS;
  CompiledTarget target = {handle.chip, cuda ? cuda->path : ""};
  // Sums that are returned along with gradients are computed only once.
  target.inHalves = returnsSums(problem);
  kernel = findCompiledKernel(text, target, status, error);
  if (!kernel)
    return status;
  workspaceSize = findWorkspaceSize();
  return BNGRAD_SUCCESS;
}

size_t CompiledCall::findWorkspaceSize() const {
  // On a GPU it depends on which addresses are aligned: each of the data, and
  // all parameters together. On a CPU it does not.
  int bits[kNumOperands] = {}, numBits = 1;
  for (int i = 0; i < kNumOperands; ++i)
    if (has[i] && isData(i))
      bits[i] = numBits++;
  size_t size = 0;
  for (int unaligned = 0; unaligned < (cuda ? 1 << numBits : 1); ++unaligned) {
    CallData call = {};
    for (int i = 0; i < kNumOperands; ++i)
      if (unaligned >> bits[i] & 1)
        call.data[i] = reinterpret_cast<void *>(1);
    Parameters parameters;
    setParameters(call, parameters);
    size = std::max(size, kernel->get_workspace_size(parameters.pointers));
  }
  return size;
}

void CompiledCall::setParameters(const CallData &call,
                                 Parameters &parameters) const {
  void **next = parameters.pointers;
  for (int i = 0; i < kNumOperands; ++i) {
    Operand operand = getParameter(i);
    if (!has[operand])
      continue;
    MemRef &memref = parameters.memrefs[operand];
    memref = memrefs[operand];
    memref.allocated = memref.aligned = call.data[operand];
    *next++ = &memref;
  }
  // The kernel only reads them.
  auto add = [&](const double &value) {
    *next++ = const_cast<double *>(&value);
  };
  if (takesEpsilon)
    add(epsilon);
  if (!takesUpdate)
    return;
  add(factors.kept);
  add(factors.mean);
  add(factors.variance);
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
