// Ops next to a gradient keep their order relative to its kernels: reads before overwrites, fills that a branch may
// skip, sums in another order of the channels, calls. Each is compared with scalar loops on the host.

// REQUIRES: numpy
// DEFINE: %{entry} = over_a_result
// DEFINE: %{args} = --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4:0.5:1.5
// DEFINE: %{run} = bngrad-runner %s --entry=%{entry} %{args}
// DEFINE: %{same} = rm -rf %t && mkdir %t && \
// DEFINE:   %{run} --schedule='#bngrad.schedule<loops>' --result=%t/a.npy --result=%t/b.npy && \
// DEFINE:   %{run} --result=%t/c.npy --result=%t/d.npy && \
// DEFINE:   %{run} --target=cuda-emulator --chip=sm_80 --result=%t/e.npy --result=%t/f.npy && \
// DEFINE:   %{run} --target=cuda-emulator --chip=sm_90 --result=%t/g.npy --result=%t/h.npy && \
// DEFINE:   %python %S/../CPU/compare.py %t/a.npy %t/c.npy %t/b.npy %t/d.npy %t/a.npy %t/e.npy %t/b.npy %t/f.npy \
// DEFINE:     %t/a.npy %t/g.npy %t/b.npy %t/h.npy

// RUN: %{same}
// REDEFINE: %{entry} = over_elements
// RUN: %{same}
// REDEFINE: %{entry} = called
// RUN: %{same}
// REDEFINE: %{entry} = read_beside
// RUN: %{same}
// REDEFINE: %{entry} = columns
// RUN: %{same}
// REDEFINE: %{entry} = nibbles
// RUN: %{same}
// REDEFINE: %{args} = --arg=random:1
// REDEFINE: %{entry} = swapped_sums
// RUN: %{same}
// REDEFINE: %{entry} = not_reached
// RUN: %{same}

// An op that overwrites a result is not a member: the gradient keeps its kernel.
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=apply" | FileCheck %s

!d = tensor<8x4x16xf32>
!p = tensor<4xf32>
#data = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#swapped = affine_map<(d0, d1, d2) -> (d2, d1)>
#channels = affine_map<(d0, d1, d2) -> (d1, d2)>
#id = affine_map<(d0) -> (d0)>
#pair = affine_map<(d0, d1) -> (d0, d1)>

// The update is written to grad_scale, whose old value is also returned.
// CHECK-LABEL: func.func @over_a_result(
// CHECK:         gpu.launch
// CHECK:         return
func.func @over_a_result(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!p, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %step = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%mean : !p) outs(%dscale : !p) {
  ^bb0(%a: f32, %old: f32):
    %new = arith.addf %a, %old : f32
    linalg.yield %new : f32
  } -> !p
  return %step, %dscale : !p, !p
}

// CHECK-LABEL: func.func @over_elements(
// CHECK:         gpu.launch
// CHECK:         return
func.func @over_elements(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !d) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, #data], iterator_types = ["parallel", "parallel", "parallel"]} ins(%dscale : !p) outs(%dx : !d) {
  ^bb0(%a: f32, %old: f32):
    %new = arith.addf %a, %old : f32
    linalg.yield %new : f32
  } -> !d
  return %sum, %dx : !d, !d
}

func.func private @twice(%a: !p) -> !p attributes {no_inline} {
  %0 = arith.addf %a, %a : !p
  return %0 : !p
}

// Only ops that need the call move after it.
func.func @called(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!p, tensor<1xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %c1 = arith.constant 1 : index
  %one = tensor.extract %dscale[%c1] : !p
  %called = func.call @twice(%mean) : (!p) -> !p
  %empty = tensor.empty() : !p
  %sum = linalg.add ins(%dscale, %called : !p, !p) outs(%empty : !p) -> !p
  %first = tensor.from_elements %one : tensor<1xf32>
  return %sum, %first : !p, tensor<1xf32>
}

