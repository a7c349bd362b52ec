// Memrefs with dynamic strides: dense data in another order, padded rows, every second row, x and
// grad_output in different orders. One function takes them all; its results are those of the op for the same
// data. strided-long.mlir has more of them.

// DEFINE: %{run} = bngrad-runner %s --arg=random:1 --arg=random:2 --arg=random:3:0.5:1.5 --arg=random:4 --arg=random:5:0.5:1.5
// DEFINE: %{entry} =
// DEFINE: %{check} = --check
// DEFINE: %{compare} = rm -rf %t && mkdir %t && \
// DEFINE:   %{run} --entry=%{entry} --result=%t/a.npy --result=%t/b.npy --result=%t/c.npy && \
// DEFINE:   %{run} --entry=%{entry}_expected %{check} --result=%t/x.npy --result=%t/y.npy --result=%t/z.npy && \
// DEFINE:   %python %S/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy %t/c.npy %t/z.npy
// REQUIRES: numpy

// REDEFINE: %{entry} = channels_last
// RUN: %{compare}
// REDEFINE: %{entry} = mixed
// RUN: %{compare}
// REDEFINE: %{entry} = known
// RUN: %{compare}

// A result that begins within a cache line, written by streaming stores: rows start at the first whole line, and so
// do the tables of per-channel values.
// REDEFINE: %{run} = bngrad-runner %s --arg=random:1 --arg=random:2 --arg=random:3:0.5:1.5 --arg=random:4 --arg=random:5:0.5:1.5 --schedule='#bngrad.schedule<rows, streaming_bytes = 1, vector_bits = 128>'
// REDEFINE: %{entry} = shifted
// RUN: %{compare}
// REDEFINE: %{run} = bngrad-runner %s --arg=random:1 --arg=random:2 --arg=random:3:0.5:1.5 --arg=random:4 --arg=random:5:0.5:1.5

// --check does not support an inserted slice.
// REDEFINE: %{entry} = padded
// REDEFINE: %{check} =
// RUN: %{compare}

!s = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t = tensor<?x?x?x?xf32>
!p = tensor<3xf32>

// The gradient of NCHW data with any strides.
func.func private @gradient(%dy_m: !s, %x_m: !s, %scale: !p, %mean: !p, %variance: !p, %dx_m: !s) -> (!p, !p)
    attributes {no_inline} {
  %dy = bufferization.to_tensor %dy_m restrict : !s to !t
  %x = bufferization.to_tensor %x_m restrict : !s to !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) scale(%scale : !p) mean(%mean : !p)
      inv_std(%variance : !p) : !t, !p, !p
  bufferization.materialize_in_destination %0#0 in restrict writable %dx_m : (!t, !s) -> ()
  return %0#1, %0#2 : !p, !p
}

!nhwc = tensor<4x5x7x3xf32>
!nhwc_m = memref<4x5x7x3xf32>
!nhwc_v = memref<4x3x5x7xf32, strided<[105, 1, 21, 3]>>
func.func @channels_last(%dy: !nhwc, %x: !nhwc, %scale: !p, %mean: !p, %variance: !p) -> (!nhwc, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !nhwc to !nhwc_m
  %x_m = bufferization.to_buffer %x read_only : !nhwc to !nhwc_m
  %dx_m = memref.alloc() : !nhwc_m
  %dy_v = memref.transpose %dy_m (n, h, w, c) -> (n, c, h, w) : !nhwc_m to !nhwc_v
  %x_v = memref.transpose %x_m (n, h, w, c) -> (n, c, h, w) : !nhwc_m to !nhwc_v
  %dx_v = memref.transpose %dx_m (n, h, w, c) -> (n, c, h, w) : !nhwc_m to !nhwc_v
  %dy_s = memref.cast %dy_v : !nhwc_v to !s
  %x_s = memref.cast %x_v : !nhwc_v to !s
  %dx_s = memref.cast %dx_v : !nhwc_v to !s
  %0:2 = call @gradient(%dy_s, %x_s, %scale, %mean, %variance, %dx_s) : (!s, !s, !p, !p, !p, !s) -> (!p, !p)
  %dx = bufferization.to_tensor %dx_m restrict : !nhwc_m to !nhwc
  return %dx, %0#0, %0#1 : !nhwc, !p, !p
}
func.func @channels_last_expected(%dy: !nhwc, %x: !nhwc, %scale: !p, %mean: !p, %variance: !p) -> (!nhwc, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !nhwc) input(%x : !nhwc) scale(%scale : !p) mean(%mean : !p)
      inv_std(%variance : !p) {feature_dims = array<i64: 3>} : !nhwc, !p, !p
  return %0#0, %0#1, %0#2 : !nhwc, !p, !p
}

