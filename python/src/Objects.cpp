//===- Objects.cpp - Python objects that are arrays -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Objects.h"

#include "Errors.h"

#include "BNGrad/Dialect/Alignment.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace bngrad;
using namespace bngrad::python;
using mlir::bngrad::alignUp, mlir::bngrad::kBufferAlignment;

static std::string getName(nb::dlpack::dtype type) {
  static constexpr const char *kCodes[] = {
      "int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  std::string name =
      type.code < std::size(kCodes) ? kCodes[type.code] : "type ";
  if (type.code >= std::size(kCodes))
    name += std::to_string(type.code) + " of bits ";
  return name + std::to_string(type.bits) +
         (type.lanes == 1 ? "" : "x" + std::to_string(type.lanes));
}

/// The element type of a DLPack tensor.
static Dtype getDtype(nb::dlpack::dtype type, const char *name,
                      const Dtype *expected) {
  using nb::dlpack::dtype_code;
  auto code = static_cast<dtype_code>(type.code);
  if (type.lanes == 1) {
    if (code == dtype_code::Float && type.bits == 16)
      return Dtype::F16;
    if (code == dtype_code::Float && type.bits == 32)
      return Dtype::F32;
    if (code == dtype_code::Float && type.bits == 64)
      return Dtype::F64;
    if (code == dtype_code::Bfloat && type.bits == 16)
      return Dtype::BF16;
    if (code == dtype_code::Bool && type.bits == 8)
      return Dtype::Bool;
    bool isInteger = code == dtype_code::Int || code == dtype_code::UInt;
    bool isWhole =
        type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
    if (expected && isInteger && isWhole)
      return getInteger(type.bits / 8);
  }
  throwDtype(name, getName(type), expected);
}

namespace {
/// The library of a type of arrays.
struct Library {
  enum Kind { Torch, Jax, Other };

  nb::handle type;
  nb::object reference; // weak, to the type
  Kind kind;
  bool hasDLPack;
  const ExchangeApi *exchange;
};
} // namespace

/// The library of a type or of its base types.
static Library::Kind findKind(nb::handle type) {
  for (nb::handle base : type.attr("__mro__")) {
    auto module = nb::cast<std::string>(nb::str(base.attr("__module__")));
    std::string package = module.substr(0, module.find('.'));
    if (package == "torch")
      return Library::Torch;
    if (package == "jax" || package == "jaxlib")
      return Library::Jax;
  }
  return Library::Other;
}

/// The libraries of types that were seen and still exist; never destroyed. The
/// GIL protects them.
static std::vector<Library> &getLibraries() {
  static std::vector<Library> *libraries;
  if (!libraries)
    libraries = new std::vector<Library>;
  return *libraries;
}

/// Whether an object has an attribute; an exception other than AttributeError,
/// such as KeyboardInterrupt, goes on.
static bool hasAttribute(nb::handle object, const char *name) {
  PyObject *value = PyObject_GetAttrString(object.ptr(), name);
  if (!value && !PyErr_ExceptionMatches(PyExc_AttributeError))
    throw nb::python_error();
  PyErr_Clear();
  Py_XDECREF(value);
  return value;
}

static Library findLibrary(nb::handle object) {
  std::vector<Library> &libraries = getLibraries();
  nb::handle type = object.type();
  for (const Library &library : libraries)
    if (library.type.is(type))
      return library;
  // Another type may reuse the address once this one is gone.
  nb::object forget = nb::cpp_function([address = type.ptr()](nb::handle) {
    std::vector<Library> &known = getLibraries();
    auto isGone = [&](const Library &library) {
      return library.type.ptr() == address;
    };
    known.erase(std::remove_if(known.begin(), known.end(), isGone),
                known.end());
  });
  Library library = {type, nb::weakref(type, forget), findKind(type),
                     hasAttribute(type, "__dlpack__"), findExchangeApi(type)};
  libraries.push_back(library);
  return library;
}

static void verifyDevice(int device, const char *name) {
  if (device != nb::device::cpu::value &&
      device != nb::device::cuda_host::value)
    throwError(BNGRAD_DEVICE_NOT_SUPPORTED,
               std::string(name) +
                   ": expected data on the CPU, got DLPack's device type " +
                   std::to_string(device));
}

/// Checks the rank and the sizes of another library's tensor.
static void verifyTensor(const nb::dlpack::dltensor &tensor, const char *name) {
  auto fail = [&](const std::string &text) {
    throwError(BNGRAD_BAD_SHAPE, std::string(name) + ": expected " + text);
  };
  if (tensor.ndim < 0)
    fail("at least 0 dims, got " + std::to_string(tensor.ndim));
  verifyRank(name, tensor.ndim);
  if (tensor.ndim > 0 && !tensor.shape)
    fail("a shape, got null");
  for (int dim = 0; dim < tensor.ndim; ++dim)
    if (tensor.shape[dim] < 0)
      fail("size of dim " + std::to_string(dim) + " to be at least 0, got " +
           std::to_string(tensor.shape[dim]));
}

static void readTensor(const nb::dlpack::dltensor &tensor, const char *name,
                       Array &array, const Dtype *expected) {
  verifyDevice(tensor.device.device_type, name);
  verifyTensor(tensor, name);
  array.dtype = getDtype(tensor.dtype, name, expected);
  array.rank = tensor.ndim;
  array.isSwapped = array.isReadOnly = false;
  std::copy_n(tensor.shape, array.rank, array.shape);
  int order[BNGRAD_MAX_RANK];
  for (int dim = 0; dim < array.rank; ++dim)
    order[dim] = dim;
  if (!tensor.strides)
    setDenseStrides(array, order);
  for (int dim = 0; tensor.strides && dim < array.rank; ++dim)
    if (__builtin_mul_overflow(tensor.strides[dim], getBytes(array.dtype),
                               &array.strides[dim]))
      throwError(BNGRAD_BAD_STRIDES,
                 std::string(name) + ": expected stride of dim " +
                     std::to_string(dim) +
                     " in bytes to fit into 64 bits, got " +
                     std::to_string(tensor.strides[dim]) + " elements");
  array.data = static_cast<char *>(tensor.data);
  if (array.data)
    array.data += tensor.byte_offset;
}

/// Checks properties of a PyTorch tensor that DLPack does not convey.
static void verifyTorch(nb::handle tensor, const char *name) {
  if (tensor.attr("requires_grad").is(nb::handle(Py_True)))
    throwType(name, "a tensor that requires no gradient",
              "one that does; detach it, or use torch.ops.bngrad");
  if (tensor.attr("is_neg")().is(nb::handle(Py_True)))
    throwType(name, "a tensor of the values in its memory",
              "one with the negative bit; see Tensor.resolve_neg");
}

static uintptr_t getStart(nb::handle storage) {
  return nb::cast<uintptr_t>(storage.attr("data_ptr")());
}

/// Checks that the storage of a PyTorch tensor contains the elements, at the
/// address where they were read: it may have been resized before or since.
static void verifyStorage(const Keeper &keeper, const char *name,
                          const Array &array) {
  if (getNumElements(array) == 0)
    return;
  auto size = nb::cast<int64_t>(keeper.storage.attr("nbytes")());
  auto address = reinterpret_cast<uintptr_t>(array.data);
  uintptr_t start = keeper.storageStart;
  int64_t end = getBytes(array.dtype);
  for (int dim = 0; dim < array.rank; ++dim)
    end += (array.shape[dim] - 1) * array.strides[dim];
  end += address >= start ? static_cast<int64_t>(address - start) : 0;
  if (!array.data || address < start || end > size)
    throwError(BNGRAD_BAD_PARAM,
               std::string(name) + ": expected a storage of at least " +
                   std::to_string(end) + " bytes, got " + std::to_string(size));
  if (getStart(keeper.storage) != start)
    throwError(BNGRAD_BAD_PARAM,
               std::string(name) + ": expected a tensor that no other argument "
                                   "changes, got one that was resized");
}

/// Checks the sizes and the address of another library's array.
static void verifyMemory(const Array &array, const char *name) {
  for (int dim = 0; dim < array.rank; ++dim)
    if (array.shape[dim] < 0)
      throwError(BNGRAD_BAD_SHAPE,
                 std::string(name) + ": expected size of dim " +
                     std::to_string(dim) + " to be at least 0, got " +
                     std::to_string(array.shape[dim]));
  bool isEmpty = std::find(array.shape, array.shape + array.rank, 0) !=
                 array.shape + array.rank;
  if (!isEmpty && !array.data)
    throwError(BNGRAD_NULL_POINTER,
               std::string(name) + ": expected data, got null");
}

/// Reads a tensor of a library other than numpy.
static void readOther(nb::handle object, const char *name, bool isOutput,
                      Array &array, Keeper &keeper, const Dtype *expected) {
  Library library = findLibrary(object);
  if (!library.hasDLPack)
    throwType(name, "a numpy array or an object with __dlpack__",
              getTypeName(object));
  if (library.kind == Library::Torch)
    verifyTorch(object, name);
  // Its arrays are immutable, which DLPack does not convey.
  if (library.kind == Library::Jax && isOutput)
    throwReadOnly(name);
  keeper.tensor.take(object, library.exchange, name);
  readTensor(keeper.tensor.get(), name, array, expected);
  array.isReadOnly = keeper.tensor.isReadOnly();
  if (library.kind == Library::Torch) {
    keeper.storage = object.attr("untyped_storage")();
    keeper.storageStart = getStart(keeper.storage);
  }
}

void python::read(nb::handle object, const char *name, bool isOutput,
                  Array &array, Keeper &keeper, const Dtype *expected) {
  if (!readNumpy(object, name, array, expected))
    readOther(object, name, isOutput, array, keeper, expected);
  verifyMemory(array, name);
  if (isOutput && array.isReadOnly)
    throwReadOnly(name);
}

void python::verifyUnchanged(nb::handle object, const char *name,
                             const Array &array, const Keeper &keeper) {
  if (keeper.storage.is_valid())
    verifyStorage(keeper, name, array);
  else if (!keeper.tensor)
    verifyNumpyUnchanged(object, name, array);
}

void python::markWritten(nb::handle object) {
  if (isNumpy(object) || findLibrary(object).kind != Library::Torch)
    return;
  // Tensors of inference mode have no version counter.
  if (object.attr("is_inference")().is(nb::handle(Py_True)))
    return;
  nb::module_::import_("torch.autograd.graph")
      .attr("increment_version")(object);
}

Result::Result(Array &array, nb::handle like) : like(like), array(&array) {
  array.isSwapped = array.isReadOnly = false;
  if (isNumpy(like)) {
    object = makeNumpy(array);
    return;
  }
  // JAX copies memory with a smaller alignment.
  size_t size = getNumElements(array) * getBytes(array.dtype);
  void *memory =
      std::aligned_alloc(kBufferAlignment, alignUp(std::max<size_t>(size, 1)));
  if (!memory)
    throw std::bad_alloc();
  object =
      nb::capsule(memory, [](void *pointer) noexcept { std::free(pointer); });
  array.data = static_cast<char *>(memory);
}

template <typename Framework>
static nb::object makeTensor(const Array &array, nb::handle owner) {
  auto make = [](nb::dlpack::dtype_code code, uint8_t bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), bits, 1};
  };
  using Code = nb::dlpack::dtype_code;
  const nb::dlpack::dtype kTypes[] = {
      make(Code::Float, 16), make(Code::Bfloat, 16), make(Code::Float, 32),
      make(Code::Float, 64), make(Code::Bool, 8),    make(Code::Int, 8),
      make(Code::Int, 16),   make(Code::Int, 32),    make(Code::Int, 64)};
  size_t shape[BNGRAD_MAX_RANK];
  int64_t strides[BNGRAD_MAX_RANK];
  for (int dim = 0; dim < array.rank; ++dim) {
    shape[dim] = array.shape[dim];
    strides[dim] = array.strides[dim] / getBytes(array.dtype);
  }
  return nb::cast(nb::ndarray<Framework>(
      array.data, array.rank, shape, owner, strides,
      kTypes[static_cast<int>(array.dtype)], nb::device::cpu::value, 0));
}

nb::object Result::take() {
  if (isNumpy(like))
    return object;
  switch (findLibrary(like).kind) {
  case Library::Torch:
    return makeTensor<nb::pytorch>(*array, object);
  case Library::Jax:
    return makeTensor<nb::jax>(*array, object);
  case Library::Other:
    break;
  }
  nb::object tensor = makeTensor<nb::array_api>(*array, object);
  if (hasAttribute(like, "__array_namespace__"))
    return like.attr("__array_namespace__")().attr("from_dlpack")(tensor);
  return tensor;
}
