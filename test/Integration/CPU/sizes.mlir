// Odd sizes, sizes of 1 and sizes around a power of two. A loop unrolled or vectorized without its tail,
// a stride of a size-1 dim, or a count that omits a dim gives wrong numbers.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5
// RUN: %{check} --entry=odd_nchw | FileCheck %s
// RUN: %{check} --entry=odd_long_rows | FileCheck %s
// RUN: %{check} --entry=odd_nhwc | FileCheck %s
// RUN: %{check} --entry=odd_two_dims | FileCheck %s
// RUN: %{check} --entry=powers_of_two | FileCheck %s
// RUN: %{check} --entry=powers_of_two_nhwc | FileCheck %s
// RUN: %{check} --entry=one_element_per_channel | FileCheck %s
// RUN: %{check} --entry=one_channel | FileCheck %s
// RUN: %{check} --entry=one_row | FileCheck %s
// RUN: %{check} --entry=one_column | FileCheck %s
// RUN: %{check} --entry=all_ones | FileCheck %s

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

!d_odd_nchw = tensor<13x17x3x7xf32>
!p_odd_nchw = tensor<17xf32>
func.func @odd_nchw(%dy: !d_odd_nchw, %x: !d_odd_nchw, %g: !p_odd_nchw, %m: !p_odd_nchw, %v: !p_odd_nchw) -> (!d_odd_nchw, !p_odd_nchw, !p_odd_nchw) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_odd_nchw) input(%x : !d_odd_nchw) scale(%g : !p_odd_nchw)
      mean(%m : !p_odd_nchw) variance(%v : !p_odd_nchw) {epsilon = 1.0e-3} : !d_odd_nchw, !p_odd_nchw, !p_odd_nchw
  return %0#0, %0#1, %0#2 : !d_odd_nchw, !p_odd_nchw, !p_odd_nchw
}

!d_odd_long_rows = tensor<3x5x31x33xf32>
!p_odd_long_rows = tensor<5xf32>
func.func @odd_long_rows(%dy: !d_odd_long_rows, %x: !d_odd_long_rows, %g: !p_odd_long_rows, %m: !p_odd_long_rows, %v: !p_odd_long_rows) -> (!d_odd_long_rows, !p_odd_long_rows, !p_odd_long_rows) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_odd_long_rows) input(%x : !d_odd_long_rows) scale(%g : !p_odd_long_rows)
      mean(%m : !p_odd_long_rows) variance(%v : !p_odd_long_rows) {epsilon = 1.0e-3} : !d_odd_long_rows, !p_odd_long_rows, !p_odd_long_rows
  return %0#0, %0#1, %0#2 : !d_odd_long_rows, !p_odd_long_rows, !p_odd_long_rows
}

!d_odd_nhwc = tensor<7x13x1x19xf32>
!p_odd_nhwc = tensor<19xf32>
func.func @odd_nhwc(%dy: !d_odd_nhwc, %x: !d_odd_nhwc, %g: !p_odd_nhwc, %m: !p_odd_nhwc, %v: !p_odd_nhwc) -> (!d_odd_nhwc, !p_odd_nhwc, !p_odd_nhwc) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_odd_nhwc) input(%x : !d_odd_nhwc) scale(%g : !p_odd_nhwc)
      mean(%m : !p_odd_nhwc) variance(%v : !p_odd_nhwc) {feature_dims = array<i64: 3>, epsilon = 1.0e-3} : !d_odd_nhwc, !p_odd_nhwc, !p_odd_nhwc
  return %0#0, %0#1, %0#2 : !d_odd_nhwc, !p_odd_nhwc, !p_odd_nhwc
}

!d_odd_two_dims = tensor<33x31xf32>
!p_odd_two_dims = tensor<31xf32>
func.func @odd_two_dims(%dy: !d_odd_two_dims, %x: !d_odd_two_dims, %g: !p_odd_two_dims, %m: !p_odd_two_dims, %v: !p_odd_two_dims) -> (!d_odd_two_dims, !p_odd_two_dims, !p_odd_two_dims) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_odd_two_dims) input(%x : !d_odd_two_dims) scale(%g : !p_odd_two_dims)
      mean(%m : !p_odd_two_dims) variance(%v : !p_odd_two_dims) {epsilon = 1.0e-3} : !d_odd_two_dims, !p_odd_two_dims, !p_odd_two_dims
  return %0#0, %0#1, %0#2 : !d_odd_two_dims, !p_odd_two_dims, !p_odd_two_dims
}

!d_powers_of_two = tensor<4x16x8x16xf32>
!p_powers_of_two = tensor<16xf32>
func.func @powers_of_two(%dy: !d_powers_of_two, %x: !d_powers_of_two, %g: !p_powers_of_two, %m: !p_powers_of_two, %v: !p_powers_of_two) -> (!d_powers_of_two, !p_powers_of_two, !p_powers_of_two) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_powers_of_two) input(%x : !d_powers_of_two) scale(%g : !p_powers_of_two)
      mean(%m : !p_powers_of_two) variance(%v : !p_powers_of_two) {epsilon = 1.0e-3} : !d_powers_of_two, !p_powers_of_two, !p_powers_of_two
  return %0#0, %0#1, %0#2 : !d_powers_of_two, !p_powers_of_two, !p_powers_of_two
}

