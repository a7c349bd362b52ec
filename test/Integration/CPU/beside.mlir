// Gradients next to other ops of a function. This finds producers that are fused wrongly or into only one of
// the two passes over the data, buffers shared by two gradients, and ops that are not lowered.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5

!d = tensor<5x7x3x9xf32>
!p = tensor<7xf32>

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// TWO-NEXT: result 3 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// TWO-NEXT: result 4 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// TWO-NEXT: result 5 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// VALUE-NEXT: result 3 value max_error 0 bound 0 ok
// CHECK-NOT: {{.}}

// Two gradients that read the same arguments with exchanged roles.
// RUN: %{check} --entry=two_gradients | FileCheck %s --check-prefixes=CHECK,TWO
func.func @two_gradients(%a: !d, %b: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p, !d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%a : !d) input(%b : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%b : !d) input(%a : !d) scale(%m : !p) mean(%g : !p)
      variance(%v : !p) {epsilon = 0.5} : !d, !p, !p
  return %0#0, %0#1, %0#2, %1#0, %1#1, %1#2 : !d, !p, !p, !d, !p, !p
}

// One value in several roles.
// RUN: %{check} --entry=one_value | FileCheck %s
func.func @one_value(%a: !d, %b: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%a : !d) input(%a : !d) scale(%v : !p) mean(%v : !p)
      variance(%v : !p) : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

// Casts that drop static sizes, before and after.
// RUN: %{check} --entry=casts | FileCheck %s
!any = tensor<?x?x?x?xf32>
func.func @casts(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, tensor<?xf32>, !p) {
  %dy_any = tensor.cast %dy : !d to !any
  %x_any = tensor.cast %x : !d to !any
  %m_any = tensor.cast %m : !p to tensor<?xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_any : !any) input(%x_any : !any) scale(%g : !p)
      mean(%m_any : tensor<?xf32>) variance(%v : !p) : !any, tensor<?xf32>, !p
  %dx = tensor.cast %0#0 : !any to !d
  return %dx, %0#1, %0#2 : !d, tensor<?xf32>, !p
}

// Element-wise producers of every operand.
// RUN: %{check} --entry=producers | FileCheck %s
func.func @producers(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p) {
  %grad = arith.mulf %dy, %x : !d
  %input = arith.subf %x, %dy : !d
  %scale = arith.negf %g : !p
  %mean = arith.addf %m, %g : !p
  %variance = arith.mulf %v, %v : !p
  %0:3 = bngrad.batch_norm_backward grad_output(%grad : !d) input(%input : !d) scale(%scale : !p)
      mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

// The gradient of a ReLU as producer, whose value is also returned.
// RUN: %{check} --entry=relu_gradient | FileCheck %s --check-prefixes=CHECK,VALUE
#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
func.func @relu_gradient(%dz: !d, %y: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p, !d) {
  %init = tensor.empty() : !d
  %dy = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%dz, %y : !d, !d) outs(%init : !d) {
  ^bb0(%grad: f32, %value: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %is_positive = arith.cmpf ogt, %value, %zero : f32
    %result = arith.select %is_positive, %grad, %zero : f32
    linalg.yield %result : f32
  } -> !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%y : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) : !d, !p, !p
  return %0#0, %0#1, %0#2, %dy : !d, !p, !p, !d
}

// A per-channel producer that is broadcast over the data, and one that transposes.
// RUN: %{check} --entry=broadcast_and_transpose | FileCheck %s
func.func @broadcast_and_transpose(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (tensor<9x3x7x5xf32>, !p, !p) {
  %init = tensor.empty() : !d
  %grad = linalg.generic {indexing_maps = [#id, affine_map<(n, c, h, w) -> (c)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%dy, %g : !d, !p) outs(%init : !d) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %result = arith.mulf %l, %r : f32
    linalg.yield %result : f32
  } -> !d
  %empty = tensor.empty() : tensor<9x3x7x5xf32>
  %gradT = linalg.transpose ins(%grad : !d) outs(%empty : tensor<9x3x7x5xf32>) permutation = [3, 2, 1, 0]
  %xT = linalg.transpose ins(%x : !d) outs(%empty : tensor<9x3x7x5xf32>) permutation = [3, 2, 1, 0]
  %0:3 = bngrad.batch_norm_backward grad_output(%gradT : tensor<9x3x7x5xf32>) input(%xT : tensor<9x3x7x5xf32>)
      mean(%m : !p) variance(%v : !p) {feature_dims = array<i64: 2>} : tensor<9x3x7x5xf32>, !p, !p
  return %0#0, %0#1, %0#2 : tensor<9x3x7x5xf32>, !p, !p
}

// Reshapes of the arguments.
// RUN: %{check} --entry=reshapes | FileCheck %s
func.func @reshapes(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (tensor<5x7x27xf32>, !p, !p) {
  %dy3 = tensor.collapse_shape %dy [[0], [1], [2, 3]] : !d into tensor<5x7x27xf32>
  %x3 = tensor.collapse_shape %x [[0], [1], [2, 3]] : !d into tensor<5x7x27xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy3 : tensor<5x7x27xf32>) input(%x3 : tensor<5x7x27xf32>)
      scale(%g : !p) mean(%m : !p) variance(%v : !p) : tensor<5x7x27xf32>, !p, !p
  return %0#0, %0#1, %0#2 : tensor<5x7x27xf32>, !p, !p
}

// Constant operands.
// RUN: %{check} --entry=constants | FileCheck %s
func.func @constants(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p) {
  %mean = arith.constant dense<[0.0, 0.25, -0.5, 0.75, -1.0, 1.25, -1.5]> : !p
  %variance = arith.constant dense<[1.0, 2.0, 0.5, 4.0, 0.25, 1.5, 3.0]> : !p
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%mean : !p)
      variance(%variance : !p) : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

// A contraction that shares an argument; it depends on no gradient and must be bitwise identical.
// RUN: bngrad-runner %s --check --entry=matmul --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 \
// RUN:   | FileCheck %s --check-prefixes=CHECK,VALUE
!a = tensor<13x7xf32>
func.func @matmul(%dy: !a, %x: !a, %m: !p, %v: !p, %w: tensor<7x11xf32>) -> (!a, !p, !p, tensor<13x11xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<13x11xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<13x11xf32>) -> tensor<13x11xf32>
  %product = linalg.matmul ins(%dy, %w : !a, tensor<7x11xf32>) outs(%init : tensor<13x11xf32>) -> tensor<13x11xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !a) input(%x : !a) mean(%m : !p) variance(%v : !p)
      : !a, !p, !p
  return %0#0, %0#1, %0#2, %product : !a, !p, !p, tensor<13x11xf32>
}
