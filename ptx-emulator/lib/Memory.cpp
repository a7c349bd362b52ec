//===- Memory.cpp - device memory and its state -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ptx {

/// Alignment of buffers, as of the driver, and the smallest distance between
/// them.
static constexpr uint64_t kBufferAlign = 256;
static constexpr uint64_t kRedZone = 4096;

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

void ByteFlags::set(uint64_t offset, uint64_t bytes, bool value) {
  while (bytes != 0) {
    unsigned bit = offset % 64;
    uint64_t count = std::min<uint64_t>(bytes, 64 - bit);
    uint64_t mask = (count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1)
                    << bit;
    if (value)
      words[offset / 64] |= mask;
    else
      words[offset / 64] &= ~mask;
    offset += count;
    bytes -= count;
  }
}

uint64_t ByteFlags::find(uint64_t offset, uint64_t bytes, bool value) const {
  uint64_t done = 0;
  while (done < bytes) {
    unsigned bit = (offset + done) % 64;
    uint64_t count = std::min<uint64_t>(bytes - done, 64 - bit);
    uint64_t word = words[(offset + done) / 64];
    uint64_t found = (value ? word : ~word) >> bit;
    if (count < 64)
      found &= (uint64_t(1) << count) - 1;
    if (found)
      return done + __builtin_ctzll(found);
    done += count;
  }
  return bytes;
}

void ByteFlags::copy(uint64_t offset, const ByteFlags &from,
                     uint64_t fromOffset, uint64_t bytes) {
  if (from.all(fromOffset, bytes)) {
    set(offset, bytes, true);
    return;
  }
  for (uint64_t i = 0; i < bytes; ++i)
    set(offset + i, 1, from.test(fromOffset + i));
}

void Region::create(uint64_t address, uint64_t size, bool isDefined) {
  base = address;
  bytes = size;
  defined.resize(size, isDefined);
  busy.resize(size, false);
  numBusy = 0;
  shadow.resize(size);
}

DeviceMemory::~DeviceMemory() {
  for (auto &entry : buffers) {
    if (!entry.second->isRegistered)
      std::free(entry.second->data);
    delete entry.second;
  }
}

Buffer *DeviceMemory::allocate(uint64_t bytes, bool host) {
  uint64_t rounded =
      (std::max<uint64_t>(bytes, 1) + kBufferAlign - 1) & ~(kBufferAlign - 1);
  std::unique_ptr<void, decltype(&std::free)> data(
      std::aligned_alloc(kBufferAlign, rounded), &std::free);
  if (!data)
    return nullptr;
  std::memset(data.get(), 0xFF, rounded);
  auto buffer = std::make_unique<Buffer>();
  buffer->data = static_cast<uint8_t *>(data.get());
  buffer->isHost = host;
  buffer->name = "buffer " + std::to_string(numBuffers++);
  uint64_t address = reinterpret_cast<uint64_t>(data.get());
  if (!host) {
    address = nextAddress;
    nextAddress += rounded + kRedZone;
  }
  std::map<uint64_t, uint64_t> graves = {{address, bytes}};
  buffer->grave = graves.extract(address);
  // Memory that the host can write counts as initialised.
  buffer->create(address, bytes, host);
  buffers[address] = buffer.get();
  freed.erase(address);
  (void)data.release();
  return buffer.release();
}

void DeviceMemory::registerHost(void *pointer, uint64_t bytes) {
  uint64_t address = reinterpret_cast<uint64_t>(pointer);
  unregisterHost(pointer);
  auto buffer = std::make_unique<Buffer>();
  buffer->data = static_cast<uint8_t *>(pointer);
  buffer->isHost = buffer->isRegistered = true;
  buffer->name = "buffer " + std::to_string(numBuffers++);
  buffer->create(address, bytes, true);
  buffers[address] = buffer.get();
  (void)buffer.release();
}

void DeviceMemory::unregisterHost(void *pointer) {
  auto found = buffers.find(reinterpret_cast<uint64_t>(pointer));
  if (found == buffers.end() || !found->second->isRegistered)
    return;
  last = nullptr;
  delete found->second;
  buffers.erase(found);
}

bool DeviceMemory::release(uint64_t address) {
  auto found = buffers.find(address);
  if (found == buffers.end() || found->second->isRegistered)
    return false;
  freed.insert(std::move(found->second->grave));
  std::free(found->second->data);
  last = nullptr;
  delete found->second;
  buffers.erase(found);
  return true;
}

Buffer *DeviceMemory::find(uint64_t address) {
  if (last && address - last->base < last->bytes)
    return last;
  auto next = buffers.upper_bound(address);
  if (next == buffers.begin())
    return nullptr;
  Buffer *buffer = std::prev(next)->second;
  if (address - buffer->base >= buffer->bytes)
    return nullptr;
  return last = buffer;
}

std::string DeviceMemory::describe(uint64_t address) const {
  auto dead = freed.upper_bound(address);
  if (dead != freed.begin()) {
    --dead;
    if (address - dead->first < dead->second)
      return "in a buffer of " + std::to_string(dead->second) +
             " bytes that was freed";
  }
  auto next = buffers.upper_bound(address);
  uint64_t reach = kRedZone + kBufferAlign;
  if (next != buffers.begin()) {
    const Buffer &buffer = *std::prev(next)->second;
    uint64_t past = address - buffer.base - buffer.bytes;
    if (address >= buffer.base && past < reach)
      return std::to_string(past) + " bytes past the end of '" + buffer.name +
             "' of " + std::to_string(buffer.bytes) + " bytes";
  }
  if (next != buffers.end() && next->first - address < reach)
    return std::to_string(next->first - address) + " bytes before '" +
           next->second->name + "'";
  return address < kDeviceBase
             ? "which is unregistered host memory or an invalid address"
             : "which is in no buffer";
}

} // namespace ptx
