//===- Module.cpp - the module bngrad._numpy ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Docstrings.h"
#include "Errors.h"
#include "Gradient.h"
#include "Measure.h"
#include "Objects.h"
#include "Program.h"
#include "Threads.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace bngrad;
using namespace bngrad::python;
using nb::literals::operator""_a;

namespace {
/// A call and the objects that hold its arrays.
struct Request : Call {
  using Call::Call;

  void read(nb::handle object, Operand operand, const char *name);
  void readOptional(nb::handle object, Operand operand, const char *name) {
    if (!object.is_none())
      read(object, operand, name);
  }
  void readOutput(nb::handle object, Operand operand);
  /// Computes the outputs once all arguments are read.
  void execute();
  void readFeatureDims(nb::handle object);
  void readEpsilon(nb::handle object);
  void readStatistic(nb::handle variance, nb::handle invStd, nb::handle epsilon,
                     nb::handle statistics);
  /// Reads the operands that all ops begin with.
  void readData(nb::handle gradOutput, nb::handle input, nb::handle mean);
  /// The type of arithmetic of training.
  Dtype getTrainingType() const;
  void describe(Operand operand);
  /// Allocates a result that the caller has not given.
  void allocate(Operand operand);
  /// The object of an output that was computed, or None.
  nb::object take(Operand operand);

  Keeper keepers[kNumOperands];
  /// The caller's objects and their names; null for allocated outputs.
  nb::handle given[kNumOperands];
  const char *names[kNumOperands] = {};
  std::optional<Result> results[kNumOperands];
  /// An object of the library that results are for.
  nb::handle like;
};
} // namespace

void Request::read(nb::handle object, Operand operand, const char *name) {
  python::read(object, name, isOutput(operand), arrays[operand],
               keepers[operand]);
  has[operand] = true;
  given[operand] = object;
  names[operand] = name;
}

void Request::readOutput(nb::handle object, Operand operand) {
  read(object, operand, getName(operand));
}

void Request::execute() {
  for (int i = 0; i < kNumOperands; ++i)
    if (given[i].is_valid())
      verifyUnchanged(given[i], names[i], arrays[i], keepers[i]);
  python::execute(*this);
}

/// An integer argument.
static long readInteger(nb::handle object, const char *name) {
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid())
    throwNoNumber(name, "an integer", object);
  int overflow;
  long value = PyLong_AsLongAndOverflow(index.ptr(), &overflow);
  return overflow > 0 ? LONG_MAX : overflow < 0 ? LONG_MIN : value;
}

/// Requires that input was read. Negative dims count from the end.
void Request::readFeatureDims(nb::handle object) {
  auto add = [&](nb::handle item) {
    if (options.num_feature_dims == BNGRAD_MAX_FEATURE_DIMS)
      throwError(BNGRAD_BAD_PARAM, "feature_dims: expected at most " +
                                       std::to_string(BNGRAD_MAX_FEATURE_DIMS) +
                                       ", got more");
    long dim = readInteger(item, "feature_dims"), rank = arrays[Input].rank;
    if (dim < 0 && dim >= -rank)
      dim += rank;
    dim = std::min<long>(std::max<long>(dim, INT_MIN), INT_MAX);
    options.feature_dims[options.num_feature_dims++] = static_cast<int>(dim);
  };
  bool isSequence = PySequence_Check(object.ptr());
  if (PyIndex_Check(object.ptr()) && !isSequence)
    return add(object);
  if (!isSequence || PyUnicode_Check(object.ptr()))
    throwType("feature_dims", "integers", getTypeName(object));
  for (nb::handle item : object)
    add(item);
  if (options.num_feature_dims == 0)
    throwError(BNGRAD_BAD_PARAM,
               "feature_dims: expected at least one, got none");
}

static bngradStatistics_t readStatistics(nb::handle object) {
  if (!PyUnicode_Check(object.ptr()))
    throwType("statistics", "'batch' or 'global'", getTypeName(object));
  if (PyUnicode_CompareWithASCIIString(object.ptr(), "batch") == 0)
    return BNGRAD_STATISTICS_BATCH;
  if (PyUnicode_CompareWithASCIIString(object.ptr(), "global") == 0)
    return BNGRAD_STATISTICS_GLOBAL;
  throwError(BNGRAD_BAD_PARAM, std::string("statistics: expected 'batch' or "
                                           "'global', got ") +
                                   nb::repr(object).c_str());
}

void Request::readEpsilon(nb::handle object) {
  options.epsilon = PyFloat_AsDouble(object.ptr());
  if (options.epsilon == -1 && PyErr_Occurred())
    throwNoNumber("epsilon", "a number", object);
}

