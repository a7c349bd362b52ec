// The choice of a schedule, by shape and target; other tests cover its loops.

// RUN: bngrad-opt %s --bngrad-decompose --bngrad-group | FileCheck %s --check-prefixes=CHECK,DEFAULT
// RUN: bngrad-opt %s --bngrad-decompose --bngrad-group="threads=7 vector-bits=256 l1-bytes=32768 last-level-bytes=1048576 fma=true" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,OTHER

// As many columns as fit, a power of two: 48 bytes of each in rows, 32 in tiles of f32.
// RUN: bngrad-opt %s --bngrad-decompose --bngrad-group=l1-bytes=32767 | FileCheck %s --check-prefix=LESS
// LESS-LABEL: func @short_rows(
// LESS:         bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, columns = 512, row_blocks = 32>}
// LESS-LABEL: func @narrow_tiles(
// LESS:         bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// LESS-LABEL: func @nhwc(
// LESS:         bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, columns = 512, row_blocks = 32>}

// An unknown target gives one error for all functions.
// RUN: not bngrad-opt %s --bngrad-decompose --bngrad-group="threads=-1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not bngrad-opt %s --bngrad-decompose --bngrad-group="vector-bits=100" -o /dev/null 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not bngrad-opt %s --bngrad-decompose --bngrad-group="l1-bytes=-5" -o /dev/null 2>&1 | FileCheck %s --check-prefix=L1
// L1: error: expected l1-bytes to be at least 0, got -5
// L1-NOT: error
// THREADS: error: expected threads to be in [0, 4096], got -1
// THREADS-NOT: error
// BITS: error: expected vector_bits to be a power of 2 in [64, 2048], got 100
// BITS-NOT: error


// Rows of 12544 elements.
// CHECK-LABEL: func @long_rows(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @long_rows(%dy: tensor<32x64x112x112xf32>, %x: tensor<32x64x112x112xf32>, %p: tensor<64xf32>) -> tensor<32x64x112x112xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x64x112x112xf32>) input(%x : tensor<32x64x112x112xf32>)
      mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>) {feature_dims = array<i64: 1>} : tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<32x64x112x112xf32>
}

// CHECK-LABEL: func @rows_of_784(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @rows_of_784(%dy: tensor<32x512x28x28xf32>, %x: tensor<32x512x28x28xf32>, %p: tensor<512xf32>) -> tensor<32x512x28x28xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x512x28x28xf32>) input(%x : tensor<32x512x28x28xf32>)
      mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>) {feature_dims = array<i64: 1>} : tensor<32x512x28x28xf32>, tensor<512xf32>, tensor<512xf32>
  return %0#0 : tensor<32x512x28x28xf32>
}

// Rows of 196 and 49 elements.
// CHECK-LABEL: func @short_rows(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @short_rows(%dy: tensor<32x1024x14x14xf32>, %x: tensor<32x1024x14x14xf32>, %p: tensor<1024xf32>) -> tensor<32x1024x14x14xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x1024x14x14xf32>) input(%x : tensor<32x1024x14x14xf32>)
      mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>) {feature_dims = array<i64: 1>} : tensor<32x1024x14x14xf32>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0 : tensor<32x1024x14x14xf32>
}

// CHECK-LABEL: func @shorter_rows(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @shorter_rows(%dy: tensor<32x2048x7x7xf32>, %x: tensor<32x2048x7x7xf32>, %p: tensor<2048xf32>) -> tensor<32x2048x7x7xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x2048x7x7xf32>) input(%x : tensor<32x2048x7x7xf32>)
      mean(%p : tensor<2048xf32>) variance(%p : tensor<2048xf32>) {feature_dims = array<i64: 1>} : tensor<32x2048x7x7xf32>, tensor<2048xf32>, tensor<2048xf32>
  return %0#0 : tensor<32x2048x7x7xf32>
}

// Rows of 323, 49 and 9 elements in small problems.
// CHECK-LABEL: func @short_rows_near(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @short_rows_near(%dy: tensor<7x13x17x19xf32>, %x: tensor<7x13x17x19xf32>, %p: tensor<13xf32>) -> tensor<7x13x17x19xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<7x13x17x19xf32>) input(%x : tensor<7x13x17x19xf32>)
      mean(%p : tensor<13xf32>) variance(%p : tensor<13xf32>) {feature_dims = array<i64: 1>} : tensor<7x13x17x19xf32>, tensor<13xf32>, tensor<13xf32>
  return %0#0 : tensor<7x13x17x19xf32>
}

