// Modules of StableHLO, MHLO and torch-mlir: generic form and bytecode are run,
// other forms are an error that names the generic one.

// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{args} = --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5:0.5:1.5

// RUN: bngrad-runner %S/../Inputs/stablehlo.mlirbc %{args} --check | FileCheck %t/torch.mlir --check-prefix=ONE
// RUN: bngrad-runner %S/../Inputs/torch.mlirbc --entry=native %{args} --check | FileCheck %t/torch.mlir --check-prefix=ONE
// RUN: bngrad-runner %t/torch.mlir --entry=gradient %{args} --check | FileCheck %t/torch.mlir
// RUN: bngrad-runner %t/torch.mlir --entry=sums %{args} --check | FileCheck %t/torch.mlir --check-prefix=SUMS
// RUN: bngrad-runner %t/torch.mlir --entry=elements --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4:0.5:1.5 --arg=random:5 --arg=random:6 --check | FileCheck %t/torch.mlir --check-prefix=ONE

// RUN: %{fails} "%t/stablehlo.mlir:2:8: custom op 'stablehlo.add' is read in generic form only: print the module by torch-mlir-opt --stablehlo-legalize-to-linalg --mlir-print-op-generic" bngrad-runner %t/stablehlo.mlir --arg=random:1
// RUN: %{fails} "%t/pretty.mlir:2:8: custom op 'torch.aten.relu' is read in generic form only: print the module by torch-mlir-opt --mlir-print-op-generic" bngrad-compile %t/pretty.mlir -o %t/f.o
// RUN: %{fails} "%t/relu.mlir:2:8: expected an op of a registered dialect, got 'torch.aten.relu'" bngrad-compile %t/relu.mlir -o %t/f.o
// RUN: %{fails} "%t/region.mlir:2:8: expected an op of a registered dialect, got 'stablehlo.while'" bngrad-runner %t/region.mlir --arg=random:1
// RUN: not bngrad-opt %t/stablehlo.mlir 2>&1 | FileCheck %t/stablehlo.mlir
// RUN: not bngrad-opt %t/generic.mlir 2>&1 | FileCheck %t/generic.mlir

//--- torch.mlir
// ONE: result 0 grad_input max_error {{.+}} ok
// CHECK: result 0 grad_input max_error {{.+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{.+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{.+}} ok
func.func @gradient(%x: !torch.vtensor<[8,4,3],f32>, %dy: !torch.vtensor<[8,4,3],f32>, %w: !torch.vtensor<[4],f32>, %mean: !torch.vtensor<[4],f32>, %invstd: !torch.vtensor<[4],f32>)
    -> (!torch.vtensor<[8,4,3],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.operator"(%x, %dy, %w, %none, %none, %mean, %invstd, %eps, %none) <{name = "torch.aten.cudnn_batch_norm_backward"}>
      : (!torch.vtensor<[8,4,3],f32>, !torch.vtensor<[8,4,3],f32>, !torch.vtensor<[4],f32>, !torch.none, !torch.none, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.float, !torch.none)
      -> (!torch.vtensor<[8,4,3],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>)
  return %0#0, %0#1, %0#2 : !torch.vtensor<[8,4,3],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>
}

// SUMS: result 0 {{.+}} ok
// SUMS-NEXT: result 1 {{.+}} ok
// SUMS-NEXT: result 2 {{.+}} ok
// SUMS-NEXT: result 3 {{.+}} ok
func.func @sums(%dy: !torch.vtensor<[8,4,3],f32>, %x: !torch.vtensor<[8,4,3],f32>, %w: !torch.vtensor<[4],f32>, %mean: !torch.vtensor<[4],f32>, %invstd: !torch.vtensor<[4],f32>)
    -> (!torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>) {
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %0:4 = "torch.operator"(%dy, %x, %mean, %invstd, %w, %true, %true, %true) <{name = "torch.aten.batch_norm_backward_reduce"}>
      : (!torch.vtensor<[8,4,3],f32>, !torch.vtensor<[8,4,3],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.bool, !torch.bool, !torch.bool)
      -> (!torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>)
  return %0#0, %0#1, %0#2, %0#3 : !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>
}

func.func @elements(%dy: !torch.vtensor<[8,4,3],f32>, %x: !torch.vtensor<[8,4,3],f32>, %mean: !torch.vtensor<[4],f32>, %invstd: !torch.vtensor<[4],f32>, %sum_dy: !torch.vtensor<[4],f32>, %sum_dy_xmu: !torch.vtensor<[4],f32>) -> !torch.vtensor<[8,4,3],f32> {
  %none = "torch.constant.none"() : () -> !torch.none
  // Two processes.
  %counts = arith.constant dense<[24, 40]> : tensor<2xi32>
  %count = builtin.unrealized_conversion_cast %counts : tensor<2xi32> to !torch.vtensor<[2],si32>
  %0 = "torch.operator"(%dy, %x, %mean, %invstd, %none, %sum_dy, %sum_dy_xmu, %count) <{name = "torch.aten.batch_norm_backward_elemt"}>
      : (!torch.vtensor<[8,4,3],f32>, !torch.vtensor<[8,4,3],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.none, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[2],si32>)
      -> !torch.vtensor<[8,4,3],f32>
  return %0 : !torch.vtensor<[8,4,3],f32>
}

//--- stablehlo.mlir
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK: error: custom op 'stablehlo.add' is read in generic form only
//--- pretty.mlir
func.func @f(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.aten.relu %a : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
//--- relu.mlir
func.func @f(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = "torch.aten.relu"(%a) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
//--- region.mlir
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %true = arith.constant dense<true> : tensor<i1>
    "stablehlo.return"(%true) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<2xf32>):
    "stablehlo.return"(%a) : (tensor<2xf32>) -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
//--- generic.mlir
// Dialects that are not known at all need --allow-unregistered-dialect.
// CHECK: error: operation being parsed with an unregistered dialect
%0 = "other.op"() : () -> i32
