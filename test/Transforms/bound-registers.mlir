// The number of blocks of a kernel that share a multiprocessor.

// RUN: bngrad-opt %s --bngrad-bound-registers | FileCheck %s

module attributes {gpu.container_module} {

// CHECK-LABEL: func.func @launches(
func.func @launches(%blocks: index, %bytes: i32) {
  %c1 = arith.constant 1 : index
  %c132 = arith.constant 132 : index
  %c264 = arith.constant 264 : index
  %c265 = arith.constant 265 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %kib56 = arith.constant 57344 : i32
  %kib98 = arith.constant 100352 : i32
  %kib116 = arith.constant 118784 : i32
  %kib200 = arith.constant 204800 : i32
  gpu.launch_func @kernels::@one blocks in (%c265, %c1, %c1) threads in (%c512, %c1, %c1) dynamic_shared_memory_size %kib200
  gpu.launch_func @kernels::@one_by_number blocks in (%c132, %c1, %c1) threads in (%c512, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@two blocks in (%c264, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@one_by_static_memory blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@one_too_large blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib116
  gpu.launch_func @kernels::@too_few_registers blocks in (%c264, %c1, %c1) threads in (%c512, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@unknown_size blocks in (%c264, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %bytes
  gpu.launch_func @kernels::@no_dynamic_memory blocks in (%c132, %c1, %c1) threads in (%c256, %c1, %c1)
  gpu.launch_func @kernels_of_two::@largest blocks in (%c132, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib56
  return
}

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  // CHECK: gpu.func @one() kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @one() kernel {
    gpu.return
  }
  // CHECK: gpu.func @one_by_number() kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @one_by_number() kernel {
    gpu.return
  }
  // CHECK: gpu.func @two() kernel attributes {nvvm.minctasm = 2 : i32}
  gpu.func @two() kernel {
    gpu.return
  }
  // CHECK: gpu.func @one_by_static_memory() {{.*}} kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @one_by_static_memory() workgroup(%buffer : memref<4096xf32, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
  // CHECK: gpu.func @one_too_large() kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @one_too_large() kernel {
    gpu.return
  }
  // 64 for each of 1024 threads.
  // CHECK: gpu.func @too_few_registers() kernel {
  gpu.func @too_few_registers() kernel {
    gpu.return
  }
  // CHECK: gpu.func @unknown_size() kernel {
  gpu.func @unknown_size() kernel {
    gpu.return
  }
  // CHECK: gpu.func @no_dynamic_memory() kernel {
  gpu.func @no_dynamic_memory() kernel {
    gpu.return
  }
}

// Of two chips, the one with fewer multiprocessors has more blocks on each.
// CHECK-LABEL: gpu.module @kernels_of_two
gpu.module @kernels_of_two [#nvvm.target<chip = "sm_90">, #nvvm.target<chip = "sm_80">] {
  // CHECK: gpu.func @largest() kernel attributes {nvvm.minctasm = 2 : i32}
  gpu.func @largest() kernel {
    gpu.return
  }
}

}
