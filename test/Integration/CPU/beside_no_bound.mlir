// Results whose bound does not follow from that of a gradient: --check reports this instead of
// passing. Without --check the function runs.

// DEFINE: %{args} = --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4
// DEFINE: %{fails} = %python %S/../../Inputs/expect_error.py

!d = tensor<5x7xf32>
!p = tensor<7xf32>

// The exponential amplifies errors by more than the bounds track.
// RUN: bngrad-runner %s --entry=consumer %{args}
// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got a value computed from an op of bngrad by 'linalg.generic'" \
// RUN:   bngrad-runner %s --entry=consumer %{args} --check
func.func @consumer(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %exp = math.exp %0#0 : !d
  return %exp : !d
}

// A gradient is not linear in an input that was computed from a gradient.
// RUN: bngrad-runner %s --entry=gradient_at_gradient %{args}
// RUN: %{fails} "%s:...: result 1: expected a bound that can be derived, got 'bngrad.batch_norm_backward' of an operand that was computed from another op of bngrad or a sum in any order" \
// RUN:   bngrad-runner %s --entry=gradient_at_gradient %{args} --check
func.func @gradient_at_gradient(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%0#0 : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#0, %1#1 : !d, !p
}

// Nor if that gradient is also grad_output.
// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got 'bngrad.batch_norm_backward' of an operand that was computed from another op of bngrad or a sum in any order" \
// RUN:   bngrad-runner %s --entry=gradient_in_two_roles %{args} --check
func.func @gradient_in_two_roles(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%0#0 : !d) input(%0#0 : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %1#0 : !d
}

// A forward pass of the output of another one.
// RUN: bngrad-runner %s --entry=training_of_output --arg=random:1
// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got 'bngrad.batch_norm_training' of an operand that was computed from another op of bngrad or a sum in any order" \
// RUN:   bngrad-runner %s --entry=training_of_output --arg=random:1 --check
func.func @training_of_output(%x: !d) -> !d {
  %0:4 = bngrad.batch_norm_training input(%x : !d) : !d, !p, !p, !p
  %1:4 = bngrad.batch_norm_training input(%0#0 : !d) : !d, !p, !p, !p
  return %1#0 : !d
}
