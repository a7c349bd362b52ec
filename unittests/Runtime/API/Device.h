//===- Device.h - problems in memory of the emulated device -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_DEVICE_H
#define BNGRAD_UNITTESTS_DEVICE_H

#include "Forward.h"
#include "Gradient.h"

#include "BNGrad/Runtime/Cuda.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace bngrad::test {

/// A forward pass whose data are copied to memory of the device and back.
class DeviceForward {
public:
  /// The addresses of all tensors are only multiples of an element if
  /// `isUnaligned`.
  DeviceForward(const ForwardSpec &spec, bngradHandle_t handle,
                bool isUnaligned = false)
      : host(spec) {
    status = host.create(handle);
    if (status != BNGRAD_SUCCESS)
      return;
    // It starts anywhere.
    workspace = allocate(host.workspaceSize() + 1) + 1;
    for (int i = 0; i < kNumPlaces; ++i) {
      if (!isCopied(i))
        continue;
      const Array &array = host.arrays[i];
      size_t shift = isUnaligned ? size_t(getBytes(array.dtype)) : 0;
      host.addresses[i] = allocate(array.memory.size() + shift) + shift;
    }
    if (spec.isInPlace)
      host.addresses[Output] = host.addresses[Data];
  }
  ~DeviceForward() {
    for (void *pointer : allocated)
      mgpuMemFree(pointer, nullptr);
  }
  DeviceForward(const DeviceForward &) = delete;
  DeviceForward &operator=(const DeviceForward &) = delete;

  /// Computes in `stream`, which is waited for.
  bngradStatus_t run(void *stream, const bngradCompletion_t *done = nullptr) {
    host.reset();
    for (int i = 0; i < kNumPlaces; ++i)
      if (isCopied(i))
        mgpuMemcpy(host.addresses[i], host.arrays[i].memory.data(),
                   host.arrays[i].memory.size(), stream);
    bngradStatus_t result =
        done ? host.callAsync(workspace, stream, nullptr, done)
             : host.call(workspace, stream);
    for (int i = 0; i < kNumPlaces; ++i)
      if (isCopied(i))
        mgpuMemcpy(host.arrays[i].memory.data(), host.addresses[i],
                   host.arrays[i].memory.size(), stream);
    mgpuStreamSynchronize(stream);
    return result;
  }

  Forward host;
  bngradStatus_t status;

private:
  bool isCopied(int place) const {
    return host.arrays[place].isPresent &&
           !(place == Output && host.spec.isInPlace);
  }
  static int getBytes(bngradDtype_t dtype) {
    return dtype == BNGRAD_DTYPE_F64 ? 8 : dtype == BNGRAD_DTYPE_F32 ? 4 : 2;
  }
  char *allocate(size_t size) {
    allocated.push_back(mgpuMemAlloc(size, nullptr, 0));
    return static_cast<char *>(allocated.back());
  }

  char *workspace = nullptr;
  std::vector<void *> allocated;
};

/// A gradient whose data are copied to memory of the device and back.
class DeviceGradient {
public:
  /// The addresses of all tensors are only multiples of an element if
  /// `isUnaligned`.
  DeviceGradient(const Spec &spec, bngradHandle_t handle,
                 bool isUnaligned = false)
      : host(spec) {
    status = host.create(handle);
    if (status != BNGRAD_SUCCESS)
      return;
    workspace = mgpuMemAlloc(host.workspace.size() + 1, nullptr, 0);
    for (int i = 0; i < kNumOperands; ++i)
      if (host.arrays[i].isPresent) {
        allocated[i] = mgpuMemAlloc(size(i) + kMostBytes, nullptr, 0);
        data[i] = static_cast<char *>(allocated[i]) +
                  (isUnaligned ? getBytes(host.arrays[i].dtype) : 0);
      }
  }
  ~DeviceGradient() {
    mgpuMemFree(workspace, nullptr);
    for (void *pointer : allocated)
      if (pointer)
        mgpuMemFree(pointer, nullptr);
  }
  DeviceGradient(const DeviceGradient &) = delete;
  DeviceGradient &operator=(const DeviceGradient &) = delete;

