// RUN: bngrad-opt %s --bngrad-decompose --verify-diagnostics

// expected-error @below {{'func.func' op expected type of the argument with 'bngrad.epsilon' to be 'f64', got 'f32'}}
func.func @epsilon_of_another_type(%x: tensor<4x3xf32>, %epsilon: f32 {bngrad.epsilon}) -> tensor<4x3xf32> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<4x3xf32>) : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<4x3xf32>
}
