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

// -----

// What a kernel does before it accesses global memory overlaps the one ahead. The next one starts after the wait.
// CHECK-LABEL: gpu.func @set_up(
// CHECK:         nvgpu.mbarrier.init
// CHECK:         nvvm.fence.proxy
// CHECK:         gpu.barrier
// CHECK:         nvgpu.mbarrier.arrive.expect_tx
// CHECK:         memref.extract_aligned_pointer_as_index
// CHECK:         memref.store {{.*}}workgroup
// CHECK-NEXT:    nvvm.griddepcontrol wait
// CHECK-NEXT:    nvvm.griddepcontrol launch_dependents
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      memref.load
// CHECK-NOT:     nvvm.griddepcontrol
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
gpu.module @overlap [#nvvm.target<chip = "sm_90">] {
  gpu.func @set_up(%m: memref<4xf32>) workgroup(%shared: memref<64xindex, #gpu.address_space<workgroup>>) kernel {
    nvvm.griddepcontrol launch_dependents
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %thread = gpu.thread_id x
    %is_first = arith.cmpi eq, %thread, %c0 : index
    %barrier = nvgpu.mbarrier.create -> !group
    scf.if %is_first {
      nvgpu.mbarrier.init %barrier[%c0], %c1 : !group
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    }
    gpu.barrier
    scf.if %is_first {
      nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %c1 : !group
    }
    %address = memref.extract_aligned_pointer_as_index %m : memref<4xf32> -> index
    memref.store %address, %shared[%thread] : memref<64xindex, #gpu.address_space<workgroup>>
    scf.if %is_first {
      %0 = memref.load %m[%c0] : memref<4xf32>
      memref.store %0, %m[%c1] : memref<4xf32>
    }
    gpu.return
  }
  // CHECK-LABEL: gpu.func @blocks(
  // CHECK:         nvvm.griddepcontrol wait
  // CHECK-NEXT:    cf.cond_br
  // CHECK-NOT:     nvvm.griddepcontrol
  gpu.func @blocks(%m: memref<4xf32>, %condition: i1) kernel {
    %c0 = arith.constant 0 : index
    cf.cond_br %condition, ^load, ^end
  ^load:
    %0 = memref.load %m[%c0] : memref<4xf32>
    memref.store %0, %m[%c0] : memref<4xf32>
    cf.br ^end
  ^end:
    gpu.return
  }
  // An op whose effects are not known.
  // CHECK-LABEL: gpu.func @unknown(
  // CHECK:         nvvm.griddepcontrol wait
  // CHECK-NEXT:    nvvm.inline_ptx
  gpu.func @unknown() kernel {
    nvvm.inline_ptx "membar.gl;"
    gpu.return
  }
  // Memory whose space is not known, in a loop.
  // CHECK-LABEL: gpu.func @loop(
  // CHECK:         nvvm.griddepcontrol wait
  // CHECK-NEXT:    scf.for
  gpu.func @loop(%m: memref<4xf32, 3>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f0 = arith.constant 0.0 : f32
    scf.for %i = %c0 to %n step %c1 {
      memref.store %f0, %m[%i] : memref<4xf32, 3>
    }
    gpu.return
  }
}
