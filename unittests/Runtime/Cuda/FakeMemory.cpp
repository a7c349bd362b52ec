//===- FakeMemory.cpp - memory of the fake CUDA driver --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriverState.h"

#include <cstdlib>
#include <cstring>
#include <utility>

using namespace fake;

/// Allocates host memory and adds it to `set`.
static CUdeviceptr allocate(size_t bytes, std::set<CUdeviceptr> &set) {
  Lock lock(state().mutex);
  CUdeviceptr result = std::exchange(state().nextAddress, 0);
  if (!result)
    result = reinterpret_cast<uintptr_t>(std::malloc(bytes));
  set.insert(result);
  return result;
}

static CUresult release(CUdeviceptr pointer, std::set<CUdeviceptr> &set) {
  Lock lock(state().mutex);
  if (!set.erase(pointer))
    return kInvalidValue;
  std::free(reinterpret_cast<void *>(pointer));
  return CUDA_SUCCESS;
}

void fake::forgetMemory(void *memory) {
  Lock lock(state().mutex);
  state().pooled.erase(reinterpret_cast<uintptr_t>(memory));
}

void fake::setNextAddress(void *memory) {
  Lock lock(state().mutex);
  state().nextAddress = reinterpret_cast<uintptr_t>(memory);
}

extern "C" {
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  SparedScope spared;
  RETURN_IF_FAILED(
      record("cuMemPoolCreate", std::to_string(properties->location.id)));
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return kInvalidValue;
  Lock lock(state().mutex);
  *pool = state().keep(new CUmemPoolHandle_st{0});
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  SparedScope spared;
  RETURN_IF_FAILED(record("cuMemPoolDestroy"));
  return pool ? CUDA_SUCCESS : kInvalidValue;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                               void *value) {
  SparedScope spared;
  RETURN_IF_FAILED(record("cuMemPoolSetAttribute", std::to_string(attribute)));
  std::memcpy(&pool->releaseThreshold, value, sizeof(uint64_t));
  return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *result, size_t bytes,
                                 CUmemoryPool pool, CUstream stream) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordInStream("cuMemAllocFromPoolAsync", stream, std::to_string(bytes)));
  if (bytes == 0 || !pool || pool->releaseThreshold == 0)
    return kInvalidValue;
  noteMemoryNode(stream);
  *result = allocate(bytes, state().pooled);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  SparedScope spared;
  RETURN_IF_FAILED(recordInStream("cuMemFreeAsync", stream));
  noteMemoryNode(stream);
  return release(pointer, state().pooled);
}

CUresult cuMemAlloc_v2(CUdeviceptr *result, size_t bytes) {
  SparedScope spared;
  RETURN_IF_FAILED(recordUnsafe("cuMemAlloc", std::to_string(bytes)));
  *result = allocate(bytes, state().plain);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *result, size_t bytes, unsigned flags) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordUnsafe("cuMemAllocManaged",
                   std::to_string(bytes) + " " + std::to_string(flags)));
  *result = allocate(bytes, state().plain);
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  SparedScope spared;
  RETURN_IF_FAILED(recordUnsafe("cuMemFree"));
  return release(pointer, state().plain);
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                               CUdeviceptr pointer) {
  SparedScope spared;
  Lock lock(state().mutex);
  bool isKnown = state().pooled.count(pointer) || state().plain.count(pointer);
  if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || !isKnown)
    return kInvalidValue;
  *static_cast<unsigned *>(value) = CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordInStream("cuMemcpyAsync", stream, std::to_string(bytes)));
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
              bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                          CUstream stream) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordInStream("cuMemsetD16Async", stream, std::to_string(count)));
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<unsigned short *>(to)[i] = value;
  return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream stream) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordInStream("cuMemsetD32Async", stream, std::to_string(count)));
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<unsigned *>(to)[i] = value;
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordInContext("cuMemHostRegister",
                      std::to_string(bytes) + " " + std::to_string(flags)));
  return pointer ? CUDA_SUCCESS : kInvalidValue;
}

CUresult cuMemHostUnregister(void *pointer) {
  SparedScope spared;
  RETURN_IF_FAILED(recordInContext("cuMemHostUnregister"));
  return pointer ? CUDA_SUCCESS : kInvalidValue;
}
} // extern "C"