// A per-channel op that reads elements by tensor.extract.
func.func @read_beside(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %empty = tensor.empty() : !p
  %sum = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%dscale : !p) outs(%empty : !p) {
  ^bb0(%a: f32, %out: f32):
    %c0 = arith.constant 0 : index
    %channel = linalg.index 0 : index
    %element = tensor.extract %dx[%c0, %channel, %c0] : !d
    %new = arith.addf %a, %element : f32
    linalg.yield %new : f32
  } -> !p
  return %dx, %sum : !d, !p
}

// The index of a lane.
func.func @columns(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %empty = tensor.empty() : !d
  %sum = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel", "parallel"]} ins(%dx : !d) outs(%empty : !d) {
  ^bb0(%a: f32, %out: f32):
    %column = linalg.index 2 : index
    %integer = arith.index_cast %column : index to i32
    %number = arith.sitofp %integer : i32 to f32
    %new = arith.addf %a, %number : f32
    linalg.yield %new : f32
  } -> !d
  return %sum, %dscale : !d, !p
}

// Integers narrower than a byte are left to the host.
func.func @nibbles(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %three = arith.constant dense<3> : tensor<8x4x16xi4>
  %empty = tensor.empty() : !d
  %sum = linalg.generic {indexing_maps = [#data, #data, #data], iterator_types = ["parallel", "parallel", "parallel"]} ins(%dx, %three : !d, tensor<8x4x16xi4>) outs(%empty : !d) {
  ^bb0(%a: f32, %i: i4, %out: f32):
    %column = linalg.index 2 : index
    %low = arith.index_cast %column : index to i4
    %integer = arith.addi %low, %i : i4
    %number = arith.sitofp %integer : i4 to f32
    %new = arith.addf %a, %number : f32
    linalg.yield %new : f32
  } -> !d
  return %sum, %dscale : !d, !p
}

// Sums with their channels in another order than the loops.
func.func @swapped_sums(%x: tensor<16x6x6xf32>) -> (tensor<6x6xf32>, tensor<16x6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x6xf32>) -> tensor<6x6xf32>
  %sums = linalg.generic {indexing_maps = [#data, #swapped], iterator_types = ["reduction", "parallel", "parallel"]} ins(%x : tensor<16x6x6xf32>) outs(%zeros : tensor<6x6xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %next = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %next : f32
  } -> tensor<6x6xf32>
  %empty2 = tensor.empty() : tensor<6x6xf32>
  %squares = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<6x6xf32>) outs(%empty2 : tensor<6x6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %square = arith.mulf %a, %a : f32
    linalg.yield %square : f32
  } -> tensor<6x6xf32>
  %empty3 = tensor.empty() : tensor<16x6x6xf32>
  %rest = linalg.generic {indexing_maps = [#data, #channels, #data], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %squares : tensor<16x6x6xf32>, tensor<6x6xf32>) outs(%empty3 : tensor<16x6x6xf32>) {
  ^bb0(%a: f32, %square: f32, %out: f32):
    %difference = arith.subf %a, %square : f32
    linalg.yield %difference : f32
  } -> tensor<16x6x6xf32>
  return %sums, %rest : tensor<6x6xf32>, tensor<16x6x6xf32>
}

// If the sums are skipped, the fill is the result: no element is above 9.
func.func @not_reached(%x: !d) -> (!p, !d) {
  %two = arith.constant 2.0 : f32
  %nine = arith.constant 9.0 : f32
  %c0 = arith.constant 0 : index
  %element = tensor.extract %x[%c0, %c0, %c0] : !d
  %is_above = arith.cmpf ogt, %element, %nine : f32
  %empty = tensor.empty() : !p
  %twos = linalg.fill ins(%two : f32) outs(%empty : !p) -> !p
  %r = scf.if %is_above -> !p {
    %sums = linalg.generic {indexing_maps = [#data, affine_map<(d0, d1, d2) -> (d1)>], iterator_types = ["reduction", "parallel", "reduction"]} ins(%x : !d) outs(%twos : !p) {
    ^bb0(%a: f32, %sum: f32):
      %next = arith.addf %sum, %a fastmath<reassoc> : f32
      linalg.yield %next : f32
    } -> !p
    scf.yield %sums : !p
  } else {
    scf.yield %twos : !p
  }
  return %r, %x : !p, !d
}
