//===- Errors.cpp - exceptions of bngrad ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"

#include "ErrorText.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace bngrad;

void python::throwError(bngradStatus_t status, const std::string &message) {
  nb::object error =
      nb::module_::import_("bngrad._errors")
          .attr("make_error")(bngradGetStatusName(status), message);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

void python::check(bngradStatus_t status, const char *statistic) {
  if (status != BNGRAD_SUCCESS)
    throwError(status, nameStatistic(bngradGetLastError(), statistic));
}

std::string python::getTypeName(nb::handle object) {
  nb::handle type = object.type();
  auto module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  auto name = nb::cast<std::string>(nb::str(type.attr("__qualname__")));
  return module == "builtins" ? name : module + "." + name;
}

void python::throwType(const char *name, const std::string &expected,
                       const std::string &actual) {
  throwError(BNGRAD_BAD_DTYPE,
             std::string(name) + ": expected " + expected + ", got " + actual);
}

void python::throwNoNumber(const char *name, const std::string &expected,
                           nb::handle object) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) &&
      !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_OverflowError))
    throw nb::python_error();
  PyErr_Clear();
  throwType(name, expected, getTypeName(object));
}

void python::throwDtype(const char *name, const std::string &actual,
                        const Dtype *expected) {
  if (expected)
    throwType(name, std::string("dtype ") + getName(*expected), actual);
  bool isMask = std::strcmp(name, "mask") == 0;
  throwType(name,
            isMask ? "dtype bool"
                   : "dtype float16, bfloat16, float32 or float64",
            actual);
}

void python::throwReadOnly(const char *name) {
  throwError(BNGRAD_BAD_PARAM,
             std::string(name) +
                 ": expected memory to write to, got a read-only "
                 "array");
}

void python::throwOverlap(const char *name) {
  throwError(BNGRAD_BAD_STRIDES,
             std::string(name) + ": expected strides that give each element an "
                                 "address of its own, got an overlap");
}

void python::verifyRank(const char *name, size_t rank) {
  if (rank > BNGRAD_MAX_RANK)
    throwError(BNGRAD_BAD_SHAPE, std::string(name) + ": expected at most " +
                                     std::to_string(BNGRAD_MAX_RANK) +
                                     " dims, got " + std::to_string(rank));
}
