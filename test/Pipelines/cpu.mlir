// Properties of every function below after each stage.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=decompose | FileCheck %s --check-prefix=DECOMPOSE \
// RUN:   --implicit-check-not=bngrad.
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=fuse | FileCheck %s --check-prefix=FUSE \
// RUN:   --implicit-check-not=bngrad. --implicit-check-not=scf.execute_region
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="stop-after=group schedule=#bngrad.schedule<loops>" | FileCheck %s --check-prefix=GROUP
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="stop-after=bufferize schedule=#bngrad.schedule<loops>" | FileCheck %s --check-prefix=BUFFERIZE \
// RUN:   --implicit-check-not=tensor --implicit-check-not=bufferization. --implicit-check-not=memref.copy --implicit-check-not=linalg.copy \
// RUN:   --implicit-check-not='memref.alloc{{.*}} : memref<{{[0-9?]+x[0-9?]+x}}'
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="stop-after=apply schedule=#bngrad.schedule<loops>" | FileCheck %s --check-prefix=APPLY \
// RUN:   --implicit-check-not=linalg. --implicit-check-not=scf.execute_region --implicit-check-not=memref.copy
// DEFINE: %{schedule} =
// DEFINE: %{lower} = bngrad-opt %s --bngrad-cpu-pipeline="stop-after=lower %{schedule}" | FileCheck %s --check-prefix=LOWER \
// DEFINE:   --implicit-check-not=unrealized_conversion_cast --implicit-check-not=memref --implicit-check-not=tensor --implicit-check-not=func.func \
// DEFINE:   --implicit-check-not=arith. --implicit-check-not=math. --implicit-check-not=scf. --implicit-check-not=cf. --implicit-check-not=affine \
// DEFINE:   --implicit-check-not=index. --implicit-check-not=' vector.' --implicit-check-not=linalg. --implicit-check-not=bngrad.
// RUN: %{lower}
// REDEFINE: %{schedule} = schedule=#bngrad.schedule<loops>
// RUN: %{lower}
// REDEFINE: %{schedule} = schedule=#bngrad.schedule<channels>
// RUN: %{lower}

// The last stage is the default, and LLVM accepts its output.
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=lower -o %t.lower.mlir
// RUN: bngrad-opt %s --bngrad-cpu-pipeline -o %t.default.mlir
// RUN: diff %t.lower.mlir %t.default.mlir
// RUN: mlir-translate --mlir-to-llvmir %t.lower.mlir -o /dev/null
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="schedule=#bngrad.schedule<loops>" --canonicalize | FileCheck %s --check-prefix=UNUSED

// The same pipelines, by the name for other compilers.
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=decompose -o %t.decompose.mlir
// RUN: bngrad-opt %s --bngrad-to-linalg=stop-after=decompose | diff %t.decompose.mlir -
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=fuse -o %t.fuse.mlir
// RUN: bngrad-opt %s --bngrad-to-linalg | diff %t.fuse.mlir -
// RUN: bngrad-opt %s --bngrad-to-linalg=stop-after=fuse | diff %t.fuse.mlir -

// The printed pipeline reproduces the run, including options.
// RUN: bngrad-opt %s --bngrad-cpu-pipeline --dump-pass-pipeline -o /dev/null 2> %t.dump
// RUN: sed -e "1s/.*/--pass-pipeline='/" -e "\$s/\$/'/" %t.dump > %t.arguments
// RUN: bngrad-opt %s @%t.arguments | diff %t.lower.mlir -
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="stop-after=group schedule=#bngrad.schedule<loops>" --dump-pass-pipeline -o %t.group.mlir 2> %t.dump
// RUN: FileCheck %s --check-prefix=DUMP --input-file=%t.dump
// RUN: sed -e "1s/.*/--pass-pipeline='/" -e "\$s/\$/'/" %t.dump > %t.arguments
// RUN: bngrad-opt %s @%t.arguments | diff %t.group.mlir -
// DUMP: bngrad-group{{{.*}}schedule=#bngrad.schedule<loops>
// DUMP-NOT: one-shot-bufferize

