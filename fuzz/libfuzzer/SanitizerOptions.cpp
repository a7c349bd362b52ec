//===- SanitizerOptions.cpp - defaults of the sanitizers ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// LLVM's allocators poison memory in headers, which are instrumented here, and
/// unpoison it in libLLVM, which is not. A too large allocation returns null,
/// as without a sanitizer.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:allocator_may_return_null=1:"
         "max_allocation_size_mb=1024:detect_odr_violation=0:"
         "quarantine_size_mb=16";
}

extern "C" const char *__ubsan_default_options() {
  return "print_stacktrace=1:halt_on_error=1";
}
