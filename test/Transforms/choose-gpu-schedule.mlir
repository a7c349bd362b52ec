// The schedule of a gradient, by shape and chip; other tests cover its kernels.

// DEFINE: %{chip} =
// DEFINE: %{group} = bngrad-opt %s --bngrad-cuda-pipeline="chip=%{chip} stop-after=group"
// REDEFINE: %{chip} = sm_75
// RUN: %{group} | FileCheck %s --check-prefixes=CHECK,SM_75
// REDEFINE: %{chip} = sm_80
// RUN: %{group} | FileCheck %s --check-prefixes=CHECK,SM_80
// REDEFINE: %{chip} = sm_90
// RUN: %{group} | FileCheck %s --check-prefixes=CHECK,SM_90
// REDEFINE: %{chip} = sm_100
// RUN: %{group} | FileCheck %s --check-prefixes=CHECK,SM_100
// REDEFINE: %{chip} = sm_120
// RUN: %{group} | FileCheck %s --check-prefixes=CHECK,SM_120
// Devices that run more clusters at once than is assumed.
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 active-clusters=8:16:33,16:8:16 stop-after=group" \
// RUN:   | FileCheck %s --check-prefix=MORE
// The oldest chip determines the available features.
// REDEFINE: %{chip} = sm_90,sm_80
// RUN: %{group} | FileCheck %s --check-prefixes=CHECK,SM_80
// The oldest chip need not have the least shared memory.
// REDEFINE: %{chip} = sm_90,sm_120
// RUN: %{group} | FileCheck %s --check-prefixes=CHECK,LEAST

// Rows of 12544 elements: a block of a large cluster fills a multiprocessor.
// CHECK-LABEL: func.func @long_rows(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, cluster_blocks = 16, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, cluster_blocks = 16, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 680, fma = true>}
func.func @long_rows(%dy: tensor<32x64x112x112xf32>, %x: tensor<32x64x112x112xf32>, %p: tensor<64xf32>) -> (tensor<32x64x112x112xf32>, tensor<64xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x64x112x112xf32>) input(%x : tensor<32x64x112x112xf32>) mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0, %0#1 : tensor<32x64x112x112xf32>, tensor<64xf32>
}

// Half of the data: two blocks share one.
// CHECK-LABEL: func.func @long_rows_bf16(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 16, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 16, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 680, fma = true>}
func.func @long_rows_bf16(%dy: tensor<32x64x112x112xbf16>, %x: tensor<32x64x112x112xbf16>, %p: tensor<64xf32>) -> (tensor<32x64x112x112xbf16>, tensor<64xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x64x112x112xbf16>) input(%x : tensor<32x64x112x112xbf16>) mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x64x112x112xbf16>, tensor<64xf32>, tensor<64xf32>
  return %0#0, %0#1 : tensor<32x64x112x112xbf16>, tensor<64xf32>
}

// A cluster per channel.
// CHECK-LABEL: func.func @rows_of_784(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 2, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 2, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 8, fma = true>}
// LEAST: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 8, fma = true>}
func.func @rows_of_784(%dy: tensor<32x512x28x28xf32>, %x: tensor<32x512x28x28xf32>, %p: tensor<512xf32>) -> (tensor<32x512x28x28xf32>, tensor<512xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x512x28x28xf32>) input(%x : tensor<32x512x28x28xf32>) mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x512x28x28xf32>, tensor<512xf32>, tensor<512xf32>
  return %0#0, %0#1 : tensor<32x512x28x28xf32>, tensor<512xf32>
}

// Half of the data, half of the blocks.
// CHECK-LABEL: func.func @rows_of_784_bf16(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 4, fma = true>}
func.func @rows_of_784_bf16(%dy: tensor<32x512x28x28xbf16>, %x: tensor<32x512x28x28xbf16>, %p: tensor<512xf32>) -> (tensor<32x512x28x28xbf16>, tensor<512xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x512x28x28xbf16>) input(%x : tensor<32x512x28x28xbf16>) mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x512x28x28xbf16>, tensor<512xf32>, tensor<512xf32>
  return %0#0, %0#1 : tensor<32x512x28x28xbf16>, tensor<512xf32>
}

