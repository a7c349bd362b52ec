// The header and that of the C library declare bngrad_threads_t in one text, and a program may include both.

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/made.o --header=%t/made.h
// DEFINE: %{extract} = sed -n '/^#ifndef BNGRAD_THREADS_T_DEFINED/,/^#endif/p'
// RUN: %{extract} %t/made.h > %t/made.txt
// RUN: %{extract} %bngrad_src_root/include/BNGrad/Runtime/Runtime.h > %t/library.txt
// RUN: grep -c '} bngrad_threads_t;' %t/made.txt | grep -x 1
// RUN: diff %t/made.txt %t/library.txt

// RUN: echo '#include "made.h"' > %t/first.c && echo '#include "BNGrad/Runtime/Runtime.h"' >> %t/first.c
// RUN: echo '#include "BNGrad/Runtime/Runtime.h"' > %t/last.c && echo '#include "made.h"' >> %t/last.c
// RUN: echo 'bngrad_threads_t threads = {sizeof(bngrad_threads_t), 0, 0, 0};' | tee -a %t/first.c >> %t/last.c
// RUN: cp %t/first.c %t/first.cpp && cp %t/last.c %t/last.cpp
// DEFINE: %{check} = -Wall -Wextra -pedantic -Werror -fsyntax-only -I%t -I%bngrad_src_root/include
// RUN: %llvm_prefix/bin/clang -std=c99 %{check} %t/first.c %t/last.c
// RUN: %llvm_prefix/bin/clang++ -std=c++17 %{check} %t/first.cpp %t/last.cpp

func.func @copied(%a: memref<?xf32>, %b: memref<?xf32>) {
  memref.copy %a, %b : memref<?xf32> to memref<?xf32>
  return
}
