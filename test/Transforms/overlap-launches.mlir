// Kernels that wait for the one ahead of them, and a symbol that says so.

// RUN: bngrad-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(bngrad-overlap-launches))" | FileCheck %s

// Functions that a kernel calls do not wait.
// CHECK-LABEL: gpu.module @kernels
// CHECK-NEXT:    llvm.mlir.global external @bngrad_kernels_wait(1 : i8) {addr_space = 1 : i32, alignment = 1 : i64} : i8
// CHECK-NEXT:    gpu.func @first(
// CHECK-NEXT:      nvvm.griddepcontrol wait
// CHECK-NEXT:      memref.load
// CHECK:         gpu.func @second() kernel
// CHECK-NEXT:      nvvm.griddepcontrol wait
// CHECK-NEXT:      gpu.return
// CHECK:         gpu.func @helper()
// CHECK-NEXT:      gpu.return
gpu.module @kernels [#nvvm.target<chip = "sm_90">, #nvvm.target<chip = "sm_100">] {
  gpu.func @first(%m: memref<f32>) kernel {
    %0 = memref.load %m[] : memref<f32>
    memref.store %0, %m[] : memref<f32>
    gpu.return
  }
  gpu.func @second() kernel {
    gpu.return
  }
  gpu.func @helper() {
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.module @an_older_chip
// CHECK-NOT:     llvm.mlir.global
// CHECK-NOT:     nvvm.griddepcontrol
// CHECK:       gpu.module @no_chip
// CHECK-NOT:     nvvm.griddepcontrol
// CHECK:       gpu.module @no_kernel
// CHECK-NOT:     llvm.mlir.global
// CHECK:       gpu.module @waits_already
// CHECK-NOT:     nvvm.griddepcontrol
gpu.module @an_older_chip [#nvvm.target<chip = "sm_90">, #nvvm.target<chip = "sm_80">] {
  gpu.func @f() kernel {
    gpu.return
  }
}
gpu.module @no_chip {
  gpu.func @f() kernel {
    gpu.return
  }
}
gpu.module @no_kernel [#nvvm.target<chip = "sm_90">] {
  gpu.func @f() {
    gpu.return
  }
}
gpu.module @waits_already [#nvvm.target<chip = "sm_90">] {
  llvm.mlir.global external @bngrad_kernels_wait(1 : i8) : i8
  gpu.func @f() kernel {
    gpu.return
  }
}
