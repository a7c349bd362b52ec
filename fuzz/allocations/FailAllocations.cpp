//===- FailAllocations.cpp - makes one allocation fail --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Preloaded, it stands before the C library's allocation functions. Allocations
// of at least FAIL_ALLOCATION_BYTES are counted, from FAIL_ALLOCATION_IN alone
// where that is set (a part of the name of the calling library), and number
// FAIL_ALLOCATION fails, and those after it with FAIL_ALLOCATION_FOREVER. The
// program may set the number itself; at its end the count goes to the file
// FAIL_ALLOCATION_REPORT. A program with a malloc of its own, as the tools have
// it, is counted where that calls __libc_malloc and __libc_calloc.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
}

static std::atomic<long> number{0}, count{0}, live{0};
static size_t leastBytes = 0;
static const char *caller = nullptr;
static bool isForever = false;
/// Of a thread in the driver of the unit tests. In static memory: it must not
/// need an allocation itself.
static thread_local bool isSpared __attribute__((tls_model("initial-exec"))) =
    false;

static bool isCounted(void *from) {
  if (isSpared)
    return false;
  Dl_info info;
  return !caller ||
         (dladdr(from, &info) && std::strstr(info.dli_fname, caller));
}

/// Whether this allocation is to fail.
static bool mustFail(size_t bytes, void *from) {
  if (bytes < leastBytes || !isCounted(from))
    return false;
  long mine = ++count;
  if (number == 0 || mine < number || (mine > number && !isForever)) {
    ++live;
    return false;
  }
  errno = ENOMEM;
  return true;
}

static void *allocate(size_t bytes) {
  static auto *real =
      reinterpret_cast<void *(*)(size_t)>(dlsym(RTLD_NEXT, "__libc_malloc"));
  return real(bytes);
}

static void *allocateZeros(size_t elements, size_t bytes) {
  static auto *real = reinterpret_cast<void *(*)(size_t, size_t)>(
      dlsym(RTLD_NEXT, "__libc_calloc"));
  return real(elements, bytes);
}

#define FAIL_HERE(bytes)                                                       \
  if (mustFail(bytes, __builtin_return_address(0)))                            \
  return nullptr

extern "C" {

/// From now on; 0: none fails.
void failAllocation(long which) {
  count = 0;
  live = 0;
  number = which;
}
void spareAllocations(bool spared) { isSpared = spared; }
long countAllocations() { return count; }
/// Allocated since then and not freed, if nothing is freed that is older.
long countLiveAllocations() { return live; }

void free(void *pointer) {
  if (pointer && isCounted(__builtin_return_address(0)))
    --live;
  __libc_free(pointer);
}

void *malloc(size_t bytes) {
  FAIL_HERE(bytes);
  return allocate(bytes);
}

void *__libc_malloc(size_t bytes) {
  FAIL_HERE(bytes);
  return allocate(bytes);
}

void *calloc(size_t elements, size_t bytes) {
  FAIL_HERE(elements * bytes);
  return allocateZeros(elements, bytes);
}

void *__libc_calloc(size_t elements, size_t bytes) {
  FAIL_HERE(elements * bytes);
  return allocateZeros(elements, bytes);
}

void *realloc(void *pointer, size_t bytes) {
  FAIL_HERE(bytes);
  return __libc_realloc(pointer, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
  FAIL_HERE(bytes);
  return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  FAIL_HERE(bytes);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **pointer, size_t alignment, size_t bytes) {
  if (mustFail(bytes, __builtin_return_address(0)))
    return ENOMEM;
  *pointer = __libc_memalign(alignment, bytes);
  return *pointer ? 0 : ENOMEM;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file,
           off_t offset) {
  if (mustFail(bytes, __builtin_return_address(0)))
    return MAP_FAILED;
  return reinterpret_cast<void *>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}

__attribute__((constructor)) static void readEnvironment() {
  auto read = [](const char *name) -> long {
    const char *text = std::getenv(name);
    return text ? std::strtol(text, nullptr, 10) : 0;
  };
  leastBytes = read("FAIL_ALLOCATION_BYTES");
  caller = std::getenv("FAIL_ALLOCATION_IN");
  isForever = read("FAIL_ALLOCATION_FOREVER") != 0;
  failAllocation(read("FAIL_ALLOCATION"));
}

__attribute__((destructor)) static void writeReport() {
  number = 0;
  const char *path = std::getenv("FAIL_ALLOCATION_REPORT");
  if (!path)
    return;
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  char digits[24];
  int at = sizeof(digits);
  for (long rest = count; at == sizeof(digits) || rest > 0; rest /= 10)
    digits[--at] = char('0' + rest % 10);
  if (file >= 0 && write(file, digits + at, sizeof(digits) - at) > 0)
    close(file);
}
