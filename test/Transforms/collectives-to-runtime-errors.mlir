// RUN: bngrad-opt %s --split-input-file --bngrad-collectives-to-runtime --verify-diagnostics

shard.grid @grid(shape = 2)
func.func @half(%a: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @below {{'shard.all_reduce' op expected input and result to have one type with elements f32, f64 or i64, got 'tensor<4xf16>' and 'tensor<4xf16>'}}
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf16> -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

shard.grid @grid(shape = 2)
func.func @conversion(%a: tensor<4xf32>) -> tensor<4xf64> {
  // expected-error @below {{'shard.all_reduce' op expected input and result to have one type with elements f32, f64 or i64, got 'tensor<4xf32>' and 'tensor<4xf64>'}}
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

shard.grid @grid(shape = 2)
func.func @max(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'shard.all_reduce' op expected reduction to be sum, got max}}
  %0 = shard.all_reduce %a on @grid grid_axes = [0] reduction = max : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @memref(%a: memref<4xf32>) -> memref<4xf32> {
  // expected-error @below {{'shard.all_reduce' op expected a tensor, got 'memref<4xf32>'}}
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : memref<4xf32> -> memref<4xf32>
  return %0 : memref<4xf32>
}

// -----

shard.grid @grid(shape = ?)
func.func @dynamic_grid(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'shard.all_reduce' op expected sizes of grid @grid to be constants, got ?}}
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @gather(%a: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{'shard.all_gather' op expected shard.all_reduce alone after partition, got another op of the shard dialect}}
  %0 = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

shard.grid @grid(shape = 2)
// expected-error @below {{expected @bngradAllReduceStart to be the function of the runtime, of type '(!llvm.ptr, !llvm.ptr, i64) -> i64', got another symbol}}
func.func private @bngradAllReduceStart(f32)
func.func @symbol(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