// Clusters of 8 blocks have more threads, but 31 of them are as many as run at once by what is assumed of devices. One
// that was asked runs 33.
// CHECK-LABEL: func.func @full_wave(
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, cluster_blocks = 4, fma = true>}
// MORE-LABEL: func.func @full_wave(
// MORE: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 8, fma = true>}
func.func @full_wave(%dy: tensor<32x31x56x56xbf16>, %x: tensor<32x31x56x56xbf16>, %p: tensor<31xf32>) -> (tensor<32x31x56x56xbf16>, tensor<31xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x31x56x56xbf16>) input(%x : tensor<32x31x56x56xbf16>) mean(%p : tensor<31xf32>) variance(%p : tensor<31xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x31x56x56xbf16>, tensor<31xf32>, tensor<31xf32>
  return %0#0, %0#1 : tensor<32x31x56x56xbf16>, tensor<31xf32>
}

// With room for one more, all of them run at once.
// CHECK-LABEL: func.func @nearly_full_wave(
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 8, fma = true>}
func.func @nearly_full_wave(%dy: tensor<32x30x56x56xbf16>, %x: tensor<32x30x56x56xbf16>, %p: tensor<30xf32>) -> (tensor<32x30x56x56xbf16>, tensor<30xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x30x56x56xbf16>) input(%x : tensor<32x30x56x56xbf16>) mean(%p : tensor<30xf32>) variance(%p : tensor<30xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x30x56x56xbf16>, tensor<30xf32>, tensor<30xf32>
  return %0#0, %0#1 : tensor<32x30x56x56xbf16>, tensor<30xf32>
}

// A block per channel, two of which fit on a multiprocessor.
// CHECK-LABEL: func.func @rows_of_196(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 2, fma = true>}
func.func @rows_of_196(%dy: tensor<32x1024x14x14xf32>, %x: tensor<32x1024x14x14xf32>, %p: tensor<1024xf32>) -> (tensor<32x1024x14x14xf32>, tensor<1024xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x1024x14x14xf32>) input(%x : tensor<32x1024x14x14xf32>) mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x1024x14x14xf32>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0, %0#1 : tensor<32x1024x14x14xf32>, tensor<1024xf32>
}

// Several channels per block, whose rows are flat: 98 of 128 threads take the pieces of 2 rows at a time, 196 of 224
// those of 4.
// CHECK-LABEL: func.func @rows_of_49(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 128, block_channels = 4, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 128, block_channels = 4, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 224, block_channels = 4, cluster_blocks = 2, fma = true>}
func.func @rows_of_49(%dy: tensor<32x2048x7x7xf32>, %x: tensor<32x2048x7x7xf32>, %p: tensor<2048xf32>) -> (tensor<32x2048x7x7xf32>, tensor<2048xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x2048x7x7xf32>) input(%x : tensor<32x2048x7x7xf32>) mean(%p : tensor<2048xf32>) variance(%p : tensor<2048xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>
  return %0#0, %0#1 : tensor<32x2048x7x7xf32>, tensor<2048xf32>
}

// Eight rows of 98 bytes, if a cluster of eight blocks holds them.
// CHECK-LABEL: func.func @rows_of_49_bf16(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, access_bits = 64, block_channels = 8, cluster_blocks = 4, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, access_bits = 64, block_channels = 8, cluster_blocks = 4, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, access_bits = 64, cluster_blocks = 2, fma = true>}
func.func @rows_of_49_bf16(%dy: tensor<256x2048x7x7xbf16>, %x: tensor<256x2048x7x7xbf16>, %p: tensor<2048xf32>) -> (tensor<256x2048x7x7xbf16>, tensor<2048xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<256x2048x7x7xbf16>) input(%x : tensor<256x2048x7x7xbf16>) mean(%p : tensor<2048xf32>) variance(%p : tensor<2048xf32>)
      {feature_dims = array<i64: 1>} : tensor<256x2048x7x7xbf16>, tensor<2048xf32>, tensor<2048xf32>
  return %0#0, %0#1 : tensor<256x2048x7x7xbf16>, tensor<2048xf32>
}

// CHECK-LABEL: func.func @rows_of_49_f64(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 128, block_channels = 2, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 128, block_channels = 2, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 224, block_channels = 2, cluster_blocks = 2, fma = true>}
func.func @rows_of_49_f64(%dy: tensor<32x2048x7x7xf64>, %x: tensor<32x2048x7x7xf64>, %p: tensor<2048xf64>) -> (tensor<32x2048x7x7xf64>, tensor<2048xf64>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x2048x7x7xf64>) input(%x : tensor<32x2048x7x7xf64>) mean(%p : tensor<2048xf64>) variance(%p : tensor<2048xf64>)
      {feature_dims = array<i64: 1>} : tensor<32x2048x7x7xf64>, tensor<2048xf64>, tensor<2048xf64>
  return %0#0, %0#1 : tensor<32x2048x7x7xf64>, tensor<2048xf64>
}

