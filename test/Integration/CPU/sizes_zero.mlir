// A size of 0 in every position, static and dynamic. Without elements the sums are 0, there is no division by
// 0, and no buffer of size 0 is accessed; without channels all three results are empty.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5
// RUN: %{check} --entry=no_batch | FileCheck %s --check-prefix=NO-ELEMENTS
// RUN: %{check} --entry=no_rows | FileCheck %s --check-prefix=NO-ELEMENTS
// RUN: %{check} --entry=no_columns_nhwc | FileCheck %s --check-prefix=NO-ELEMENTS
// RUN: %{check} --entry=no_channels | FileCheck %s --check-prefix=EMPTY
// RUN: %{check} --entry=no_channels_nhwc | FileCheck %s --check-prefix=EMPTY
// RUN: %{check} --entry=nothing | FileCheck %s --check-prefix=EMPTY

// DEFINE: %{data} =
// DEFINE: %{channels} =
// DEFINE: %{dynamic} = bngrad-runner %s --entry=dynamic --check \
// DEFINE:   --arg=random:1@%{data} --arg=random:2@%{data} --arg=random:3@%{channels} --arg=random:4@%{channels} --arg=random:5@%{channels}
// REDEFINE: %{data} = 0x5x3x7
// REDEFINE: %{channels} = 5
// RUN: %{dynamic} | FileCheck %s --check-prefix=NO-ELEMENTS
// REDEFINE: %{data} = 4x5x0x7
// RUN: %{dynamic} | FileCheck %s --check-prefix=NO-ELEMENTS
// REDEFINE: %{data} = 4x5x3x0
// RUN: %{dynamic} | FileCheck %s --check-prefix=NO-ELEMENTS
// REDEFINE: %{data} = 4x0x3x7
// REDEFINE: %{channels} = 0
// RUN: %{dynamic} | FileCheck %s --check-prefix=EMPTY
// REDEFINE: %{data} = 0x0x0x0
// RUN: %{dynamic} | FileCheck %s --check-prefix=EMPTY

// The bound of an empty sum is the smallest subnormal, so both results are 0.
// NO-ELEMENTS: result 0 grad_input max_error 0 bound 0 ok
// NO-ELEMENTS-NEXT: result 1 grad_scale max_error 0 bound 1.4e-45 ok
// NO-ELEMENTS-NEXT: result 2 grad_offset max_error 0 bound 1.4e-45 ok

// EMPTY: result 0 grad_input max_error 0 bound 0 ok
// EMPTY-NEXT: result 1 grad_scale max_error 0 bound 0 ok
// EMPTY-NEXT: result 2 grad_offset max_error 0 bound 0 ok

!d_no_batch = tensor<0x5x3x7xf32>
!p_no_batch = tensor<5xf32>
func.func @no_batch(%dy: !d_no_batch, %x: !d_no_batch, %g: !p_no_batch, %m: !p_no_batch, %v: !p_no_batch) -> (!d_no_batch, !p_no_batch, !p_no_batch) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_no_batch) input(%x : !d_no_batch) scale(%g : !p_no_batch)
      mean(%m : !p_no_batch) variance(%v : !p_no_batch) {epsilon = 1.0e-3} : !d_no_batch, !p_no_batch, !p_no_batch
  return %0#0, %0#1, %0#2 : !d_no_batch, !p_no_batch, !p_no_batch
}

!d_no_rows = tensor<4x5x0x7xf32>
!p_no_rows = tensor<5xf32>
func.func @no_rows(%dy: !d_no_rows, %x: !d_no_rows, %g: !p_no_rows, %m: !p_no_rows, %v: !p_no_rows) -> (!d_no_rows, !p_no_rows, !p_no_rows) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_no_rows) input(%x : !d_no_rows) scale(%g : !p_no_rows)
      mean(%m : !p_no_rows) variance(%v : !p_no_rows) {epsilon = 1.0e-3} : !d_no_rows, !p_no_rows, !p_no_rows
  return %0#0, %0#1, %0#2 : !d_no_rows, !p_no_rows, !p_no_rows
}

