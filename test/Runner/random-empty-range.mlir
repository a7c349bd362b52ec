// A range without a value of the element type is an error, not an endless search for one.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// RUN: %{fails} "argument 0 (random:1:0.1:0.10000000001): ..." timeout 60 bngrad-runner %s --entry=f32 --arg=random:1:0.1:0.10000000001
// RUN: %{fails} "argument 0 (random:1:1e39:2e39): ..." timeout 60 bngrad-runner %s --entry=f32 --arg=random:1:1e39:2e39
func.func @f32(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// A range whose length overflows still has its values in [LO, HI).
// RUN: timeout 60 bngrad-runner %s --entry=f64 --arg=random:1:-1e308:1e308 --check
func.func @f64(%a: tensor<4xf64>) -> tensor<4xf64> {
  return %a : tensor<4xf64>
}
