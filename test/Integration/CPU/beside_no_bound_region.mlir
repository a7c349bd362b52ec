// --check cannot derive a bound for a gradient inside a region, and reports this. It can for one in
// a called function.

// DEFINE: %{args} = --arg=random:1 --arg=random:2 --arg=random:3:0.5:1 --arg=random:4
// DEFINE: %{fails} = %python %S/../../Inputs/expect_error.py

!d = tensor<5x7xf32>
!p = tensor<7xf32>

// RUN: bngrad-runner %s --entry=branch %{args}
// RUN: %{fails} "%s:...: --check: expected gradients outside of regions, got one in 'scf.if'" bngrad-runner %s --entry=branch %{args} --check
func.func @branch(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %i = arith.constant 0 : index
  %first = tensor.extract %m[%i] : !p
  %zero = arith.constant 0.0 : f32
  %is_positive = arith.cmpf ogt, %first, %zero : f32
  %dx = scf.if %is_positive -> !d {
    %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
        : !d, !p, !p
    scf.yield %0#0 : !d
  } else {
    scf.yield %x : !d
  }
  return %dx : !d
}

// RUN: bngrad-runner %s --entry=call %{args} --check | FileCheck %s --check-prefix=CALL
// CALL: result 0 grad_input {{.*}} ok
func.func private @callee(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#0 : !d
}
func.func @call(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %dx = call @callee(%dy, %x, %m, %v) : (!d, !d, !p, !p) -> !d
  return %dx : !d
}