!d_no_columns_nhwc = tensor<4x3x0x5xf32>
!p_no_columns_nhwc = tensor<5xf32>
func.func @no_columns_nhwc(%dy: !d_no_columns_nhwc, %x: !d_no_columns_nhwc, %g: !p_no_columns_nhwc, %m: !p_no_columns_nhwc, %v: !p_no_columns_nhwc) -> (!d_no_columns_nhwc, !p_no_columns_nhwc, !p_no_columns_nhwc) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_no_columns_nhwc) input(%x : !d_no_columns_nhwc) scale(%g : !p_no_columns_nhwc)
      mean(%m : !p_no_columns_nhwc) variance(%v : !p_no_columns_nhwc) {feature_dims = array<i64: 3>, epsilon = 1.0e-3} : !d_no_columns_nhwc, !p_no_columns_nhwc, !p_no_columns_nhwc
  return %0#0, %0#1, %0#2 : !d_no_columns_nhwc, !p_no_columns_nhwc, !p_no_columns_nhwc
}

!d_no_channels = tensor<4x0x3x7xf32>
!p_no_channels = tensor<0xf32>
func.func @no_channels(%dy: !d_no_channels, %x: !d_no_channels, %g: !p_no_channels, %m: !p_no_channels, %v: !p_no_channels) -> (!d_no_channels, !p_no_channels, !p_no_channels) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_no_channels) input(%x : !d_no_channels) scale(%g : !p_no_channels)
      mean(%m : !p_no_channels) variance(%v : !p_no_channels) {epsilon = 1.0e-3} : !d_no_channels, !p_no_channels, !p_no_channels
  return %0#0, %0#1, %0#2 : !d_no_channels, !p_no_channels, !p_no_channels
}

!d_no_channels_nhwc = tensor<4x3x7x0xf32>
!p_no_channels_nhwc = tensor<0xf32>
func.func @no_channels_nhwc(%dy: !d_no_channels_nhwc, %x: !d_no_channels_nhwc, %g: !p_no_channels_nhwc, %m: !p_no_channels_nhwc, %v: !p_no_channels_nhwc) -> (!d_no_channels_nhwc, !p_no_channels_nhwc, !p_no_channels_nhwc) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_no_channels_nhwc) input(%x : !d_no_channels_nhwc) scale(%g : !p_no_channels_nhwc)
      mean(%m : !p_no_channels_nhwc) variance(%v : !p_no_channels_nhwc) {feature_dims = array<i64: 3>, epsilon = 1.0e-3} : !d_no_channels_nhwc, !p_no_channels_nhwc, !p_no_channels_nhwc
  return %0#0, %0#1, %0#2 : !d_no_channels_nhwc, !p_no_channels_nhwc, !p_no_channels_nhwc
}

!d_nothing = tensor<0x0x0x0xf32>
!p_nothing = tensor<0xf32>
func.func @nothing(%dy: !d_nothing, %x: !d_nothing, %g: !p_nothing, %m: !p_nothing, %v: !p_nothing) -> (!d_nothing, !p_nothing, !p_nothing) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_nothing) input(%x : !d_nothing) scale(%g : !p_nothing)
      mean(%m : !p_nothing) variance(%v : !p_nothing) {epsilon = 1.0e-3} : !d_nothing, !p_nothing, !p_nothing
  return %0#0, %0#1, %0#2 : !d_nothing, !p_nothing, !p_nothing
}

!d_dynamic = tensor<?x?x?x?xf32>
!p_dynamic = tensor<?xf32>
func.func @dynamic(%dy: !d_dynamic, %x: !d_dynamic, %g: !p_dynamic, %m: !p_dynamic, %v: !p_dynamic) -> (!d_dynamic, !p_dynamic, !p_dynamic) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d_dynamic) input(%x : !d_dynamic) scale(%g : !p_dynamic)
      mean(%m : !p_dynamic) variance(%v : !p_dynamic) {epsilon = 1.0e-3} : !d_dynamic, !p_dynamic, !p_dynamic
  return %0#0, %0#1, %0#2 : !d_dynamic, !p_dynamic, !p_dynamic
}
