// RUN: bngrad-opt %s --bngrad-export-c --split-input-file --verify-diagnostics

// expected-error @below {{expected a name that C can call, got 'malloc' (declared in <stdlib.h> since C99 and C++11)}}
func.func @malloc(%a: memref<2xf32>) {
  return
}
// expected-error @below {{expected a name that C can call, got 'while' (a keyword since C99 and C++11)}}
func.func @while(%a: memref<2xf32>) {
  return
}

// -----

// expected-error @below {{expected results of 'f' to be out-parameters, got a result of type 'memref<2xf32>'}}
func.func @f(%a: memref<2xf32>) -> memref<2xf32> {
  return %a : memref<2xf32>
}

// -----

// expected-error @below {{expected argument 1 of 'f' to be a strided memref, or a scalar, of index, i1, i8, i16, i32, i64, f16, bf16, f32 or f64, got 'memref<2xf32, 1>'}}
func.func @f(%a: i32, %b: memref<2xf32, 1>) {
  return
}

// -----

// expected-error-re @below {{expected argument 0 of 'f' to be a strided memref, or a scalar, of {{.*}}, got 'tensor<2xf32>'}}
func.func @f(%a: tensor<2xf32>) {
  return
}

// -----

// Nothing to export.
func.func private @_f(%a: tensor<2xf32>) -> f32 {
  %0 = arith.constant 0.0 : f32
  return %0 : f32
}