// Errors name bad options.
// RUN: not bngrad-opt %s --bngrad-cpu-pipeline=stop-after=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not bngrad-opt %s --bngrad-to-linalg=stop-after=group -o /dev/null 2>&1 | FileCheck %s --check-prefix=LINALG
// RUN: not bngrad-opt %s --bngrad-cpu-pipeline=schedule=fast -o /dev/null 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// STAGE: stop-after{{.*}}'loops'
// LINALG: stop-after{{.*}}'group'
// SCHEDULE: error: option 'schedule': expected an attribute such as #bngrad.schedule<loops>, got 'fast'

// Training, NCHW, between an element-wise producer and a consumer: both are
// fused into its three generics, which become three loop nests, parallel or per
// channel.
// DECOMPOSE-LABEL: func @training
// DECOMPOSE-COUNT-3: linalg.generic
// DECOMPOSE-NOT:   linalg.generic
// DECOMPOSE:       return
// FUSE-LABEL: func @training
// FUSE-SAME:    (%[[DY:.+]]: tensor<4x6x5x7xf32>, %[[Y:.+]]: tensor<4x6x5x7xf32>, %[[X:.+]]: tensor<4x6x5x7xf32>,
// FUSE-NOT:     linalg.generic
// FUSE:         linalg.generic {{.+}} ins(%[[DY]], %[[Y]], %[[X]],
// FUSE:           arith.mulf %[[DY_E:.+]], %[[Y_E:.+]] : f32
// FUSE:         linalg.generic {{.+}} iterator_types = ["parallel"]}
// FUSE:         %[[DX:.+]] = linalg.generic {{.+}} ins(%[[DY]], %[[Y]],
// FUSE:           arith.mulf %[[DY_E:.+]], %[[Y_E:.+]] : f32
// FUSE:           arith.truncf
// FUSE-NOT:     linalg.generic
// FUSE:         return %[[DX]],
// GROUP-LABEL: func @training
// GROUP-NOT:     linalg.generic
// GROUP:         scf.execute_region {{.*}}no_inline {
// GROUP-COUNT-3:   linalg.generic {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// GROUP-NOT:       linalg.generic
// GROUP:           scf.yield
// GROUP-NOT:     linalg.generic
// GROUP:         return
// Results are out-parameters after the arguments.
// BUFFERIZE-LABEL: func @training
// BUFFERIZE-SAME:    %{{[^:]+}}: memref<6xf32>, %[[DX:[^:]+]]: memref<4x6x5x7xbf16>, %[[DS:[^:]+]]: memref<6xf32>, %[[DO:[^:]+]]: memref<6xf32>) {
// BUFFERIZE:         scf.execute_region no_inline {
// BUFFERIZE:           linalg.generic {{.+}} ["reduction", "parallel", "reduction", "reduction"]{{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// BUFFERIZE:           linalg.generic {{.+}} outs(%{{.+}}, %[[DS]], %[[DO]] : {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// BUFFERIZE:           linalg.generic {{.+}} outs(%[[DX]] : {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// BUFFERIZE:         return{{$}}
// APPLY-LABEL: func @training
// APPLY:         scf.parallel
// APPLY:         scf.parallel
// APPLY:         arith.truncf
// APPLY:         memref.store
// APPLY-NOT:     scf.parallel
// APPLY:         return
// LOWER-LABEL: llvm.func @training
// LOWER:         llvm.return
func.func @training(%dy: tensor<4x6x5x7xf32>, %y: tensor<4x6x5x7xf32>, %x: tensor<4x6x5x7xf32>, %scale: tensor<6xf32>,
                    %mean: tensor<6xf32>, %variance: tensor<6xf32>) -> (tensor<4x6x5x7xbf16>, tensor<6xf32>, tensor<6xf32>) {
  %d = arith.mulf %dy, %y : tensor<4x6x5x7xf32>
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%d : tensor<4x6x5x7xf32>) input(%x : tensor<4x6x5x7xf32>)
      scale(%scale : tensor<6xf32>) mean(%mean : tensor<6xf32>) variance(%variance : tensor<6xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<4x6x5x7xf32>, tensor<6xf32>, tensor<6xf32>
  %narrow = arith.truncf %dx : tensor<4x6x5x7xf32> to tensor<4x6x5x7xbf16>
  return %narrow, %dscale, %doffset : tensor<4x6x5x7xbf16>, tensor<6xf32>, tensor<6xf32>
}

