//===- Program.cpp - calls of compiled programs ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Errors.h"
#include "Objects.h"
#include "Threads.h"
#include "Unlocked.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <new>
#include <optional>

using namespace bngrad;
using namespace bngrad::python;

/// The most bytes of an array, as in the C library.
static constexpr int64_t kMostBytes = int64_t(1) << 47;

/// Elements of a descriptor before its sizes: two pointers and the offset.
static constexpr size_t kHeadWords = 3;

static Dtype findDtype(const std::string &name) {
  if (name == "index")
    return Dtype::I64;
  for (Dtype dtype : {Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64,
                      Dtype::Bool, Dtype::I8, Dtype::I16, Dtype::I32})
    if (name == getName(dtype))
      return dtype;
  return Dtype::I64;
}

Program::Program(nb::handle entries, nb::handle parameters, nb::handle code)
    : code(code) {
  auto entry = [&](size_t i) {
    return reinterpret_cast<Entry>(nb::cast<uintptr_t>(entries[i]));
  };
  checked = entry(0);
  diagnose = entry(1);
  workspace = entry(2);
  infer = entry(3);
  for (nb::handle item : parameters) {
    Parameter parameter;
    parameter.name = nb::cast<std::string>(item[0]);
    parameter.dtype = findDtype(nb::cast<std::string>(item[1]));
    nb::object shape = item[2];
    parameter.isScalar = shape.is_none();
    parameter.isResult = nb::cast<bool>(item[3]);
    parameter.isWritten = nb::cast<bool>(item[4]);
    if (!parameter.isScalar)
      for (nb::handle size : shape)
        parameter.shape.push_back(nb::cast<int64_t>(size));
    verifyRank(parameter.name.c_str(), parameter.shape.size());
    parameter.start = numWords;
    numWords +=
        parameter.isScalar ? 1 : kHeadWords + 2 * parameter.shape.size();
    numArguments += !parameter.isResult;
    this->parameters.push_back(std::move(parameter));
  }
}

/// The parameters of one call.
class Program::Frame {
public:
  explicit Frame(const Program &program)
      : program(program), words(program.numWords),
        arrays(program.parameters.size()), keepers(program.numArguments),
        pointers(program.parameters.size()), slots(program.parameters.size()) {
    for (size_t i = 0; i < slots.size(); ++i) {
      pointers[i] = &words[program.parameters[i].start];
      bool isScalar = program.parameters[i].isScalar;
      slots[i] = isScalar ? pointers[i] : static_cast<void *>(&pointers[i]);
    }
  }

  void readArgument(size_t i, nb::handle object) {
    if (program.parameters[i].isScalar)
      readScalar(program.parameters[i], object);
    else
      readArray(i, object);
  }
  /// Checks that no array that is written shares memory with another array.
  void verifyMemory() const;
  /// Checks that the arrays of `arguments` are unchanged since they were read.
  void verifyUnchanged(const nb::args &arguments) const;
  /// Sets the descriptors of results except for their data. Returns whether a
  /// size is still to be inferred.
  bool describeResults();
  void allocateResults(nb::handle like);
  nb::object takeResults();

  /// Calls an entry with the parameters and `more`, and returns its value.
  template <typename T>
  T call(Entry entry, std::initializer_list<void *> more) {
    std::vector<void *> all(slots);
    all.insert(all.end(), more);
    T value = 0;
    all.push_back(&value);
    entry(all.data());
    return value;
  }

private:
  void readArray(size_t i, nb::handle object);
  void readScalar(const Parameter &parameter, nb::handle object);
  int64_t *getSizes(size_t i) {
    return &words[program.parameters[i].start + kHeadWords];
  }
  void setData(size_t i) {
    // The allocated pointer is not read.
    auto address = reinterpret_cast<intptr_t>(arrays[i].data);
    words[program.parameters[i].start] = address;
    words[program.parameters[i].start + 1] = address;
  }

  const Program &program;
  std::vector<int64_t> words; // descriptors and scalars
  std::vector<Array> arrays;
  std::vector<Keeper> keepers;
  std::vector<void *> pointers; // to each descriptor
  std::vector<void *> slots;    // to each parameter
  std::vector<std::optional<Result>> results;
};