// CHECK-LABEL: func.func @three_dims(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 4, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 4, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, cluster_blocks = 8, fma = true>}
func.func @three_dims(%dy: tensor<64x512x1024xbf16>, %x: tensor<64x512x1024xbf16>, %p: tensor<512xf32>) -> (tensor<64x512x1024xbf16>, tensor<512xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<64x512x1024xbf16>) input(%x : tensor<64x512x1024xbf16>) mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>)
      {feature_dims = array<i64: 1>} : tensor<64x512x1024xbf16>, tensor<512xf32>, tensor<512xf32>
  return %0#0, %0#1 : tensor<64x512x1024xbf16>, tensor<512xf32>
}

// Innermost channels: more rows than fit in a cluster.
// CHECK-LABEL: func.func @channels_last_long(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 264, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 296, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 340, fma = true>}
func.func @channels_last_long(%dy: tensor<32x56x56x256xf32>, %x: tensor<32x56x56x256xf32>, %p: tensor<256xf32>) -> (tensor<32x56x56x256xf32>, tensor<256xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x56x56x256xf32>) input(%x : tensor<32x56x56x256xf32>) mean(%p : tensor<256xf32>) variance(%p : tensor<256xf32>)
      {feature_dims = array<i64: 3>} : tensor<32x56x56x256xf32>, tensor<256xf32>, tensor<256xf32>
  return %0#0, %0#1 : tensor<32x56x56x256xf32>, tensor<256xf32>
}

// Half of the rows: a block of a large cluster fills a multiprocessor.
// CHECK-LABEL: func.func @channels_last(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, block_channels = 16, cluster_blocks = 16, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, block_channels = 16, cluster_blocks = 16, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 340, fma = true>}
func.func @channels_last(%dy: tensor<32x28x28x512xf32>, %x: tensor<32x28x28x512xf32>, %p: tensor<512xf32>) -> (tensor<32x28x28x512xf32>, tensor<512xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x28x28x512xf32>) input(%x : tensor<32x28x28x512xf32>) mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>)
      {feature_dims = array<i64: 3>} : tensor<32x28x28x512xf32>, tensor<512xf32>, tensor<512xf32>
  return %0#0, %0#1 : tensor<32x28x28x512xf32>, tensor<512xf32>
}

// A tile of 128 bytes of each row.
// CHECK-LABEL: func.func @channels_last_small(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 32, cluster_blocks = 4, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 32, cluster_blocks = 4, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, block_channels = 16, cluster_blocks = 8, fma = true>}
func.func @channels_last_small(%dy: tensor<32x7x7x2048xf32>, %x: tensor<32x7x7x2048xf32>, %p: tensor<2048xf32>) -> (tensor<32x7x7x2048xf32>, tensor<2048xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x7x7x2048xf32>) input(%x : tensor<32x7x7x2048xf32>) mean(%p : tensor<2048xf32>) variance(%p : tensor<2048xf32>)
      {feature_dims = array<i64: 3>} : tensor<32x7x7x2048xf32>, tensor<2048xf32>, tensor<2048xf32>
  return %0#0, %0#1 : tensor<32x7x7x2048xf32>, tensor<2048xf32>
}

// CHECK-LABEL: func.func @channels_last_small_bf16(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 64, cluster_blocks = 4, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, access_bits = 64, block_channels = 64, cluster_blocks = 8, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 32, cluster_blocks = 8, fma = true>}
func.func @channels_last_small_bf16(%dy: tensor<32x7x7x2048xbf16>, %x: tensor<32x7x7x2048xbf16>, %p: tensor<2048xf32>) -> (tensor<32x7x7x2048xbf16>, tensor<2048xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x7x7x2048xbf16>) input(%x : tensor<32x7x7x2048xbf16>) mean(%p : tensor<2048xf32>) variance(%p : tensor<2048xf32>)
      {feature_dims = array<i64: 3>} : tensor<32x7x7x2048xbf16>, tensor<2048xf32>, tensor<2048xf32>
  return %0#0, %0#1 : tensor<32x7x7x2048xbf16>, tensor<2048xf32>
}