// Dynamic sizes, NHWC, mixed types and a mask: the result is also in a buffer of the caller.
// DECOMPOSE-LABEL: func @dynamic_nhwc
// FUSE-LABEL: func @dynamic_nhwc
// GROUP-LABEL: func @dynamic_nhwc
// GROUP:         scf.execute_region
// BUFFERIZE-LABEL: func @dynamic_nhwc
// BUFFERIZE-SAME:    %[[DX:[^:]+]]: memref<?x?x6xbf16>) {
// BUFFERIZE:         linalg.generic {{.+}} outs(%[[DX]] : memref<?x?x6xbf16>)
// BUFFERIZE:         return{{$}}
// APPLY-LABEL: func @dynamic_nhwc
// LOWER-LABEL: llvm.func @dynamic_nhwc
func.func @dynamic_nhwc(%dy: tensor<?x?x6xbf16>, %x: tensor<?x?x6xbf16>, %mean: tensor<6xf32>, %variance: tensor<6xf32>,
                        %mask: tensor<?x?x6xi1>) -> tensor<?x?x6xbf16> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<?x?x6xbf16>) input(%x : tensor<?x?x6xbf16>)
      mean(%mean : tensor<6xf32>) variance(%variance : tensor<6xf32>) mask(%mask : tensor<?x?x6xi1>)
      {feature_dims = array<i64: 2>} : tensor<?x?x6xbf16>, tensor<6xf32>, tensor<6xf32>
  return %dx : tensor<?x?x6xbf16>
}

// Static sizes dropped by a cast are restored before decomposition.
// DECOMPOSE-LABEL: func @sizes_behind_a_cast
// DECOMPOSE-NOT:   arith.select
// DECOMPOSE:       return
// FUSE-LABEL: func @sizes_behind_a_cast
// GROUP-LABEL: func @sizes_behind_a_cast
// BUFFERIZE-LABEL: func @sizes_behind_a_cast
// APPLY-LABEL: func @sizes_behind_a_cast
// LOWER-LABEL: llvm.func @sizes_behind_a_cast
func.func @sizes_behind_a_cast(%dy: tensor<8x6xf32>, %x: tensor<8x6xf32>, %p: tensor<6xf32>) -> tensor<6xf32> {
  %dy_cast = tensor.cast %dy : tensor<8x6xf32> to tensor<?x6xf32>
  %x_cast = tensor.cast %x : tensor<8x6xf32> to tensor<?x6xf32>
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy_cast : tensor<?x6xf32>) input(%x_cast : tensor<?x6xf32>) mean(%p : tensor<6xf32>) variance(%p : tensor<6xf32>)
      : tensor<?x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %dscale : tensor<6xf32>
}

// Frozen statistics and only grad_input: no reduction; input is not read, and
// only one coefficient per channel is allocated.
// DECOMPOSE-LABEL: func @only_grad_input_of_global
// FUSE-LABEL: func @only_grad_input_of_global
// GROUP-LABEL: func @only_grad_input_of_global
// BUFFERIZE-LABEL: func @only_grad_input_of_global
// BUFFERIZE-NOT:   reduction
// BUFFERIZE:       memref.alloc() {{.*}} : memref<6xf32>
// BUFFERIZE-NOT:   memref.alloc()
// BUFFERIZE-NOT:   reduction
// BUFFERIZE:       return
// APPLY-LABEL: func @only_grad_input_of_global
// LOWER-LABEL: llvm.func @only_grad_input_of_global
func.func @only_grad_input_of_global(%dy: tensor<8x6xf32>, %x: tensor<8x6xf32>, %p: tensor<6xf32>) -> tensor<8x6xf32> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<8x6xf32>) input(%x : tensor<8x6xf32>) mean(%p : tensor<6xf32>) variance(%p : tensor<6xf32>)
      {epsilon = 1.0e-5 : f64, statistics = #bngrad.statistics<global>}
      : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %dx : tensor<8x6xf32>
}

