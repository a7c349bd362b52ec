// RUN: bngrad-opt %s --bngrad-expand-truncf=f16-conversion=false | FileCheck %s
// RUN: bngrad-opt %s --bngrad-expand-truncf | FileCheck %s --check-prefix=INSTRUCTIONS

// Without instructions, conversions between f16 and f32 are integer arithmetic, on scalars and vectors.
// CHECK-LABEL: func @halves
// CHECK-SAME:    %[[X:[^:]+]]: vector<4xf16>, %[[Y:[^:]+]]: f32
// CHECK-NOT:     f16 to f32
// CHECK-NOT:     f32 to f16
// CHECK:         arith.bitcast %[[X]] : vector<4xf16> to vector<4xi16>
// CHECK:         arith.bitcast %[[X]] : vector<4xf16> to vector<4xi16>
// CHECK:         arith.extf %{{.+}} : vector<4xf32> to vector<4xf64>
// CHECK:         arith.bitcast %[[Y]] : f32 to i32
// CHECK:         arith.bitcast %{{.+}} : i16 to f16
// CHECK-NOT:     f32 to f16
// CHECK:         return
// INSTRUCTIONS-LABEL: func @halves
// INSTRUCTIONS-NOT:     bitcast
// INSTRUCTIONS:         return
func.func @halves(%x: vector<4xf16>, %y: f32) -> (vector<4xf32>, vector<4xf64>, f16) {
  %0 = arith.extf %x : vector<4xf16> to vector<4xf32>
  %1 = arith.extf %x : vector<4xf16> to vector<4xf64>
  %2 = arith.truncf %y : f32 to f16
  return %0, %1, %2 : vector<4xf32>, vector<4xf64>, f16
}

// The second rounding of an f64 and the other modes, which choose a neighbour of the nearest number, as well.
// CHECK-LABEL: func @roundings
// CHECK-NOT:     f32 to f16
// CHECK:         return
func.func @roundings(%x: f64, %y: f32) -> (f16, f16) {
  %0 = arith.truncf %x : f64 to f16
  %1 = arith.truncf %y upward : f32 to f16
  return %0, %1 : f16, f16
}

// A GPU has the instructions. Tensors and other types are left alone.
// CHECK-LABEL: func @kept
// CHECK:         gpu.launch
// CHECK:           arith.extf %{{.+}} : f16 to f32
// CHECK:           arith.truncf %{{.+}} : f32 to f16
// CHECK:         arith.extf %{{.+}} : tensor<4xf16> to tensor<4xf32>
// CHECK:         arith.truncf %{{.+}} : tensor<4xf32> to tensor<4xf16>
// CHECK:         arith.extf %{{.+}} : bf16 to f32
func.func @kept(%x: memref<f16>, %t: tensor<4xf16>, %z: bf16, %n: index) -> (tensor<4xf16>, f32) {
  gpu.launch blocks(%i, %j, %k) in (%a = %n, %b = %n, %c = %n) threads(%u, %v, %w) in (%p = %n, %q = %n, %r = %n) {
    %0 = memref.load %x[] : memref<f16>
    %1 = arith.extf %0 : f16 to f32
    %2 = arith.addf %1, %1 : f32
    %3 = arith.truncf %2 : f32 to f16
    memref.store %3, %x[] : memref<f16>
    gpu.terminator
  }
  %0 = arith.extf %t : tensor<4xf16> to tensor<4xf32>
  %1 = arith.addf %0, %0 : tensor<4xf32>
  %2 = arith.truncf %1 : tensor<4xf32> to tensor<4xf16>
  %3 = arith.extf %z : bf16 to f32
  return %2, %3 : tensor<4xf16>, f32
}
