// The size of the clusters of a kernel.

// RUN: bngrad-opt %s --bngrad-require-clusters | FileCheck %s

module attributes {gpu.container_module} {

func.func @launches(%size: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@once clusters in (%c4, %c2, %c1) blocks in (%c64, %c64, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@twice clusters in (%c4, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@twice clusters in (%c4, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@by_size clusters in (%c4, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@by_size clusters in (%c2, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@without clusters in (%c2, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@without blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@unknown clusters in (%size, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@wrong clusters in (%c0, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  gpu.launch_func @kernels::@known clusters in (%c4, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1)
  return
}

gpu.module @kernels {
  // CHECK: gpu.func @once() kernel attributes {known_cluster_size = array<i32: 4, 2, 1>}
  gpu.func @once() kernel {
    gpu.return
  }
  // CHECK: gpu.func @twice() kernel attributes {known_cluster_size = array<i32: 4, 1, 1>}
  gpu.func @twice() kernel {
    gpu.return
  }
  // Launches of several sizes, or without clusters.
  // CHECK: gpu.func @by_size() kernel {
  gpu.func @by_size() kernel {
    gpu.return
  }
  // CHECK: gpu.func @without() kernel {
  gpu.func @without() kernel {
    gpu.return
  }
  // CHECK: gpu.func @unknown() kernel {
  gpu.func @unknown() kernel {
    gpu.return
  }
  // CHECK: gpu.func @wrong() kernel {
  gpu.func @wrong() kernel {
    gpu.return
  }
  // A size that is known already.
  // CHECK: gpu.func @known() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>}
  gpu.func @known() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    gpu.return
  }
  // CHECK: gpu.func @never_launched() kernel {
  gpu.func @never_launched() kernel {
    gpu.return
  }
}

}
