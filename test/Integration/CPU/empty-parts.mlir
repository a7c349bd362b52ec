// Parts without elements next to a gradient: bufferization accessed them past
// the end of their target.

// RUN: bngrad-runner %s --entry=f --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 | FileCheck %s
// RUN: bngrad-runner %s --entry=other_dim --result=%t.npy --arg=random:1 --arg=random:2 --arg=random:3@1x0
// RUN: %python -c "import numpy, sys; print(numpy.load(sys.argv[1]).shape)" %t.npy | FileCheck %s --check-prefix=SHAPE
// SHAPE: (6, 0)
// RUN: bngrad-runner %s --entry=dynamic --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5@0x4 | FileCheck %s
// CHECK: result 0 value {{.*}} ok
// CHECK-NEXT: result 1 value max_error 0 bound 0 ok
// CHECK-NEXT: result 2 value max_error 0 bound 0 ok
func.func @f(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %none: tensor<0x4xf32>)
    -> (tensor<8x4xf32>, tensor<1x4xf32>, tensor<8x4xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%m : tensor<4xf32>) variance(%v : tensor<4xf32>) : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %joined = tensor.concat dim(0) %x, %none : (tensor<8x4xf32>, tensor<0x4xf32>) -> tensor<8x4xf32>
  %n = arith.addf %0#0, %joined : tensor<8x4xf32>
  %c = arith.constant 2.0 : f32
  %padded = tensor.pad %none low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<0x4xf32> to tensor<1x4xf32>
  %inserted = tensor.insert_slice %none into %x[7, 0] [0, 4] [1, 1] : tensor<0x4xf32> into tensor<8x4xf32>
  return %n, %padded, %inserted : tensor<8x4xf32>, tensor<1x4xf32>, tensor<8x4xf32>
}

// Dynamic sizes that leave no elements to the other parts.
func.func @dynamic(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %none: tensor<?x4xf32>)
    -> (tensor<8x4xf32>, tensor<1x4xf32>, tensor<8x4xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%m : tensor<4xf32>) variance(%v : tensor<4xf32>) : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %joined = tensor.concat dim(0) %x, %none : (tensor<8x4xf32>, tensor<?x4xf32>) -> tensor<8x4xf32>
  %n = arith.addf %0#0, %joined : tensor<8x4xf32>
  %c = arith.constant 2.0 : f32
  %padded = tensor.pad %none low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<?x4xf32> to tensor<1x4xf32>
  return %n, %padded, %joined : tensor<8x4xf32>, tensor<1x4xf32>, tensor<8x4xf32>
}

// Parts that are empty in another dim count for the size of the result.
func.func @other_dim(%a: tensor<2x0xf32>, %b: tensor<3x0xf32>, %c: tensor<?x0xf32>) -> tensor<?x0xf32> {
  %0 = tensor.concat dim(0) %a, %b, %c : (tensor<2x0xf32>, tensor<3x0xf32>, tensor<?x0xf32>) -> tensor<?x0xf32>
  return %0 : tensor<?x0xf32>
}
