// Inputs of the runner: a file, standard input, text and bytecode; arguments of rank 0 and of types that no
// gradient supports.

// DEFINE: %{args} = --entry=gradient --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4
// RUN: bngrad-runner %s %{args} | FileCheck %s
// RUN: bngrad-runner - %{args} < %s | FileCheck %s
// RUN: bngrad-opt %s --emit-bytecode -o %t.mlirbc
// RUN: bngrad-runner %t.mlirbc %{args} | FileCheck %s
// RUN: bngrad-runner - %{args} < %t.mlirbc | FileCheck %s
// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

// An option may be separate from its value, and precede the file.
// RUN: bngrad-runner --entry gradient --arg random:1 --arg random:2 --arg random:3 --arg random:4 --check %s | FileCheck %s

!d = tensor<3x4xf32>
!p = tensor<4xf32>
func.func @gradient(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#0 : !d
}

// RUN: bngrad-runner %s --entry=rank_0 --check --arg=random:1 --arg=random:2@ | FileCheck %s --check-prefix=RANK-0
// RANK-0: result 0 value max_error 0 bound 0 ok
// RANK-0-NEXT: result 1 value max_error 0 bound 0 ok
func.func @rank_0(%a: tensor<f32>, %b: tensor<f64>) -> (tensor<f64>, tensor<f32>) {
  %0 = arith.negf %a : tensor<f32>
  return %b, %0 : tensor<f64>, tensor<f32>
}

// No arguments, and no results.
// RUN: bngrad-runner %s --entry=no_arguments --check | FileCheck %s --check-prefix=NO-ARGUMENTS
// NO-ARGUMENTS: result 0 value max_error 0 bound 0 ok
func.func @no_arguments() -> tensor<2xi64> {
  %0 = arith.constant dense<[1, -2]> : tensor<2xi64>
  return %0 : tensor<2xi64>
}

// RUN: bngrad-runner %s --entry=no_results --check --arg=random:1 | count 0
func.func @no_results(%a: tensor<2xi1>) {
  return
}
