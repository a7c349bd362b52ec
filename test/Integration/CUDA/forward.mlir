// Training and inference as kernels, on the emulator, which reports races. The first element of each channel is read by a
// kernel, too: with arguments in device memory, no code of the host accesses them.

// DEFINE: %{run} = bngrad-runner %s --target=cuda-emulator --check
// DEFINE: %{inputs} = --arg=random:1:5:6 --arg=random:2 --arg=random:3
// RUN: %{run} --chip=sm_90 --entry=rows %{inputs}
// RUN: %{run} --chip=sm_80 --entry=rows %{inputs}
// RUN: %{run} --chip=sm_90 --entry=rows %{inputs} --schedule='#bngrad.schedule<two_pass, sum_blocks = 64, block_threads = 64>'
// RUN: %{run} --chip=sm_90 --entry=channels_last --arg=random:1:5:6
// RUN: %{run} --chip=sm_80 --entry=channels_last --arg=random:1:5:6
// RUN: %{run} --chip=sm_90 --entry=dynamic --arg=random:1:-6:-5@9x5x7
// RUN: %{run} --chip=sm_80 --entry=dynamic --arg=random:1:-6:-5@3x64x1
// RUN: %{run} --chip=sm_80 --entry=dynamic --arg=random:1@0x5x7
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 device-arguments=true" -o %t

!rows = tensor<32x16x14x14xf32>
!last = tensor<8x14x14x64xbf16>
func.func @rows(%x: !rows, %scale: tensor<16xf32>, %offset: tensor<16xf32>) -> (!rows, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : !rows) scale(%scale : tensor<16xf32>) offset(%offset : tensor<16xf32>) {epsilon = 1.0e-5 : f64}
    : !rows, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return %0#0, %0#1, %0#2, %0#3 : !rows, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

func.func @channels_last(%x: !last) -> (!last, tensor<64xf32>, tensor<64xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : !last) {feature_dims = array<i64: 3>, epsilon = 1.0e-5 : f64}
    : !last, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0, %0#1, %0#3 : !last, tensor<64xf32>, tensor<64xf32>
}

func.func @dynamic(%x: tensor<?x?x?xf64>) -> (tensor<?x?x?xf64>, tensor<?xf64>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<?x?x?xf64>) {epsilon = 1.0e-3 : f64}
    : tensor<?x?x?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
  return %0#0, %0#2 : tensor<?x?x?xf64>, tensor<?xf64>
}
