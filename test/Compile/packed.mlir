// Entries that take an array of pointers to their parameters: they are all that is exported, and check nothing.

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/packed.o --packed --threads=caller
// RUN: llvm-nm --defined-only --extern-only --just-symbol-name %t/packed.o | FileCheck %s
// CHECK-NOT:  {{.}}
// CHECK:      gradient_packed
// CHECK-NEXT: gradient_packed_workspace
// CHECK-NEXT: scale_packed
// CHECK-NEXT: scale_packed_workspace
// CHECK-NOT:  {{.}}
// RUN: llvm-nm --undefined-only %t/packed.o | FileCheck %s --check-prefix=USED
// USED-NOT: {{alloc|free|mmap|snprintf|GOMP|omp_}}

// RUN: %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror %S/Inputs/packed.c %t/packed.o -lm -o %t/packed
// RUN: %t/packed | FileCheck %s --check-prefix=CALLS
// CALLS: gradient: 5 pools, right
// CALLS-NEXT: scale: right

// The same for GPUs, where there is no workspace.
// RUN: bngrad-compile %s -o %t/cuda.o --packed --target=cuda
// RUN: llvm-nm --defined-only --extern-only --just-symbol-name %t/cuda.o | FileCheck %s

// On buffers of the device all memory is a workspace there, and nothing waits: such entries need a stream of the caller.
// RUN: bngrad-compile %s -o %t/device.o --entry=gradient --packed --target=cuda --device-arguments
// RUN: llvm-nm --undefined-only %t/device.o | FileCheck %s --check-prefix=DEVICE
// DEVICE-NOT: {{mgpuMem|Synchronize}}
// DEVICE:     mgpuLaunchKernel
// DEVICE-NOT: {{mgpuMem|Synchronize}}

// A symbol of another dialect may have the name of an entry.
// RUN: %python %S/../Inputs/expect_error.py "%S/Inputs/packed_taken.mlir:4:1: expected no symbol called 'gradient_packed', the name of a C entry of @gradient" \
// RUN:   bngrad-compile %S/Inputs/packed_taken.mlir -o %t/taken.o --packed

!d = tensor<?x?x?xf32>
!c = tensor<?xf32>
func.func @gradient(%dy: !d, %x: !d, %m: !c, %v: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !c) variance(%v : !c)
      {epsilon = 1.0e-3 : f64} : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}

func.func @scale(%a: memref<?xf32, strided<[?]>>, %factor: f32) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%a : memref<?xf32, strided<[?]>>) {
  ^bb0(%x: f32):
    %0 = arith.mulf %x, %factor : f32
    linalg.yield %0 : f32
  }
  return
}
