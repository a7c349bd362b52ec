// Sizes that disagree at run time give one error that names the operand and both sizes; nothing runs. Without
// the check, generated code reads and writes out of bounds.

// DEFINE: %{fails} = %python %S/../../Inputs/expect_error.py
// DEFINE: %{dynamic} = bngrad-runner %s --entry=dynamic --arg=random:1@3x4x5

// RUN: bngrad-runner %s --entry=dynamic --check --arg=random:1@3x4x5 --arg=random:2@3x4x5 --arg=random:3@4 \
// RUN:   --arg=random:4@4 --arg=random:5@4 --arg=random:6@3x4x5 | FileCheck %s
// CHECK: result 0 grad_input {{.*}} ok

// RUN: %{fails} "%s:...: expected size 0 of grad_output to be size 0 of input, 2, got 3" \
// RUN:   %{dynamic} --arg=random:2@2x4x5 --arg=random:3@4 --arg=random:4@4 --arg=random:5@4 --arg=random:6@2x4x5
// RUN: %{fails} "%s:...: expected size 2 of grad_output to be size 2 of input, 6, got 5" \
// RUN:   %{dynamic} --arg=random:2@3x4x6 --arg=random:3@4 --arg=random:4@4 --arg=random:5@4 --arg=random:6@3x4x6
// RUN: %{fails} "%s:...: expected size 2 of mask to be size 2 of input, 5, got 1" \
// RUN:   %{dynamic} --arg=random:2@3x4x5 --arg=random:3@4 --arg=random:4@4 --arg=random:5@4 --arg=random:6@3x4x1
// RUN: %{fails} "%s:...: expected size 0 of scale to be size 1 of input, 4, got 1" \
// RUN:   %{dynamic} --arg=random:2@3x4x5 --arg=random:3@1 --arg=random:4@4 --arg=random:5@4 --arg=random:6@3x4x5
// RUN: %{fails} "%s:...: expected size 0 of mean to be size 1 of input, 4, got 3" \
// RUN:   %{dynamic} --arg=random:2@3x4x5 --arg=random:3@4 --arg=random:4@3 --arg=random:5@4 --arg=random:6@3x4x5
// RUN: %{fails} "%s:...: expected size 0 of variance to be size 1 of input, 4, got 0" \
// RUN:   %{dynamic} --arg=random:2@3x4x5 --arg=random:3@4 --arg=random:4@4 --arg=random:5@0 --arg=random:6@3x4x5

!any = tensor<?x?x?xf32>
!channel = tensor<?xf32>

func.func @dynamic(%dy: !any, %x: !any, %g: !channel, %m: !channel, %v: !channel, %k: tensor<?x?x?xi1>) -> !any {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) scale(%g : !channel)
      mean(%m : !channel) variance(%v : !channel) mask(%k : tensor<?x?x?xi1>) : !any, !channel, !channel
  return %0#0 : !any
}

// A static size is compared with a dynamic one.
// RUN: %{fails} "%s:...: expected size 1 of inv_std to be size 2 of input, 6, got 5" bngrad-runner %s --entry=static \
// RUN:   --arg=random:1@3x4x6 --arg=random:2@3x4x6 --arg=random:3@4x6 --arg=random:4
// RUN: %{fails} "%s:...: expected size 0 of grad_output to be size 0 of input, 0, got 3" bngrad-runner %s --entry=static \
// RUN:   --arg=random:1@3x4x5 --arg=random:2@0x4x5 --arg=random:3@4x5 --arg=random:4

!data = tensor<3x?x?xf32>
!channels = tensor<4x5xf32>
!anychannels = tensor<?x?xf32>
func.func @static(%dy: !data, %x: !any, %m: !anychannels, %r: !channels) -> !channels {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !data) input(%x : !any) mean(%m : !anychannels)
      inv_std(%r : !channels) {feature_dims = array<i64: 1, 2>} : !any, !channels, !channels
  return %0#1 : !channels
}

// So is a size that is static only in the type of a result, even if the result is unused.
// RUN: %{fails} "%s:...: expected size 0 of grad_input to be size 0 of input, 4, got 3" bngrad-runner %s --entry=results \
// RUN:   --arg=random:1@4x5 --arg=random:2@4x5 --arg=random:3@5 --arg=random:4@5
// RUN: %{fails} "%s:...: expected size 0 of grad_scale to be size 1 of input, 6, got 5" bngrad-runner %s --entry=results \
// RUN:   --arg=random:1@3x6 --arg=random:2@3x6 --arg=random:3@6 --arg=random:4@6

!rows = tensor<?x?xf32>
func.func @results(%dy: !rows, %x: !rows, %m: !channel, %r: !channel) -> (tensor<3x?xf32>, tensor<5xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) mean(%m : !channel)
      inv_std(%r : !channel) : tensor<3x?xf32>, tensor<5xf32>, !channel
  return %0#0, %0#1 : tensor<3x?xf32>, tensor<5xf32>
}
