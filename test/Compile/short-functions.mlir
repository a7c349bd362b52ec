// The code of functions that take little time is generated fast: entries and checks. That of loops and of arithmetic is
// optimized.

// RUN: bngrad-compile %s -o %t.ll --threads=2
// RUN: grep -B 1 '^define' %t.ll | FileCheck %s --implicit-check-not=optnone

// CHECK: optnone
// CHECK-NEXT: @bngrad_find_openmp(
// CHECK: optnone
// CHECK-NEXT: @bngrad_take_openmp(
// CHECK: optnone
// CHECK-NEXT: @bngrad_report(
// A loop without floats or vectors.
// CHECK: @bngrad_take_workspace(
// CHECK: @gradient(
// CHECK: optnone
// CHECK-NEXT: @_mlir_ciface_gradient(
// CHECK: optnone
// CHECK-NEXT: @gradient.check(
// CHECK: @gradient_checked(
// CHECK: optnone
// CHECK-NEXT: @gradient_diagnose(
// CHECK: optnone
// CHECK-NEXT: @gradient_workspace(
func.func @gradient(%dy: tensor<4096x64xf32>, %x: tensor<4096x64xf32>, %mean: tensor<64xf32>, %variance: tensor<64xf32>)
    -> (tensor<4096x64xf32>, tensor<64xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4096x64xf32>) input(%x : tensor<4096x64xf32>)
      mean(%mean : tensor<64xf32>) variance(%variance : tensor<64xf32>)
      : tensor<4096x64xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0, %0#1 : tensor<4096x64xf32>, tensor<64xf32>
}

// Floats without a loop.
// CHECK: @sum(
// CHECK: @_mlir_ciface_sum(
// CHECK: optnone
// CHECK-NEXT: @sum.check(
// CHECK: @sum_checked(
// CHECK: optnone
// CHECK-NEXT: @sum_diagnose(
// CHECK: optnone
// CHECK-NEXT: @sum_workspace(
func.func @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = arith.addf %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
