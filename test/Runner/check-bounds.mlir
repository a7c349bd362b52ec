// Bounds of values computed from a gradient.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py

// With all of grad_output 1 and input equal to mean, grad_input is 0 and its bound is not.
// DEFINE: %{zero} = --arg=random:1:1:1.0000000000000002 --arg=random:2:1:1.0000000000000002 --arg=random:3:1:1.0000000000000002 --arg=random:4

!d = tensor<4x3xf64>
!p = tensor<3xf64>

// A bound that overflows without its value accepts anything, so there is no check. With one factor less, there is.
// RUN: %{fails} "%s:...: result 1: expected a bound that can be derived, got one that overflows at element 0" \
// RUN:   bngrad-runner %s --entry=overflow --check %{zero}
// RUN: bngrad-runner %s --entry=overflow %{zero}
// RUN: bngrad-runner %s --entry=no_overflow --check %{zero} | FileCheck %s --check-prefix=NO-OVERFLOW
// NO-OVERFLOW: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// NO-OVERFLOW-NEXT: result 1 value max_error {{[0-9.e+-]+}} bound {{[0-9.e-]+\+[0-9]+}} ok
func.func @overflow(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !d) {
  %large = arith.constant dense<1.0e300> : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %1 = arith.mulf %0#0, %large : !d
  %2 = arith.mulf %1, %large : !d
  return %0#0, %2 : !d, !d
}
func.func @no_overflow(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !d) {
  %large = arith.constant dense<1.0e300> : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %1 = arith.mulf %0#0, %large : !d
  return %0#0, %1 : !d, !d
}

// The same in a type whose largest number is below the bound.
// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got one that overflows at element 0" \
// RUN:   bngrad-runner %s --entry=overflow_f16 --check %{zero}
!h = tensor<4x3xf16>
func.func @overflow_f16(%dy: !d, %x: !d, %m: !p, %v: !p) -> !h {
  %large = arith.constant dense<1.0e20> : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %1 = arith.mulf %0#0, %large : !d
  %2 = arith.truncf %1 : !d to !h
  return %2 : !h
}

// For a value that overflows, the bound may overflow as well: f32 from 1e38 on, in both programs.
// RUN: bngrad-runner %s --entry=value_overflows --check --arg=random:1:1:2 --arg=random:2 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s --check-prefix=INFINITE
// INFINITE: result 0 value {{.*}} ok
!f = tensor<4x3xf32>
!pf = tensor<3xf32>
func.func @value_overflows(%dy: !f, %x: !f, %m: !pf, %v: !pf) -> !f {
  %large = arith.constant dense<3.0e38> : !f
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f) input(%x : !f) mean(%m : !pf) variance(%v : !pf)
      {statistics = #bngrad.statistics<global>} : !f, !pf, !pf
  %1 = arith.mulf %0#0, %large : !f
  %2 = arith.mulf %1, %large : !f
  return %2 : !f
}

// Infinities of the gradient have no error, so values clamped at 6, with and without a previous addition, have a
// bound. The variance is 0, so that inv_std is infinite.
// RUN: bngrad-runner %s --entry=cut_off --check --arg=random:1:1:2 --arg=random:2 --arg=random:3 --arg=random:4:0:1e-60 \
// RUN:   | FileCheck %s --check-prefix=CUT-OFF
// CUT-OFF: result 0 grad_input max_error 0 bound {{[^ ]+}} ok
// CUT-OFF-NEXT: result 1 value max_error 0 bound 0 ok
// CUT-OFF-NEXT: result 2 value max_error 0 bound 0 ok
func.func @cut_off(%dy: !f, %x: !f, %m: !pf, %zero: !pf) -> (!f, !f, !f) {
  %six = arith.constant dense<6.0> : !f
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f) input(%x : !f) mean(%m : !pf) variance(%zero : !pf)
      {statistics = #bngrad.statistics<global>} : !f, !pf, !pf
  %1 = arith.minimumf %0#0, %six : !f
  %2 = arith.addf %0#0, %x : !f
  %3 = arith.minimumf %2, %six : !f
  return %0#0, %1, %3 : !f, !f, !f
}

// Rounding errors of operands propagate to the result: 16 times (1 + 2^-8) is 1.064.
// RUN: bngrad-runner %s --entry=rounded --check %{zero} > %t
// RUN: %python -c "import sys; first, last = (float(l.split()[6]) for l in open(sys.argv[1])); assert 1.06 * first < last < 1.08 * first" %t
!b = tensor<4x3xbf16>
!pb = tensor<3xbf16>
func.func @rounded(%dy: !b, %x: !b, %m: !pb, %v: !pb) -> (!b, !b) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !b) input(%x : !b) mean(%m : !pb) variance(%v : !pb)
      : !b, !pb, !pb
  %1 = arith.mulf %0#0, %x : !b
  %2 = arith.mulf %1, %x : !b
  %3 = arith.mulf %2, %x : !b
  %4 = arith.mulf %3, %x : !b
  %5 = arith.mulf %4, %x : !b
  %6 = arith.mulf %5, %x : !b
  %7 = arith.mulf %6, %x : !b
  %8 = arith.mulf %7, %x : !b
  %9 = arith.mulf %8, %x : !b
  %10 = arith.mulf %9, %x : !b
  %11 = arith.mulf %10, %x : !b
  %12 = arith.mulf %11, %x : !b
  %13 = arith.mulf %12, %x : !b
  %14 = arith.mulf %13, %x : !b
  %15 = arith.mulf %14, %x : !b
  %16 = arith.mulf %15, %x : !b
  return %0#0, %16 : !b, !b
}