// CHECK-LABEL: func @shorter_rows_near(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @shorter_rows_near(%dy: tensor<32x64x7x7xf32>, %x: tensor<32x64x7x7xf32>, %p: tensor<64xf32>) -> tensor<32x64x7x7xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x64x7x7xf32>) input(%x : tensor<32x64x7x7xf32>)
      mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>) {feature_dims = array<i64: 1>} : tensor<32x64x7x7xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<32x64x7x7xf32>
}

// CHECK-LABEL: func @shortest_rows_near(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @shortest_rows_near(%dy: tensor<32x64x3x3xf32>, %x: tensor<32x64x3x3xf32>, %p: tensor<64xf32>) -> tensor<32x64x3x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x64x3x3xf32>) input(%x : tensor<32x64x3x3xf32>)
      mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>) {feature_dims = array<i64: 1>} : tensor<32x64x3x3xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<32x64x3x3xf32>
}

// Short rows: 8192 and 8160 of them; 256 elements are not short; 63 rows of 9 elements are few.
// CHECK-LABEL: func @many_short_rows(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @many_short_rows(%dy: tensor<32x256x7x7xf32>, %x: tensor<32x256x7x7xf32>, %p: tensor<256xf32>) -> tensor<32x256x7x7xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x256x7x7xf32>) input(%x : tensor<32x256x7x7xf32>)
      mean(%p : tensor<256xf32>) variance(%p : tensor<256xf32>) {feature_dims = array<i64: 1>} : tensor<32x256x7x7xf32>, tensor<256xf32>, tensor<256xf32>
  return %0#0 : tensor<32x256x7x7xf32>
}

// CHECK-LABEL: func @few_short_rows(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @few_short_rows(%dy: tensor<32x255x7x7xf32>, %x: tensor<32x255x7x7xf32>, %p: tensor<255xf32>) -> tensor<32x255x7x7xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x255x7x7xf32>) input(%x : tensor<32x255x7x7xf32>)
      mean(%p : tensor<255xf32>) variance(%p : tensor<255xf32>) {feature_dims = array<i64: 1>} : tensor<32x255x7x7xf32>, tensor<255xf32>, tensor<255xf32>
  return %0#0 : tensor<32x255x7x7xf32>
}

// CHECK-LABEL: func @rows_of_255(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @rows_of_255(%dy: tensor<32x256x15x17xf32>, %x: tensor<32x256x15x17xf32>, %p: tensor<256xf32>) -> tensor<32x256x15x17xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x256x15x17xf32>) input(%x : tensor<32x256x15x17xf32>)
      mean(%p : tensor<256xf32>) variance(%p : tensor<256xf32>) {feature_dims = array<i64: 1>} : tensor<32x256x15x17xf32>, tensor<256xf32>, tensor<256xf32>
  return %0#0 : tensor<32x256x15x17xf32>
}

// CHECK-LABEL: func @rows_of_256(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @rows_of_256(%dy: tensor<32x256x16x16xf32>, %x: tensor<32x256x16x16xf32>, %p: tensor<256xf32>) -> tensor<32x256x16x16xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x256x16x16xf32>) input(%x : tensor<32x256x16x16xf32>)
      mean(%p : tensor<256xf32>) variance(%p : tensor<256xf32>) {feature_dims = array<i64: 1>} : tensor<32x256x16x16xf32>, tensor<256xf32>, tensor<256xf32>
  return %0#0 : tensor<32x256x16x16xf32>
}

// CHECK-LABEL: func @many_shortest_rows(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @many_shortest_rows(%dy: tensor<16x16x3x3xf32>, %x: tensor<16x16x3x3xf32>, %p: tensor<16xf32>) -> tensor<16x16x3x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<16x16x3x3xf32>) input(%x : tensor<16x16x3x3xf32>)
      mean(%p : tensor<16xf32>) variance(%p : tensor<16xf32>) {feature_dims = array<i64: 1>} : tensor<16x16x3x3xf32>, tensor<16xf32>, tensor<16xf32>
  return %0#0 : tensor<16x16x3x3xf32>
}

