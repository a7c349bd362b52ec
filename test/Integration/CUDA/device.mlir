// Runs on a GPU the code that other tests run on the emulator. scripts/gpu.sh checks all shapes and types on a GPU.

// REQUIRES: cuda
// DEFINE: %{run} = bngrad-runner %s --target=cuda --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4
// RUN: %{run} --entry=rows
// RUN: %{run} --entry=channels_last
// RUN: %{run} --entry=matrix
// RUN: %{run} --entry=rows --schedule='#bngrad.schedule<two_pass, sum_blocks = 64>'
// RUN: %{run} --entry=channels_last --schedule='#bngrad.schedule<two_pass, sum_blocks = 64>'
// RUN: bngrad-runner %s --target=cuda --check --entry=dynamic --arg=random:1@9x5x7 --arg=random:2@9x5x7 --arg=random:3@5 --arg=random:4@5

!rows = tensor<32x64x28x28xf32>
!last = tensor<32x14x14x256xbf16>
!matrix = tensor<1000x77xf64>
func.func @rows(%dy: !rows, %x: !rows, %mean: tensor<64xf32>, %variance: tensor<64xf32>) -> (!rows, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) mean(%mean : tensor<64xf32>) variance(%variance : tensor<64xf32>)
    : !rows, tensor<64xf32>, tensor<64xf32>
  return %0#0, %0#1, %0#2 : !rows, tensor<64xf32>, tensor<64xf32>
}

func.func @channels_last(%dy: !last, %x: !last, %mean: tensor<256xf32>, %variance: tensor<256xf32>) -> (!last, tensor<256xf32>, tensor<256xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !last) input(%x : !last) mean(%mean : tensor<256xf32>) variance(%variance : tensor<256xf32>)
    {feature_dims = array<i64: 3>} : !last, tensor<256xf32>, tensor<256xf32>
  return %0#0, %0#1, %0#2 : !last, tensor<256xf32>, tensor<256xf32>
}

func.func @matrix(%dy: !matrix, %x: !matrix, %mean: tensor<77xf64>, %variance: tensor<77xf64>) -> (!matrix, tensor<77xf64>, tensor<77xf64>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !matrix) input(%x : !matrix) mean(%mean : tensor<77xf64>) variance(%variance : tensor<77xf64>)
    : !matrix, tensor<77xf64>, tensor<77xf64>
  return %0#0, %0#1, %0#2 : !matrix, tensor<77xf64>, tensor<77xf64>
}

!any = tensor<?x?x?xf32>
func.func @dynamic(%dy: !any, %x: !any, %mean: tensor<?xf32>, %variance: tensor<?xf32>) -> (!any, tensor<?xf32>, tensor<?xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) mean(%mean : tensor<?xf32>) variance(%variance : tensor<?xf32>)
    : !any, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2 : !any, tensor<?xf32>, tensor<?xf32>
}