void Request::readStatistic(nb::handle variance, nb::handle invStd,
                            nb::handle epsilon, nb::handle statistics) {
  if (variance.is_none() == invStd.is_none())
    throwError(BNGRAD_BAD_PARAM,
               variance.is_none() ? "expected variance or inv_std, got neither"
                                  : "expected variance or inv_std, got both");
  if (variance.is_none()) {
    options.statistic = BNGRAD_STATISTIC_INV_STD;
    statistic = "inv_std";
  }
  read(variance.is_none() ? invStd : variance, Statistic, statistic);
  readEpsilon(epsilon);
  options.statistics = readStatistics(statistics);
}

void Request::readData(nb::handle gradOutput, nb::handle input,
                       nb::handle mean) {
  like = gradOutput;
  read(gradOutput, GradOutput, "grad_output");
  read(input, Input, "input");
  read(mean, Mean, "mean");
}

Dtype Request::getTrainingType() const {
  Dtype dtype = Dtype::F32;
  for (Operand operand : {Input, Scale, Offset})
    if (has[operand] && arrays[operand].dtype == Dtype::F64)
      dtype = Dtype::F64;
  return dtype;
}

/// Describes a result with its default type: data with the layout of input, or
/// row-major. If the feature dims are wrong, the C library reports them later.
void Request::describe(Operand operand) {
  Array &array = arrays[operand];
  const Array &input = arrays[Input];
  int order[BNGRAD_MAX_RANK];
  if (isData(operand)) {
    array = input;
    findOrder(input, order);
    setDenseStrides(array, order);
    return;
  }
  array.rank = 0;
  array.dtype = op == OpKind::Training ? getTrainingType() : arrays[Mean].dtype;
  if (getInfo(operand).shape == RoleShape::Sums) {
    array.dtype = getSumType(input.dtype, array.dtype);
    array.shape[array.rank++] = 2;
  }
  for (int i = 0; i < options.num_feature_dims; ++i) {
    int dim = options.feature_dims[i];
    array.shape[array.rank++] =
        dim >= 0 && dim < input.rank ? input.shape[dim] : 0;
  }
  for (int dim = 0; dim < array.rank; ++dim)
    order[dim] = dim;
  setDenseStrides(array, order);
}

void Request::allocate(Operand operand) {
  if (has[operand])
    return;
  describe(operand);
  results[operand].emplace(arrays[operand], like);
  has[operand] = true;
}

nb::object Request::take(Operand operand) {
  if (given[operand].is_valid()) {
    markWritten(given[operand]);
    return nb::borrow(given[operand]);
  }
  return results[operand] ? results[operand]->take() : nb::none();
}

/// The results of an op that may be absent, in the order of its function.
static std::vector<Operand> getWantedResults(OpKind op) {
  std::vector<Operand> results;
  for (const mlir::bngrad::OpOperandInfo &info : mlir::bngrad::kOpOperands)
    if (info.op == op && info.use == OperandUse::WantedResult)
      results.push_back(static_cast<Operand>(info.role));
  return results;
}

/// Whether each of `results` is wanted, by the names in `object`; None: all.
static std::vector<bool> readWanted(nb::handle object, OpKind op,
                                    const std::vector<Operand> &results) {
  std::vector<bool> wanted(results.size(), object.is_none());
  if (object.is_none())
    return wanted;
  bool isSequence =
      PySequence_Check(object.ptr()) && !PyUnicode_Check(object.ptr());
  if (!isSequence)
    throwType("wanted",
              op == OpKind::Backward ? "names of gradients"
                                     : "names of results",
              getTypeName(object));
  for (nb::handle item : object) {
    bool isKnown = false;
    for (size_t i = 0; i < results.size(); ++i)
      if (PyUnicode_Check(item.ptr()) &&
          PyUnicode_CompareWithASCIIString(item.ptr(), getName(results[i])) ==
              0)
        wanted[i] = isKnown = true;
    if (!isKnown)
      throwError(BNGRAD_BAD_PARAM, "wanted: expected " + listWanted(op, "'") +
                                       ", got " + nb::repr(item).c_str());
  }
  return wanted;
}

/// Such as "a, b and c".
static std::string listNames(const std::vector<Operand> &results) {
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    text += i == 0 ? "" : i + 1 == results.size() ? " and " : ", ";
    text += getName(results[i]);
  }
  return text;
}

