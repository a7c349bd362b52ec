//===- Exchange.h - tensors of other libraries, by DLPack -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Since DLPack 1.2, a type of arrays may have a table of functions, which takes
// a tenth of the time of __dlpack__.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_EXCHANGE_H
#define BNGRAD_PYTHON_SRC_EXCHANGE_H

#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>

namespace bngrad::python {

/// DLManagedTensorVersioned and DLManagedTensor of dlpack.h.
struct VersionedTensor {
  uint32_t major, minor;
  void *context;
  void (*deleter)(VersionedTensor *);
  uint64_t flags;
  nanobind::dlpack::dltensor tensor;
};
struct UnversionedTensor {
  nanobind::dlpack::dltensor tensor;
  void *context;
  void (*deleter)(UnversionedTensor *);
};

/// DLPackExchangeAPI of dlpack.h, version 1.
struct ExchangeApi {
  uint32_t major, minor;
  const ExchangeApi *previous; // of another major version
  void *allocate;
  /// Exports the tensor in `object`; nonzero after a Python exception.
  int (*exportTensor)(void *object, VersionedTensor **tensor);
  void *importTensor;
  void *readTensor;
  void *getStream;
};

/// The table of a type; null if it has none.
const ExchangeApi *findExchangeApi(nanobind::handle type);

/// A tensor of another library; keeps its memory alive. Needs the GIL.
class ExportedTensor {
public:
  ExportedTensor() = default;
  ExportedTensor(ExportedTensor &&other) noexcept
      : versioned(std::exchange(other.versioned, nullptr)),
        unversioned(std::exchange(other.unversioned, nullptr)) {}
  ExportedTensor &operator=(ExportedTensor &&) = delete;
  ~ExportedTensor();

  /// Takes the tensor in `object`, by `api` unless that is null. Throws what
  /// the library throws, and errors about the argument `name`.
  void take(nanobind::handle object, const ExchangeApi *api, const char *name);

  /// Whether it holds one.
  explicit operator bool() const { return versioned || unversioned; }
  const nanobind::dlpack::dltensor &get() const {
    return versioned ? versioned->tensor : unversioned->tensor;
  }
  bool isReadOnly() const;

private:
  void takeCapsule(nanobind::handle object, const char *name);

  VersionedTensor *versioned = nullptr;
  UnversionedTensor *unversioned = nullptr;
};

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_EXCHANGE_H
