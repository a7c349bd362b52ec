// Training on parts of larger tensors and on transposed ones: the versions for strided data have loops with vectors, too. The
// first element of each channel is read from the data as they are, whatever order a version reads them in.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=apply --remark-policy=all --remark-format=emitRemark \
// RUN:   --remarks-filter-missed=bngrad-apply-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK --allow-empty
// REMARK-NOT: scalar loops
// DEFINE: %{run} = bngrad-runner %s --check --threads=2 --arg=random:1:5:6
// RUN: %{run} --entry=rows
// RUN: %{run} --entry=channels_last
// RUN: %{run} --entry=two_features
// RUN: %{run} --entry=transposed
// RUN: %{run} --entry=steps

func.func @rows(%big: tensor<6x7x40x60xf32>) -> (tensor<5x6x33x50xf32>, tensor<6xf32>, tensor<6xf32>) {
  %x = tensor.extract_slice %big[1, 1, 3, 5] [5, 6, 33, 50] [1, 1, 1, 1] : tensor<6x7x40x60xf32> to tensor<5x6x33x50xf32>
  %0:4 = bngrad.batch_norm_training input(%x : tensor<5x6x33x50xf32>) {epsilon = 1.0e-5 : f64}
    : tensor<5x6x33x50xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0, %0#1, %0#2 : tensor<5x6x33x50xf32>, tensor<6xf32>, tensor<6xf32>
}

func.func @channels_last(%big: tensor<60x30x20xbf16>) -> (tensor<50x25x17xbf16>, tensor<17xf32>, tensor<17xf32>) {
  %x = tensor.extract_slice %big[1, 1, 3] [50, 25, 17] [1, 1, 1] : tensor<60x30x20xbf16> to tensor<50x25x17xbf16>
  %0:4 = bngrad.batch_norm_training input(%x : tensor<50x25x17xbf16>) {feature_dims = array<i64: 2>, epsilon = 1.0e-5 : f64}
    : tensor<50x25x17xbf16>, tensor<17xf32>, tensor<17xf32>, tensor<17xf32>
  return %0#0, %0#1, %0#2 : tensor<50x25x17xbf16>, tensor<17xf32>, tensor<17xf32>
}

func.func @two_features(%x: tensor<6x5x8x7x4xf32>) -> (tensor<6x5x8x7x4xf32>, tensor<5x8xf32>, tensor<5x8xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<6x5x8x7x4xf32>) {feature_dims = array<i64: 1, 2>, epsilon = 1.0e-5 : f64}
    : tensor<6x5x8x7x4xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
  return %0#0, %0#1, %0#2 : tensor<6x5x8x7x4xf32>, tensor<5x8xf32>, tensor<5x8xf32>
}

func.func @transposed(%x: tensor<60x30x20xf32>) -> (tensor<60x20x30xf32>, tensor<20xf32>) {
  %empty = tensor.empty() : tensor<60x20x30xf32>
  %y = linalg.transpose ins(%x : tensor<60x30x20xf32>) outs(%empty : tensor<60x20x30xf32>) permutation = [0, 2, 1]
  %0:4 = bngrad.batch_norm_training input(%y : tensor<60x20x30xf32>) {epsilon = 1.0e-5 : f64}
    : tensor<60x20x30xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>
  return %0#0, %0#2 : tensor<60x20x30xf32>, tensor<20xf32>
}

func.func @steps(%big: tensor<60x30x40xf32>) -> (tensor<60x30x20xf32>, tensor<30xf32>) {
  %x = tensor.extract_slice %big[0, 0, 1] [60, 30, 20] [1, 1, 2] : tensor<60x30x40xf32> to tensor<60x30x20xf32>
  %0:4 = bngrad.batch_norm_training input(%x : tensor<60x30x20xf32>) {epsilon = 1.0e-5 : f64}
    : tensor<60x30x20xf32>, tensor<30xf32>, tensor<30xf32>, tensor<30xf32>
  return %0#0, %0#2 : tensor<60x30x20xf32>, tensor<30xf32>
}
