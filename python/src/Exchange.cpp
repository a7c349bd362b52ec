//===- Exchange.cpp - tensors of other libraries, by DLPack ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exchange.h"

#include "Errors.h"

#include <cstddef>
#include <string>

namespace nb = nanobind;
using namespace bngrad::python;

static_assert(sizeof(nb::dlpack::dltensor) == 48, "as DLTensor of dlpack.h");
static_assert(offsetof(VersionedTensor, tensor) == 32,
              "as DLManagedTensorVersioned of dlpack.h");
static_assert(offsetof(UnversionedTensor, deleter) == 56,
              "as DLManagedTensor of dlpack.h");
static_assert(offsetof(ExchangeApi, exportTensor) == 24,
              "as DLPackExchangeAPI of dlpack.h");

/// The major version of DLPack that this file reads.
static constexpr uint32_t kMajor = 1;

/// DLPACK_FLAG_BITMASK_READ_ONLY.
static constexpr uint64_t kReadOnlyFlag = 1;

const ExchangeApi *bngrad::python::findExchangeApi(nb::handle type) {
  // Subclasses inherit it, but may have no data or different data.
  nb::object capsule =
      type.attr("__dict__")
          .attr("get")("__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api"))
    return nullptr;
  auto *api = static_cast<const ExchangeApi *>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (api && api->major != kMajor)
    api = api->previous;
  return api && api->exportTensor ? api : nullptr;
}

ExportedTensor::~ExportedTensor() {
  if (versioned && versioned->deleter)
    versioned->deleter(versioned);
  if (unversioned && unversioned->deleter)
    unversioned->deleter(unversioned);
}

bool ExportedTensor::isReadOnly() const {
  return versioned && (versioned->flags & kReadOnlyFlag) != 0;
}

/// The capsule of `object`, in version 1 if its library supports that.
static nb::object exportCapsule(nb::handle object) {
  nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(kMajor, 0));
  } catch (const nb::python_error &error) {
    // The library predates version 1.
    if (!error.matches(PyExc_TypeError))
      throw;
  }
  return method();
}

/// Takes the tensor in a capsule, which is called `name` until then.
template <typename Tensor>
static Tensor *getTensor(nb::handle capsule, const char *name) {
  if (!PyCapsule_IsValid(capsule.ptr(), name))
    return nullptr;
  return static_cast<Tensor *>(PyCapsule_GetPointer(capsule.ptr(), name));
}

void ExportedTensor::takeCapsule(nb::handle object, const char *name) {
  nb::object capsule = exportCapsule(object);
  const char *used = "used_dltensor_versioned";
  auto *ofVersion = getTensor<VersionedTensor>(capsule, "dltensor_versioned");
  UnversionedTensor *ofNone = nullptr;
  if (!ofVersion) {
    ofNone = getTensor<UnversionedTensor>(capsule, "dltensor");
    used = "used_dltensor";
  }
  if (!ofVersion && !ofNone)
    throwType(name, "an object whose __dlpack__ exports a tensor",
              getTypeName(object));
  // Nothing else may be read of another version. The capsule keeps it.
  if (ofVersion && ofVersion->major != kMajor)
    throwType(name, "a tensor of DLPack 1",
              "one of DLPack " + std::to_string(ofVersion->major));
  // From here on the capsule does not free it.
  if (PyCapsule_SetName(capsule.ptr(), used) != 0)
    throw nb::python_error();
  versioned = ofVersion;
  unversioned = ofNone;
}

void ExportedTensor::take(nb::handle object, const ExchangeApi *api,
                          const char *name) {
  if (!api)
    return takeCapsule(object, name);
  if (api->exportTensor(object.ptr(), &versioned) != 0) {
    versioned = nullptr;
    throw nb::python_error();
  }
}
