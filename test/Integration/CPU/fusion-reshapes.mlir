// Gradients between reshapes: fast to compile, correct, and without copies of
// the data.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=bufferize | FileCheck %s

// Parameters in two shapes: a class of dims that would contain itself is not split.
// RUN: bngrad-runner %s --entry=unit_dims --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s --check-prefix=RUN-UNIT
// RUN-UNIT: result 0 grad_input {{.*}} ok
// RUN-UNIT-NEXT: result 1 value {{.*}} ok
func.func @unit_dims(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>)
    -> (tensor<8x4xf32>, tensor<1x4xf32>) {
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%m : tensor<4xf32>) variance(%v : tensor<4xf32>) : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %e = tensor.expand_shape %ds [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %i = tensor.empty() : tensor<1x4xf32>
  %b = linalg.broadcast ins(%do : tensor<4xf32>) outs(%i : tensor<1x4xf32>) dimensions = [0]
  %a = arith.addf %e, %b : tensor<1x4xf32>
  return %dx, %a : tensor<8x4xf32>, tensor<1x4xf32>
}

// A size that is static in one operand and dynamic in another. The result is
// written in its shape, by a group that keeps its own.
// RUN: bngrad-runner %s --entry=static_and_dynamic --check --arg=random:1@8x4 --arg=random:2 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s --check-prefix=RUN-STATIC
// RUN-STATIC: result 0 value {{.*}} ok

// CHECK-LABEL: func.func @static_and_dynamic(
// CHECK: memref.collapse_shape %{{.+}} : memref<2x4x4xf32> into memref<8x4xf32>
// CHECK-NOT: memref.copy
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK: iterator_types = ["parallel", "parallel"]{{.*}} attrs = {{.*}}bngrad.schedule
// CHECK-NOT: memref.copy
// CHECK: return
func.func @static_and_dynamic(%dy: tensor<?x4xf32>, %x: tensor<8x4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<2x4x4xf32> {
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<?x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%m : tensor<4xf32>) variance(%v : tensor<4xf32>) : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %e = tensor.expand_shape %dx [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  return %e : tensor<2x4x4xf32>
}

// The same with a reader in between, which shares a loop with grad_input; the
// sums are split with it.
// RUN: bngrad-runner %s --entry=static_and_dynamic_reader --check --arg=random:1@8x4 --arg=random:2 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s --check-prefix=RUN-READER
// RUN-READER: result 0 value {{.*}} ok

// CHECK-LABEL: func.func @static_and_dynamic_reader(
// CHECK-NOT: memref.copy
// CHECK: iterator_types = ["reduction", "reduction", "parallel"]{{.*}} attrs = {{.*}}bngrad.schedule
// CHECK: iterator_types = ["parallel", "parallel", "parallel"]{{.*}} attrs = {{.*}}bngrad.schedule
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @static_and_dynamic_reader(%dy: tensor<?x4xf32>, %x: tensor<8x4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<2x4x4xf32> {
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<?x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%m : tensor<4xf32>) variance(%v : tensor<4xf32>) : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %e = tensor.expand_shape %dx [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  %r = arith.negf %e : tensor<2x4x4xf32>
  return %r : tensor<2x4x4xf32>
}

// A layer norm reads grad_input: its rows are collapsed dims, which are split
// for it, and its own sums are not moved.
// CHECK-LABEL: func.func @layer_norm(
// CHECK-NOT: memref.copy
// CHECK: iterator_types = ["reduction", "parallel", "reduction", "reduction"]{{.*}} attrs = {{.*}}bngrad.schedule
// CHECK: iterator_types = ["parallel"]
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "parallel"]{{.*}} attrs = {{.*}}bngrad.schedule
// CHECK: iterator_types = ["parallel", "reduction", "reduction", "reduction"]
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "parallel"]
// CHECK-NOT: linalg.generic
// CHECK-NOT: memref.copy
#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @layer_norm(%dy: tensor<4x6x5x3xf32>, %x: tensor<4x6x5x3xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>) -> tensor<4x6x5x3xf32> {
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<4x6x5x3xf32>) input(%x : tensor<4x6x5x3xf32>)
      mean(%m : tensor<6xf32>) variance(%v : tensor<6xf32>) : tensor<4x6x5x3xf32>, tensor<6xf32>, tensor<6xf32>
  %flat = tensor.collapse_shape %dx [[0], [1, 2, 3]] : tensor<4x6x5x3xf32> into tensor<4x90xf32>
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 90.0 : f32
  %e4 = tensor.empty() : tensor<4xf32>
  %e = tensor.empty() : tensor<4x90xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%flat : tensor<4x90xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %centered = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%flat, %sum : tensor<4x90xf32>, tensor<4xf32>) outs(%e : tensor<4x90xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %b, %count : f32
    %1 = arith.subf %a, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x90xf32>
  %back = tensor.expand_shape %centered [[0], [1, 2, 3]] output_shape [4, 6, 5, 3] : tensor<4x90xf32> into tensor<4x6x5x3xf32>
  %r = arith.addf %back, %x : tensor<4x6x5x3xf32>
  return %r : tensor<4x6x5x3xf32>
}
