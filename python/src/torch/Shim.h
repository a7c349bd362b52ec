//===- Shim.h - tensors of PyTorch's stable ABI -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This library uses only the C functions of PyTorch's stable ABI, so that
// neither exceptions nor C++ library types cross to libtorch: the two may have
// different C++ libraries. It is compiled without exceptions. An error is a
// message that a kernel's last step passes to PyTorch, once no object is left
// to destroy.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_TORCH_SHIM_H
#define BNGRAD_PYTHON_SRC_TORCH_SHIM_H

#include "BNGrad/Runtime/Runtime.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <cstring>

namespace bngrad::torch {

/// Sets the error of this thread, one line, and returns false.
[[gnu::format(printf, 1, 2)]] bool fail(const char *format, ...);

/// The error of this thread.
const char *getError();

/// Throws the error of this thread as PyTorch's error. Call it only when
/// nothing is left to destroy.
[[noreturn]] void raise();

/// Sets the error of this thread to the error of a failed PyTorch function.
bool failByTorch(const char *function);

/// The value in a slot of a kernel's stack.
template <typename T> T unpack(StableIValue slot) {
  T value;
  static_assert(sizeof(T) <= sizeof(slot));
  std::memcpy(&value, &slot, sizeof(T));
  return value;
}

template <typename T> StableIValue pack(T value) {
  StableIValue slot = 0;
  static_assert(sizeof(T) <= sizeof(slot));
  std::memcpy(&slot, &value, sizeof(T));
  return slot;
}

/// Takes the handle in a slot of type `Tensor?`; null if none.
AtenTensorHandle takeOptional(StableIValue slot);

/// The device of a tensor, with PyTorch's numbers.
struct Device {
  int32_t type = -1;
  int32_t index = 0;

  static Device getCpu() { return {aoti_torch_device_type_cpu(), 0}; }
  bool isCuda() const { return type == aoti_torch_device_type_cuda(); }
  bool operator==(const Device &other) const {
    return type == other.type && index == other.index;
  }
};

/// A tensor, owned or borrowed, or none, with its properties.
class Tensor {
public:
  Tensor() = default;
  ~Tensor() { reset(); }
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;
  Tensor(Tensor &&other) noexcept { *this = static_cast<Tensor &&>(other); }
  Tensor &operator=(Tensor &&other) noexcept;

  /// Takes `handle`; an undefined tensor counts as none.
  bool take(AtenTensorHandle handle);

  /// The same for a handle whose owner keeps it meanwhile.
  bool borrow(AtenTensorHandle handle);

  /// Takes a slot of type `Tensor?`.
  bool takeOptional(StableIValue slot);

  /// Makes an uninitialized tensor.
  bool makeEmpty(const Device &device, int32_t dtype, int64_t rank,
                 const int64_t *sizes, const int64_t *strides);

  /// Moves this tensor to a slot, an undefined tensor if there is none.
  StableIValue release();

  void reset();

  /// Checks that it has strides and is on a CPU or a CUDA device. The error
  /// calls the tensor `name`.
  bool verifyPlace(const char *name) const;

  explicit operator bool() const { return handle != nullptr; }
  AtenTensorHandle get() const { return handle; }

  /// Whether there are no elements.
  bool isEmpty() const;

  /// Checks that the storage of a strided tensor contains its elements, as it
  /// may have been resized since. The error calls the tensor `name`.
  bool verifyStorage(const char *name) const;

  /// The data, for reading and for writing.
  bool getData(const void *&data) const;
  bool getMutableData(void *&data) const;

  /// Whether the C library has its type.
  bool hasKnownType() const { return type >= 0; }
  bngradDtype_t getType() const { return static_cast<bngradDtype_t>(type); }

  int64_t rank = 0;
  const int64_t *sizes = nullptr;
  const int64_t *strides = nullptr;
  int32_t dtype = 0;
  Device device;
  /// Whether it has strides and is in the memory of a CPU or a CUDA device.
  bool isStrided = false;

private:
  bool readFacts();
  bool readShape();

  AtenTensorHandle handle = nullptr;
  int type = -1;
  bool isOwned = false;
};

/// PyTorch's number of a C library type, and the reverse; -1 if there is none.
int32_t toTorchType(bngradDtype_t type);
int fromTorchType(int32_t dtype);

/// Row-major strides.
void setContiguous(int64_t rank, const int64_t *sizes, int64_t *strides);

/// Whether elements fill their memory without gaps or overlap.
bool isDense(int64_t rank, const int64_t *sizes, const int64_t *strides);

/// Whether all elements of `tensor` are where `strides` say.
bool hasStrides(const Tensor &tensor, const int64_t *strides);

/// Copies `from` into a new tensor with `strides`.
bool copyWithStrides(const Tensor &from, const int64_t *strides, Tensor &to);

} // namespace bngrad::torch

#endif // BNGRAD_PYTHON_SRC_TORCH_SHIM_H
