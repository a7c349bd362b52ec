//===- Shim.cpp - tensors of PyTorch's stable ABI -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shim.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace bngrad::torch;

// Functions since PyTorch 2.13, with PyTorch's names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" [[gnu::weak]] const char *
torch_exception_get_what_without_backtrace();
extern "C" [[gnu::weak]] AOTITorchError
torch_delete_stable_ivalue(StableIValue *value);
// NOLINTEND(readability-identifier-naming)

static thread_local char lastError[1024];

// PyTorch's numbers, which its functions return, are queried once: even a call
// of a few elements reads the properties of eight tensors.
static const int32_t kStrided = aoti_torch_layout_strided();
static const int32_t kCpu = aoti_torch_device_type_cpu();
static const int32_t kCuda = aoti_torch_device_type_cuda();
static const struct {
  bngradDtype_t type;
  int32_t dtype;
  int64_t bytes;
} kTypes[] = {{BNGRAD_DTYPE_F32, aoti_torch_dtype_float32(), 4},
              {BNGRAD_DTYPE_BF16, aoti_torch_dtype_bfloat16(), 2},
              {BNGRAD_DTYPE_F16, aoti_torch_dtype_float16(), 2},
              {BNGRAD_DTYPE_F64, aoti_torch_dtype_float64(), 8},
              {BNGRAD_DTYPE_BOOL, aoti_torch_dtype_bool(), 1}};

bool bngrad::torch::fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(lastError, sizeof(lastError), format, arguments);
  va_end(arguments);
  return false;
}

const char *bngrad::torch::getError() { return lastError; }

bool bngrad::torch::failByTorch(const char *function) {
  const char *message = torch_exception_get_what_without_backtrace
                            ? torch_exception_get_what_without_backtrace()
                            : nullptr;
  if (message && *message)
    return fail("%s", message);
  return fail("%s of PyTorch failed", function);
}

void bngrad::torch::raise() {
  aoti_torch_check(false, "bngrad.torch", __FILE__, __LINE__, lastError);
  abort();
}

AtenTensorHandle bngrad::torch::takeOptional(StableIValue slot) {
  auto *value = unpack<StableIValue *>(slot);
  if (!value)
    return nullptr;
  auto handle = unpack<AtenTensorHandle>(*value);
  // Before 2.13, by the ABI, the kernel deletes it.
  if (torch_delete_stable_ivalue)
    torch_delete_stable_ivalue(value);
  else
    delete value;
  return handle;
}

Tensor &Tensor::operator=(Tensor &&other) noexcept {
  if (this == &other)
    return *this;
  reset();
  handle = std::exchange(other.handle, nullptr);
  rank = other.rank;
  sizes = other.sizes;
  strides = other.strides;
  dtype = other.dtype;
  type = other.type;
  device = other.device;
  isStrided = other.isStrided;
  isOwned = other.isOwned;
  return *this;
}

void Tensor::reset() {
  if (handle && isOwned)
    aoti_torch_delete_tensor_object(handle);
  handle = nullptr;
}

bool Tensor::take(AtenTensorHandle newHandle) {
  reset();
  handle = newHandle;
  isOwned = true;
  return readFacts();
}

bool Tensor::borrow(AtenTensorHandle newHandle) {
  reset();
  handle = newHandle;
  isOwned = false;
  return readFacts();
}

bool Tensor::readFacts() {
  bool isDefined = false;
  if (aoti_torch_is_defined(handle, &isDefined) || !isDefined) {
    reset();
    return true;
  }
  int32_t layout = -1;
  device.index = 0;
  if (aoti_torch_get_layout(handle, &layout) ||
      aoti_torch_get_device_type(handle, &device.type) ||
      (device.type == kCuda &&
       aoti_torch_get_device_index(handle, &device.index)) ||
      aoti_torch_get_dtype(handle, &dtype) || aoti_torch_get_dim(handle, &rank))
    return failByTorch("aoti_torch_get_dim");
  type = fromTorchType(dtype);
  isStrided =
      layout == kStrided && (device.type == kCpu || device.type == kCuda);
  return !isStrided || readShape();
}

bool Tensor::readShape() {
  int64_t *ownSizes = nullptr, *ownStrides = nullptr;
  if (aoti_torch_get_sizes(handle, &ownSizes) ||
      aoti_torch_get_strides(handle, &ownStrides))
    return failByTorch("aoti_torch_get_strides");
  sizes = ownSizes;
  strides = ownStrides;
  return true;
}

bool Tensor::takeOptional(StableIValue slot) {
  AtenTensorHandle optional = bngrad::torch::takeOptional(slot);
  if (optional)
    return take(optional);
  reset();
  return true;
}

