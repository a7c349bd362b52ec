// A sum with free order is compared with the exact one by the bound of sums. A plain loop over 10^6
// times 0.1 is off by 958; with a schedule the bound is 4u(4 + log2(10^6 + 1)) 10^5 and u 10^5, or
// 0.5766.

// RUN: bngrad-runner %s --entry=beside --check --arg=random:1:0.1:0.100000002 --arg=random:2 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s --check-prefix=SCHEDULED
// SCHEDULED: result 0 grad_input max_error {{.*}} ok
// SCHEDULED-NEXT: result 1 value max_error 0.0{{[0-9]+}} bound 0.577 ok
// SCHEDULED-NEXT: result 2 value max_error 0.0{{[0-9]+}} bound 0.588 ok
!d = tensor<1000000x1xf32>
!p = tensor<1xf32>
#data = affine_map<(n, c) -> (n, c)>
#channel = affine_map<(n, c) -> (c)>
func.func @beside(%x: !d, %dy: !d, %m: !p, %v: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%dy : !d) mean(%m : !p) variance(%v : !p) : !d, !p, !p
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !p
  %init = linalg.fill ins(%zero : f32) outs(%empty : !p) -> !p
  %sum = linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : !d) outs(%init : !p) {
  ^bb0(%l: f32, %r: f32):
    %1 = arith.addf %r, %l fastmath<reassoc> : f32
    linalg.yield %1 : f32
  } -> !p
  // Values computed from it.
  %one = arith.constant dense<1.0> : !p
  %2 = arith.addf %sum, %one : !p
  return %0#0, %sum, %2 : !d, !p, !p
}

// The bound depends on the terms, not on the sum, which is near 0: half of the terms are negative. It starts at 1000.
// RUN: bngrad-runner %s --entry=cancels --check --arg=random:1:0.1:0.100000002 | FileCheck %s --check-prefix=CANCELS
// CANCELS: result 0 value max_error {{[^ ]+}} bound 0.576 ok
func.func @cancels(%x: !d) -> !p {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 1000.0 : f32
  %empty = tensor.empty() : !p
  %init = linalg.fill ins(%zero : f32) outs(%empty : !p) -> !p
  %sum = linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : !d) outs(%init : !p) {
  ^bb0(%l: f32, %r: f32):
    %i = linalg.index 0 : index
    %odd = arith.remui %i, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %n = arith.negf %l : f32
    %t = arith.select %even, %l, %n : f32
    %1 = arith.addf %t, %r fastmath<reassoc> : f32
    linalg.yield %1 : f32
  } -> !p
  return %sum : !p
}

// Several parallel sums have separate bounds: 101 terms of 0.1.
// RUN: bngrad-runner %s --entry=window --check --arg=random:1:0.1:0.100000002 --arg=random:2 | FileCheck %s --check-prefix=WINDOW
// WINDOW: result 0 value max_error {{[^ ]+}} bound 2.63e-05 ok
func.func @window(%x: tensor<200xf32>, %w: tensor<101xf32>) -> tensor<100xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<100xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<100xf32>) -> tensor<100xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<200xf32>, tensor<101xf32>) outs(%init : tensor<100xf32>) {
  ^bb0(%l: f32, %unused: f32, %r: f32):
    %1 = arith.addf %r, %l fastmath<reassoc> : f32
    linalg.yield %1 : f32
  } -> tensor<100xf32>
  return %sum : tensor<100xf32>
}

// Terms that come from a gradient have errors, which add up. Of several channels, the bound of the one with
// the largest error would be printed, and which channel that is depends on the order of the sums.
// RUN: bngrad-runner %s --entry=of_gradient --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s --check-prefix=OF-GRADIENT
// OF-GRADIENT: result 0 value max_error {{[^ ]+}} bound 0.000323 ok
func.func @of_gradient(%dy: tensor<64x1xf32>, %x: tensor<64x1xf32>, %m: tensor<1xf32>, %v: tensor<1xf32>) -> tensor<1xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<64x1xf32>) input(%x : tensor<64x1xf32>) mean(%m : tensor<1xf32>)
      variance(%v : tensor<1xf32>) : tensor<64x1xf32>, tensor<1xf32>, tensor<1xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%0#0 : tensor<64x1xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%l: f32, %r: f32):
    %1 = arith.addf %r, %l fastmath<reassoc> : f32
    linalg.yield %1 : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}

// Infinite terms, and sums that overflow in only one order.
// RUN: bngrad-runner %s --entry=window --check --arg=random:1:3e38:3.1e38 --arg=random:2 | FileCheck %s --check-prefix=INFINITE
// INFINITE: result 0 value max_error 0 bound {{.*}} ok

// Other ops with free order have no bound.
// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got a sum in any order by 'scf.for'" \
// RUN:   bngrad-runner %s --entry=loop --check --arg=random:1
func.func @loop(%x: tensor<20xf32>) -> tensor<1xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %c20 step %c1 iter_args(%s = %zero) -> f32 {
    %e = tensor.extract %x[%i] : tensor<20xf32>
    %1 = arith.addf %s, %e fastmath<reassoc> : f32
    scf.yield %1 : f32
  }
  %r = tensor.from_elements %sum : tensor<1xf32>
  return %r : tensor<1xf32>
}
