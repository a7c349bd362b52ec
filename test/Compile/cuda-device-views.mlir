// Views of arrays in device memory are used in place, and arguments that are only returned are copied there.

// UNSUPPORTED: sanitizer
// REQUIRES: numpy

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/gradient.so --target=cuda --device-arguments --chip=sm_90
// RUN: %python %S/Inputs/use_device_views.py %bngrad_obj_root/lib/libBNGradCudaEmulator.so %t/gradient.so | FileCheck %s --check-prefix=COUNT
// COUNT: 9 functions, 0 failed

// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 device-arguments stop-after=apply" | FileCheck %s

!d = tensor<4x3x16xf32>
!wide = tensor<4x8x16xf32>
!c = tensor<3xf32>
!strided = memref<4x3x16xf32, strided<[48, 1, 3]>>

// CHECK-LABEL: func.func @slice
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
func.func @slice(%dy: !d, %x: !wide, %mean: !c, %variance: !c) -> (!d, !c, !c) {
  %part = tensor.extract_slice %x[0, 5, 0] [4, 3, 16] [1, 1, 1] : !wide to !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%part : !d) mean(%mean : !c) variance(%variance : !c) : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}

// CHECK-LABEL: func.func @channels_last
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
func.func @channels_last(%dy: !strided, %x: !strided, %mean: memref<3xf32>, %variance: memref<3xf32>, %dx: !strided, %dscale: memref<3xf32>, %doffset: memref<3xf32>) {
  %dy_t = bufferization.to_tensor %dy restrict : !strided to !d
  %x_t = bufferization.to_tensor %x restrict : !strided to !d
  %mean_t = bufferization.to_tensor %mean restrict : memref<3xf32> to !c
  %variance_t = bufferization.to_tensor %variance restrict : memref<3xf32> to !c
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_t : !d) input(%x_t : !d) mean(%mean_t : !c) variance(%variance_t : !c) : !d, !c, !c
  bufferization.materialize_in_destination %0#0 in restrict writable %dx : (!d, !strided) -> ()
  bufferization.materialize_in_destination %0#1 in restrict writable %dscale : (!c, memref<3xf32>) -> ()
  bufferization.materialize_in_destination %0#2 in restrict writable %doffset : (!c, memref<3xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @passed_on
// CHECK-SAME:    %[[VARIANCE:[^:]+]]: memref<3xf32>, %{{[^:]+}}: memref<4x3x16xf32>, %[[RESULT:[^:]+]]: memref<3xf32>
// CHECK:         gpu.memcpy async [%{{.+}}] %[[RESULT]], %[[VARIANCE]]
func.func @passed_on(%dy: !d, %x: !d, %mean: !c, %variance: !c) -> (!d, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c) : !d, !c, !c
  return %0#0, %variance : !d, !c
}

// The kernel writes to the rows of the sums; only the count comes from the host.
// CHECK-LABEL: func.func @reduce(
// CHECK-SAME:    %[[SUMS:[^:]+]]: memref<2x3xf32>, %[[NUMBER:[^:]+]]: memref<i64>)
// CHECK-NOT:     memref.alloc
// CHECK:         gpu.memcpy async [%{{.+}}] %[[NUMBER]]
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
func.func @reduce(%dy: !d, %x: !d, %mean: !c) -> (tensor<2x3xf32>, tensor<i64>) {
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) : tensor<2x3xf32>, tensor<i64>
  return %sums, %count : tensor<2x3xf32>, tensor<i64>
}

func.func @reduce_any(%dy: tensor<?x?x?xf32>, %x: tensor<?x?x?xf32>, %mean: tensor<?xf32>) -> (tensor<2x?xf32>, tensor<i64>) {
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<?x?x?xf32>) input(%x : tensor<?x?x?xf32>) mean(%mean : tensor<?xf32>) : tensor<2x?xf32>, tensor<i64>
  return %sums, %count : tensor<2x?xf32>, tensor<i64>
}

// An empty sum.
func.func @reduce_nothing(%dy: tensor<0x3x16xf32>, %x: tensor<0x3x16xf32>, %mean: !c) -> (tensor<2x3xf32>, tensor<i64>) {
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<0x3x16xf32>) input(%x : tensor<0x3x16xf32>) mean(%mean : !c) : tensor<2x3xf32>, tensor<i64>
  return %sums, %count : tensor<2x3xf32>, tensor<i64>
}

// The sums have one dim for several feature dims.
func.func @elemt(%dy: !d, %x: !d, %mean: !c, %variance: !c, %sums: tensor<2x3xf32>) -> tensor<4x3x1x16xf32> {
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c) sums(%sums : tensor<2x3xf32>) {epsilon = 1.0e-5 : f64} : !d
  %1 = tensor.expand_shape %0 [[0], [1, 2], [3]] output_shape [4, 3, 1, 16] : !d into tensor<4x3x1x16xf32>
  %2 = arith.negf %1 : tensor<4x3x1x16xf32>
  return %2 : tensor<4x3x1x16xf32>
}

// The kernel reads the count, which the host cannot.
// CHECK-LABEL: func.func @elemt_count
// CHECK-SAME:    %[[ELEMENTS:[^:]+]]: memref<i64>
// CHECK-NOT:     memref.load
// CHECK:         gpu.launch
// CHECK:         memref.load %[[ELEMENTS]][]
func.func @elemt_count(%dy: !d, %x: !d, %mean: !c, %variance: !c, %sums: tensor<2x3xf32>, %count: tensor<i64>) -> !d {
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c) sums(%sums : tensor<2x3xf32>) count(%count : tensor<i64>) {epsilon = 1.0e-5 : f64} : !d
  return %0 : !d
}

// Scalars of the data as well: one of rank 0, and one of several.
#data = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @scaled(%dy: !d, %x: !d, %mean: !c, %variance: !c, %scale: tensor<f32>, %more: tensor<4xf32>) -> !d {
  %c2 = arith.constant 2 : index
  %s = tensor.extract %scale[] : tensor<f32>
  %m = tensor.extract %more[%c2] : tensor<4xf32>
  %factor = arith.addf %s, %m : f32
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c) {epsilon = 1.0e-5 : f64} : !d, !c, !c
  %empty = tensor.empty() : !d
  %1 = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0#0 : !d) outs(%empty : !d) {
  ^bb0(%e: f32, %out: f32):
    %2 = arith.mulf %e, %factor : f32
    linalg.yield %2 : f32
  } -> !d
  return %1 : !d
}
