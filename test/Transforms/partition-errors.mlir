// RUN: bngrad-opt %s --split-input-file --bngrad-partition --verify-diagnostics

// Programs that upstream's passes cannot partition, or would partition wrongly:
// one error each.

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @no_interface(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> tensor<?x3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  // expected-error @below {{'tensor.cast' op expected an op that implements ShardingInterface, as @no_interface has shard annotations, got one that does not}}
  %1 = tensor.cast %0#0 : !d to tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func private @callee()
func.func @with_call(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  // expected-error @below {{'func.call' op expected an op that implements ShardingInterface, as @with_call has shard annotations}}
  call @callee() : () -> ()
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @callee(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}
func.func @caller(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  // expected-error @below {{'func.call' op expected no use of @callee, whose type changes as it has shard annotations, got one}}
  %0 = call @callee(%dy, %x, %mean, %inv_std) : (!d, !d, !c, !c) -> !d
  return %0 : !d
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
// expected-error @below {{expected a use of argument 4 of @unused, which has shard annotations, got none}}
func.func @unused(%dy: !d, %x: !d, %mean: !c, %inv_std: !c, %unused: tensor<7xf32>, %scalar: f32, %rank_0: tensor<f32>) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
// expected-error @below {{'shard.grid' op expected size of axis 1 of @grid to be a positive constant, got ?}}
shard.grid @grid(shape = 2x?)
func.func @dynamic_grid(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x3xf32>
// expected-error @below {{'shard.grid' op expected size of axis 0 of @grid to be a positive constant, got 0}}
shard.grid @grid(shape = 0)
func.func @empty_grid(%x: !d) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  return %xs : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
shard.grid @other(shape = 2)
func.func @two_grids(%x: !d, %y: !d) -> (!d, !d) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %o = shard.sharding @other split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'shard.shard' op expected one grid in a function, @grid, got @other}}
  %ys = shard.shard %y to %o : !d
  return %xs, %ys : !d, !d
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
// expected-error @below {{'func.func' op expected one block in a function with shard annotations, got 2}}
func.func @blocks(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  cf.br ^next
^next:
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @nested(%x: !d) -> !d {
  %0 = scf.execute_region -> !d {
    %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
    // expected-error @below {{'shard.shard' op expected in the body of @nested, got in 'scf.execute_region'}}
    %xs = shard.shard %x to %s : !d
    scf.yield %xs : !d
  }
  return %0 : !d
}

// -----

!d = tensor<5x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @not_a_multiple(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  // expected-error @below {{expected dim 0 of argument 1 of @not_a_multiple to be a multiple of 2, the size of grid axes [0], got 5}}
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

// The size is that of another operand, where the annotated one has none.

!d = tensor<?x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2x2)
// expected-error @below {{expected dim 0 of argument 0 of @other_operand to be a multiple of 4, the size of grid axes [0, 1], got 6}}
func.func @other_operand(%dy: tensor<6x3xf32>, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0, 1]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<6x3xf32>) input(%xs : !d) mean(%mean : !c)
      inv_std(%inv_std : !c) : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @axis(%x: !d) -> !d {
  %s = shard.sharding @grid split_axes = [[1]] : !shard.sharding
  // expected-error @below {{'shard.shard' op expected grid axes in [0, 1), got 1}}
  %xs = shard.shard %x to %s : !d
  return %xs : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @rank(%x: !d) -> !d {
  %s = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  // expected-error @below {{'shard.shard' op expected split_axes of at most 2 dims, got [[], [], [0]]}}
  %xs = shard.shard %x to %s : !d
  return %xs : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @offsets(%x: !d) -> !d {
  // expected-error @below {{'shard.sharding' op expected no sharded_dims_offsets, which propagation drops, got some}}
  %s = shard.sharding @grid split_axes = [[0]] sharded_dims_offsets = [0, 1, 4] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  return %xs : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @halos(%x: !d) -> !d {
  // expected-error @below {{'shard.sharding' op expected no halo_sizes, which propagation drops, got some}}
  %s = shard.sharding @grid split_axes = [[0]] halo_sizes = [1, 1] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  return %xs : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @sharding_argument(%x: !d, %s: !shard.sharding) -> !d {
  // expected-error @below {{'shard.shard' op expected sharding to be a 'shard.sharding', got another value}}
  %xs = shard.shard %x to %s : !d
  return %xs : !d
}

// -----

!d = tensor<4x4xf32>
!c = tensor<4xf32>
shard.grid @grid(shape = 2)
func.func @mask(%dy: !d, %x: !d, %mean: !c, %inv_std: !c, %mask: tensor<4x4xi1>) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %o = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %ms = shard.shard %mask to %o : tensor<4x4xi1>
  // expected-error @below {{'bngrad.batch_norm_backward' op expected dim 0 of mask to be split along grid axes [0], as dim 0 of input, got []}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      mask(%ms : tensor<4x4xi1>) : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x4xf32>
!c = tensor<4xf32>
shard.grid @grid(shape = 2x2)
func.func @mean(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %o = shard.sharding @grid split_axes = [[1]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %ms = shard.shard %mean to %o : !c
  // expected-error @below {{'bngrad.batch_norm_backward' op expected dim 0 of mean to be split along grid axes [], as dim 1 of input, got [1]}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%ms : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x4xf32>
!c = tensor<4xf32>
shard.grid @grid(shape = 2)
func.func @result(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %o = shard.sharding @grid split_axes = [[]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'bngrad.batch_norm_backward' op expected dim 0 of grad_input to be split along grid axes [0], as dim 0 of input, got []}}
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  %1 = shard.shard %0#0 to %o : !d
  return %1 : !d
}

// -----

// Nothing is resharded between ops.

!d = tensor<4x4xf32>
!c = tensor<4xf32>
shard.grid @grid(shape = 2)
func.func @between(%dy: !d, %x: !d, %y: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %o = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %ys = shard.shard %y to %o : !d
  // expected-error @below {{'tosa.add' op expected sharding [[0]] of argument 2 of @between, which is not resharded, got [[], [0]]}}
  %sum = tosa.add %xs, %ys : (!d, !d) -> !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%sum : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

// Two ops that need different shards of one argument.

!d = tensor<4x4xf32>
shard.grid @grid(shape = 2)
// expected-error @below {{expected one sharding of argument 2 of @of_argument, [[0]], got [[], [0]]}}
func.func @of_argument(%x: !d, %y: !d, %z: !d) -> (!d, !d) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %o = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %ys = shard.shard %y to %o : !d
  %0 = tosa.add %xs, %z : (!d, !d) -> !d
  %1 = tosa.add %ys, %z : (!d, !d) -> !d
  return %0, %1 : !d, !d
}

// -----

// No annotation follows for this argument from those of others.

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
// expected-error @below {{expected a shard annotation of argument 2 of @not_reached, or of a value from which it follows, got none}}
func.func @not_reached(%dy: !d, %x: !d, %y: !d, %mean: !c, %inv_std: !c) -> (!d, !d) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  %1 = tosa.exp %y : (!d) -> !d
  return %0#0, %1 : !d, !d
}

// -----

// A combiner with which upstream's passes crash.

#data = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @fma(%x: !d, %init: !c) -> !c {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'linalg.generic' op expected one sum, by arith.addf or arith.addi, in a reduction, as the function has shard annotations, got another one}}
  %0 = linalg.generic {indexing_maps = [#data, #column], iterator_types = ["reduction", "parallel"]}
      ins(%xs : !d) outs(%init : !c) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.fma %in, %in, %out : f32
    linalg.yield %1 : f32
  } -> !c
  return %0 : !c
}

// -----

#diagonal = affine_map<(d0) -> (d0, d0)>
#one = affine_map<(d0) -> (d0)>
!d = tensor<4x4xf32>
!c = tensor<4xf32>
shard.grid @grid(shape = 2)
func.func @diagonal(%x: !d, %init: !c) -> !c {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'linalg.generic' op expected indexing maps that are projected permutations, as the function has shard annotations, got affine_map<(d0) -> (d0, d0)>}}
  %0 = linalg.generic {indexing_maps = [#diagonal, #one], iterator_types = ["parallel"]}
      ins(%xs : !d) outs(%init : !c) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> !c
  return %0 : !c
}

// -----

!d = tensor<?x3xf32>
// expected-error @below {{'shard.grid' op expected at most 2147483647 processes of @grid, got more}}
shard.grid @grid(shape = 4294967296x4294967296)
func.func @huge_grid(%x: !d) -> !d {
  %s = shard.sharding @grid split_axes = [[0, 1]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  return %xs : !d
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @returned_sharding(%x: !d) -> (!d, !shard.sharding) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'func.return' op expected no operand of type '!shard.sharding', got one}}
  return %xs, %s : !d, !shard.sharding
}

// -----

!d = tensor<4x3xf32>
shard.grid @grid(shape = 2)
func.func @no_return(%x: !d) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'llvm.unreachable' op expected an op that implements ShardingInterface}}
  llvm.unreachable
}

// -----

// Upstream fails without an error.

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @constant_elements(%dy: !d, %x: !d, %mean: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'arith.constant' op expected one value for all elements of a constant, as the function has shard annotations, got several}}
  %inv_std = arith.constant dense<[1.0, 2.0, 3.0]> : !c
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

// Upstream copies it whole.

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @constant_resource(%x: !d, %mean: !c, %inv_std: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  // expected-error @below {{'arith.constant' op expected one value for all elements of a constant, as the function has shard annotations, got several}}
  %dy = arith.constant dense_resource<blob> : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

// The statistics are split as the channels of input.
shard.grid @grid(shape = 2)
func.func @training(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6xf32>
  // expected-error @below {{'bngrad.batch_norm_training' op expected dim 0 of mean to be split along grid axes [], as dim 1 of input, got [0]}}
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<4x6xf32>) : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  %mean = shard.shard %0#1 to %s : tensor<6xf32>
  return %0#0, %mean : tensor<4x6xf32>, tensor<6xf32>
}