// With more threads, two blocks share a multiprocessor instead of three. On sm_100, the last wave is then full.
// CHECK-LABEL: func.func @two_dims(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 16, cluster_blocks = 16, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, block_channels = 16, cluster_blocks = 16, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 340, fma = true>}
func.func @two_dims(%dy: tensor<8192x1024xf32>, %x: tensor<8192x1024xf32>, %p: tensor<1024xf32>) -> (tensor<8192x1024xf32>, tensor<1024xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8192x1024xf32>) input(%x : tensor<8192x1024xf32>) mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>)
      {feature_dims = array<i64: 1>} : tensor<8192x1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0, %0#1 : tensor<8192x1024xf32>, tensor<1024xf32>
}

// Blocks that fill a multiprocessor each need clusters of 8, not of 16. Where not all of them run at once, narrower tiles
// have clusters of 4.
// CHECK-LABEL: func.func @channels_last_portable(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, access_bits = 64, block_channels = 16, cluster_blocks = 4, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 64, cluster_blocks = 8, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 340, fma = true>}
// MORE-LABEL: func.func @channels_last_portable(
// MORE: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 64, cluster_blocks = 8, fma = true>}
func.func @channels_last_portable(%dy: tensor<32x14x14x1024xbf16>, %x: tensor<32x14x14x1024xbf16>, %p: tensor<1024xf32>) -> (tensor<32x14x14x1024xbf16>, tensor<1024xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x14x14x1024xbf16>) input(%x : tensor<32x14x14x1024xbf16>) mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>)
      {feature_dims = array<i64: 3>} : tensor<32x14x14x1024xbf16>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0, %0#1 : tensor<32x14x14x1024xbf16>, tensor<1024xf32>
}

// Tiles of 64 bytes instead of 128, for twice as many blocks, and more threads for one block of each multiprocessor.
// CHECK-LABEL: func.func @two_dims_narrow(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 32, cluster_blocks = 16, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 32, cluster_blocks = 16, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 16, cluster_blocks = 8, fma = true>}
func.func @two_dims_narrow(%dy: tensor<4096x256xbf16>, %x: tensor<4096x256xbf16>, %p: tensor<256xf32>) -> (tensor<4096x256xbf16>, tensor<256xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4096x256xbf16>) input(%x : tensor<4096x256xbf16>) mean(%p : tensor<256xf32>) variance(%p : tensor<256xf32>)
      {feature_dims = array<i64: 1>} : tensor<4096x256xbf16>, tensor<256xf32>, tensor<256xf32>
  return %0#0, %0#1 : tensor<4096x256xbf16>, tensor<256xf32>
}

// Tiles of 32 bytes.
// CHECK-LABEL: func.func @channels_last_narrow(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 16, cluster_blocks = 16, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 512, access_bits = 64, block_channels = 16, cluster_blocks = 16, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 340, fma = true>}
func.func @channels_last_narrow(%dy: tensor<32x28x28x128xbf16>, %x: tensor<32x28x28x128xbf16>, %p: tensor<128xf32>) -> (tensor<32x28x28x128xbf16>, tensor<128xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x28x28x128xbf16>) input(%x : tensor<32x28x28x128xbf16>) mean(%p : tensor<128xf32>) variance(%p : tensor<128xf32>)
      {feature_dims = array<i64: 3>} : tensor<32x28x28x128xbf16>, tensor<128xf32>, tensor<128xf32>
  return %0#0, %0#1 : tensor<32x28x28x128xbf16>, tensor<128xf32>
}

// No narrower tile is aligned.
// CHECK-LABEL: func.func @two_dims_aligned(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 12, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 12, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 12, cluster_blocks = 8, fma = true>}
func.func @two_dims_aligned(%dy: tensor<256x24xf32>, %x: tensor<256x24xf32>, %p: tensor<24xf32>) -> (tensor<256x24xf32>, tensor<24xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<256x24xf32>) input(%x : tensor<256x24xf32>) mean(%p : tensor<24xf32>) variance(%p : tensor<24xf32>)
      {feature_dims = array<i64: 1>} : tensor<256x24xf32>, tensor<24xf32>, tensor<24xf32>
  return %0#0, %0#1 : tensor<256x24xf32>, tensor<24xf32>
}