!d_powers_of_two_nhwc = tensor<4x8x8x32xf32>
!p_powers_of_two_nhwc = tensor<32xf32>
func.func @powers_of_two_nhwc(%dy: !d_powers_of_two_nhwc, %x: !d_powers_of_two_nhwc, %g: !p_powers_of_two_nhwc, %m: !p_powers_of_two_nhwc, %v: !p_powers_of_two_nhwc) -> (!d_powers_of_two_nhwc, !p_powers_of_two_nhwc, !p_powers_of_two_nhwc) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_powers_of_two_nhwc) input(%x : !d_powers_of_two_nhwc) scale(%g : !p_powers_of_two_nhwc)
      mean(%m : !p_powers_of_two_nhwc) variance(%v : !p_powers_of_two_nhwc) {feature_dims = array<i64: 3>, epsilon = 1.0e-3} : !d_powers_of_two_nhwc, !p_powers_of_two_nhwc, !p_powers_of_two_nhwc
  return %0#0, %0#1, %0#2 : !d_powers_of_two_nhwc, !p_powers_of_two_nhwc, !p_powers_of_two_nhwc
}

!d_one_element_per_channel = tensor<1x17x1x1xf32>
!p_one_element_per_channel = tensor<17xf32>
func.func @one_element_per_channel(%dy: !d_one_element_per_channel, %x: !d_one_element_per_channel, %g: !p_one_element_per_channel, %m: !p_one_element_per_channel, %v: !p_one_element_per_channel) -> (!d_one_element_per_channel, !p_one_element_per_channel, !p_one_element_per_channel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_one_element_per_channel) input(%x : !d_one_element_per_channel) scale(%g : !p_one_element_per_channel)
      mean(%m : !p_one_element_per_channel) variance(%v : !p_one_element_per_channel) {epsilon = 1.0e-3} : !d_one_element_per_channel, !p_one_element_per_channel, !p_one_element_per_channel
  return %0#0, %0#1, %0#2 : !d_one_element_per_channel, !p_one_element_per_channel, !p_one_element_per_channel
}

!d_one_channel = tensor<17x1x3x3xf32>
!p_one_channel = tensor<1xf32>
func.func @one_channel(%dy: !d_one_channel, %x: !d_one_channel, %g: !p_one_channel, %m: !p_one_channel, %v: !p_one_channel) -> (!d_one_channel, !p_one_channel, !p_one_channel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_one_channel) input(%x : !d_one_channel) scale(%g : !p_one_channel)
      mean(%m : !p_one_channel) variance(%v : !p_one_channel) {epsilon = 1.0e-3} : !d_one_channel, !p_one_channel, !p_one_channel
  return %0#0, %0#1, %0#2 : !d_one_channel, !p_one_channel, !p_one_channel
}

!d_one_row = tensor<3x5x1x19xf32>
!p_one_row = tensor<5xf32>
func.func @one_row(%dy: !d_one_row, %x: !d_one_row, %g: !p_one_row, %m: !p_one_row, %v: !p_one_row) -> (!d_one_row, !p_one_row, !p_one_row) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_one_row) input(%x : !d_one_row) scale(%g : !p_one_row)
      mean(%m : !p_one_row) variance(%v : !p_one_row) {epsilon = 1.0e-3} : !d_one_row, !p_one_row, !p_one_row
  return %0#0, %0#1, %0#2 : !d_one_row, !p_one_row, !p_one_row
}

!d_one_column = tensor<3x5x19x1xf32>
!p_one_column = tensor<5xf32>
func.func @one_column(%dy: !d_one_column, %x: !d_one_column, %g: !p_one_column, %m: !p_one_column, %v: !p_one_column) -> (!d_one_column, !p_one_column, !p_one_column) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_one_column) input(%x : !d_one_column) scale(%g : !p_one_column)
      mean(%m : !p_one_column) variance(%v : !p_one_column) {epsilon = 1.0e-3} : !d_one_column, !p_one_column, !p_one_column
  return %0#0, %0#1, %0#2 : !d_one_column, !p_one_column, !p_one_column
}

!d_all_ones = tensor<1x1x1x1xf32>
!p_all_ones = tensor<1xf32>
func.func @all_ones(%dy: !d_all_ones, %x: !d_all_ones, %g: !p_all_ones, %m: !p_all_ones, %v: !p_all_ones) -> (!d_all_ones, !p_all_ones, !p_all_ones) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_all_ones) input(%x : !d_all_ones) scale(%g : !p_all_ones)
      mean(%m : !p_all_ones) variance(%v : !p_all_ones) {epsilon = 1.0e-3} : !d_all_ones, !p_all_ones, !p_all_ones
  return %0#0, %0#1, %0#2 : !d_all_ones, !p_all_ones, !p_all_ones
}
