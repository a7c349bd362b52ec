// What depends on no gradient must be equal; where it is not, max_error is the difference. A sum that may be
// reordered is grouped like that of a gradient: for 10^6 times 0.1 it gives 100000, a plain loop is far off.

// RUN: not bngrad-runner %s --check --arg=random:1:0.1:0.100000002 | FileCheck %s
// CHECK: result 0 value max_error {{[1-9].*}} bound 0 FAILED
// As doubles, these integers are equal or 1024 apart.
// CHECK-NEXT: result 1 value max_error {{[1-9][0-9]?[0-9]?}} bound 0 FAILED
// CHECK-NEXT: result 2 value max_error 1 bound 0 FAILED
// CHECK-NEXT: result 3 value max_error inf bound 0 FAILED
// CHECK-NEXT: result 4 value max_error 0 bound 0 ok
// CHECK-NOT: {{.}}

!d = tensor<1000000x1xf32>
!p = tensor<1xf32>
!i = tensor<1xi64>
!b = tensor<1xi1>
func.func @sum(%x: !d) -> (!p, !i, !b, !p, !d) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !p
  %init = linalg.fill ins(%zero : f32) outs(%empty : !p) -> !p
  %sum = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : !d) outs(%init : !p) {
  ^bb0(%l: f32, %r: f32):
    %0 = arith.addf %r, %l fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> !p
  %whole = arith.fptosi %sum : !p to !i
  %offset = arith.constant dense<4611686018427387904> : !i
  %integer = arith.addi %whole, %offset : !i
  %exact = arith.constant dense<100000.0> : !p
  %error = arith.subf %sum, %exact : !p
  %distance = math.absf %error : !p
  %most = arith.constant dense<0.1> : !p
  %is_exact = arith.cmpf olt, %distance, %most : !p
  %infinity = arith.constant dense<0x7f800000> : !p
  %special = arith.select %is_exact, %infinity, %sum : !b, !p
  return %sum, %integer, %is_exact, %special, %x : !p, !i, !b, !p, !d
}