/// The caller's outputs among `results`.
static void readOutputs(Request &request, nb::handle out,
                        const std::vector<Operand> &results,
                        const std::vector<bool> &wanted) {
  auto count = static_cast<Py_ssize_t>(results.size());
  Py_ssize_t size = PyTuple_Check(out.ptr()) ? PyTuple_Size(out.ptr()) : -1;
  if (size != count)
    throwType("out", "a tuple of " + listNames(results),
              size >= 0 ? "tuple of " + std::to_string(size)
                        : getTypeName(out));
  for (Py_ssize_t i = 0; i < count; ++i) {
    nb::handle item(PyTuple_GetItem(out.ptr(), i));
    auto place = static_cast<size_t>(i);
    if (item.is_none())
      continue;
    if (!wanted[place])
      throwError(BNGRAD_BAD_PARAM, std::string("out: expected None for ") +
                                       getName(results[place]) +
                                       ", which is not wanted, got " +
                                       getTypeName(item));
    request.readOutput(item, results[place]);
  }
}

/// Computes the wanted results; returns a tuple of all.
static nb::object computeWanted(Request &request, nb::handle out,
                                nb::handle wantedNames) {
  std::vector<Operand> results = getWantedResults(request.op);
  std::vector<bool> wanted = readWanted(wantedNames, request.op, results);
  if (!out.is_none())
    readOutputs(request, out, results, wanted);
  for (size_t i = 0; i < results.size(); ++i)
    if (wanted[i])
      request.allocate(results[i]);
  request.execute();
  nb::list taken;
  for (Operand result : results)
    taken.append(request.take(result));
  return nb::tuple(taken);
}

static nb::object backward(nb::handle gradOutput, nb::handle input,
                           nb::handle mean, nb::handle scale,
                           nb::handle variance, nb::handle invStd,
                           nb::handle epsilon, nb::handle mask,
                           nb::handle featureDims, nb::handle statistics,
                           nb::handle out, nb::handle wantedNames) {
  Request request(OpKind::Backward);
  request.readData(gradOutput, input, mean);
  request.readOptional(scale, Scale, "scale");
  request.readStatistic(variance, invStd, epsilon, statistics);
  request.readOptional(mask, Mask, "mask");
  request.readFeatureDims(featureDims);
  return computeWanted(request, out, wantedNames);
}

static nb::object reduce(nb::handle gradOutput, nb::handle input,
                         nb::handle mean, nb::handle mask,
                         nb::handle featureDims, nb::handle out) {
  Request request(OpKind::BackwardReduce);
  request.readData(gradOutput, input, mean);
  request.readOptional(mask, Mask, "mask");
  request.readFeatureDims(featureDims);
  if (!out.is_none())
    request.readOutput(out, Sums);
  request.allocate(Sums);
  request.execute();
  return request.take(Sums);
}

static nb::object elemt(nb::handle gradOutput, nb::handle input,
                        nb::handle mean, nb::handle sums, nb::handle count,
                        nb::handle scale, nb::handle variance,
                        nb::handle invStd, nb::handle epsilon, nb::handle mask,
                        nb::handle featureDims, nb::handle out) {
  Request request(OpKind::BackwardElemt);
  request.readData(gradOutput, input, mean);
  request.read(sums, Sums, "sums");
  request.count = readInteger(count, "count");
  request.readOptional(scale, Scale, "scale");
  request.readStatistic(variance, invStd, epsilon, nb::str("batch"));
  request.readOptional(mask, Mask, "mask");
  request.readFeatureDims(featureDims);
  if (!out.is_none())
    request.readOutput(out, GradInput);
  request.allocate(GradInput);
  request.execute();
  return request.take(GradInput);
}

static nb::object training(nb::handle input, nb::handle scale,
                           nb::handle offset, nb::handle epsilon,
                           nb::handle featureDims, nb::handle out,
                           nb::handle wantedNames) {
  Request request(OpKind::Training);
  request.like = input;
  request.read(input, Input, "input");
  request.readOptional(scale, Scale, "scale");
  request.readOptional(offset, Offset, "offset");
  request.readEpsilon(epsilon);
  request.readFeatureDims(featureDims);
  return computeWanted(request, out, wantedNames);
}

static nb::object inference(nb::handle input, nb::handle mean, nb::handle scale,
                            nb::handle offset, nb::handle variance,
                            nb::handle invStd, nb::handle epsilon,
                            nb::handle featureDims, nb::handle out) {
  Request request(OpKind::Inference);
  request.like = input;
  request.read(input, Input, "input");
  request.read(mean, Mean, "mean");
  request.readOptional(scale, Scale, "scale");
  request.readOptional(offset, Offset, "offset");
  request.readStatistic(variance, invStd, epsilon, nb::str("batch"));
  request.readFeatureDims(featureDims);
  if (!out.is_none())
    request.readOutput(out, Output);
  request.allocate(Output);
  request.execute();
  return request.take(Output);
}