bool Tensor::makeEmpty(const Device &newDevice, int32_t newDtype,
                       int64_t newRank, const int64_t *newSizes,
                       const int64_t *newStrides) {
  AtenTensorHandle newHandle = nullptr;
  if (aoti_torch_empty_strided(newRank, newSizes, newStrides, newDtype,
                               newDevice.type, newDevice.index, &newHandle))
    return failByTorch("aoti_torch_empty_strided");
  reset();
  handle = newHandle;
  device = newDevice;
  isOwned = isStrided = true;
  dtype = newDtype;
  type = fromTorchType(dtype);
  rank = newRank;
  return readShape();
}

StableIValue Tensor::release() {
  // The kernel owns results.
  if (!handle)
    aoti_torch_new_uninitialized_tensor(&handle);
  return pack(std::exchange(handle, nullptr));
}

bool Tensor::isEmpty() const {
  for (int64_t dim = 0; dim < rank; ++dim)
    if (sizes[dim] == 0)
      return true;
  return false;
}

bool Tensor::verifyPlace(const char *name) const {
  return isStrided ||
         fail("%s: expected a strided tensor on a CPU or a CUDA device", name);
}

/// Bytes of an element of a PyTorch type.
static int64_t getBytes(int32_t dtype) {
  for (const auto &known : kTypes)
    if (known.dtype == dtype)
      return known.bytes;
  return static_cast<int64_t>(aoti_torch_dtype_element_size(dtype));
}

bool Tensor::verifyStorage(const char *name) const {
  if (!handle || !isStrided || isEmpty())
    return true;
  int64_t size = 0, end = 0;
  if (aoti_torch_get_storage_size(handle, &size) ||
      aoti_torch_get_storage_offset(handle, &end))
    return failByTorch("aoti_torch_get_storage_size");
  for (int64_t dim = 0; dim < rank; ++dim)
    end += (sizes[dim] - 1) * strides[dim];
  end = (end + 1) * getBytes(dtype);
  return end <= size ||
         fail("%s: expected a storage of at least %lld bytes, "
              "got %lld",
              name, static_cast<long long>(end), static_cast<long long>(size));
}

bool Tensor::getData(const void *&data) const {
  data = nullptr;
  if (handle && torch_get_const_data_ptr(handle, &data))
    return failByTorch("torch_get_const_data_ptr");
  return true;
}

bool Tensor::getMutableData(void *&data) const {
  data = nullptr;
  if (handle && torch_get_mutable_data_ptr(handle, &data))
    return failByTorch("torch_get_mutable_data_ptr");
  return true;
}

int32_t bngrad::torch::toTorchType(bngradDtype_t type) {
  for (const auto &known : kTypes)
    if (known.type == type)
      return known.dtype;
  return -1;
}

int bngrad::torch::fromTorchType(int32_t dtype) {
  for (const auto &known : kTypes)
    if (known.dtype == dtype)
      return known.type;
  return -1;
}

void bngrad::torch::setContiguous(int64_t rank, const int64_t *sizes,
                                  int64_t *strides) {
  int64_t product = 1;
  for (int64_t dim = rank; dim-- > 0;) {
    strides[dim] = product;
    product *= sizes[dim] > 1 ? sizes[dim] : 1;
  }
}

bool bngrad::torch::isDense(int64_t rank, const int64_t *sizes,
                            const int64_t *strides) {
  // Find, one by one, the dim whose stride is the product of the inner sizes.
  int64_t product = 1, left = 0;
  for (int64_t dim = 0; dim < rank; ++dim)
    left += sizes[dim] > 1;
  while (left > 0) {
    int64_t dim = 0;
    while (dim < rank && !(sizes[dim] > 1 && strides[dim] == product))
      ++dim;
    if (dim == rank)
      return false;
    product *= sizes[dim];
    --left;
  }
  return true;
}

bool bngrad::torch::hasStrides(const Tensor &tensor, const int64_t *strides) {
  for (int64_t dim = 0; dim < tensor.rank; ++dim)
    if (tensor.sizes[dim] == 0)
      return true;
  for (int64_t dim = 0; dim < tensor.rank; ++dim)
    if (tensor.sizes[dim] > 1 && tensor.strides[dim] != strides[dim])
      return false;
  return true;
}

bool bngrad::torch::copyWithStrides(const Tensor &from, const int64_t *strides,
                                    Tensor &to) {
  if (!to.makeEmpty(from.device, from.dtype, from.rank, from.sizes, strides))
    return false;
  if (aoti_torch_copy_(to.get(), from.get(), /*non_blocking=*/0))
    return failByTorch("aoti_torch_copy_");
  return true;
}