!cnhw = tensor<3x4x5x7xf32>
!cnhw_m = memref<3x4x5x7xf32>
!cnhw_v = memref<4x3x5x7xf32, strided<[35, 140, 7, 1]>>
func.func @channels_first(%dy: !cnhw, %x: !cnhw, %scale: !p, %mean: !p, %variance: !p) -> (!cnhw, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !cnhw to !cnhw_m
  %x_m = bufferization.to_buffer %x read_only : !cnhw to !cnhw_m
  %dx_m = memref.alloc() : !cnhw_m
  %dy_v = memref.transpose %dy_m (c, n, h, w) -> (n, c, h, w) : !cnhw_m to !cnhw_v
  %x_v = memref.transpose %x_m (c, n, h, w) -> (n, c, h, w) : !cnhw_m to !cnhw_v
  %dx_v = memref.transpose %dx_m (c, n, h, w) -> (n, c, h, w) : !cnhw_m to !cnhw_v
  %dy_s = memref.cast %dy_v : !cnhw_v to !s
  %x_s = memref.cast %x_v : !cnhw_v to !s
  %dx_s = memref.cast %dx_v : !cnhw_v to !s
  %0:2 = call @gradient(%dy_s, %x_s, %scale, %mean, %variance, %dx_s) : (!s, !s, !p, !p, !p, !s) -> (!p, !p)
  %dx = bufferization.to_tensor %dx_m restrict : !cnhw_m to !cnhw
  return %dx, %0#0, %0#1 : !cnhw, !p, !p
}
func.func @channels_first_expected(%dy: !cnhw, %x: !cnhw, %scale: !p, %mean: !p, %variance: !p) -> (!cnhw, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !cnhw) input(%x : !cnhw) scale(%scale : !p) mean(%mean : !p)
      inv_std(%variance : !p) {feature_dims = array<i64: 0>} : !cnhw, !p, !p
  return %0#0, %0#1, %0#2 : !cnhw, !p, !p
}

!nchw = tensor<4x3x5x7xf32>
!nchw_m = memref<4x3x5x7xf32>
// With an offset: the second half of a buffer.
func.func @row_major(%dy: !nchw, %x: !nchw, %scale: !p, %mean: !p, %variance: !p) -> (!nchw, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !nchw to !nchw_m
  %x_m = bufferization.to_buffer %x read_only : !nchw to !nchw_m
  %both = memref.alloc() : memref<8x3x5x7xf32>
  %x_half = memref.subview %both[4, 0, 0, 0] [4, 3, 5, 7] [1, 1, 1, 1]
      : memref<8x3x5x7xf32> to memref<4x3x5x7xf32, strided<[105, 35, 7, 1], offset: 420>>
  memref.copy %x_m, %x_half : !nchw_m to memref<4x3x5x7xf32, strided<[105, 35, 7, 1], offset: 420>>
  %dx_m = memref.alloc() : !nchw_m
  %dy_s = memref.cast %dy_m : !nchw_m to !s
  %x_s = memref.cast %x_half : memref<4x3x5x7xf32, strided<[105, 35, 7, 1], offset: 420>> to !s
  %dx_s = memref.cast %dx_m : !nchw_m to !s
  %0:2 = call @gradient(%dy_s, %x_s, %scale, %mean, %variance, %dx_s) : (!s, !s, !p, !p, !p, !s) -> (!p, !p)
  %dx = bufferization.to_tensor %dx_m restrict : !nchw_m to !nchw
  return %dx, %0#0, %0#1 : !nchw, !p, !p
}
func.func @row_major_expected(%dy: !nchw, %x: !nchw, %scale: !p, %mean: !p, %variance: !p) -> (!nchw, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !nchw) input(%x : !nchw) scale(%scale : !p) mean(%mean : !p)
      inv_std(%variance : !p) : !nchw, !p, !p
  return %0#0, %0#1, %0#2 : !nchw, !p, !p
}

