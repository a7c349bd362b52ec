// The terms of sums may be added in any order. All other ops keep their flags.

// RUN: bngrad-opt %s --bngrad-reassociate-sums | FileCheck %s

#data = affine_map<(d0, d1) -> (d0, d1)>
#channel = affine_map<(d0, d1) -> (d1)>

// Flags that are there stay. The other additions belong to a term and to a stored value.
// CHECK-LABEL: func.func @generic
// CHECK: ^bb0(%[[E:[^:]+]]: f32, %[[OUT:[^:]+]]: f32, %[[ACC:[^:]+]]: f32):
// CHECK-NEXT: %[[TERM:.+]] = arith.addf %[[E]], %[[E]] : f32
// CHECK-NEXT: %[[SUM:.+]] = arith.addf %[[ACC]], %[[TERM]] fastmath<reassoc,contract> : f32
// CHECK-NEXT: %[[STORED:.+]] = arith.addf %[[TERM]], %[[E]] : f32
// CHECK-NEXT: linalg.yield %[[STORED]], %[[SUM]]
func.func @generic(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %0:2 = linalg.generic {indexing_maps = [#data, #data, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%empty, %init : tensor<8x4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32, %acc: f32):
    %term = arith.addf %e, %e : f32
    %sum = arith.addf %acc, %term fastmath<contract> : f32
    %stored = arith.addf %term, %e : f32
    linalg.yield %stored, %sum : f32, f32
  } -> (tensor<8x4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<4xf32>
}

// Both sums of one op, in a loop of the program.
// CHECK-LABEL: func.func @reduce_in_loop
// CHECK: scf.for
// CHECK: linalg.reduce
// CHECK: arith.addf %{{.+}}, %{{.+}} fastmath<reassoc> : f32
// CHECK: arith.addf %{{.+}}, %{{.+}} fastmath<reassoc> : bf16
func.func @reduce_in_loop(%x: tensor<8x4xf32>, %y: tensor<8x4xbf16>, %a: tensor<4xf32>, %b: tensor<4xbf16>, %n: index)
    -> (tensor<4xf32>, tensor<4xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a, %t = %b) -> (tensor<4xf32>, tensor<4xbf16>) {
    %1:2 = linalg.reduce ins(%x, %y : tensor<8x4xf32>, tensor<8x4xbf16>) outs(%s, %t : tensor<4xf32>, tensor<4xbf16>)
        dimensions = [0] (%e: f32, %f: bf16, %p: f32, %q: bf16) {
      %2 = arith.addf %e, %p : f32
      %3 = arith.addf %q, %f : bf16
      linalg.yield %2, %3 : f32, bf16
    }
    scf.yield %1#0, %1#1 : tensor<4xf32>, tensor<4xbf16>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xbf16>
}

// A product, a maximum, a sum whose accumulator has another use, and an element-wise addition are no such sums.
// CHECK-LABEL: func.func @others
// CHECK-NOT: reassoc
func.func @others(%x: tensor<8x4xf32>, %a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>) {
  %0:3 = linalg.generic {indexing_maps = [#data, #channel, #channel, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %p: f32, %q: f32, %r: f32):
    %product = arith.mulf %e, %p : f32
    %maximum = arith.maximumf %e, %q : f32
    %square = arith.mulf %r, %r : f32
    %used_twice = arith.addf %r, %square : f32
    linalg.yield %product, %maximum, %used_twice : f32, f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %empty = tensor.empty() : tensor<8x4xf32>
  %1 = linalg.generic {indexing_maps = [#data, #data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %x : tensor<8x4xf32>, tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %sum = arith.addf %e, %f : f32
    linalg.yield %sum : f32
  } -> tensor<8x4xf32>
  return %0#0, %0#1, %0#2, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>
}

// The conversion from StableHLO adds elements of tensors of rank 0.
// CHECK-LABEL: func.func @scalar_tensors
// CHECK: ^bb0(%[[E:[^:]+]]: f32, %[[ACC:[^:]+]]: f32):
// CHECK-NEXT: %[[SUM:.+]] = arith.addf %[[ACC]], %[[E]] fastmath<reassoc> : f32
// CHECK-NEXT: linalg.yield %[[SUM]]
func.func @scalar_tensors(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %1 = tensor.from_elements %e : tensor<f32>
    %2 = tensor.from_elements %acc : tensor<f32>
    %3 = tensor.extract %2[] : tensor<f32>
    %4 = tensor.extract %1[] : tensor<f32>
    %5 = arith.addf %3, %4 : f32
    %6 = tensor.from_elements %5 : tensor<f32>
    %7 = tensor.extract %6[] : tensor<f32>
    linalg.yield %7 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