static void setThreads(nb::handle count) {
  long value = readInteger(count, "count");
  if (value < 1 || value > kMostThreads)
    throwError(BNGRAD_BAD_PARAM, "count: expected 1 to " +
                                     std::to_string(kMostThreads) + ", got " +
                                     nb::str(count).c_str());
  setNumThreads(static_cast<int>(value));
}

/// The roles and ops of Roles.def for Python: {role: shape} and {op: {role:
/// use}}.
static void addRoles(nb::module_ &module) {
  nb::dict roles, ops;
  static constexpr const char *kShapes[] = {"data", "channel", "sums",
                                            "scalar"};
  static constexpr const char *kUses[] = {"", "required", "optional", "result",
                                          "wanted"};
  for (const mlir::bngrad::RoleInfo &info : mlir::bngrad::kRoles)
    roles[info.name] = kShapes[static_cast<int>(info.shape)];
  for (const mlir::bngrad::OpInfo &info : mlir::bngrad::kOps) {
    auto op = static_cast<OpKind>(&info - mlir::bngrad::kOps);
    if (hasRelu(op))
      continue;
    nb::dict operands;
    // In the order of the functions in C.
    for (const mlir::bngrad::OpOperandInfo &use : mlir::bngrad::kOpOperands) {
      int i = static_cast<int>(use.role);
      if (use.op == op && (isInput(op, i) || isResult(op, i)))
        operands[getInfo(i).name] = kUses[static_cast<int>(use.use)];
    }
    ops[info.name] = operands;
  }
  module.attr("_ROLES") = roles;
  module.attr("_OPS") = ops;
}

NB_MODULE(_numpy, module) {
  module.attr("__version__") = bngradVersion();
  addRoles(module);
  nb::tuple dims = nb::make_tuple(1);
  module.def("batch_norm_backward", backward, "grad_output"_a, "input"_a,
             "mean"_a, nb::kw_only(), "scale"_a = nb::none(),
             "variance"_a = nb::none(), "inv_std"_a = nb::none(),
             "epsilon"_a = 0.0, "mask"_a = nb::none(), "feature_dims"_a = dims,
             "statistics"_a = "batch", "out"_a = nb::none(),
             "wanted"_a = nb::none(), kBackwardSignature, kBackwardDoc);
  module.def("batch_norm_backward_reduce", reduce, "grad_output"_a, "input"_a,
             "mean"_a, nb::kw_only(), "mask"_a = nb::none(),
             "feature_dims"_a = dims, "out"_a = nb::none(), kReduceSignature,
             kReduceDoc);
  module.def("batch_norm_backward_elemt", elemt, "grad_output"_a, "input"_a,
             "mean"_a, "sums"_a, "count"_a, nb::kw_only(),
             "scale"_a = nb::none(), "variance"_a = nb::none(),
             "inv_std"_a = nb::none(), "epsilon"_a = 0.0, "mask"_a = nb::none(),
             "feature_dims"_a = dims, "out"_a = nb::none(), kElemtSignature,
             kElemtDoc);
  module.def("batch_norm_training", training, "input"_a, nb::kw_only(),
             "scale"_a = nb::none(), "offset"_a = nb::none(),
             "epsilon"_a = 1e-5, "feature_dims"_a = dims, "out"_a = nb::none(),
             "wanted"_a = nb::none(), kTrainingSignature, kTrainingDoc);
  module.def("batch_norm_inference", inference, "input"_a, "mean"_a,
             nb::kw_only(), "scale"_a = nb::none(), "offset"_a = nb::none(),
             "variance"_a = nb::none(), "inv_std"_a = nb::none(),
             "epsilon"_a = 0.0, "feature_dims"_a = dims, "out"_a = nb::none(),
             kInferenceSignature, kInferenceDoc);
  nb::class_<Program>(module, "Program", nb::is_weak_referenceable())
      .def(nb::init<nb::handle, nb::handle, nb::handle>())
      .def("__call__", &Program::call);
  module.def(
      "check_cpu", [] { getHandle(); },
      "Raises ParameterError for a value of BNGRAD_ISA that this CPU "
      "lacks.");
  module.def("get_num_threads", getNumThreads, kGetNumThreadsDoc);
  module.def("set_num_threads", setThreads, "count"_a, kSetNumThreadsDoc);
  // An exception may keep a measurement alive until the process ends.
  nb::set_leak_warnings(false);
  addMeasurements(module);
}
