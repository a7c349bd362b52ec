// Every rank from 1 to 5 with one feature dim, in every position. If a feature dim is reduced, or a
// reduced dim is not, data are paired with another channel's parameters.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5
// RUN: %{check} --entry=rank_1 | FileCheck %s
// RUN: %{check} --entry=rank_2 | FileCheck %s
// RUN: %{check} --entry=rank_2_feature_first | FileCheck %s
// RUN: %{check} --entry=rank_3_ncl | FileCheck %s
// RUN: %{check} --entry=rank_3_nlc | FileCheck %s
// RUN: %{check} --entry=nchw | FileCheck %s
// RUN: %{check} --entry=nhwc | FileCheck %s
// RUN: %{check} --entry=feature_first | FileCheck %s
// RUN: %{check} --entry=feature_in_the_middle | FileCheck %s
// RUN: %{check} --entry=ncdhw | FileCheck %s
// RUN: %{check} --entry=ndhwc | FileCheck %s

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

!d_rank_1 = tensor<7xf32>
!p_rank_1 = tensor<7xf32>
func.func @rank_1(%dy: !d_rank_1, %x: !d_rank_1, %g: !p_rank_1, %m: !p_rank_1, %v: !p_rank_1) -> (!d_rank_1, !p_rank_1, !p_rank_1) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_rank_1) input(%x : !d_rank_1) scale(%g : !p_rank_1)
      mean(%m : !p_rank_1) variance(%v : !p_rank_1) {feature_dims = array<i64: 0>, epsilon = 1.0e-3} : !d_rank_1, !p_rank_1, !p_rank_1
  return %0#0, %0#1, %0#2 : !d_rank_1, !p_rank_1, !p_rank_1
}

!d_rank_2 = tensor<13x5xf32>
!p_rank_2 = tensor<5xf32>
func.func @rank_2(%dy: !d_rank_2, %x: !d_rank_2, %g: !p_rank_2, %m: !p_rank_2, %v: !p_rank_2) -> (!d_rank_2, !p_rank_2, !p_rank_2) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_rank_2) input(%x : !d_rank_2) scale(%g : !p_rank_2)
      mean(%m : !p_rank_2) variance(%v : !p_rank_2) {epsilon = 1.0e-3} : !d_rank_2, !p_rank_2, !p_rank_2
  return %0#0, %0#1, %0#2 : !d_rank_2, !p_rank_2, !p_rank_2
}

!d_rank_2_feature_first = tensor<5x13xf32>
!p_rank_2_feature_first = tensor<5xf32>
func.func @rank_2_feature_first(%dy: !d_rank_2_feature_first, %x: !d_rank_2_feature_first, %g: !p_rank_2_feature_first, %m: !p_rank_2_feature_first, %v: !p_rank_2_feature_first) -> (!d_rank_2_feature_first, !p_rank_2_feature_first, !p_rank_2_feature_first) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_rank_2_feature_first) input(%x : !d_rank_2_feature_first) scale(%g : !p_rank_2_feature_first)
      mean(%m : !p_rank_2_feature_first) variance(%v : !p_rank_2_feature_first) {feature_dims = array<i64: 0>, epsilon = 1.0e-3} : !d_rank_2_feature_first, !p_rank_2_feature_first, !p_rank_2_feature_first
  return %0#0, %0#1, %0#2 : !d_rank_2_feature_first, !p_rank_2_feature_first, !p_rank_2_feature_first
}

!d_rank_3_ncl = tensor<4x5x9xf32>
!p_rank_3_ncl = tensor<5xf32>
func.func @rank_3_ncl(%dy: !d_rank_3_ncl, %x: !d_rank_3_ncl, %g: !p_rank_3_ncl, %m: !p_rank_3_ncl, %v: !p_rank_3_ncl) -> (!d_rank_3_ncl, !p_rank_3_ncl, !p_rank_3_ncl) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_rank_3_ncl) input(%x : !d_rank_3_ncl) scale(%g : !p_rank_3_ncl)
      mean(%m : !p_rank_3_ncl) variance(%v : !p_rank_3_ncl) {epsilon = 1.0e-3} : !d_rank_3_ncl, !p_rank_3_ncl, !p_rank_3_ncl
  return %0#0, %0#1, %0#2 : !d_rank_3_ncl, !p_rank_3_ncl, !p_rank_3_ncl
}

!d_rank_3_nlc = tensor<4x9x5xf32>
!p_rank_3_nlc = tensor<5xf32>
func.func @rank_3_nlc(%dy: !d_rank_3_nlc, %x: !d_rank_3_nlc, %g: !p_rank_3_nlc, %m: !p_rank_3_nlc, %v: !p_rank_3_nlc) -> (!d_rank_3_nlc, !p_rank_3_nlc, !p_rank_3_nlc) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_rank_3_nlc) input(%x : !d_rank_3_nlc) scale(%g : !p_rank_3_nlc)
      mean(%m : !p_rank_3_nlc) variance(%v : !p_rank_3_nlc) {feature_dims = array<i64: 2>, epsilon = 1.0e-3} : !d_rank_3_nlc, !p_rank_3_nlc, !p_rank_3_nlc
  return %0#0, %0#1, %0#2 : !d_rank_3_nlc, !p_rank_3_nlc, !p_rank_3_nlc
}

