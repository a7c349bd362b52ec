// Schedules are for the clusters that the device runs at once, of which the runner asks it: here a part of a device that
// runs no clusters of 16 blocks. With --chip, the schedule is the one for a whole device of that chip.

// DEFINE: %{chip} =
// DEFINE: %{run} = env PTX_EMULATOR_PROCESSING_CLUSTERS=6 bngrad-runner %s --target=cuda-emulator %{chip} \
// DEFINE:   --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4:0.5:1.5 --check
// RUN: %{run} | FileCheck %s
// CHECK-COUNT-3: ok
// REDEFINE: %{chip} = --chip=sm_90
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: launch-bounds: kernel 'one_pass': expected a cluster that fits a processing cluster of 6 multiprocessors

func.func @gradient(%dy: tensor<25600x8xf32>, %x: tensor<25600x8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>)
    -> (tensor<25600x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<25600x8xf32>) input(%x : tensor<25600x8xf32>)
      mean(%m : tensor<8xf32>) variance(%v : tensor<8xf32>) : tensor<25600x8xf32>, tensor<8xf32>, tensor<8xf32>
  return %0#0, %0#1, %0#2 : tensor<25600x8xf32>, tensor<8xf32>, tensor<8xf32>
}
