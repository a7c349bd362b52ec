// RUN: bngrad-opt %s --split-input-file --verify-diagnostics

// At least one function per constraint of BNGradOps.td, named after it.

func.func @batch_norm_backward_c1(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{'bngrad.batch_norm_backward' op expected feature_dims[0] to be in [0, 2), got 2}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {feature_dims = array<i64: 2>}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c1_negative(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected feature_dims[0] to be in [0, 2), got -1}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {feature_dims = array<i64: -1>}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c1_default_of_rank_1(%dy: tensor<3xf32>, %x: tensor<3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected feature_dims[0] to be in [0, 1), got 1}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<3xf32>) input(%x : tensor<3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c1_not_ascending(%dy: tensor<2x3x4xf32>, %x: tensor<2x3x4xf32>, %p: tensor<4x3xf32>) {
  // expected-error @below {{expected feature_dims to be strictly ascending, got [2, 1]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3x4xf32>) input(%x : tensor<2x3x4xf32>)
      mean(%p : tensor<4x3xf32>) variance(%p : tensor<4x3xf32>) {feature_dims = array<i64: 2, 1>}
      : tensor<2x3x4xf32>, tensor<4x3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @batch_norm_backward_c1_repeated(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3x3xf32>) {
  // expected-error @below {{expected feature_dims to be strictly ascending, got [1, 1]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3x3xf32>) variance(%p : tensor<3x3xf32>) {feature_dims = array<i64: 1, 1>}
      : tensor<2x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
  return
}

// -----

func.func @batch_norm_backward_c1_empty(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<f32>) {
  // expected-error @below {{expected feature_dims to be non-empty, got []}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<f32>) variance(%p : tensor<f32>) {feature_dims = array<i64>}
      : tensor<2x3xf32>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @batch_norm_backward_c1_rank_0(%dy: tensor<f32>, %x: tensor<f32>, %p: tensor<f32>) {
  // expected-error @below {{expected rank of input to be at least 1, got 0}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<f32>) input(%x : tensor<f32>)
      mean(%p : tensor<f32>) variance(%p : tensor<f32>) {feature_dims = array<i64>}
      : tensor<f32>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @batch_norm_backward_c2(%dy: tensor<2x3xf16>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected grad_output to have the element type of input, 'f32', got 'f16'}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf16>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c2_shape(%dy: tensor<4x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected shape of grad_output to be compatible with that of input [2, 3], got [4, 3]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c2_rank(%dy: tensor<2x3x1xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected shape of grad_output to be compatible with that of input [2, 3], got [2, 3, 1]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3x1xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

// The mask disagrees with a size that is static only in grad_output.
func.func @batch_norm_backward_c2_mask(%dy: tensor<2x3xf32>, %x: tensor<?x3xf32>, %p: tensor<3xf32>, %k: tensor<4x3xi1>) {
  // expected-error @below {{expected shape of mask to be compatible with that of input [2, 3], got [4, 3]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<?x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) mask(%k : tensor<4x3xi1>)
      : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c2_count(%dy: tensor<4294967296x3x4294967296xf32>, %m: tensor<3xf32>) {
  // expected-error @below {{expected fewer than 2^63 elements per channel, got [4294967296, 3, 4294967296] with feature_dims [1]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4294967296x3x4294967296xf32>)
      input(%dy : tensor<4294967296x3x4294967296xf32>) mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>)
      : tensor<4294967296x3x4294967296xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c3(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected shape of mean to be compatible with the sizes of input at feature_dims [3], got [4]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<4xf32>) variance(%p : tensor<4xf32>)
      : tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @batch_norm_backward_c3_scale(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>, %g: tensor<2xf32>) {
  // expected-error @below {{expected shape of scale to be compatible with the sizes of input at feature_dims [3], got [2]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%g : tensor<2xf32>) mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c3_rank(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3x1xf32>) {
  // expected-error @below {{expected shape of mean to be compatible with the sizes of input at feature_dims [3], got [3, 1]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3x1xf32>) variance(%p : tensor<3x1xf32>)
      : tensor<2x3xf32>, tensor<3x1xf32>, tensor<3x1xf32>
  return
}

// -----

func.func @batch_norm_backward_c3_element_type(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %v: tensor<3xf64>) {
  // expected-error @below {{expected variance to have the element type of mean, 'f32', got 'f64'}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%v : tensor<3xf64>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

// Sizes that are dynamic in input are compared with each other.
func.func @batch_norm_backward_c3_among_parameters(%dy: tensor<2x?xf32>, %x: tensor<2x?xf32>, %m: tensor<3xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{expected shape of inv_std to be compatible with the sizes of input at feature_dims [3], got [4]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x?xf32>) input(%x : tensor<2x?xf32>)
      mean(%m : tensor<3xf32>) inv_std(%v : tensor<4xf32>)
      : tensor<2x?xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c4(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected exactly one of variance and inv_std, got neither}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c4_both(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected exactly one of variance and inv_std, got both}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c5(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected epsilon to be finite and at least 0, got -1.000000e-03}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {epsilon = -1.0e-3 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c5_nan(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected epsilon to be finite and at least 0, got nan}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {epsilon = 0x7FF8000000000000 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c5_infinite(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected epsilon to be finite and at least 0, got INF}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {epsilon = 0x7FF0000000000000 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

// inv_std already includes epsilon.
func.func @batch_norm_backward_c5_inv_std(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected epsilon to be 0 with inv_std, got 1.000000e-05}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c6(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected shape of grad_input to be compatible with that of input [2, 3], got [3, 2]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<3x2xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c6_grad_scale(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected shape of grad_scale to be compatible with that of mean [3], got [2]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_c6_grad_offset(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected shape of grad_offset to be compatible with that of mean [3], got [3, 1]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3x1xf32>
  return
}

// -----

// grad_input has a static number of channels, which grad_scale contradicts.
func.func @batch_norm_backward_c6_among_results(%dy: tensor<2x?xf32>, %x: tensor<2x?xf32>, %p: tensor<?xf32>) {
  // expected-error @below {{expected shape of grad_scale to be compatible with that of mean [3], got [4]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x?xf32>) input(%x : tensor<2x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<2x3xf32>, tensor<4xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_backward_reduce_c1(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>) {
  // expected-error @below {{'bngrad.batch_norm_backward_reduce' op expected feature_dims[0] to be in [0, 2), got 2}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) {feature_dims = array<i64: 2>} : tensor<2x3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_reduce_c2(%dy: tensor<2x3xf16>, %x: tensor<2x3xf32>, %m: tensor<3xf32>) {
  // expected-error @below {{expected grad_output to have the element type of input, 'f32', got 'f16'}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf16>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) : tensor<2x3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_reduce_c2_mask(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %k: tensor<2x4xi1>) {
  // expected-error @below {{expected shape of mask to be compatible with that of input [2, 3], got [2, 4]}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) mask(%k : tensor<2x4xi1>) : tensor<2x3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_reduce_c3(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<4xf32>) {
  // expected-error @below {{expected shape of mean to be compatible with the sizes of input at feature_dims [3], got [4]}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<4xf32>) : tensor<2x4xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_reduce_c4(%dy: tensor<2x3xf16>, %x: tensor<2x3xf16>, %m: tensor<3xf16>) {
  // expected-error @below {{expected element type of sums to be 'f32', got 'f16'}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf16>) input(%x : tensor<2x3xf16>)
      mean(%m : tensor<3xf16>) : tensor<2x3xf16>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_reduce_c4_f64(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf64>) {
  // expected-error @below {{expected element type of sums to be 'f64', got 'f32'}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf64>) : tensor<2x3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_reduce_c5(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>) {
  // expected-error @below {{expected shape of sums to be compatible with 2 and that of mean [2, 3], got [3, 3]}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) : tensor<3x3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_reduce_c5_rank(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>) {
  // expected-error @below {{expected shape of sums to be compatible with 2 and that of mean [2, 3], got [3]}}
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) : tensor<3xf32>, tensor<i64>
  return
}

// -----

func.func @batch_norm_backward_elemt_c1(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %s: tensor<2x3xf32>, %n: tensor<i64>) {
  // expected-error @below {{'bngrad.batch_norm_backward_elemt' op expected feature_dims to be strictly ascending, got [1, 1]}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) sums(%s : tensor<2x3xf32>) count(%n : tensor<i64>) {feature_dims = array<i64: 1, 1>} : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_backward_elemt_c2(%dy: tensor<2x4xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %s: tensor<2x3xf32>, %n: tensor<i64>) {
  // expected-error @below {{expected shape of grad_output to be compatible with that of input [2, 3], got [2, 4]}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x4xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) sums(%s : tensor<2x3xf32>) count(%n : tensor<i64>) : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_backward_elemt_c3(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %g: tensor<3xf64>, %s: tensor<2x3xf32>, %n: tensor<i64>) {
  // expected-error @below {{expected scale to have the element type of mean, 'f32', got 'f64'}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>) scale(%g : tensor<3xf64>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) sums(%s : tensor<2x3xf32>) count(%n : tensor<i64>) : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_backward_elemt_c4(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %s: tensor<2x3xf32>, %n: tensor<i64>) {
  // expected-error @below {{expected exactly one of variance and inv_std, got neither}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>)  sums(%s : tensor<2x3xf32>) count(%n : tensor<i64>) : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_backward_elemt_c5(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %s: tensor<2x3xf32>, %n: tensor<i64>) {
  // expected-error @below {{expected epsilon to be 0 with inv_std, got 1.000000e+00}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) inv_std(%m : tensor<3xf32>) sums(%s : tensor<2x3xf32>) count(%n : tensor<i64>) {epsilon = 1.0 : f64} : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_backward_elemt_c6(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %s: tensor<2x4xf32>, %n: tensor<i64>) {
  // expected-error @below {{expected shape of sums to be compatible with 2 and that of mean [2, 3], got [2, 4]}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) sums(%s : tensor<2x4xf32>) count(%n : tensor<i64>) : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_backward_elemt_c7(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %n: tensor<i64>) {
  // expected-error @below {{expected count only with sums, got it without}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) count(%n : tensor<i64>) : tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_backward_elemt_c8(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<3xf32>, %s: tensor<2x3xf32>, %n: tensor<i64>) {
  // expected-error @below {{expected shape of grad_input to be compatible with that of input [2, 3], got [3, 2]}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) sums(%s : tensor<2x3xf32>) count(%n : tensor<i64>) : tensor<3x2xf32>
  return
}

// -----

func.func @count_of_rank_1(%dy: tensor<2x3xf32>, %m: tensor<3xf32>, %s: tensor<2x3xf32>, %n: tensor<1xi64>) {
  // expected-error @below {{operand #5 must be 0D tensor of 64-bit signless integer values, but got 'tensor<1xi64>'}}
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<2x3xf32>) input(%dy : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) sums(%s : tensor<2x3xf32>)
      count(%n : tensor<1xi64>) : tensor<2x3xf32>
  return
}

// -----

// The type constraints of the operands cover the rest.

func.func @integer_input(%dy: tensor<2x3xi32>, %x: tensor<2x3xi32>, %p: tensor<3xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor of 16-bit float or bfloat16 type or 32-bit float or 64-bit float values, but got 'tensor<2x3xi32>'}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xi32>) input(%x : tensor<2x3xi32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @unranked_input(%dy: tensor<*xf32>, %x: tensor<*xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected builtin.tensor, but found 'tensor<*xf32>'}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<*xf32>) input(%x : tensor<*xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @byte_mask(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>, %k: tensor<2x3xi8>) {
  // expected-error @below {{operand #4 must be ranked tensor of 1-bit signless integer values, but got 'tensor<2x3xi8>'}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) mask(%k : tensor<2x3xi8>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @element_cast_c1(%a: memref<4xindex>) {
  // expected-error @below {{'bngrad.element_cast' op expected elements to be floats, or integers of 1, 8, 16, 32 or 64 bits, got 'index'}}
  %0 = bngrad.element_cast %a : memref<4xindex> to memref<4xi64>
  return
}

// -----

func.func @element_cast_c1_width(%a: memref<4xi8>) {
  // expected-error @below {{got 'i4'}}
  %0 = bngrad.element_cast %a : memref<4xi8> to memref<4xi4>
  return
}

// -----

func.func @element_cast_c1_complex(%a: memref<4xcomplex<f32>>) {
  // expected-error @below {{got 'complex<f32>'}}
  %0 = bngrad.element_cast %a : memref<4xcomplex<f32>> to memref<4xi64>
  return
}

// -----

func.func @element_cast_c2_space(%a: memref<4xi1, 3>) {
  // expected-error @below {{expected result to have the memory space of source, 'memref<4xi1, 3>', got 'memref<4xi8>'}}
  %0 = bngrad.element_cast %a : memref<4xi1, 3> to memref<4xi8>
  return
}

// -----

func.func @element_cast_c2_shape(%a: memref<4xi1>) {
  // expected-error @below {{expected result to have the shape and layout of source, 'memref<4xi1>', got 'memref<?xi8>'}}
  %0 = bngrad.element_cast %a : memref<4xi1> to memref<?xi8>
  return
}

// -----

func.func @element_cast_c2_layout(%a: memref<4xi1, strided<[2]>>) {
  // expected-error @below {{expected result to have the shape and layout of source, 'memref<4xi1, strided<[2]>>', got 'memref<4xi8>'}}
  %0 = bngrad.element_cast %a : memref<4xi1, strided<[2]>> to memref<4xi8>
  return
}

// -----

func.func @element_cast_c2_rank(%a: memref<4x2xf32>) {
  // expected-error @below {{expected rank 1 and the identity layout for elements of different sizes, got 'memref<4x2xf32>'}}
  %0 = bngrad.element_cast %a : memref<4x2xf32> to memref<32xi8>
  return
}

// -----

func.func @element_cast_c2_strided(%a: memref<1xf32>) {
  // expected-error @below {{expected rank 1 and the identity layout for elements of different sizes, got 'memref<4xi8, strided<[2]>>'}}
  %0 = bngrad.element_cast %a : memref<1xf32> to memref<4xi8, strided<[2]>>
  return
}

// -----

func.func @element_cast_c2_bytes(%a: memref<4xf32>) {
  // expected-error @below {{expected result to have the bytes of source, 'memref<4xf32>', got 'memref<4xi8>'}}
  %0 = bngrad.element_cast %a : memref<4xf32> to memref<4xi8>
  return
}

// -----

func.func @num_threads_c1() -> i32 {
  // expected-error @below {{'bngrad.num_threads' op expected max to be in [1, 4096], got 0}}
  %0 = bngrad.num_threads max 0
  return %0 : i32
}

// -----

func.func @num_threads_c1_most() -> i32 {
  // expected-error @below {{'bngrad.num_threads' op expected max to be in [1, 4096], got -1}}
  %0 = bngrad.num_threads max -1
  return %0 : i32
}

// -----

func.func @parallel_c1() {
  // expected-error @below {{expected at least one phase, got none}}
  "bngrad.parallel"() : () -> ()
  return
}

// -----

func.func @parallel_c1_types() {
  // expected-error @below {{expected arguments of phase 1 of types 'i32', 'i32', got 'i32', 'index'}}
  bngrad.parallel {
  ^bb0(%thread: i32, %threads: i32):
    bngrad.yield
  }, {
  ^bb0(%thread: i32, %threads: index):
    bngrad.yield
  }
  return
}

// -----

func.func @parallel_c1_none() {
  // expected-error @below {{expected arguments of phase 0 of types 'i32', 'i32', got none}}
  bngrad.parallel {
    bngrad.yield
  }
  return
}

// -----

func.func @local_parameter_gradients(%x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      // expected-error @below {{attribute 'local_parameter_gradients' failed to satisfy constraint: unit attribute}}
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {local_parameter_gradients = true}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

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
  // expected-error @below {{expected offset to have the element type of scale, 'f32', got 'f16'}}
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
  // expected-error @below {{expected offset to have the element type of mean, 'f32', got 'f64'}}
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

// -----

// Only the output knows that there are too many elements.
func.func @batch_norm_training_c2_results(%x: tensor<?x4x?xf32>) {
  // expected-error @below {{'bngrad.batch_norm_training' op expected fewer than 2^63 elements per channel, got [4294967296, 4, 4294967296] with feature_dims [1]}}
  %0:4 = bngrad.batch_norm_training input(%x : tensor<?x4x?xf32>) : tensor<4294967296x4x4294967296xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return
}