// CHECK-LABEL: func @few_samples(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @few_samples(%dy: tensor<31x512x4x5xf32>, %x: tensor<31x512x4x5xf32>, %p: tensor<512xf32>) -> tensor<31x512x4x5xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<31x512x4x5xf32>) input(%x : tensor<31x512x4x5xf32>)
      mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>) {feature_dims = array<i64: 1>} : tensor<31x512x4x5xf32>, tensor<512xf32>, tensor<512xf32>
  return %0#0 : tensor<31x512x4x5xf32>
}

// Fewer samples suffice if each tensor has at least a third of 8 MiB.
// CHECK-LABEL: func @few_large_samples(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @few_large_samples(%dy: tensor<31x1024x7x7xf32>, %x: tensor<31x1024x7x7xf32>, %p: tensor<1024xf32>) -> tensor<31x1024x7x7xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<31x1024x7x7xf32>) input(%x : tensor<31x1024x7x7xf32>)
      mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>) {feature_dims = array<i64: 1>} : tensor<31x1024x7x7xf32>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0 : tensor<31x1024x7x7xf32>
}

// CHECK-LABEL: func @few_shortest_rows(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @few_shortest_rows(%dy: tensor<7x9x3x3xf32>, %x: tensor<7x9x3x3xf32>, %p: tensor<9xf32>) -> tensor<7x9x3x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<7x9x3x3xf32>) input(%x : tensor<7x9x3x3xf32>)
      mean(%p : tensor<9xf32>) variance(%p : tensor<9xf32>) {feature_dims = array<i64: 1>} : tensor<7x9x3x3xf32>, tensor<9xf32>, tensor<9xf32>
  return %0#0 : tensor<7x9x3x3xf32>
}

// A row of a tile has the same number of bytes for every type.
// CHECK-LABEL: func @narrow_tiles(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, columns = 2048, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, columns = 2048, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @narrow_tiles(%dy: tensor<32x1024x14x14xbf16>, %x: tensor<32x1024x14x14xbf16>, %p: tensor<1024xf32>) -> tensor<32x1024x14x14xbf16> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x1024x14x14xbf16>) input(%x : tensor<32x1024x14x14xbf16>)
      mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>) {feature_dims = array<i64: 1>} : tensor<32x1024x14x14xbf16>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0 : tensor<32x1024x14x14xbf16>
}

// CHECK-LABEL: func @wide_tiles(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 33554432, columns = 512, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<tiles, threads = 7, vector_bits = 256, streaming_bytes = 1048576, columns = 512, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @wide_tiles(%dy: tensor<32x1024x14x14xf64>, %x: tensor<32x1024x14x14xf64>, %p: tensor<1024xf32>) -> tensor<32x1024x14x14xf64> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x1024x14x14xf64>) input(%x : tensor<32x1024x14x14xf64>)
      mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>) {feature_dims = array<i64: 1>} : tensor<32x1024x14x14xf64>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0 : tensor<32x1024x14x14xf64>
}

// Fewer than 8 channels.
// CHECK-LABEL: func @one_channel(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<split, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<split, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @one_channel(%dy: tensor<32x1x224x224xf32>, %x: tensor<32x1x224x224xf32>, %p: tensor<1xf32>) -> tensor<32x1x224x224xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x1x224x224xf32>) input(%x : tensor<32x1x224x224xf32>)
      mean(%p : tensor<1xf32>) variance(%p : tensor<1xf32>) {feature_dims = array<i64: 1>} : tensor<32x1x224x224xf32>, tensor<1xf32>, tensor<1xf32>
  return %0#0 : tensor<32x1x224x224xf32>
}

// CHECK-LABEL: func @three_channels(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<split, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<split, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @three_channels(%dy: tensor<32x3x224x224xf32>, %x: tensor<32x3x224x224xf32>, %p: tensor<3xf32>) -> tensor<32x3x224x224xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x3x224x224xf32>) input(%x : tensor<32x3x224x224xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {feature_dims = array<i64: 1>} : tensor<32x3x224x224xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<32x3x224x224xf32>
}

// CHECK-LABEL: func @eight_channels(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @eight_channels(%dy: tensor<32x8x224x224xf32>, %x: tensor<32x8x224x224xf32>, %p: tensor<8xf32>) -> tensor<32x8x224x224xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x8x224x224xf32>) input(%x : tensor<32x8x224x224xf32>)
      mean(%p : tensor<8xf32>) variance(%p : tensor<8xf32>) {feature_dims = array<i64: 1>} : tensor<32x8x224x224xf32>, tensor<8xf32>, tensor<8xf32>
  return %0#0 : tensor<32x8x224x224xf32>
}

