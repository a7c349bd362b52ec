// As out-of-memory.mlir, with more limits of memory.

// UNSUPPORTED: sanitizer
// REQUIRES: long
// DEFINE: %{any} = %python %S/check_memory.py --long
// DEFINE: %{program} = %S/out-of-memory.mlir

// RUN: %{any} bngrad-runner %{program} --entry=gradient --arg=random:1@4096x512 --arg=random:2@4096x512 \
// RUN:   --arg=random:3@512 --arg=random:4@512 --check | FileCheck %s
// RUN: %{any} bngrad-runner %{program} --entry=gradient --arg=random:1@8x4 --arg=random:2@8x4 --arg=random:3@4 \
// RUN:   --arg=random:4@4 --target=cuda-emulator | FileCheck %s
// RUN: %{any} bngrad-compile %{program} -o %t.o | FileCheck %s
// RUN: %{any} bngrad-opt %{program} --bngrad-cpu-pipeline -o %t.mlir | FileCheck %s
// CHECK: succeeds, fails with less: yes