  /// Computes in `stream`, which is waited for.
  bngradStatus_t run(void *stream, const bngradCompletion_t *done = nullptr) {
    for (int i = 0; i < kNumOperands; ++i)
      if (data[i])
        mgpuMemcpy(data[i], host.arrays[i].memory.data(), size(i), stream);
    auto call = [&](Operand operand) -> void * {
      if (operand == GradInput && host.spec.wants[0])
        return data[host.spec.inPlaceOf];
      return data[operand];
    };
    // Starts anywhere.
    void *start = static_cast<char *>(workspace) + 1;
    bngradStatus_t result = bngradBatchNormBackwardAsync(
        host.descriptor, start, host.workspace.size(), call(GradInput),
        call(GradScale), call(GradOffset), call(GradOutput), call(Input),
        call(Scale), call(Mean), call(Statistic), call(Mask), stream, nullptr,
        done);
    for (int i = 0; i < kNumOperands; ++i)
      if (data[i])
        mgpuMemcpy(host.arrays[i].memory.data(), data[i], size(i), stream);
    mgpuStreamSynchronize(stream);
    return result;
  }

  Gradient host;
  bngradStatus_t status;
  void *data[kNumOperands] = {};
  void *workspace = nullptr;

private:
  /// Of an element.
  static constexpr size_t kMostBytes = 8;
  static size_t getBytes(bngradDtype_t dtype) {
    const size_t bytes[] = {2, 2, 4, 8, 1};
    return bytes[dtype];
  }
  size_t size(int i) const { return host.arrays[i].memory.size(); }

  void *allocated[kNumOperands] = {};
};

/// Computes the halves in memory of the device, in a stream of their own that
/// is waited for.
inline bngradStatus_t runHalvesOnDevice(Gradient &gradient) {
  void *stream = mgpuStreamCreate();
  std::vector<std::pair<void *, Array *>> copies;
  auto copy = [&](Array &array) {
    void *data = nullptr;
    if (array.isPresent) {
      data = mgpuMemAlloc(array.memory.size(), nullptr, 0);
      mgpuMemcpy(data, array.memory.data(), array.memory.size(), stream);
      copies.emplace_back(data, &array);
    }
    return data;
  };
  void *data[kNumOperands];
  for (int i = 0; i < kNumOperands; ++i)
    data[i] = copy(gradient.arrays[i]);
  void *sums = copy(gradient.sums);
  size_t size = gradient.workspace.size();
  void *workspace = mgpuMemAlloc(size, nullptr, 0);
  int64_t elements = 1;
  for (size_t dim = 0; dim < gradient.spec.shape.size(); ++dim)
    if (std::find(gradient.spec.featureDims.begin(),
                  gradient.spec.featureDims.end(),
                  dim) == gradient.spec.featureDims.end())
      elements *= gradient.spec.shape[dim];
  void *count = mgpuMemAlloc(sizeof(elements), nullptr, 0);
  mgpuMemcpy(count, &elements, sizeof(elements), stream);
  bngradStatus_t status = bngradBatchNormBackwardReduce(
      gradient.reduce, workspace, size, sums, data[GradOutput], data[Input],
      data[Mean], nullptr, stream);
  if (!status)
    status = bngradBatchNormBackwardElemt(
        gradient.elemt, workspace, size, data[gradient.spec.inPlaceOf],
        data[GradOutput], data[Input], data[Scale], data[Mean], data[Statistic],
        sums, static_cast<int64_t *>(count), nullptr, stream);
  for (auto [device, array] : copies) {
    mgpuMemcpy(array->memory.data(), device, array->memory.size(), stream);
    mgpuMemFree(device, stream);
  }
  mgpuStreamSynchronize(stream);
  mgpuMemFree(workspace, nullptr);
  mgpuMemFree(count, nullptr);
  mgpuStreamDestroy(stream);
  return status;
}

} // namespace bngrad::test

#endif // BNGRAD_UNITTESTS_DEVICE_H
