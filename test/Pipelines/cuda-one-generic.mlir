// With constant statistics, inv_std and no scale, a gradient is one generic
// without per-channel computations. It is still a kernel, and the host still
// waits for it although nothing is allocated.

// RUN: bngrad-opt --bngrad-cuda-pipeline="device-arguments=true" %s | FileCheck %s
// RUN: bngrad-runner %s --target=cuda-emulator --arg=random:1 --arg=random:2 \
// RUN:   --arg=random:3 --arg=random:4 --check | FileCheck --check-prefix=OK %s

// CHECK-LABEL: llvm.func @gradient
// CHECK:         %[[STREAM:.*]] = llvm.call @mgpuStreamCreate()
// CHECK:         gpu.launch_func <%[[STREAM]] : !llvm.ptr> @gradient_group_0::@apply
// CHECK:         llvm.call @mgpuStreamSynchronize(%[[STREAM]])
// OK: result 0 grad_input {{.*}} ok
func.func @gradient(%dy: tensor<8x4x6x8xf32>, %x: tensor<8x4x6x8xf32>,
                    %m: tensor<4xf32>, %s: tensor<4xf32>)
    -> tensor<8x4x6x8xf32> {
  %grad_input, %grad_scale, %grad_offset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<8x4x6x8xf32>) input(%x : tensor<8x4x6x8xf32>)
      mean(%m : tensor<4xf32>) inv_std(%s : tensor<4xf32>)
      {statistics = #bngrad.statistics<global>}
      : tensor<8x4x6x8xf32>, tensor<4xf32>, tensor<4xf32>
  return %grad_input : tensor<8x4x6x8xf32>
}
