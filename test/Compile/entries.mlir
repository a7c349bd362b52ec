// --entry selects the functions that are exported, and gives them names of C.

// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{names} = llvm-nm --defined-only --extern-only --format=just-symbols

// `main`, as TensorFlow, JAX and torch-mlir call every function.
// RUN: %{fails} "%t/main.mlir: expected a name that C can call, got 'main'; give the function another one with --entry=main=NAME" bngrad-compile %t/main.mlir -o %t/f.o
// RUN: bngrad-compile %t/main.mlir -o %t/main.o --header=%t/main.h --entry=main=gradient
// RUN: %{names} %t/main.o | FileCheck %t/main.mlir
// RUN: FileCheck %t/main.mlir --check-prefix=HEADER --input-file=%t/main.h

// Two of three, which take each other's name; the third is called, and inlined.
// RUN: bngrad-compile %t/three.mlir -o %t/three.o --entry=b=a --entry=a=b
// RUN: %{names} %t/three.o | sort | FileCheck %t/three.mlir
// RUN: bngrad-compile %t/three.mlir -o %t/one.o --entry=b=c
// RUN: %{names} %t/one.o | sort | FileCheck %t/three.mlir --check-prefix=ONE
// RUN: bngrad-compile %t/three.mlir -o %t/c.o --entry=c
// RUN: %{names} %t/c.o | sort | FileCheck %t/three.mlir --check-prefix=ONE

// RUN: %{fails} "expected --entry to be NAME or NAME=C_NAME, got '=x'" bngrad-compile %t/main.mlir -o %t/f.o --entry==x
// RUN: %{fails} "expected --entry to be NAME or NAME=C_NAME, got 'x='" bngrad-compile %t/main.mlir -o %t/f.o --entry=x=
// RUN: %{fails} "expected one --entry for a function, got two for 'main'" bngrad-compile %t/main.mlir -o %t/f.o --entry=main=a --entry=main=b
// RUN: %{fails} "expected --entry with different names in C, got 'x' twice" bngrad-compile %t/main.mlir -o %t/f.o --entry=a=x --entry=b=x
// RUN: %{fails} "expected --entry to be a function with a body (@a, @b, @c), got @d" bngrad-compile %t/three.mlir -o %t/f.o --entry=d
// RUN: %{fails} "%t/main.mlir:1:1: expected a name that C can call, got 'main' (a function since C99 and C++11)" bngrad-compile %t/main.mlir -o %t/f.o --entry=main
// RUN: %{fails} "%t/main.mlir:1:1: expected a name that C can call, got 'exp' ..." bngrad-compile %t/main.mlir -o %t/f.o --entry=main=exp

//--- main.mlir
func.func @main(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>) -> tensor<8x4xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%mean : tensor<4xf32>) variance(%variance : tensor<4xf32>) {epsilon = 1.0e-3 : f64}
      : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0#0 : tensor<8x4xf32>
}
// CHECK-NOT: main
// CHECK: {{^}}gradient{{$}}
// CHECK-NOT: main
// HEADER: int32_t gradient(
//--- three.mlir
func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @c(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @b(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @c(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.negf %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK: {{^}}_mlir_ciface_a{{$}}
// CHECK-NEXT: {{^}}_mlir_ciface_b{{$}}
// CHECK-NEXT: {{^}}a{{$}}
// CHECK-NEXT: {{^}}a_checked{{$}}
// CHECK-NEXT: {{^}}a_diagnose{{$}}
// CHECK-NEXT: {{^}}a_workspace{{$}}
// CHECK-NEXT: {{^}}b{{$}}
// CHECK-NOT: {{^}}c
// ONE: {{^}}_mlir_ciface_c{{$}}
// ONE-NEXT: {{^}}c{{$}}
// ONE-NOT: {{^[ab]}}