!d_nchw = tensor<4x5x3x7xf32>
!p_nchw = tensor<5xf32>
func.func @nchw(%dy: !d_nchw, %x: !d_nchw, %g: !p_nchw, %m: !p_nchw, %v: !p_nchw) -> (!d_nchw, !p_nchw, !p_nchw) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_nchw) input(%x : !d_nchw) scale(%g : !p_nchw)
      mean(%m : !p_nchw) variance(%v : !p_nchw) {epsilon = 1.0e-3} : !d_nchw, !p_nchw, !p_nchw
  return %0#0, %0#1, %0#2 : !d_nchw, !p_nchw, !p_nchw
}

!d_nhwc = tensor<4x3x7x5xf32>
!p_nhwc = tensor<5xf32>
func.func @nhwc(%dy: !d_nhwc, %x: !d_nhwc, %g: !p_nhwc, %m: !p_nhwc, %v: !p_nhwc) -> (!d_nhwc, !p_nhwc, !p_nhwc) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_nhwc) input(%x : !d_nhwc) scale(%g : !p_nhwc)
      mean(%m : !p_nhwc) variance(%v : !p_nhwc) {feature_dims = array<i64: 3>, epsilon = 1.0e-3} : !d_nhwc, !p_nhwc, !p_nhwc
  return %0#0, %0#1, %0#2 : !d_nhwc, !p_nhwc, !p_nhwc
}

!d_feature_first = tensor<5x4x3x7xf32>
!p_feature_first = tensor<5xf32>
func.func @feature_first(%dy: !d_feature_first, %x: !d_feature_first, %g: !p_feature_first, %m: !p_feature_first, %v: !p_feature_first) -> (!d_feature_first, !p_feature_first, !p_feature_first) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_feature_first) input(%x : !d_feature_first) scale(%g : !p_feature_first)
      mean(%m : !p_feature_first) variance(%v : !p_feature_first) {feature_dims = array<i64: 0>, epsilon = 1.0e-3} : !d_feature_first, !p_feature_first, !p_feature_first
  return %0#0, %0#1, %0#2 : !d_feature_first, !p_feature_first, !p_feature_first
}

!d_feature_in_the_middle = tensor<4x3x5x7xf32>
!p_feature_in_the_middle = tensor<5xf32>
func.func @feature_in_the_middle(%dy: !d_feature_in_the_middle, %x: !d_feature_in_the_middle, %g: !p_feature_in_the_middle, %m: !p_feature_in_the_middle, %v: !p_feature_in_the_middle) -> (!d_feature_in_the_middle, !p_feature_in_the_middle, !p_feature_in_the_middle) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_feature_in_the_middle) input(%x : !d_feature_in_the_middle) scale(%g : !p_feature_in_the_middle)
      mean(%m : !p_feature_in_the_middle) variance(%v : !p_feature_in_the_middle) {feature_dims = array<i64: 2>, epsilon = 1.0e-3} : !d_feature_in_the_middle, !p_feature_in_the_middle, !p_feature_in_the_middle
  return %0#0, %0#1, %0#2 : !d_feature_in_the_middle, !p_feature_in_the_middle, !p_feature_in_the_middle
}

!d_ncdhw = tensor<2x5x3x4x7xf32>
!p_ncdhw = tensor<5xf32>
func.func @ncdhw(%dy: !d_ncdhw, %x: !d_ncdhw, %g: !p_ncdhw, %m: !p_ncdhw, %v: !p_ncdhw) -> (!d_ncdhw, !p_ncdhw, !p_ncdhw) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_ncdhw) input(%x : !d_ncdhw) scale(%g : !p_ncdhw)
      mean(%m : !p_ncdhw) variance(%v : !p_ncdhw) {epsilon = 1.0e-3} : !d_ncdhw, !p_ncdhw, !p_ncdhw
  return %0#0, %0#1, %0#2 : !d_ncdhw, !p_ncdhw, !p_ncdhw
}

!d_ndhwc = tensor<2x3x4x7x5xf32>
!p_ndhwc = tensor<5xf32>
func.func @ndhwc(%dy: !d_ndhwc, %x: !d_ndhwc, %g: !p_ndhwc, %m: !p_ndhwc, %v: !p_ndhwc) -> (!d_ndhwc, !p_ndhwc, !p_ndhwc) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_ndhwc) input(%x : !d_ndhwc) scale(%g : !p_ndhwc)
      mean(%m : !p_ndhwc) variance(%v : !p_ndhwc) {feature_dims = array<i64: 4>, epsilon = 1.0e-3} : !d_ndhwc, !p_ndhwc, !p_ndhwc
  return %0#0, %0#1, %0#2 : !d_ndhwc, !p_ndhwc, !p_ndhwc
}