// Rows with a gap after each, and every second row of the result's buffer: elements in between keep their values.
!padded_v = memref<4x3x5x7xf32, strided<[192, 64, 12, 1], offset: 4>>
!sparse = tensor<4x3x10x7xf32>
!sparse_m = memref<4x3x10x7xf32>
!sparse_v = memref<4x3x5x7xf32, strided<[210, 70, 14, 1], offset: 7>>
func.func @padded(%dy: !nchw, %x: !nchw, %scale: !p, %mean: !p, %variance: !p) -> (!sparse, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !nchw to !nchw_m
  %x_m = bufferization.to_buffer %x read_only : !nchw to !nchw_m
  %wide = memref.alloc() : memref<768xf32>
  %x_padded = memref.reinterpret_cast %wide to offset: [4], sizes: [4, 3, 5, 7], strides: [192, 64, 12, 1]
      : memref<768xf32> to !padded_v
  memref.copy %x_m, %x_padded : !nchw_m to !padded_v
  %seven = arith.constant 7.0 : f32
  %dx_m = memref.alloc() : !sparse_m
  linalg.fill ins(%seven : f32) outs(%dx_m : !sparse_m)
  %dx_v = memref.subview %dx_m[0, 0, 1, 0] [4, 3, 5, 7] [1, 1, 2, 1] : !sparse_m to !sparse_v
  %dy_s = memref.cast %dy_m : !nchw_m to !s
  %x_s = memref.cast %x_padded : !padded_v to !s
  %dx_s = memref.cast %dx_v : !sparse_v to !s
  %0:2 = call @gradient(%dy_s, %x_s, %scale, %mean, %variance, %dx_s) : (!s, !s, !p, !p, !p, !s) -> (!p, !p)
  %dx = bufferization.to_tensor %dx_m restrict : !sparse_m to !sparse
  return %dx, %0#0, %0#1 : !sparse, !p, !p
}
func.func @padded_expected(%dy: !nchw, %x: !nchw, %scale: !p, %mean: !p, %variance: !p) -> (!sparse, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !nchw) input(%x : !nchw) scale(%scale : !p) mean(%mean : !p)
      inv_std(%variance : !p) : !nchw, !p, !p
  %seven = arith.constant 7.0 : f32
  %sevens = tensor.splat %seven : !sparse
  %dx = tensor.insert_slice %0#0 into %sevens[0, 0, 1, 0] [4, 3, 5, 7] [1, 1, 2, 1] : !nchw into !sparse
  return %dx, %0#1, %0#2 : !sparse, !p, !p
}

// grad_output is row-major, input and grad_input channels-last: no dense form fits all of them.
func.func @mixed(%dy: !nchw, %x: !nhwc, %scale: !p, %mean: !p, %variance: !p) -> (!nhwc, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !nchw to !nchw_m
  %x_m = bufferization.to_buffer %x read_only : !nhwc to !nhwc_m
  %dx_m = memref.alloc() : !nhwc_m
  %x_v = memref.transpose %x_m (n, h, w, c) -> (n, c, h, w) : !nhwc_m to !nhwc_v
  %dx_v = memref.transpose %dx_m (n, h, w, c) -> (n, c, h, w) : !nhwc_m to !nhwc_v
  %dy_s = memref.cast %dy_m : !nchw_m to !s
  %x_s = memref.cast %x_v : !nhwc_v to !s
  %dx_s = memref.cast %dx_v : !nhwc_v to !s
  %0:2 = call @gradient(%dy_s, %x_s, %scale, %mean, %variance, %dx_s) : (!s, !s, !p, !p, !p, !s) -> (!p, !p)
  %dx = bufferization.to_tensor %dx_m restrict : !nhwc_m to !nhwc
  return %dx, %0#0, %0#1 : !nhwc, !p, !p
}
func.func @mixed_expected(%dy: !nchw, %x: !nhwc, %scale: !p, %mean: !p, %variance: !p) -> (!nhwc, !p, !p) {
  %empty = tensor.empty() : !nhwc
  %dy_nhwc = linalg.transpose ins(%dy : !nchw) outs(%empty : !nhwc) permutation = [0, 2, 3, 1]
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_nhwc : !nhwc) input(%x : !nhwc) scale(%scale : !p)
      mean(%mean : !p) inv_std(%variance : !p) {feature_dims = array<i64: 3>} : !nhwc, !p, !p
  return %0#0, %0#1, %0#2 : !nhwc, !p, !p
}

// The same with static strides, which need no test at run time.
func.func @known(%dy: !nchw, %x: !nhwc, %scale: !p, %mean: !p, %variance: !p) -> (!nhwc, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !nchw to !nchw_m
  %x_m = bufferization.to_buffer %x read_only : !nhwc to !nhwc_m
  %both = memref.alloc() : memref<8x3x5x7xf32>
  %dy_half = memref.subview %both[4, 0, 0, 0] [4, 3, 5, 7] [1, 1, 1, 1]
      : memref<8x3x5x7xf32> to memref<4x3x5x7xf32, strided<[105, 35, 7, 1], offset: 420>>
  memref.copy %dy_m, %dy_half : !nchw_m to memref<4x3x5x7xf32, strided<[105, 35, 7, 1], offset: 420>>
  %dx_m = memref.alloc() : !nhwc_m
  %x_v = memref.transpose %x_m (n, h, w, c) -> (n, c, h, w) : !nhwc_m to !nhwc_v
  %dx_v = memref.transpose %dx_m (n, h, w, c) -> (n, c, h, w) : !nhwc_m to !nhwc_v
  %dy_t = bufferization.to_tensor %dy_half restrict : memref<4x3x5x7xf32, strided<[105, 35, 7, 1], offset: 420>> to !nchw
  %x_t = bufferization.to_tensor %x_v restrict : !nhwc_v to !nchw
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_t : !nchw) input(%x_t : !nchw) scale(%scale : !p) mean(%mean : !p)
      inv_std(%variance : !p) : !nchw, !p, !p
  bufferization.materialize_in_destination %0#0 in restrict writable %dx_v : (!nchw, !nhwc_v) -> ()
  %dx = bufferization.to_tensor %dx_m restrict : !nhwc_m to !nhwc
  return %dx, %0#1, %0#2 : !nhwc, !p, !p
}
func.func @known_expected(%dy: !nchw, %x: !nhwc, %scale: !p, %mean: !p, %variance: !p) -> (!nhwc, !p, !p) {
  %empty = tensor.empty() : !nhwc
  %dy_nhwc = linalg.transpose ins(%dy : !nchw) outs(%empty : !nhwc) permutation = [0, 2, 3, 1]
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_nhwc : !nhwc) input(%x : !nhwc) scale(%scale : !p)
      mean(%mean : !p) inv_std(%variance : !p) {feature_dims = array<i64: 3>} : !nhwc, !p, !p
  return %0#0, %0#1, %0#2 : !nhwc, !p, !p
}

