// Complex numbers next to a gradient are lowered; arguments and results of
// functions are real.

// RUN: bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 | FileCheck %s
// RUN: bngrad-runner %s --check --target=cuda-emulator --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 | FileCheck %s
// CHECK: result 0 grad_input {{.*}} ok
// CHECK-NEXT: result 1 value max_error 0 bound 0 ok
func.func @f(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<1xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%m : tensor<4xf32>) variance(%v : tensor<4xf32>) : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %re = tensor.extract %m[%c0] : tensor<4xf32>
  %im = tensor.extract %m[%c1] : tensor<4xf32>
  %z = complex.create %re, %im : complex<f32>
  %square = complex.mul %z, %z : complex<f32>
  %r = complex.re %square : complex<f32>
  %t = tensor.from_elements %r : tensor<1xf32>
  return %0#0, %t : tensor<8x4xf32>, tensor<1xf32>
}
