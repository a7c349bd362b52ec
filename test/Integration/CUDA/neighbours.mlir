// Reads of other elements than the written one: a block keeps only its own elements on chip, and blocks are not
// synchronized.

// DEFINE: %{chip} = sm_80
// DEFINE: %{run} = bngrad-runner %s --target=cuda-emulator --chip=%{chip} --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --check
// RUN: %{run} --entry=transposed && %{run} --entry=first_column && %{run} --entry=symmetric && %{run} --entry=parameters && %{run} --entry=gathered
// REDEFINE: %{chip} = sm_90
// RUN: %{run} --entry=transposed && %{run} --entry=first_column && %{run} --entry=symmetric && %{run} --entry=parameters && %{run} --entry=gathered
// RUN: %{run} --arg=random:5 --entry=expanded_sums

// The update of the parameters belongs to the group: no loops on the host.
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=group" | FileCheck %s --check-prefix=GROUP
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="stop-after=group" | FileCheck %s --check-prefix=CPU

!d = tensor<64x64xf32>
!p = tensor<64xf32>
#data = affine_map<(d0, d1) -> (d0, d1)>
#swapped = affine_map<(d0, d1) -> (d1, d0)>
#first = affine_map<(d0, d1) -> (d0, 0)>
#parallel = {indexing_maps = [#data, #swapped, #data], iterator_types = ["parallel", "parallel"]}

func.func @transposed(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %empty = tensor.empty() : !d
  %0 = linalg.generic #parallel ins(%dx, %dy : !d, !d) outs(%empty : !d) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> !d
  return %0, %dscale : !d, !p
}

func.func @first_column(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %empty = tensor.empty() : !d
  %0 = linalg.generic {indexing_maps = [#data, #first, #data], iterator_types = ["parallel", "parallel"]} ins(%dx, %x : !d, !d) outs(%empty : !d) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> !d
  return %0, %dscale : !d, !p
}

// A reader of all of grad_input is a separate group.
// GROUP-LABEL: func @symmetric
// GROUP:         scf.execute_region
// GROUP-NOT:     two_pass
// GROUP:         scf.yield
// GROUP:         scf.execute_region
// GROUP-NOT:     one_pass
// GROUP:         two_pass
// GROUP:         scf.yield
// GROUP:         return
func.func @symmetric(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %empty = tensor.empty() : !d
  %0 = linalg.generic #parallel ins(%dx, %dx : !d, !d) outs(%empty : !d) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> !d
  return %0, %dscale : !d, !p
}

// GROUP-LABEL: func @parameters
// GROUP-NOT:     #bngrad.schedule<loops
// GROUP:         bngrad.schedule = #bngrad.schedule<one_pass
// GROUP-NOT:     #bngrad.schedule<loops
// GROUP:         return
// CPU-LABEL:   func @parameters
// CPU-NOT:       #bngrad.schedule<loops
// CPU:           bngrad.schedule = #bngrad.schedule<rows
// CPU-NOT:       #bngrad.schedule<loops
// CPU:           return
func.func @parameters(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %empty = tensor.empty() : !p
  %step = linalg.sub ins(%mean, %dscale : !p, !p) outs(%empty : !p) -> !p
  return %dx, %step : !d, !p
}

// Values read by tensor.extract are in host memory, so the host computes this op.
// GROUP-LABEL: func @gathered
// GROUP-NOT:     one_pass
// GROUP-NOT:     two_pass
// GROUP:         return
func.func @gathered(%dy: !d, %x: !d, %mean: !p, %variance: !p) -> (!d, !p) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) variance(%variance : !p) : !d, !p, !p
  %empty = tensor.empty() : !d
  %0 = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]} ins(%dx : !d) outs(%empty : !d) {
  ^bb0(%a: f32, %out: f32):
    %row = linalg.index 0 : index
    %m = tensor.extract %mean[%row] : !p
    %sum = arith.addf %a, %m : f32
    linalg.yield %sum : f32
  } -> !d
  return %0, %dscale : !d, !p
}

// Sums with expanded channels: a view of another shape of a strided row.
func.func @expanded_sums(%dy: !d, %x: !d, %mean: !p, %inv_std: !p, %sums: tensor<2x64xf32>) -> tensor<64x4x16xf32> {
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) inv_std(%inv_std : !p)
      sums(%sums : tensor<2x64xf32>) : !d
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 4, 16] : !d into tensor<64x4x16xf32>
  %2 = arith.negf %1 : tensor<64x4x16xf32>
  return %2 : tensor<64x4x16xf32>
}
