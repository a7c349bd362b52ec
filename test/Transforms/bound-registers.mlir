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
  // The blocks and threads of all dims.
  %c2 = arith.constant 2 : index
  gpu.launch_func @kernels::@dims blocks in (%c132, %c2, %c1) threads in (%c256, %c2, %c1) dynamic_shared_memory_size %kib98
  // The smallest bound of all launches, or none.
  gpu.launch_func @kernels::@launched_twice blocks in (%c264, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@launched_twice blocks in (%c264, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib200
  gpu.launch_func @kernels::@once_unknown blocks in (%c264, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@once_unknown blocks in (%c264, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %bytes
  // Sizes that are not known, or wrong.
  %negative = arith.constant -1024 : i32
  gpu.launch_func @kernels::@negative blocks in (%c132, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %negative
  gpu.launch_func @kernels::@other_element blocks in (%c132, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@more_than_any_chip blocks in (%c132, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@overflow_of_dims blocks in (%c132, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
  gpu.launch_func @kernels::@has_a_bound blocks in (%c132, %c1, %c1) threads in (%c256, %c1, %c1) dynamic_shared_memory_size %kib98
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
  // CHECK: gpu.func @dims() kernel {
  gpu.func @dims() kernel {
    gpu.return
  }
  // CHECK: gpu.func @launched_twice() kernel attributes {nvvm.minctasm = 1 : i32}
  gpu.func @launched_twice() kernel {
    gpu.return
  }
  // CHECK: gpu.func @once_unknown() kernel {
  gpu.func @once_unknown() kernel {
    gpu.return
  }
  // CHECK: gpu.func @negative() kernel {
  gpu.func @negative() kernel {
    gpu.return
  }
  // CHECK: gpu.func @more_than_any_chip() workgroup({{.*}}) kernel {
  gpu.func @more_than_any_chip() workgroup(%buffer : memref<2305843009213693824xi64, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
  // CHECK: gpu.func @overflow_of_dims() workgroup({{.*}}) kernel {
  gpu.func @overflow_of_dims() workgroup(%buffer : memref<4294967296x4294967296xi8, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
  // CHECK: gpu.func @has_a_bound() kernel attributes {nvvm.minctasm = 3 : i32}
  gpu.func @has_a_bound() kernel attributes {nvvm.minctasm = 3 : i32} {
    gpu.return
  }
  // CHECK: gpu.func @other_element() workgroup({{.*}}) kernel {
  gpu.func @other_element() workgroup(%buffer : memref<4xindex, #gpu.address_space<workgroup>>) kernel {
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
