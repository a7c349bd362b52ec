// RUN: bngrad-opt %s --bngrad-return-status | FileCheck %s

// CHECK-LABEL: func.func @allocates(
// CHECK-SAME:    %{{.+}}: index) -> (f32, i32) attributes {bngrad.returns_status} {
// CHECK:         %[[ZERO:.+]] = arith.constant 0 : i32
// CHECK-NEXT:    return %{{.+}}, %[[ZERO]] : f32, i32
func.func @allocates(%n: index) -> f32 {
  %0 = memref.alloc(%n) : memref<?xf32>
  %1 = memref.load %0[%n] : memref<?xf32>
  return %1 : f32
}
// CHECK-LABEL: func.func @calls(
// CHECK-SAME:    %{{.+}}: index, %{{.+}}: i1) -> (f32, i32) attributes {bngrad.returns_status} {
// CHECK:         %[[CALL:.+]]:2 = func.call @allocates(%{{.+}}) : (index) -> (f32, i32)
// CHECK:         scf.yield %[[CALL]]#0
func.func @calls(%n: index, %flag: i1) -> f32 {
  %zero = arith.constant 0.0 : f32
  %0 = scf.if %flag -> f32 {
    %1 = func.call @allocates(%n) : (index) -> f32
    scf.yield %1 : f32
  } else {
    scf.yield %zero : f32
  }
  return %0 : f32
}
// Its type must stay.
// CHECK-LABEL: func.func @is_a_value() {
func.func @is_a_value() {
  %0 = memref.alloc() : memref<2xf32>
  return
}
// CHECK-LABEL: func.func @calls_value() {
// CHECK-NEXT:    constant @is_a_value : () -> ()
func.func @calls_value() {
  %0 = func.constant @is_a_value : () -> ()
  func.call_indirect %0() : () -> ()
  return
}
// CHECK-LABEL: func.func @nothing() {
// CHECK-NEXT:    return
func.func @nothing() {
  return
}
// The attribute without a status is the user's.
// CHECK-LABEL: func.func @marked() -> i32
// CHECK:         return %{{.+}} : i32
func.func @marked() attributes {bngrad.returns_status} {
  %0 = memref.alloc() : memref<2xf32>
  memref.dealloc %0 : memref<2xf32>
  return
}
