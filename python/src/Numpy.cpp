//===- Numpy.cpp - arrays of numpy ----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Uses numpy's C API, which takes a tenth of the time of DLPack and supports
// the types of ml_dtypes. numpy is not imported here, as there are no arrays
// until the program imports it.
//
//===----------------------------------------------------------------------===//

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarrayobject.h>

#include "Objects.h"

#include "Errors.h"

#include <nanobind/stl/string.h>

#include <string>

using namespace bngrad;
using namespace bngrad::python;

/// The number that numpy gave to bfloat16 of ml_dtypes; -1 if not known yet.
static int bfloat16 = -1;

/// Whether numpy has been imported.
static bool hasNumpy() {
  if (PyArray_API)
    return true;
  PyObject *modules = PyImport_GetModuleDict();
  if (!PyDict_GetItemString(modules, "numpy"))
    return false;
  if (PyArray_ImportNumPyAPI() < 0)
    throw nb::python_error();
  return true;
}

bool python::isNumpy(nb::handle object) {
  return hasNumpy() && PyArray_Check(object.ptr());
}

/// Whether a type that numpy does not define is bfloat16.
static bool isBfloat16(PyArray_Descr *descr) {
  if (bfloat16 != -1)
    return descr->type_num == bfloat16;
  nb::handle type(reinterpret_cast<PyObject *>(descr->typeobj));
  if (nb::cast<std::string>(type.attr("__name__")) != "bfloat16")
    return false;
  bfloat16 = descr->type_num;
  return true;
}

static Dtype getDtype(PyArray_Descr *descr, const char *name,
                      const Dtype *expected) {
  switch (descr->type_num) {
  case NPY_HALF:
    return Dtype::F16;
  case NPY_FLOAT:
    return Dtype::F32;
  case NPY_DOUBLE:
    return Dtype::F64;
  case NPY_BOOL:
    return Dtype::Bool;
  case NPY_BYTE:
  case NPY_UBYTE:
  case NPY_SHORT:
  case NPY_USHORT:
  case NPY_INT:
  case NPY_UINT:
  case NPY_LONG:
  case NPY_ULONG:
  case NPY_LONGLONG:
  case NPY_ULONGLONG:
    if (expected)
      return getInteger(PyDataType_ELSIZE(descr));
    break;
  default:
    if (PyTypeNum_ISUSERDEF(descr->type_num) && isBfloat16(descr))
      return Dtype::BF16;
  }
  nb::handle object(reinterpret_cast<PyObject *>(descr));
  throwDtype(name, nb::str(object).c_str(), expected);
}

/// Rejects masked arrays, whose elements may be absent.
static void verifyNotMasked(nb::handle object, const char *name) {
  PyObject *modules = PyImport_GetModuleDict();
  nb::handle module(PyDict_GetItemString(modules, "numpy.ma"));
  if (module.is_valid() &&
      PyObject_IsInstance(object.ptr(), module.attr("MaskedArray").ptr()) == 1)
    throwType(name, "an array whose elements are all there",
              "a masked array; give its data, and mask");
}

bool python::readNumpy(nb::handle object, const char *name, Array &array,
                       const Dtype *expected) {
  if (!isNumpy(object))
    return false;
  if (!PyArray_CheckExact(object.ptr()))
    verifyNotMasked(object, name);
  auto *from = reinterpret_cast<PyArrayObject *>(object.ptr());
  verifyRank(name, PyArray_NDIM(from));
  array.dtype = ::getDtype(PyArray_DESCR(from), name, expected);
  array.rank = PyArray_NDIM(from);
  array.isSwapped = PyArray_ISBYTESWAPPED(from);
  array.isReadOnly = !PyArray_ISWRITEABLE(from);
  for (int dim = 0; dim < array.rank; ++dim) {
    array.shape[dim] = PyArray_DIM(from, dim);
    array.strides[dim] = PyArray_STRIDE(from, dim);
  }
  array.data = PyArray_BYTES(from);
  return true;
}

void python::verifyNumpyUnchanged(nb::handle object, const char *name,
                                  const Array &array) {
  auto *now = reinterpret_cast<PyArrayObject *>(object.ptr());
  bool isSame = PyArray_BYTES(now) == array.data &&
                PyArray_NDIM(now) == array.rank &&
                PyDataType_ELSIZE(PyArray_DESCR(now)) == getBytes(array.dtype);
  for (int dim = 0; isSame && dim < array.rank; ++dim)
    isSame = PyArray_DIM(now, dim) == array.shape[dim] &&
             PyArray_STRIDE(now, dim) == array.strides[dim];
  if (!isSame)
    throwError(BNGRAD_BAD_PARAM,
               std::string(name) +
                   ": expected an array that no other argument changes, got "
                   "one that was resized or reshaped");
}

static PyArray_Descr *makeDescr(Dtype dtype) {
  if (dtype == Dtype::BF16 && bfloat16 == -1) {
    PyArray_Descr *descr = nullptr;
    nb::object type = nb::module_::import_("ml_dtypes").attr("bfloat16");
    if (!PyArray_DescrConverter(type.ptr(), &descr))
      throw nb::python_error();
    bfloat16 = descr->type_num;
    return descr;
  }
  const int kTypes[] = {NPY_HALF, bfloat16,  NPY_FLOAT, NPY_DOUBLE, NPY_BOOL,
                        NPY_INT8, NPY_INT16, NPY_INT32, NPY_INT64};
  return PyArray_DescrFromType(kTypes[static_cast<int>(dtype)]);
}

nb::object python::makeNumpy(Array &array) {
  npy_intp shape[BNGRAD_MAX_RANK], strides[BNGRAD_MAX_RANK];
  for (int dim = 0; dim < array.rank; ++dim) {
    shape[dim] = array.shape[dim];
    strides[dim] = array.strides[dim];
  }
  PyObject *object =
      PyArray_NewFromDescr(&PyArray_Type, makeDescr(array.dtype), array.rank,
                           shape, strides, nullptr, 0, nullptr);
  if (!object)
    throw nb::python_error();
  array.data = PyArray_BYTES(reinterpret_cast<PyArrayObject *>(object));
  return nb::steal(object);
}