// Channels innermost.
// CHECK-LABEL: func @nhwc(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<rows, threads = 7, vector_bits = 256, streaming_bytes = 1048576, columns = 512, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @nhwc(%dy: tensor<32x112x112x64xf32>, %x: tensor<32x112x112x64xf32>, %p: tensor<64xf32>) -> tensor<32x112x112x64xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x112x112x64xf32>) input(%x : tensor<32x112x112x64xf32>)
      mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>) {feature_dims = array<i64: 3>} : tensor<32x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<32x112x112x64xf32>
}

// CHECK-LABEL: func @nhwc_three_channels(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<rows, threads = 7, vector_bits = 256, streaming_bytes = 1048576, columns = 512, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @nhwc_three_channels(%dy: tensor<32x224x224x3xf32>, %x: tensor<32x224x224x3xf32>, %p: tensor<3xf32>) -> tensor<32x224x224x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<32x224x224x3xf32>) input(%x : tensor<32x224x224x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {feature_dims = array<i64: 3>} : tensor<32x224x224x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<32x224x224x3xf32>
}

// CHECK-LABEL: func @matrix(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<rows, threads = 7, vector_bits = 256, streaming_bytes = 1048576, columns = 512, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @matrix(%dy: tensor<8192x1024xf32>, %x: tensor<8192x1024xf32>, %p: tensor<1024xf32>) -> tensor<8192x1024xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8192x1024xf32>) input(%x : tensor<8192x1024xf32>)
      mean(%p : tensor<1024xf32>) variance(%p : tensor<1024xf32>) {feature_dims = array<i64: 1>} : tensor<8192x1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  return %0#0 : tensor<8192x1024xf32>
}

// CHECK-LABEL: func @per_activation(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<rows, threads = 7, vector_bits = 256, streaming_bytes = 1048576, columns = 512, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @per_activation(%dy: tensor<64x8x8xf32>, %x: tensor<64x8x8xf32>, %p: tensor<8x8xf32>) -> tensor<64x8x8xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<64x8x8xf32>) input(%x : tensor<64x8x8xf32>)
      mean(%p : tensor<8x8xf32>) variance(%p : tensor<8x8xf32>) {feature_dims = array<i64: 1, 2>} : tensor<64x8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  return %0#0 : tensor<64x8x8xf32>
}

// CHECK-LABEL: func @sequence(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @sequence(%dy: tensor<64x512x1024xf32>, %x: tensor<64x512x1024xf32>, %p: tensor<512xf32>) -> tensor<64x512x1024xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<64x512x1024xf32>) input(%x : tensor<64x512x1024xf32>)
      mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>) {feature_dims = array<i64: 1>} : tensor<64x512x1024xf32>, tensor<512xf32>, tensor<512xf32>
  return %0#0 : tensor<64x512x1024xf32>
}

// CHECK-LABEL: func @channels_first(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @channels_first(%dy: tensor<512x100000xf32>, %x: tensor<512x100000xf32>, %p: tensor<512xf32>) -> tensor<512x100000xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<512x100000xf32>) input(%x : tensor<512x100000xf32>)
      mean(%p : tensor<512xf32>) variance(%p : tensor<512xf32>) {feature_dims = array<i64: 0>} : tensor<512x100000xf32>, tensor<512xf32>, tensor<512xf32>
  return %0#0 : tensor<512x100000xf32>
}

// Work for one thread.
// CHECK-LABEL: func @tiny(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @tiny(%dy: tensor<2x3x4x4xf32>, %x: tensor<2x3x4x4xf32>, %p: tensor<3xf32>) -> tensor<2x3x4x4xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3x4x4xf32>) input(%x : tensor<2x3x4x4xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {feature_dims = array<i64: 1>} : tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3x4x4xf32>
}

// CHECK-LABEL: func @no_batch(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @no_batch(%dy: tensor<64x14x20xf32>, %x: tensor<64x14x20xf32>, %p: tensor<64xf32>) -> tensor<64x14x20xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<64x14x20xf32>) input(%x : tensor<64x14x20xf32>)
      mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>) {feature_dims = array<i64: 0>} : tensor<64x14x20xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<64x14x20xf32>
}

