// Several feature dims. Two features in the wrong order pair data with another channel's parameters: a
// size error if sizes are distinct, wrong numbers if they are equal.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5
// RUN: %{check} --entry=adjacent | FileCheck %s
// RUN: %{check} --entry=apart | FileCheck %s
// RUN: %{check} --entry=apart_of_equal_size | FileCheck %s
// RUN: %{check} --entry=outermost_and_innermost | FileCheck %s
// RUN: %{check} --entry=reduced_and_feature_of_equal_size | FileCheck %s
// RUN: %{check} --entry=all_but_the_last | FileCheck %s
// RUN: %{check} --entry=per_activation | FileCheck %s
// RUN: %{check} --entry=all_dims | FileCheck %s

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

!d_adjacent = tensor<2x4x3x7xf32>
!p_adjacent = tensor<4x3xf32>
func.func @adjacent(%dy: !d_adjacent, %x: !d_adjacent, %g: !p_adjacent, %m: !p_adjacent, %v: !p_adjacent) -> (!d_adjacent, !p_adjacent, !p_adjacent) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_adjacent) input(%x : !d_adjacent) scale(%g : !p_adjacent)
      mean(%m : !p_adjacent) variance(%v : !p_adjacent) {feature_dims = array<i64: 1, 2>, epsilon = 1.0e-3} : !d_adjacent, !p_adjacent, !p_adjacent
  return %0#0, %0#1, %0#2 : !d_adjacent, !p_adjacent, !p_adjacent
}

!d_apart = tensor<2x5x3x4x7xf32>
!p_apart = tensor<5x4xf32>
func.func @apart(%dy: !d_apart, %x: !d_apart, %g: !p_apart, %m: !p_apart, %v: !p_apart) -> (!d_apart, !p_apart, !p_apart) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_apart) input(%x : !d_apart) scale(%g : !p_apart)
      mean(%m : !p_apart) variance(%v : !p_apart) {feature_dims = array<i64: 1, 3>, epsilon = 1.0e-3} : !d_apart, !p_apart, !p_apart
  return %0#0, %0#1, %0#2 : !d_apart, !p_apart, !p_apart
}

!d_apart_of_equal_size = tensor<3x4x3x4xf32>
!p_apart_of_equal_size = tensor<4x4xf32>
func.func @apart_of_equal_size(%dy: !d_apart_of_equal_size, %x: !d_apart_of_equal_size, %g: !p_apart_of_equal_size, %m: !p_apart_of_equal_size, %v: !p_apart_of_equal_size) -> (!d_apart_of_equal_size, !p_apart_of_equal_size, !p_apart_of_equal_size) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_apart_of_equal_size) input(%x : !d_apart_of_equal_size) scale(%g : !p_apart_of_equal_size)
      mean(%m : !p_apart_of_equal_size) variance(%v : !p_apart_of_equal_size) {feature_dims = array<i64: 1, 3>, epsilon = 1.0e-3} : !d_apart_of_equal_size, !p_apart_of_equal_size, !p_apart_of_equal_size
  return %0#0, %0#1, %0#2 : !d_apart_of_equal_size, !p_apart_of_equal_size, !p_apart_of_equal_size
}

!d_outermost_and_innermost = tensor<3x4x2x5xf32>
!p_outermost_and_innermost = tensor<3x5xf32>
func.func @outermost_and_innermost(%dy: !d_outermost_and_innermost, %x: !d_outermost_and_innermost, %g: !p_outermost_and_innermost, %m: !p_outermost_and_innermost, %v: !p_outermost_and_innermost) -> (!d_outermost_and_innermost, !p_outermost_and_innermost, !p_outermost_and_innermost) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_outermost_and_innermost) input(%x : !d_outermost_and_innermost) scale(%g : !p_outermost_and_innermost)
      mean(%m : !p_outermost_and_innermost) variance(%v : !p_outermost_and_innermost) {feature_dims = array<i64: 0, 3>, epsilon = 1.0e-3} : !d_outermost_and_innermost, !p_outermost_and_innermost, !p_outermost_and_innermost
  return %0#0, %0#1, %0#2 : !d_outermost_and_innermost, !p_outermost_and_innermost, !p_outermost_and_innermost
}