// One sum, directly in the out-parameter. Only grad_output is read, nothing is
// allocated, and besides the zeros there is one loop nest.
// DECOMPOSE-LABEL: func @only_grad_offset
// FUSE-LABEL: func @only_grad_offset
// GROUP-LABEL: func @only_grad_offset
// BUFFERIZE-LABEL: func @only_grad_offset
// BUFFERIZE-NOT:   memref.alloc
// BUFFERIZE:       return
// APPLY-LABEL: func @only_grad_offset
// APPLY-SAME:    (%[[DY:.+]]: memref<8x6xf32>, %[[X:.+]]: memref<8x6xf32>, %[[M:.+]]: memref<6xf32>, %[[V:.+]]: memref<6xf32>, %[[OUT:.+]]: memref<6xf32>) {
// APPLY-NOT:     memref.load {{%}}[[X]][
// APPLY-NOT:     memref.load {{%}}[[M]][
// APPLY-NOT:     memref.load {{%}}[[V]][
// APPLY-NOT:     memref.alloc
// APPLY-NOT:     math.sqrt
// APPLY:         return
// LOWER-LABEL: llvm.func @only_grad_offset
// UNUSED-LABEL: llvm.func @only_grad_offset
// UNUSED-SAME:    (%{{[^:]+}}: !llvm.ptr, %[[DY:[^:]+]]: !llvm.ptr, {{(%[^:]+: i64, )+}}%[[X0:[^:]+]]: !llvm.ptr, %[[X1:[^:]+]]: !llvm.ptr,
// UNUSED-NOT:     llvm.call @{{[^b]}}
// UNUSED-NOT:     {{%}}[[X0]]{{[^0-9]}}
// UNUSED-NOT:     {{%}}[[X1]]{{[^0-9]}}
// UNUSED:         llvm.return
func.func @only_grad_offset(%dy: tensor<8x6xf32>, %x: tensor<8x6xf32>, %mean: tensor<6xf32>, %variance: tensor<6xf32>) -> tensor<6xf32> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<8x6xf32>) input(%x : tensor<8x6xf32>) mean(%mean : tensor<6xf32>) variance(%variance : tensor<6xf32>)
      : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %doffset : tensor<6xf32>
}

// DECOMPOSE-LABEL: func @no_result_used
// DECOMPOSE-NEXT:  return
// FUSE-LABEL: func @no_result_used
// GROUP-LABEL: func @no_result_used
// BUFFERIZE-LABEL: func @no_result_used
// APPLY-LABEL: func @no_result_used
// APPLY-NEXT:    return
// LOWER-LABEL: llvm.func @no_result_used
// UNUSED-LABEL: llvm.func @no_result_used
// UNUSED-NEXT:    llvm.return
func.func @no_result_used(%dy: tensor<8x6xf32>, %x: tensor<8x6xf32>, %p: tensor<6xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<8x6xf32>) input(%x : tensor<8x6xf32>) mean(%p : tensor<6xf32>) variance(%p : tensor<6xf32>)
      : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>
  return
}

// Other ops are compiled by upstream's scalar loops.
// DECOMPOSE-LABEL: func @beside
// FUSE-LABEL: func @beside
// GROUP-LABEL: func @beside
// GROUP:         arith.maximumf
// BUFFERIZE-LABEL: func @beside
// APPLY-LABEL: func @beside
// APPLY:         arith.maximumf
// LOWER-LABEL: llvm.func @beside
func.func @beside(%dy: tensor<8x6xf32>, %x: tensor<8x6xf32>, %p: tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %init = tensor.empty() : tensor<8x6xf32>
  %larger = linalg.max ins(%dy, %x : tensor<8x6xf32>, tensor<8x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<8x6xf32>) input(%x : tensor<8x6xf32>) mean(%p : tensor<6xf32>) variance(%p : tensor<6xf32>)
      : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %dx, %larger : tensor<8x6xf32>, tensor<8x6xf32>
}
