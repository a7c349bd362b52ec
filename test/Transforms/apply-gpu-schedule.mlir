// RUN: bngrad-opt %s --bngrad-apply-schedule="device-arguments=true" --canonicalize | FileCheck %s

// The wait for the stream stays if every launch is inside a test of alignment and the group allocates no buffer: a wait
// for the token of another wait would be folded away.
// CHECK-LABEL: func.func @no_buffers(
// CHECK:         gpu.wait async
// CHECK:         scf.if
// CHECK:           gpu.launch async {{.*}} function(@one_pass)
// CHECK:         } else {
// CHECK:           gpu.launch async {{.*}} function(@reduce)
// CHECK:         gpu.wait [%{{.+}}]
// CHECK-NEXT:    return
#id = affine_map<(n, c, s) -> (n, c, s)>
#channel = affine_map<(n, c, s) -> (c)>
!t = memref<4x8x32xf32>
!p = memref<8xf32>
func.func @no_buffers(%x: !t, %sum: !p, %o: !t) {
  scf.execute_region no_inline {
  linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : !t) outs(%sum : !p)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : !t, !p) outs(%o : !t)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
  ^bb0(%e: f32, %s: f32, %u: f32):
    %0 = arith.subf %e, %s : f32
    linalg.yield %0 : f32
  }
    scf.yield
  }
  return
}

// One pass supports rows with gaps, which it copies element by element, but not channels whose rows cannot be merged
// into one loop.
// CHECK-LABEL: func.func @cropped_rows(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-NOT:     gpu.launch
// CHECK:         return
!rows = memref<4x8x32xf32, strided<[320, 40, 1], offset: 4>>
func.func @cropped_rows(%x: !rows, %sum: !p, %o: !rows) {
  scf.execute_region no_inline {
  linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : !rows) outs(%sum : !p)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : !rows, !p) outs(%o : !rows)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
  ^bb0(%e: f32, %s: f32, %u: f32):
    %0 = arith.subf %e, %s : f32
    linalg.yield %0 : f32
  }
    scf.yield
  }
  return
}

// Dims that lie together are one loop in a kernel.
// CHECK-LABEL: func.func @merged_loops(
// CHECK-SAME:    %[[X:[^:]+]]: memref<4x8x4x8xf32>,
// CHECK:         memref.collapse_shape %[[X]] {{\[\[}}0], [1], [2, 3]] : memref<4x8x4x8xf32> into memref<4x8x32xf32>
// CHECK:         gpu.launch
// CHECK:         return
func.func @merged_loops(%x: memref<4x8x4x8xf32>, %sum: !p) {
  linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>],
      iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
      ins(%x : memref<4x8x4x8xf32>) outs(%sum : !p)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @cropped_images(
// CHECK-NOT:     function(@one_pass)
// CHECK:         gpu.launch {{.*}} function(@reduce)
// CHECK:         gpu.launch {{.*}} function(@finish)
// CHECK:         gpu.launch {{.*}} function(@apply)
#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#feature = affine_map<(n, c, h, w) -> (c)>
!images = memref<4x8x4x8xf32, strided<[480, 60, 10, 1], offset: 11>>
func.func @cropped_images(%x: !images, %sum: !p, %o: !images) {
  scf.execute_region no_inline {
  linalg.generic {indexing_maps = [#image, #feature], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
      ins(%x : !images) outs(%sum : !p)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#image, #feature, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %sum : !images, !p) outs(%o : !images)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
  ^bb0(%e: f32, %s: f32, %u: f32):
    %0 = arith.subf %e, %s : f32
    linalg.yield %0 : f32
  }
    scf.yield
  }
  return
}

// A fill is the initial value of a sum only if no alias of its buffer is written after it.
// CHECK-LABEL: func.func @written_by_another_name(
// CHECK:         linalg.fill
// CHECK:         memref.store
// CHECK:         memref.copy
// CHECK:         gpu.memcpy
// CHECK:         gpu.launch
!row = memref<8xf32, strided<[1], offset: 8>>
func.func @written_by_another_name(%x: !t, %value: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %stack = memref.alloc() : memref<2x8xf32>
  %row = memref.subview %stack[1, 0] [1, 8] [1, 1] : memref<2x8xf32> to !row
  linalg.fill ins(%zero : f32) outs(%row : !row)
  memref.store %value, %stack[%c1, %c0] : memref<2x8xf32>
  scf.execute_region no_inline {
  linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : !t) outs(%row : !row)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
    scf.yield
  }
  %result = memref.load %stack[%c1, %c0] : memref<2x8xf32>
  memref.dealloc %stack : memref<2x8xf32>
  return %result : f32
}
