// Values that depend on no gradient must be equal; otherwise max_error is the difference. C's rand returns a new number
// each time: 1804289383, 846930886, 1681692777, 1714636915, ...

// RUN: not bngrad-runner %s --check --arg=random:1 | FileCheck %s
// CHECK: result 0 value max_error {{[1-9].*}} bound 0 FAILED
// As doubles, these integers are equal or 1024 apart.
// CHECK-NEXT: result 1 value max_error {{[1-9][0-9]?[0-9]?}} bound 0 FAILED
// CHECK-NEXT: result 2 value max_error 1 bound 0 FAILED
// CHECK-NEXT: result 3 value max_error inf bound 0 FAILED
// CHECK-NEXT: result 4 value max_error 0 bound 0 ok
// CHECK-NOT: {{.}}

llvm.func @rand() -> i32
!p = tensor<1xf32>
!i = tensor<1xi64>
!b = tensor<1xi1>
func.func @random(%x: !p) -> (!p, !i, !b, !p, !p) {
  %random = llvm.call @rand() : () -> i32
  %number = arith.sitofp %random : i32 to f32
  %first = tensor.from_elements %number : !p
  %c511 = arith.constant 511 : i32
  %low = arith.andi %random, %c511 : i32
  %wide = arith.extui %low : i32 to i64
  %offset = arith.constant 4611686018427387904 : i64
  %large = arith.addi %wide, %offset : i64
  %integer = tensor.from_elements %large : !i
  %c1 = arith.constant 1 : i32
  %last = arith.trunci %random : i32 to i1
  %bit = tensor.from_elements %last : !b
  %infinity = arith.constant 0x7f800000 : f32
  %chosen = arith.select %last, %infinity, %number : f32
  %special = tensor.from_elements %chosen : !p
  return %first, %integer, %bit, %special, %x : !p, !i, !b, !p, !p
}