void Program::Frame::readArray(size_t i, nb::handle object) {
  const Parameter &parameter = program.parameters[i];
  const char *name = parameter.name.c_str();
  Array &array = arrays[i];
  read(object, name, parameter.isWritten, array, keepers[i], &parameter.dtype);
  if (array.dtype != parameter.dtype)
    throwType(name, std::string("dtype ") + getName(parameter.dtype),
              getName(array.dtype));
  if (array.isSwapped)
    throwType(name, "the order of bytes of this CPU", "the other one");
  size_t rank = parameter.shape.size();
  if (array.rank != static_cast<int>(rank))
    throwError(BNGRAD_BAD_SHAPE, parameter.name + ": expected rank " +
                                     std::to_string(rank) + ", got " +
                                     std::to_string(array.rank));
  int64_t width = getBytes(array.dtype), *sizes = getSizes(i);
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t stride = array.strides[dim];
    if (stride % width != 0 && array.shape[dim] > 1)
      throwError(BNGRAD_BAD_STRIDES,
                 parameter.name + ": expected stride of dim " +
                     std::to_string(dim) + " to be a multiple of " +
                     std::to_string(width) + " bytes, got " +
                     std::to_string(stride));
    sizes[dim] = array.shape[dim];
    sizes[rank + dim] = stride / width;
  }
  setData(i);
}

/// The value of `object` in two's complement. It may be in the signed or in the
/// unsigned range of a type of up to 32 bits, and in the signed range of 64
/// bits.
static int64_t readInteger(const std::string &name, Dtype dtype,
                           nb::handle object) {
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid())
    throwNoNumber(name.c_str(), "an integer", object);
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  int bits = dtype == Dtype::Bool ? 1 : static_cast<int>(getBytes(dtype)) * 8;
  // 64-bit values from 2^63 on overflow here: pass them as negative numbers.
  bool fits = overflow == 0;
  if (fits && bits < 64)
    fits = value < int64_t(1) << bits &&
           value >= (bits == 1 ? 0 : -(int64_t(1) << (bits - 1)));
  if (!fits)
    throwError(BNGRAD_BAD_PARAM, name + ": expected a value of " +
                                     getName(dtype) + ", got " +
                                     nb::str(index).c_str());
  return value;
}

void Program::Frame::readScalar(const Parameter &parameter, nb::handle object) {
  int64_t &word = words[parameter.start];
  if (parameter.dtype >= Dtype::Bool) {
    // The low bytes are the value for any width.
    word = readInteger(parameter.name, parameter.dtype, object);
    return;
  }
  double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred())
    throwNoNumber(parameter.name.c_str(), "a number", object);
  Array from = {}, to = {};
  from.dtype = Dtype::F64;
  from.data = reinterpret_cast<char *>(&value);
  to.dtype = parameter.dtype;
  to.data = reinterpret_cast<char *>(&word);
  copy(from, to);
}

void Program::Frame::verifyMemory() const {
  for (size_t i = 0; i < program.numArguments; ++i)
    for (size_t j = 0; j < program.numArguments; ++j) {
      const Parameter &written = program.parameters[i];
      const Parameter &other = program.parameters[j];
      if (i == j && written.isWritten && !isInjective(arrays[i]))
        throwOverlap(written.name.c_str());
      // Even identical arrays are errors: in which order the program reads and
      // writes their elements depends on its schedule.
      if (i == j || !written.isWritten || other.isScalar ||
          !overlap(arrays[i], arrays[j]))
        continue;
      throwError(BNGRAD_BAD_PARAM, written.name +
                                       ": expected memory apart from that of " +
                                       other.name + ", got an overlap");
    }
}

void Program::Frame::verifyUnchanged(const nb::args &arguments) const {
  for (size_t i = 0; i < program.numArguments; ++i)
    if (!program.parameters[i].isScalar)
      python::verifyUnchanged(arguments[i], program.parameters[i].name.c_str(),
                              arrays[i], keepers[i]);
}

bool Program::Frame::describeResults() {
  bool hasDynamic = false;
  for (size_t i = program.numArguments; i < arrays.size(); ++i) {
    const std::vector<int64_t> &shape = program.parameters[i].shape;
    int64_t *sizes = getSizes(i);
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      hasDynamic |= shape[dim] < 0;
      sizes[dim] = shape[dim] < 0 ? 0 : shape[dim];
    }
  }
  return hasDynamic;
}

