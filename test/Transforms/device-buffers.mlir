// Data in memory of the host have buffers on the device.

// RUN: bngrad-opt %s --bngrad-apply-schedule | FileCheck %s

// The copy of a strided buffer is dense, and so are views of the copy.
// CHECK-LABEL: func.func @view_of_a_strided_argument(
// CHECK:         %[[DEVICE:.+]], %{{.+}} = gpu.alloc async {{.+}} : memref<4x8x4x8xf32>
// CHECK:         memref.collapse_shape %[[DEVICE]] {{\[\[}}0], [1], [2, 3]] : memref<4x8x4x8xf32> into memref<4x8x32xf32>
// CHECK:         gpu.launch
func.func @view_of_a_strided_argument(%x: memref<4x8x4x8xf32, strided<[512, 32, 8, 1], offset: 11>>, %sum: memref<8xf32>) {
  %rows = memref.collapse_shape %x [[0], [1], [2, 3]] : memref<4x8x4x8xf32, strided<[512, 32, 8, 1], offset: 11>> into memref<4x8x32xf32, strided<[512, 32, 1], offset: 11>>
  linalg.generic {indexing_maps = [affine_map<(n, c, s) -> (n, c, s)>, affine_map<(n, c, s) -> (c)>],
      iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%rows : memref<4x8x32xf32, strided<[512, 32, 1], offset: 11>>) outs(%sum : memref<8xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}
