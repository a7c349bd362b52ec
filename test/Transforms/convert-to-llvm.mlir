// RUN: bngrad-opt %s --bngrad-convert-to-llvm --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s --implicit-check-not=unrealized_conversion_cast

// All dialects of a function at once.
// CHECK-LABEL: llvm.func @dialects
// CHECK:         llvm.intr.sqrt
// CHECK:         llvm.insertelement
// CHECK:         llvm.sdiv
// CHECK:         llvm.cond_br
// CHECK:         llvm.store
// CHECK:         llvm.call @abort
// CHECK-NEXT:    llvm.unreachable
func.func @dialects(%memref: memref<?xf32>, %index: index, %value: f32, %known: i1) -> vector<4xf32> {
  %root = math.sqrt %value : f32
  %vector = vector.broadcast %root : f32 to vector<4xf32>
  %two = index.constant 2
  %half = index.divs %index, %two
  %poison = ub.poison : f32
  %chosen = arith.select %known, %poison, %root : f32
  cf.assert %known, "expected it to be known"
  memref.store %chosen, %memref[%half] : memref<?xf32>
  return %vector : vector<4xf32>
}

// -----

// Division that rounds up is expanded.
// CHECK-LABEL: llvm.func @division
// CHECK-NOT:     arith.ceildivsi
// CHECK:         llvm.sdiv
// CHECK:         llvm.return
func.func @division(%a: i64, %b: i64) -> i64 {
  %0 = arith.ceildivsi %a, %b : i64
  return %0 : i64
}

// -----

// The magnitude of a complex number is an expression of real numbers.
// CHECK-LABEL: llvm.func @magnitude
// CHECK-SAME:    !llvm.struct<(f32, f32)>
// CHECK:         llvm.intr.sqrt
// CHECK-NOT:     complex
func.func @magnitude(%z: complex<f32>) -> f32 {
  %0 = complex.abs %z : complex<f32>
  return %0 : f32
}

// -----

// LLVM has no intrinsic: a call for each element.
// CHECK:       llvm.func @erff(f32) -> f32
// CHECK-LABEL: llvm.func @no_intrinsic
// CHECK-COUNT-2: llvm.call @erff
// CHECK-NOT:     llvm.call
func.func @no_intrinsic(%v: vector<2xf32>) -> vector<2xf32> {
  %0 = math.erf %v : vector<2xf32>
  return %0 : vector<2xf32>
}

// -----

// CHECK-LABEL: module @outer
// CHECK-NEXT:    module
// CHECK-NEXT:      llvm.func @inner
module @outer {
  module {
    func.func @inner(%m: memref<8xf32>, %i: index) -> f32 {
      %0 = memref.load %m[%i] : memref<8xf32>
      return %0 : f32
    }
  }
}

// -----

func.func @no_pattern(%z: complex<f32>) -> i64 {
  // expected-error@below {{failed to legalize operation 'complex.bitcast'}}
  %0 = complex.bitcast %z : complex<f32> to i64
  return %0 : i64
}

// -----

// expected-error@below {{redefinition of reserved function 'malloc'}}
func.func private @malloc()

func.func @clash(%n: index) {
  // expected-error@below {{failed to legalize operation 'memref.alloc'}}
  %0 = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}