// The rows from the last to the first: negative strides.
func.func @reversed(%dy: !nchw, %x: !nchw, %scale: !p, %mean: !p, %variance: !p) -> (!nchw, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !nchw to !nchw_m
  %x_m = bufferization.to_buffer %x read_only : !nchw to !nchw_m
  %dx_m = memref.alloc() : !nchw_m
  %dy_s = memref.reinterpret_cast %dy_m to offset: [28], sizes: [4, 3, 5, 7], strides: [105, 35, -7, 1]
      : !nchw_m to memref<4x3x5x7xf32, strided<[105, 35, -7, 1], offset: 28>>
  %x_s = memref.reinterpret_cast %x_m to offset: [28], sizes: [4, 3, 5, 7], strides: [105, 35, -7, 1]
      : !nchw_m to memref<4x3x5x7xf32, strided<[105, 35, -7, 1], offset: 28>>
  %dx_s = memref.reinterpret_cast %dx_m to offset: [28], sizes: [4, 3, 5, 7], strides: [105, 35, -7, 1]
      : !nchw_m to memref<4x3x5x7xf32, strided<[105, 35, -7, 1], offset: 28>>
  %0 = memref.cast %dy_s : memref<4x3x5x7xf32, strided<[105, 35, -7, 1], offset: 28>> to !s
  %1 = memref.cast %x_s : memref<4x3x5x7xf32, strided<[105, 35, -7, 1], offset: 28>> to !s
  %2 = memref.cast %dx_s : memref<4x3x5x7xf32, strided<[105, 35, -7, 1], offset: 28>> to !s
  %3:2 = call @gradient(%0, %1, %scale, %mean, %variance, %2) : (!s, !s, !p, !p, !p, !s) -> (!p, !p)
  %dx = bufferization.to_tensor %dx_m restrict : !nchw_m to !nchw
  return %dx, %3#0, %3#1 : !nchw, !p, !p
}
func.func @reversed_expected(%dy: !nchw, %x: !nchw, %scale: !p, %mean: !p, %variance: !p) -> (!nchw, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !nchw) input(%x : !nchw) scale(%scale : !p) mean(%mean : !p)
      inv_std(%variance : !p) : !nchw, !p, !p
  return %0#0, %0#1, %0#2 : !nchw, !p, !p
}

!rows = tensor<101x24xf32>
!rows_v = memref<101x24xf32, strided<[24, 1], offset: 1>>
!p24 = tensor<24xf32>
func.func @shifted(%dy: !rows, %x: !rows, %scale: !p24, %mean: !p24, %variance: !p24) -> (!rows, !p24, !p24) {
  %dx_m = memref.alloc() {alignment = 64 : i64} : memref<2425xf32>
  %dx_v = memref.reinterpret_cast %dx_m to offset: [1], sizes: [101, 24], strides: [24, 1] : memref<2425xf32> to !rows_v
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) scale(%scale : !p24) mean(%mean : !p24)
      inv_std(%variance : !p24) : !rows, !p24, !p24
  bufferization.materialize_in_destination %0#0 in restrict writable %dx_v : (!rows, !rows_v) -> ()
  %dx = bufferization.to_tensor %dx_v restrict : !rows_v to !rows
  return %dx, %0#1, %0#2 : !rows, !p24, !p24
}
func.func @shifted_expected(%dy: !rows, %x: !rows, %scale: !p24, %mean: !p24, %variance: !p24) -> (!rows, !p24, !p24) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) scale(%scale : !p24) mean(%mean : !p24)
      inv_std(%variance : !p24) : !rows, !p24, !p24
  return %0#0, %0#1, %0#2 : !rows, !p24, !p24
}
