/*===- OlderLibc.c - functions that an older libc lacks -------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * The archives of LLVM and of the C++ library use these functions of newer
 * versions of glibc. Here they are as good as any for them, and not exported.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier) */

/* glibc 2.32: whether there is one thread, so that counts of references need no
 * atomic instructions. 0 is always right. */
char __libc_single_threaded = 0;

/* glibc 2.36: std::random_device, of which nothing depends. */
uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t value = 0;
  (void)!getrandom(&value, sizeof(value), 0);
  return value;
}

/* glibc 2.33: LLVM prints statistics of memory with it. */
struct MemoryInfo {
  size_t fields[10];
};
struct MemoryInfo mallinfo2(void);
struct MemoryInfo mallinfo2(void) {
  struct MemoryInfo info = {{0}};
  return info;
}

/* NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier) */