// Two feature dims with a reduced dim between, and one after.
// CHECK-LABEL: func @two_features_apart(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<channels, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @two_features_apart(%dy: tensor<4x64x64x64x8xf32>, %x: tensor<4x64x64x64x8xf32>, %p: tensor<64x64xf32>) -> tensor<4x64x64x64x8xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x64x64x64x8xf32>) input(%x : tensor<4x64x64x64x8xf32>)
      mean(%p : tensor<64x64xf32>) variance(%p : tensor<64x64xf32>) {feature_dims = array<i64: 1, 3>} : tensor<4x64x64x64x8xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  return %0#0 : tensor<4x64x64x64x8xf32>
}

// No vectors for this order yet.
// CHECK-LABEL: func @features_around_sum(
// CHECK:         bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:         return
func.func @features_around_sum(%dy: tensor<64x100x64xf32>, %x: tensor<64x100x64xf32>, %p: tensor<64x64xf32>) -> tensor<64x100x64xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<64x100x64xf32>) input(%x : tensor<64x100x64xf32>)
      mean(%p : tensor<64x64xf32>) variance(%p : tensor<64x64xf32>) {feature_dims = array<i64: 0, 2>} : tensor<64x100x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  return %0#0 : tensor<64x100x64xf32>
}

// Coefficients of two dims that are read in the other order.
// CHECK-LABEL: func @turned_coefficients(
// CHECK-COUNT-2: bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:         return
func.func @turned_coefficients(%x: tensor<64x8x8x100xf32>, %p: tensor<8x8xf32>) -> tensor<64x8x8x100xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %factor = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.rsqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x8xf32>
  %full = tensor.empty() : tensor<64x8x8x100xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(n, c, d, s) -> (n, c, d, s)>, affine_map<(n, c, d, s) -> (d, c)>, affine_map<(n, c, d, s) -> (n, c, d, s)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %factor : tensor<64x8x8x100xf32>, tensor<8x8xf32>) outs(%full : tensor<64x8x8x100xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %1 = arith.mulf %e, %f : f32
    linalg.yield %1 : f32
  } -> tensor<64x8x8x100xf32>
  return %0 : tensor<64x8x8x100xf32>
}

// Dynamic sizes.
// CHECK-LABEL: func @dynamic_batch(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<sizes, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<sizes, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @dynamic_batch(%dy: tensor<?x64x112x112xf32>, %x: tensor<?x64x112x112xf32>, %p: tensor<64xf32>) -> tensor<?x64x112x112xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x64x112x112xf32>) input(%x : tensor<?x64x112x112xf32>)
      mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>) {feature_dims = array<i64: 1>} : tensor<?x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<?x64x112x112xf32>
}

// CHECK-LABEL: func @dynamic(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<sizes, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<sizes, threads = 7, vector_bits = 256, streaming_bytes = 1048576, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @dynamic(%dy: tensor<?x?x?x?xf32>, %x: tensor<?x?x?x?xf32>, %p: tensor<?xf32>) -> tensor<?x?x?x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x?x?xf32>) input(%x : tensor<?x?x?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>) {feature_dims = array<i64: 1>} : tensor<?x?x?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<?x?x?x?xf32>
}

// CHECK-LABEL: func @dynamic_nhwc(
// DEFAULT:          bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, row_blocks = 32>}
// OTHER:         bngrad.schedule = #bngrad.schedule<rows, threads = 7, vector_bits = 256, streaming_bytes = 1048576, columns = 512, row_blocks = 32, fma = true>}
// CHECK:         return
func.func @dynamic_nhwc(%dy: tensor<?x?x?x?xf32>, %x: tensor<?x?x?x?xf32>, %p: tensor<?xf32>) -> tensor<?x?x?x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x?x?xf32>) input(%x : tensor<?x?x?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>) {feature_dims = array<i64: 3>} : tensor<?x?x?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<?x?x?x?xf32>
}

// No elements; no division by a size.
// CHECK-LABEL: func @empty(
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @empty(%dy: tensor<0x64x7x7xf32>, %x: tensor<0x64x7x7xf32>, %p: tensor<64xf32>) -> tensor<0x64x7x7xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<0x64x7x7xf32>) input(%x : tensor<0x64x7x7xf32>)
      mean(%p : tensor<64xf32>) variance(%p : tensor<64xf32>) {feature_dims = array<i64: 1>} : tensor<0x64x7x7xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<0x64x7x7xf32>
}
