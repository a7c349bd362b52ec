// Each result is rounded once, to nearest even, including subnormals and overflow: with constant statistics
// and inv_std 1, grad_input is grad_output. Double rounding through f32 rounds a value just above a tie
// down; the hardware's conversion to bf16 flushes subnormals.

// REQUIRES: numpy
// RUN: %python %S/check_rounding.py write %t
// RUN: bngrad-runner %s --entry=f64 --arg=%t/f64.npy --arg=%t/one.npy --result=%t/f64.f16.npy --result=%t/f64.bf16.npy --result=%t/f64.f32.npy
// RUN: bngrad-runner %s --entry=f32 --arg=%t/f32.npy --arg=%t/one.npy --result=%t/f32.f16.npy --result=%t/f32.bf16.npy
// RUN: %python %S/check_rounding.py compare %t

!p = tensor<1xf64>
!f64 = tensor<?x1xf64>
func.func @f64(%dy: !f64, %one: !p) -> (tensor<?x1xf16>, tensor<?x1xbf16>, tensor<?x1xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f64) input(%dy : !f64) mean(%one : !p) inv_std(%one : !p)
      {statistics = #bngrad.statistics<global>} : tensor<?x1xf16>, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !f64) input(%dy : !f64) mean(%one : !p) inv_std(%one : !p)
      {statistics = #bngrad.statistics<global>} : tensor<?x1xbf16>, !p, !p
  %2:3 = bngrad.batch_norm_backward grad_output(%dy : !f64) input(%dy : !f64) mean(%one : !p) inv_std(%one : !p)
      {statistics = #bngrad.statistics<global>} : tensor<?x1xf32>, !p, !p
  return %0#0, %1#0, %2#0 : tensor<?x1xf16>, tensor<?x1xbf16>, tensor<?x1xf32>
}

!q = tensor<1xf32>
!f32 = tensor<?x1xf32>
func.func @f32(%dy: !f32, %one: !p) -> (tensor<?x1xf16>, tensor<?x1xbf16>) {
  %q = arith.truncf %one : !p to !q
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f32) input(%dy : !f32) mean(%q : !q) inv_std(%q : !q)
      {statistics = #bngrad.statistics<global>} : tensor<?x1xf16>, !q, !q
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !f32) input(%dy : !f32) mean(%q : !q) inv_std(%q : !q)
      {statistics = #bngrad.statistics<global>} : tensor<?x1xbf16>, !q, !q
  return %0#0, %1#0 : tensor<?x1xf16>, tensor<?x1xbf16>
}
