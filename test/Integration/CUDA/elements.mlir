// Data of a group that are neither integers nor floats: indices and complex numbers. They are read one by one, and
// not by one_pass.

// DEFINE: %{run} = bngrad-runner %s --target=cuda-emulator --chip=sm_90 --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --check
// RUN: %{run} --entry=indices && %{run} --entry=complex_numbers
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=apply" | FileCheck %s

!d = tensor<64x32xf32>
!p = tensor<32xf32>
#data = affine_map<(d0, d1) -> (d0, d1)>
#swapped = affine_map<(d0, d1) -> (d1, d0)>
#parallel = {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
#transposed = {indexing_maps = [#swapped, #data], iterator_types = ["parallel", "parallel"]}

// CHECK-LABEL: func.func @indices(
// CHECK:         gpu.launch
// CHECK:         memref.load %{{.+}} : memref<64x32xindex
func.func @indices(%k: tensor<32x64xf32>, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %empty_indices = tensor.empty() : tensor<64x32xindex>
  %indices = linalg.generic #transposed ins(%k : tensor<32x64xf32>) outs(%empty_indices : tensor<64x32xindex>) {
  ^bb0(%e: f32, %out: index):
    %eight = arith.constant 8.0 : f32
    %scaled = arith.mulf %e, %eight : f32
    %integer = arith.fptosi %scaled : f32 to i64
    %index = arith.index_cast %integer : i64 to index
    linalg.yield %index : index
  } -> tensor<64x32xindex>
  %kept = bufferization.materialize_in_destination %indices in %empty_indices : (tensor<64x32xindex>, tensor<64x32xindex>) -> tensor<64x32xindex>
  %empty = tensor.empty() : !d
  %dy = linalg.generic #parallel ins(%kept : tensor<64x32xindex>) outs(%empty : !d) {
  ^bb0(%e: index, %out: f32):
    %integer = arith.index_cast %e : index to i64
    %real = arith.sitofp %integer : i64 to f32
    linalg.yield %real : f32
  } -> !d
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  return %dx, %dscale : !d, !p
}

// CHECK-LABEL: func.func @complex_numbers(
// CHECK:         gpu.launch
// CHECK:         memref.load %{{.+}} : memref<64x32xcomplex<f32>
func.func @complex_numbers(%k: tensor<32x64xf32>, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %empty_numbers = tensor.empty() : tensor<64x32xcomplex<f32>>
  %numbers = linalg.generic #transposed ins(%k : tensor<32x64xf32>) outs(%empty_numbers : tensor<64x32xcomplex<f32>>) {
  ^bb0(%e: f32, %out: complex<f32>):
    %number = complex.create %e, %e : complex<f32>
    linalg.yield %number : complex<f32>
  } -> tensor<64x32xcomplex<f32>>
  %kept = bufferization.materialize_in_destination %numbers in %empty_numbers : (tensor<64x32xcomplex<f32>>, tensor<64x32xcomplex<f32>>) -> tensor<64x32xcomplex<f32>>
  %empty = tensor.empty() : !d
  %dy = linalg.generic #parallel ins(%kept : tensor<64x32xcomplex<f32>>) outs(%empty : !d) {
  ^bb0(%e: complex<f32>, %out: f32):
    %real = complex.re %e : complex<f32>
    linalg.yield %real : f32
  } -> !d
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  return %dx, %dscale : !d, !p
}
