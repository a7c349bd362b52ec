// A result that is computed from a gradient has no bound of its own: --check says so instead of passing.
// Without --check the function runs.

// DEFINE: %{args} = --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4
// DEFINE: %{fails} = %python %S/../../Inputs/expect_error.py

!d = tensor<5x7xf32>
!p = tensor<7xf32>

// RUN: bngrad-runner %s --entry=consumer %{args}
// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got a value computed from a gradient by 'arith.addf'" \
// RUN:   bngrad-runner %s --entry=consumer %{args} --check
func.func @consumer(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %sum = arith.addf %0#0, %x : !d
  return %sum : !d
}

// RUN: bngrad-runner %s --entry=gradient_of_gradient %{args}
// RUN: %{fails} "%s:...: result 1: expected a bound that can be derived, got a gradient whose operand is computed from another gradient" \
// RUN:   bngrad-runner %s --entry=gradient_of_gradient %{args} --check
func.func @gradient_of_gradient(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%0#0 : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#0, %1#1 : !d, !p
}

// RUN: bngrad-runner %s --entry=region %{args}
// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got a value computed from a gradient by 'scf.if'" \
// RUN:   bngrad-runner %s --entry=region %{args} --check
func.func @region(%dy: !d, %x: !d, %m: !p, %v: !p) -> !p {
  %i = arith.constant 0 : index
  %first = tensor.extract %m[%i] : !p
  %zero = arith.constant 0.0 : f32
  %is_positive = arith.cmpf ogt, %first, %zero : f32
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %1 = scf.if %is_positive -> !p {
    scf.yield %0#1 : !p
  } else {
    scf.yield %m : !p
  }
  return %1 : !p
}
