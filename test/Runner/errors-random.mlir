// Each malformed SPEC gives one line with the SPEC and the grammar.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py

// DEFINE: %{spec} =
// DEFINE: %{malformed} = %{fails} "argument 0 (%{spec}): expected random:SEED[:LO:HI][@D0xD1x...] with LO < HI" bngrad-runner %s --entry=floats --arg=%{spec}
// REDEFINE: %{spec} = random:
// RUN: %{malformed}
// REDEFINE: %{spec} = random:x
// RUN: %{malformed}
// REDEFINE: %{spec} = random:-1
// RUN: %{malformed}
// REDEFINE: %{spec} = random:18446744073709551616
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1:2
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1:2:3:4
// RUN: %{malformed}
// REDEFINE: %{spec} = random::0:1
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1:low:1
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1:nan:1
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1:0:inf
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1:1:1
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1:2:-2
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1@4x
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1@-4
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1@?
// RUN: %{malformed}
// REDEFINE: %{spec} = random:1@4@4
// RUN: %{malformed}

// RUN: bngrad-runner %s --entry=floats --arg=random:18446744073709551615:-2:2e0@4
func.func @floats(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// i64 has no default range.
// RUN: %{fails} "argument 0 (random:1): expected a .npy file for element type i64, got random values" bngrad-runner %s --entry=integers --arg=random:1
func.func @integers(%a: tensor<4xi64>) -> tensor<4xi64> {
  return %a : tensor<4xi64>
}
