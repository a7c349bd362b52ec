// RUN: bngrad-opt %s --bngrad-expand-math | FileCheck %s

// Fast-math flags that exclude such numbers are ignored.

// CHECK-LABEL: func.func @isinf(
// CHECK-SAME: %[[X:.+]]: f16)
// CHECK: %[[A:.+]] = math.absf %[[X]] : f16
// CHECK: %[[INF:.+]] = arith.constant 0x7C00 : f16
// CHECK: %[[R:.+]] = arith.cmpf oeq, %[[A]], %[[INF]] : f16
// CHECK: return %[[R]]
func.func @isinf(%x: f16) -> i1 {
  %0 = math.isinf %x {fastmath = #arith.fastmath<fast>} : f16
  return %0 : i1
}

// CHECK-LABEL: func.func @isnan(
// CHECK-SAME: %[[X:.+]]: f64)
// CHECK: %[[R:.+]] = arith.cmpf uno, %[[X]], %[[X]] : f64
// CHECK: return %[[R]]
func.func @isnan(%x: f64) -> i1 {
  %0 = math.isnan %x {fastmath = #arith.fastmath<fast>} : f64
  return %0 : i1
}

// CHECK-LABEL: func.func @isfinite(
// CHECK: %[[A:.+]] = math.absf
// CHECK: %[[INF:.+]] = arith.constant 0x7F800000 : f32
// CHECK: %[[R:.+]] = arith.cmpf olt, %[[A]], %[[INF]] : f32
// CHECK: return %[[R]]
func.func @isfinite(%x: f32) -> i1 {
  %0 = math.isfinite %x {fastmath = #arith.fastmath<fast>} : f32
  return %0 : i1
}

// CHECK-LABEL: func.func @isnormal(
// CHECK: %[[A:.+]] = math.absf
// CHECK: %[[BELOW:.+]] = arith.cmpf olt, %[[A]], %{{.+}} : f16
// CHECK: %[[SMALLEST:.+]] = arith.constant 6.103520e-05 : f16
// CHECK: %[[ABOVE:.+]] = arith.cmpf oge, %[[A]], %[[SMALLEST]] : f16
// CHECK: %[[R:.+]] = arith.andi %[[BELOW]], %[[ABOVE]] : i1
// CHECK: return %[[R]]
func.func @isnormal(%x: f16) -> i1 {
  %0 = math.isnormal %x {fastmath = #arith.fastmath<fast>} : f16
  return %0 : i1
}

// CHECK-LABEL: func.func @lanes(
// CHECK: arith.constant dense<0x7F80> : vector<4xbf16>
// CHECK: arith.cmpf oeq, %{{.+}}, %{{.+}} : vector<4xbf16>
func.func @lanes(%x: vector<4xbf16>) -> vector<4xi1> {
  %0 = math.isinf %x : vector<4xbf16>
  return %0 : vector<4xi1>
}

// Each lane has its own exponent.

// CHECK-LABEL: func.func @powers(
// CHECK-SAME: %[[X:.+]]: vector<2xf32>, %[[N:.+]]: vector<2xi32>)
// CHECK: %[[X0:.+]] = vector.extract %[[X]][0]
// CHECK: %[[N0:.+]] = vector.extract %[[N]][0]
// CHECK: %[[P0:.+]] = math.fpowi %[[X0]], %[[N0]] fastmath<contract> : f32, i32
// CHECK: %[[FIRST:.+]] = vector.insert %[[P0]]
// CHECK: %[[P1:.+]] = math.fpowi {{.+}} : f32, i32
// CHECK: %[[BOTH:.+]] = vector.insert %[[P1]], %[[FIRST]] [1]
// CHECK: return %[[BOTH]]
func.func @powers(%x: vector<2xf32>, %n: vector<2xi32>) -> vector<2xf32> {
  %0 = math.fpowi %x, %n fastmath<contract> : vector<2xf32>, vector<2xi32>
  return %0 : vector<2xf32>
}

// LLVM's exponent is an i32.
// CHECK-LABEL: func.func @short_exponent(
// CHECK: %[[WIDE:.+]] = arith.extsi %{{.+}} : i8 to i32
// CHECK: math.fpowi %{{.+}}, %[[WIDE]] : f32, i32
func.func @short_exponent(%x: f32, %n: i8) -> f32 {
  %0 = math.fpowi %x, %n : f32, i8
  return %0 : f32
}

// CHECK-LABEL: func.func @long_exponent(
// CHECK-NOT: math.fpowi
// CHECK: arith.extf %{{.+}} : f16 to f32
// CHECK: scf.for
// CHECK-NOT: math.fpowi
// CHECK: arith.truncf %{{.+}} : f32 to f16
func.func @long_exponent(%x: f16, %n: i64) -> f16 {
  %0 = math.fpowi %x, %n : f16, i64
  return %0 : f16
}

// CHECK-LABEL: func.func @integers(
// CHECK: %[[C8:.+]] = arith.constant 8 : index
// CHECK: %[[LOOP:.+]]:3 = scf.for %{{.+}} = %{{.+}} to %[[C8]] {{.+}} -> (vector<4xi8>, vector<4xi8>, vector<4xi8>)
// CHECK: arith.select %{{.+}}, %[[LOOP]]#0, %{{.+}} : vector<4xi1>, vector<4xi8>
func.func @integers(%x: vector<4xi8>, %n: vector<4xi8>) -> vector<4xi8> {
  %0 = math.ipowi %x, %n : vector<4xi8>
  return %0 : vector<4xi8>
}

// CHECK-LABEL: func.func @clamp(
// CHECK-NOT: math
func.func @clamp(%x: f32, %low: f32, %high: f32) -> f32 {
  %0 = math.clampf %x to [%low, %high] : f32
  return %0 : f32
}

// Ops that upstream lowers, and types without infinities, are unchanged.

// CHECK-LABEL: func.func @does_nothing(
// CHECK-NEXT: math.fpowi
// CHECK-NEXT: math.exp
// CHECK-NEXT: math.isinf
// CHECK-NEXT: return
func.func @does_nothing(%x: f32, %n: i32, %e: f8E4M3FN) -> (f32, f32, i1) {
  %0 = math.fpowi %x, %n : f32, i32
  %1 = math.exp %x : f32
  %2 = math.isinf %e : f8E4M3FN
  return %0, %1, %2 : f32, f32, i1
}
