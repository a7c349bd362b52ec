// RUN: bngrad-opt %s --split-input-file --verify-diagnostics

// At least one function per constraint of the ops of the forward pass, named after it.

func.func @batch_norm_training_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{'bngrad.batch_norm_training' op expected feature_dims[0] to be in [0, 2), got 2}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf32>) {feature_dims = array<i64: 2>}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_training_c2(%x: tensor<9223372036854775807x3x2xf32>) {
  // expected-error @below {{expected fewer than 2^63 elements per channel, got [9223372036854775807, 3, 2] with feature_dims [1]}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<9223372036854775807x3x2xf32>)
      : tensor<9223372036854775807x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_training_c3_type(%x: tensor<2x3xf16>, %s: tensor<3xf32>, %o: tensor<3xf16>) {
  // expected-error @below {{expected element type of offset to be that of scale, 'f32', got 'f16'}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf16>) scale(%s : tensor<3xf32>) offset(%o : tensor<3xf16>)
      : tensor<2x3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_training_c3_shape(%x: tensor<2x3xf32>, %o: tensor<2xf32>) {
  // expected-error @below {{expected shape of offset to be compatible with the sizes of input at feature_dims [3], got [2]}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf32>) offset(%o : tensor<2xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_training_c4(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected epsilon to be finite and at least 0, got -1.000000e+00}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf32>) {epsilon = -1.0 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_training_c5_output(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected shape of output to be compatible with that of input [2, 3], got [3, 3]}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf32>)
      : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_training_c5_variance(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected shape of variance to be compatible with the sizes of input at feature_dims [3], got [2]}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_inference_c1(%x: tensor<2x3xf32>, %p: tensor<3x2xf32>) {
  // expected-error @below {{'bngrad.batch_norm_inference' op expected feature_dims to be strictly ascending, got [1, 0]}}
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3xf32>) mean(%p : tensor<3x2xf32>) inv_std(%p : tensor<3x2xf32>)
      {feature_dims = array<i64: 1, 0>} : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_inference_c2(%x: tensor<9223372036854775807x3x2xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected fewer than 2^63 elements per channel}}
  %0 = bngrad.batch_norm_inference input(%x : tensor<9223372036854775807x3x2xf32>) mean(%p : tensor<3xf32>)
      inv_std(%p : tensor<3xf32>) : tensor<9223372036854775807x3x2xf32>
  return
}

// -----

func.func @batch_norm_inference_c3(%x: tensor<2x3xf32>, %o: tensor<3xf64>, %p: tensor<3xf32>) {
  // expected-error @below {{expected element type of offset to be that of mean, 'f32', got 'f64'}}
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3xf32>) offset(%o : tensor<3xf64>) mean(%p : tensor<3xf32>)
      inv_std(%p : tensor<3xf32>) : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_inference_c4(%x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected exactly one of variance and inv_std, got neither}}
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3xf32>) mean(%p : tensor<3xf32>) : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_inference_c5(%x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected epsilon to be 0 with inv_std, got 1.000000e+00}}
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3xf32>) mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      {epsilon = 1.0 : f64} : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_inference_c6(%x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected shape of output to be compatible with that of input [2, 3], got [3, 2]}}
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3xf32>) mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<3x2xf32>
  return
}

// -----

func.func @batch_norm_training_reduce_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{'bngrad.batch_norm_training_reduce' op expected feature_dims to be non-empty, got []}}
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<2x3xf32>) {feature_dims = array<i64>}
      : tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_training_reduce_c2(%x: tensor<9223372036854775807x3x2xf32>) {
  // expected-error @below {{expected fewer than 2^63 elements per channel}}
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<9223372036854775807x3x2xf32>)
      : tensor<3xf32>, tensor<3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_training_reduce_c3(%x: tensor<2x3xf32>, %k: tensor<3x1xf32>) {
  // expected-error @below {{expected shape of shift to be compatible with the sizes of input at feature_dims [3], got [3, 1]}}
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<2x3xf32>) shift(%k : tensor<3x1xf32>)
      : tensor<3xf32>, tensor<3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_training_reduce_c4(%x: tensor<2x3xbf16>, %k: tensor<3xf64>) {
  // expected-error @below {{expected element type of square_sum to be 'f64', got 'f32'}}
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<2x3xbf16>) shift(%k : tensor<3xf64>)
      : tensor<3xf64>, tensor<3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_training_reduce_c5(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected shape of sum to be compatible with the sizes of input at feature_dims [3], got [2]}}
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<2x3xf32>) : tensor<2xf32>, tensor<3xf32>, tensor<i64>
  return
}
