//===- Objects.cpp - Python objects that are arrays -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Objects.h"

#include "Errors.h"
#include "Exchange.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace bngrad;
using namespace bngrad::python;

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

/// The type of elements of a DLPack tensor.
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

  nb::object type; // which is then never another one
  Kind kind;
  bool hasDLPack;
  const ExchangeApi *exchange;
};
} // namespace

/// The library of a type or of one that it is derived from.
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

static const Library &findLibrary(nb::handle object) {
  // Python's lock protects them.
  static std::vector<std::unique_ptr<const Library>> libraries;
  nb::handle type = object.type();
  for (const auto &library : libraries)
    if (library->type.is(type))
      return *library;
  Library library = {nb::borrow(type), findKind(type),
                     nb::hasattr(type, "__dlpack__"), findExchangeApi(type)};
  libraries.push_back(std::make_unique<Library>(library));
  return *libraries.back();
}

static void verifyDevice(int device, const char *name) {
  if (device != nb::device::cpu::value &&
      device != nb::device::cuda_host::value)
    throwError(BNGRAD_DEVICE_NOT_SUPPORTED,
               std::string(name) +
                   ": expected data on the CPU, got DLPack's device type " +
                   std::to_string(device));
}

static void readTensor(const nb::dlpack::dltensor &tensor, const char *name,
                       Array &array, const Dtype *expected) {
  verifyDevice(tensor.device.device_type, name);
  verifyRank(name, tensor.ndim);
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
    array.strides[dim] = tensor.strides[dim] * getBytes(array.dtype);
  array.data = static_cast<char *>(tensor.data) + tensor.byte_offset;
}

static void readKeeper(const Keeper &tensor, const char *name, Array &array,
                       const Dtype *expected) {
  int64_t shape[BNGRAD_MAX_RANK], strides[BNGRAD_MAX_RANK];
  verifyRank(name, tensor.ndim());
  for (size_t dim = 0; dim < tensor.ndim(); ++dim) {
    shape[dim] = static_cast<int64_t>(tensor.shape(dim));
    strides[dim] = tensor.stride(dim);
  }
  nb::dlpack::dltensor whole = {};
  // Only read unless it is an output.
  whole.data = const_cast<void *>(tensor.data());
  whole.device = {tensor.device_type(), 0};
  whole.ndim = static_cast<int32_t>(tensor.ndim());
  whole.dtype = tensor.dtype();
  whole.shape = shape;
  whole.strides = strides;
  readTensor(whole, name, array, expected);
}

/// Checks properties of a tensor of PyTorch that DLPack does not tell.
static void verifyTorch(nb::handle tensor, const char *name) {
  if (tensor.attr("requires_grad").is(nb::handle(Py_True)))
    throwType(name, "a tensor that requires no gradient",
              "one that does; detach it, or use torch.ops.bngrad");
  if (tensor.attr("is_neg")().is(nb::handle(Py_True)))
    throwType(name, "a tensor of the values in its memory",
              "one with the negative bit; see Tensor.resolve_neg");
}

void python::read(nb::handle object, const char *name, bool isOutput,
                  Array &array, Keeper &keeper, const Dtype *expected) {
  if (readNumpy(object, name, array, expected)) {
    if (isOutput && array.isReadOnly)
      throwReadOnly(name);
    return;
  }
  const Library &library = findLibrary(object);
  if (!library.hasDLPack)
    throwType(name, "a numpy array or an object with __dlpack__",
              getTypeName(object));
  if (library.kind == Library::Torch)
    verifyTorch(object, name);
  // Its arrays do not change, which DLPack does not tell.
  if (library.kind == Library::Jax && isOutput)
    throwReadOnly(name);
  if (library.exchange)
    return readTensor(library.exchange->read(object), name, array, expected);
  nb::ndarray<> writable;
  if (isOutput && nb::try_cast(object, writable)) {
    keeper = Keeper(writable);
  } else if (!nb::try_cast(object, keeper)) {
    // That of the library says why.
    object.attr("__dlpack__")();
    throwType(name, "an object whose __dlpack__ exports a tensor",
              getTypeName(object));
  } else if (isOutput) {
    throwReadOnly(name);
  }
  readKeeper(keeper, name, array, expected);
}

void python::markWritten(nb::handle object) {
  if (isNumpy(object) || findLibrary(object).kind != Library::Torch)
    return;
  // Tensors of inference mode have no version.
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
  // JAX copies memory of a smaller alignment.
  constexpr size_t kAlignment = 64;
  size_t size = getNumElements(array) * getBytes(array.dtype);
  size = std::max<size_t>((size + kAlignment - 1) / kAlignment, 1) * kAlignment;
  void *memory = std::aligned_alloc(kAlignment, size);
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
  if (nb::hasattr(like, "__array_namespace__"))
    return like.attr("__array_namespace__")().attr("from_dlpack")(tensor);
  return tensor;
}