!d_reduced_and_feature_of_equal_size = tensor<3x3x3x3xf32>
!p_reduced_and_feature_of_equal_size = tensor<3x3xf32>
func.func @reduced_and_feature_of_equal_size(%dy: !d_reduced_and_feature_of_equal_size, %x: !d_reduced_and_feature_of_equal_size, %g: !p_reduced_and_feature_of_equal_size, %m: !p_reduced_and_feature_of_equal_size, %v: !p_reduced_and_feature_of_equal_size) -> (!d_reduced_and_feature_of_equal_size, !p_reduced_and_feature_of_equal_size, !p_reduced_and_feature_of_equal_size) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_reduced_and_feature_of_equal_size) input(%x : !d_reduced_and_feature_of_equal_size) scale(%g : !p_reduced_and_feature_of_equal_size)
      mean(%m : !p_reduced_and_feature_of_equal_size) variance(%v : !p_reduced_and_feature_of_equal_size) {feature_dims = array<i64: 0, 2>, epsilon = 1.0e-3} : !d_reduced_and_feature_of_equal_size, !p_reduced_and_feature_of_equal_size, !p_reduced_and_feature_of_equal_size
  return %0#0, %0#1, %0#2 : !d_reduced_and_feature_of_equal_size, !p_reduced_and_feature_of_equal_size, !p_reduced_and_feature_of_equal_size
}

!d_all_but_the_last = tensor<3x4x2x5xf32>
!p_all_but_the_last = tensor<3x4x2xf32>
func.func @all_but_the_last(%dy: !d_all_but_the_last, %x: !d_all_but_the_last, %g: !p_all_but_the_last, %m: !p_all_but_the_last, %v: !p_all_but_the_last) -> (!d_all_but_the_last, !p_all_but_the_last, !p_all_but_the_last) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_all_but_the_last) input(%x : !d_all_but_the_last) scale(%g : !p_all_but_the_last)
      mean(%m : !p_all_but_the_last) variance(%v : !p_all_but_the_last) {feature_dims = array<i64: 0, 1, 2>, epsilon = 1.0e-3} : !d_all_but_the_last, !p_all_but_the_last, !p_all_but_the_last
  return %0#0, %0#1, %0#2 : !d_all_but_the_last, !p_all_but_the_last, !p_all_but_the_last
}

!d_per_activation = tensor<6x3x4x5xf32>
!p_per_activation = tensor<3x4x5xf32>
func.func @per_activation(%dy: !d_per_activation, %x: !d_per_activation, %g: !p_per_activation, %m: !p_per_activation, %v: !p_per_activation) -> (!d_per_activation, !p_per_activation, !p_per_activation) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_per_activation) input(%x : !d_per_activation) scale(%g : !p_per_activation)
      mean(%m : !p_per_activation) variance(%v : !p_per_activation) {feature_dims = array<i64: 1, 2, 3>, epsilon = 1.0e-3} : !d_per_activation, !p_per_activation, !p_per_activation
  return %0#0, %0#1, %0#2 : !d_per_activation, !p_per_activation, !p_per_activation
}

!d_all_dims = tensor<3x4x5xf32>
!p_all_dims = tensor<3x4x5xf32>
func.func @all_dims(%dy: !d_all_dims, %x: !d_all_dims, %g: !p_all_dims, %m: !p_all_dims, %v: !p_all_dims) -> (!d_all_dims, !p_all_dims, !p_all_dims) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_all_dims) input(%x : !d_all_dims) scale(%g : !p_all_dims)
      mean(%m : !p_all_dims) variance(%v : !p_all_dims) {feature_dims = array<i64: 0, 1, 2>, epsilon = 1.0e-3} : !d_all_dims, !p_all_dims, !p_all_dims
  return %0#0, %0#1, %0#2 : !d_all_dims, !p_all_dims, !p_all_dims
}
