// Dynamic sizes: all of them, one at a time, and static in one operand only. A loop bound, a stride or the
// count from the wrong dim or operand gives wrong numbers.

// DEFINE: %{data} =
// DEFINE: %{channels} =
// DEFINE: %{entry} =
// DEFINE: %{check} = bngrad-runner %s --check --entry=%{entry} --arg=random:1@%{data} --arg=random:2@%{data} \
// DEFINE:   --arg=random:3@%{channels} --arg=random:4@%{channels} --arg=random:5@%{channels} | FileCheck %s

// REDEFINE: %{entry} = all
// REDEFINE: %{data} = 3x5x4x7
// REDEFINE: %{channels} = 5
// RUN: %{check}
// REDEFINE: %{entry} = batch
// RUN: %{check}
// REDEFINE: %{entry} = channel
// RUN: %{check}
// REDEFINE: %{entry} = spatial
// RUN: %{check}
// REDEFINE: %{entry} = grad_output_known
// RUN: %{check}
// REDEFINE: %{entry} = mean_known
// RUN: %{check}
// REDEFINE: %{entry} = results_known
// RUN: %{check}
// REDEFINE: %{entry} = nothing_known_of_results
// RUN: %{check}
// REDEFINE: %{entry} = nhwc
// REDEFINE: %{channels} = 7
// RUN: %{check}
// REDEFINE: %{entry} = two_features
// REDEFINE: %{channels} = 5x7
// RUN: %{check}

// Unit and odd sizes through one compiled function.
// REDEFINE: %{entry} = all
// REDEFINE: %{data} = 1x31x1x1
// REDEFINE: %{channels} = 31
// RUN: %{check}
// REDEFINE: %{data} = 17x1x13x33
// REDEFINE: %{channels} = 1
// RUN: %{check}

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

!any = tensor<?x?x?x?xf32>
!data = tensor<3x5x4x7xf32>
!anychannel = tensor<?xf32>
!channel = tensor<5xf32>

func.func @all(%dy: !any, %x: !any, %g: !anychannel, %m: !anychannel, %v: !anychannel) -> (!any, !anychannel, !anychannel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) scale(%g : !anychannel)
      mean(%m : !anychannel) variance(%v : !anychannel) {epsilon = 1.0e-3} : !any, !anychannel, !anychannel
  return %0#0, %0#1, %0#2 : !any, !anychannel, !anychannel
}

!anybatch = tensor<?x5x4x7xf32>
func.func @batch(%dy: !anybatch, %x: !anybatch, %g: !channel, %m: !channel, %v: !channel) -> (!anybatch, !channel, !channel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !anybatch) input(%x : !anybatch) scale(%g : !channel)
      mean(%m : !channel) variance(%v : !channel) : !anybatch, !channel, !channel
  return %0#0, %0#1, %0#2 : !anybatch, !channel, !channel
}

!anychannels = tensor<3x?x4x7xf32>
func.func @channel(%dy: !anychannels, %x: !anychannels, %g: !anychannel, %m: !anychannel, %v: !anychannel) -> (!anychannels, !anychannel, !anychannel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !anychannels) input(%x : !anychannels) scale(%g : !anychannel)
      mean(%m : !anychannel) variance(%v : !anychannel) : !anychannels, !anychannel, !anychannel
  return %0#0, %0#1, %0#2 : !anychannels, !anychannel, !anychannel
}

!anyrow = tensor<3x5x?x?xf32>
func.func @spatial(%dy: !anyrow, %x: !anyrow, %g: !channel, %m: !channel, %v: !channel) -> (!anyrow, !channel, !channel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !anyrow) input(%x : !anyrow) scale(%g : !channel)
      mean(%m : !channel) variance(%v : !channel) : !anyrow, !channel, !channel
  return %0#0, %0#1, %0#2 : !anyrow, !channel, !channel
}

func.func @grad_output_known(%dy: !data, %x: !any, %g: !anychannel, %m: !anychannel, %v: !anychannel) -> (!any, !anychannel, !anychannel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !data) input(%x : !any) scale(%g : !anychannel)
      mean(%m : !anychannel) variance(%v : !anychannel) : !any, !anychannel, !anychannel
  return %0#0, %0#1, %0#2 : !any, !anychannel, !anychannel
}

func.func @mean_known(%dy: !any, %x: !any, %g: !anychannel, %m: !channel, %v: !anychannel) -> (!any, !anychannel, !anychannel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) scale(%g : !anychannel)
      mean(%m : !channel) variance(%v : !anychannel) : !any, !anychannel, !anychannel
  return %0#0, %0#1, %0#2 : !any, !anychannel, !anychannel
}

func.func @results_known(%dy: !any, %x: !any, %g: !anychannel, %m: !anychannel, %v: !anychannel) -> (!data, !channel, !channel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) scale(%g : !anychannel)
      mean(%m : !anychannel) variance(%v : !anychannel) : !data, !channel, !channel
  return %0#0, %0#1, %0#2 : !data, !channel, !channel
}

func.func @nothing_known_of_results(%dy: !data, %x: !data, %g: !channel, %m: !channel, %v: !channel) -> (!any, !anychannel, !anychannel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !data) input(%x : !data) scale(%g : !channel)
      mean(%m : !channel) variance(%v : !channel) : !any, !anychannel, !anychannel
  return %0#0, %0#1, %0#2 : !any, !anychannel, !anychannel
}

func.func @nhwc(%dy: !any, %x: !any, %g: !anychannel, %m: !anychannel, %v: !anychannel) -> (!any, !anychannel, !anychannel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) scale(%g : !anychannel)
      mean(%m : !anychannel) variance(%v : !anychannel) {feature_dims = array<i64: 3>} : !any, !anychannel, !anychannel
  return %0#0, %0#1, %0#2 : !any, !anychannel, !anychannel
}

!anychannel2 = tensor<?x?xf32>
func.func @two_features(%dy: !any, %x: !any, %g: !anychannel2, %m: !anychannel2, %v: !anychannel2) -> (!any, !anychannel2, !anychannel2) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) scale(%g : !anychannel2)
      mean(%m : !anychannel2) variance(%v : !anychannel2) {feature_dims = array<i64: 1, 3>} : !any, !anychannel2, !anychannel2
  return %0#0, %0#1, %0#2 : !any, !anychannel2, !anychannel2
}