// CHECK-LABEL: func.func @two_dims_long(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 264, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 296, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 340, fma = true>}
func.func @two_dims_long(%dy: tensor<1048576x32xf32>, %x: tensor<1048576x32xf32>, %p: tensor<32xf32>) -> (tensor<1048576x32xf32>, tensor<32xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<1048576x32xf32>) input(%x : tensor<1048576x32xf32>) mean(%p : tensor<32xf32>) variance(%p : tensor<32xf32>)
      {feature_dims = array<i64: 1>} : tensor<1048576x32xf32>, tensor<32xf32>, tensor<32xf32>
  return %0#0, %0#1 : tensor<1048576x32xf32>, tensor<32xf32>
}

// Elements of 16 bits, but no vectors: more threads for each block.
// CHECK-LABEL: func.func @odd_channels(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 144, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 216, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 264, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 296, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 512, sum_blocks = 340, fma = true>}
func.func @odd_channels(%dy: tensor<401408x13xbf16>, %x: tensor<401408x13xbf16>, %p: tensor<13xf32>) -> (tensor<401408x13xbf16>, tensor<13xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<401408x13xbf16>) input(%x : tensor<401408x13xbf16>) mean(%p : tensor<13xf32>) variance(%p : tensor<13xf32>)
      {feature_dims = array<i64: 1>} : tensor<401408x13xbf16>, tensor<13xf32>, tensor<13xf32>
  return %0#0, %0#1 : tensor<401408x13xbf16>, tensor<13xf32>
}

// CHECK-LABEL: func.func @few_channels(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 528, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 592, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 680, fma = true>}
func.func @few_channels(%dy: tensor<32x3x224x224xf32>, %x: tensor<32x3x224x224xf32>, %p: tensor<3xf32>) -> (tensor<32x3x224x224xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x3x224x224xf32>) input(%x : tensor<32x3x224x224xf32>) mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      {feature_dims = array<i64: 1>} : tensor<32x3x224x224xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1 : tensor<32x3x224x224xf32>, tensor<3xf32>
}

// [C, S]
// CHECK-LABEL: func.func @one_row_per_channel(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 16, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, block_channels = 16, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 128, block_channels = 4, fma = true>}
func.func @one_row_per_channel(%dy: tensor<4096x256xf32>, %x: tensor<4096x256xf32>, %p: tensor<4096xf32>) -> (tensor<4096x256xf32>, tensor<4096xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4096x256xf32>) input(%x : tensor<4096x256xf32>) mean(%p : tensor<4096xf32>) variance(%p : tensor<4096xf32>)
      {feature_dims = array<i64: 0>} : tensor<4096x256xf32>, tensor<4096xf32>, tensor<4096xf32>
  return %0#0, %0#1 : tensor<4096x256xf32>, tensor<4096xf32>
}

// Feature dims that alternate with reduced dims.
// CHECK-LABEL: func.func @alternating(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 528, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 592, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 680, fma = true>}
func.func @alternating(%dy: tensor<16x32x64x8xf32>, %x: tensor<16x32x64x8xf32>, %p: tensor<16x64xf32>) -> (tensor<16x32x64x8xf32>, tensor<16x64xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<16x32x64x8xf32>) input(%x : tensor<16x32x64x8xf32>) mean(%p : tensor<16x64xf32>) variance(%p : tensor<16x64xf32>)
      {feature_dims = array<i64: 0, 2>} : tensor<16x32x64x8xf32>, tensor<16x64xf32>, tensor<16x64xf32>
  return %0#0, %0#1 : tensor<16x32x64x8xf32>, tensor<16x64xf32>
}

// CHECK-LABEL: func.func @tiny(
// SM_75: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 288, fma = true>}
// SM_80: bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 432, fma = true>}
// SM_90: bngrad.schedule = #bngrad.schedule<one_pass, fma = true>}
// SM_100: bngrad.schedule = #bngrad.schedule<one_pass, fma = true>}
// SM_120: bngrad.schedule = #bngrad.schedule<one_pass, fma = true>}
func.func @tiny(%dy: tensor<2x3x4x4xf32>, %x: tensor<2x3x4x4xf32>, %p: tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3x4x4xf32>) input(%x : tensor<2x3x4x4xf32>) mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      {feature_dims = array<i64: 1>} : tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1 : tensor<2x3x4x4xf32>, tensor<3xf32>
}
