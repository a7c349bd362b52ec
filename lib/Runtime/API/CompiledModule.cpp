//===- CompiledModule.cpp - modules of kernels compiled at run time -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledModule.h"

#include "CompiledKernel.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

using namespace bngrad;

bool bngrad::isEpsilonParameter(const Problem &problem) {
  return getBase(problem.op) == OpKind::Training ||
         (problem.has[Statistic] && !problem.isInvStd);
}

bool bngrad::returnsSums(const Problem &problem) {
  return problem.op == OpKind::Backward && problem.has[Sums];
}

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

std::string ModuleWriter::getSource(Operand result) const {
  if (result == Sums)
    return getResult(OpKind::BackwardReduce, result);
  if (hasRelu(problem.op) && (result == Output || result == GradResidual))
    return "%relu";
  return getResult(getBase(problem.op), result);
}

std::string ModuleWriter::getStore(Operand result) const {
  std::string to = getValue(result), value = getSource(result);
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
                getSource(batch),
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

std::string ModuleWriter::getMap(const std::string &operands,
                                 const std::string &types,
                                 const std::string &init,
                                 const std::string &arguments,
                                 const std::string &body) const {
  std::string type = getType(Input, true);
  std::string element = getName(problem.tensors[Input].dtype), text;
  append(text, {"  %relu = linalg.map ins(", operands, " : ", types, ") outs(",
                init, " : ", type, ") (", arguments, "%out: ", element,
                ") {\n    %zero = arith.constant 0.0 : ", element, "\n", body,
                "    linalg.yield %z : ", element, "\n  }\n"});
  return text;
}

std::string ModuleWriter::getRelu() const {
  std::string type = getType(Input, true);
  std::string element = getName(problem.tensors[Input].dtype);
  std::string operands = getResult(OpKind::Training, Output), types = type;
  std::string arguments = "%x: " + element + ", ", body;
  const char *value = "%x";
  if (problem.has[Residual]) {
    append(operands, {", ", getValue(Residual), "_t"});
    append(types, {", ", type});
    append(arguments, {"%y: ", element, ", "});
    append(body, {"    %s = arith.addf %x, %y : ", element, "\n"});
    value = "%s";
  }
  append(body,
         {"    %z = arith.maximumf ", value, ", %zero : ", element, "\n"});
  return getMap(operands, types, getValue(Input) + "_t", arguments, body);
}

std::string ModuleWriter::getReluGradient() const {
  std::string type = getType(Input, true), body;
  std::string element = getName(problem.tensors[Input].dtype);
  std::string gradOutput = getValue(GradOutput) + "_t";
  // PyTorch passes the gradient of NaN on, too.
  append(body, {"    %k = arith.cmpf ole, %y, %zero : ", element,
                "\n    %z = arith.select %k, %zero, %d : ", element, "\n"});
  return getMap(gradOutput + ", " + getValue(Output) + "_t", type + ", " + type,
                gradOutput, "%d: " + element + ", %y: " + element + ", ", body);
}

void ModuleWriter::setShapes(bool isStatic) {
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
}

std::string ModuleWriter::write(bool isStatic) {
  setShapes(isStatic);
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
  if (problem.op == OpKind::BackwardRelu) {
    body += getReluGradient();
    clauses[GradOutput] =
        " grad_output(%relu : " + getType(GradOutput, true) + ")";
  }
  writeOp(getBase(problem.op));
  if (problem.op == OpKind::TrainingRelu)
    body += getRelu();
  if (returnsSums(problem))
    writeOp(OpKind::BackwardReduce);
  if (isEpsilonParameter(problem))
    text += ", %epsilon: f64 {bngrad.epsilon}";
  if (problem.hasUpdate())
    text += ", %keep: f64, %mean_factor: f64, %variance_factor: f64";
  append(text, {") {\n", body, end, "  return\n}\n"});
  return text;
}