void Program::Frame::allocateResults(nb::handle like) {
  results.resize(arrays.size() - program.numArguments);
  for (size_t i = program.numArguments; i < arrays.size(); ++i) {
    const Parameter &parameter = program.parameters[i];
    Array &array = arrays[i];
    array.dtype = parameter.dtype;
    array.rank = static_cast<int>(parameter.shape.size());
    int64_t *sizes = getSizes(i), bytes = getBytes(array.dtype);
    int order[BNGRAD_MAX_RANK];
    for (int dim = 0; dim < array.rank; ++dim) {
      if (sizes[dim] < 0)
        throwError(BNGRAD_BAD_SHAPE,
                   parameter.name + ": expected size of dim " +
                       std::to_string(dim) + " to be at least 0, got " +
                       std::to_string(sizes[dim]));
      int64_t factor = sizes[dim] > 0 ? sizes[dim] : 1;
      if (__builtin_mul_overflow(bytes, factor, &bytes) || bytes > kMostBytes)
        throwError(BNGRAD_BAD_SHAPE,
                   parameter.name + ": expected at most 2^47 bytes, got more");
      array.shape[dim] = sizes[dim];
      order[dim] = dim;
    }
    setDenseStrides(array, order);
    for (int dim = 0; dim < array.rank; ++dim)
      sizes[array.rank + dim] = array.strides[dim] / getBytes(array.dtype);
    results[i - program.numArguments].emplace(array, like);
    setData(i);
  }
}

nb::object Program::Frame::takeResults() {
  if (results.empty())
    return nb::none();
  if (results.size() == 1)
    return results[0]->take();
  nb::list taken;
  for (std::optional<Result> &result : results)
    taken.append(result->take());
  return nb::tuple(taken);
}

/// The arguments as text, such as "(x, mean)".
template <typename Parameters>
static std::string listNames(const Parameters &parameters, size_t count) {
  std::string names;
  for (size_t i = 0; i < count; ++i)
    names += (i > 0 ? ", " : "") + parameters[i].name;
  return "(" + names + ")";
}

nb::object Program::call(const nb::args &arguments) const {
  if (arguments.size() != numArguments)
    throwError(BNGRAD_BAD_DTYPE,
               "expected " + std::to_string(numArguments) + " arguments " +
                   listNames(parameters, numArguments) + ", got " +
                   std::to_string(arguments.size()));
  Frame frame(*this);
  nb::object like;
  // Read scalars first: converting one may run Python code that changes an
  // array.
  for (bool isScalar : {true, false})
    for (size_t i = 0; i < numArguments; ++i) {
      if (parameters[i].isScalar != isScalar)
        continue;
      frame.readArgument(i, arguments[i]);
      if (!like.is_valid() && !isScalar)
        like = nb::borrow(arguments[i]);
    }
  frame.verifyMemory();
  const bngrad_threads_t *threads = &getThreads();
  char text[512] = "";
  char *textStart = text;
  size_t textSize = sizeof(text);
  auto check = [&](int32_t status) {
    if (status != BNGRAD_SUCCESS)
      throwError(static_cast<bngradStatus_t>(status),
                 *text ? text : "expected memory for temporaries, got none");
  };
  if (frame.describeResults()) {
    frame.verifyUnchanged(arguments);
    check(frame.call<int32_t>(infer, {&threads, &textStart, &textSize}));
  }
  if (!like.is_valid() && numArguments < parameters.size())
    like = nb::module_::import_("numpy").attr("empty")(0);
  frame.allocateResults(like);
  frame.verifyUnchanged(arguments);
  auto size = frame.call<size_t>(workspace, {});
  // Sizes that are wrong may need more than there is: they are reported first.
  std::unique_ptr<char[]> memory(size > 0 ? new (std::nothrow) char[size]
                                          : nullptr);
  char *memoryStart = memory.get();
  int32_t status;
  {
    Unlocked unlocked;
    status = frame.call<int32_t>(checked, {&memoryStart, &size, &threads});
  }
  if (size > 0 && !memory && status == BNGRAD_NULL_POINTER)
    throw std::bad_alloc();
  if (status != BNGRAD_SUCCESS)
    frame.call<int32_t>(diagnose,
                        {&memoryStart, &size, &threads, &textStart, &textSize});
  check(status);
  for (size_t i = 0; i < numArguments; ++i)
    if (parameters[i].isWritten)
      markWritten(arguments[i]);
  return frame.takeResults();
}
