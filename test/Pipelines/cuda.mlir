// The stages of the CUDA pipeline that differ from those of the CPU.

// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_80 stop-after=apply" | FileCheck %s --check-prefix=TWO-PASS
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=apply" | FileCheck %s --check-prefix=ONE-PASS
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=apply device-arguments=true" | FileCheck %s --check-prefix=DEVICE
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_80" | FileCheck %s --check-prefix=LOWER
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 device-arguments=true" | FileCheck %s --check-prefix=MERGED
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_80,sm_90" | FileCheck %s --check-prefix=CHIPS
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=apply" -o /dev/null \
// RUN:   --remark-policy=all --remark-format=emitRemark --remarks-filter=bngrad-apply-schedule 2>&1 | FileCheck %s --check-prefix=REMARK

// The printed pipeline reproduces the run.
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 schedule={#bngrad.schedule<two_pass, block_threads = 64, access_bits = 64, block_accesses = 1024, sum_blocks = 16>}" \
// RUN:   --dump-pass-pipeline -o %t.mlir 2> %t.dump
// RUN: sed -e "1s/.*/--pass-pipeline='/" -e "\$s/\$/'/" %t.dump > %t.arguments
// RUN: sed -e "s/TimeInMs = [0-9]*//g" %t.mlir > %t.expected
// RUN: bngrad-opt %s @%t.arguments | sed -e "s/TimeInMs = [0-9]*//g" | diff %t.expected -

!t = tensor<64x128x784xf32>
!p = tensor<128xf32>
func.func @f(%dy: !t, %x: !t, %scale: !p, %mean: !p, %variance: !p) -> (!t, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) scale(%scale : !p) mean(%mean : !p)
      variance(%variance : !p) : !t, !p, !p
  return %0#0, %0#1, %0#2 : !t, !p, !p
}

// Blocks for shares of every channel, one block of channels, blocks of 4 x 256 pieces of 4 elements. Copies to the
// device come first, copies back last; no call is between two launches, and the host waits once.
// TWO-PASS-LABEL: func.func @f(
// TWO-PASS-SAME:    %[[DY:[^:]+]]: memref<64x128x784xf32>, %[[X:[^:]+]]: memref<64x128x784xf32>
// TWO-PASS-SAME:    %[[DX:[^:]+]]: memref<64x128x784xf32>, %{{[^:]+}}: memref<128xf32>, %{{[^:]+}}: memref<128xf32>)
// TWO-PASS:         %[[STREAM:.+]] = gpu.wait async
// TWO-PASS-DAG:     gpu.memcpy async [%[[STREAM]]] %{{.+}}, %[[DY]] :
// TWO-PASS-DAG:     gpu.memcpy async [%[[STREAM]]] %{{.+}}, %[[X]] :
// TWO-PASS-NOT:     gpu.wait
// TWO-PASS:         gpu.launch async [%[[STREAM]]] blocks({{.*}}) in ({{.*}} = %c384, {{.*}}) threads({{.*}}) in ({{.*}} = %c256, {{.*}}) module(@f_group_0) function(@reduce)
// TWO-PASS-SAME:      workgroup(%{{.+}} : memref<8xf32, #gpu.address_space<workgroup>>, %{{.+}} : memref<8xf32, #gpu.address_space<workgroup>>)
// TWO-PASS:           vector.load {{.*}} {alignment = 16 : i64} : memref<64x128x784xf32>, vector<4xf32>
// TWO-PASS:           gpu.shuffle{{ +}}xor
// TWO-PASS:           gpu.barrier
// TWO-PASS:         gpu.launch async [%[[STREAM]]] blocks({{.*}}) in ({{.*}} = %c1, {{.*}}) threads({{.*}}) in ({{.*}} = %c128, {{.*}}) module(@f_group_0) function(@finish)
// TWO-PASS-NOT:     gpu.dealloc
// TWO-PASS:         gpu.launch async [%[[STREAM]]] blocks({{.*}}) in ({{.*}} = %c1568, {{.*}}) threads({{.*}}) in ({{.*}} = %c256, {{.*}}) module(@f_group_0) function(@apply)
// TWO-PASS:           vector.load {{.*}} {alignment = 16 : i64} : memref<64x128x784xf32>, vector<4xf32>
// TWO-PASS:           vector.store {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<64x128x784xf32>, vector<4xf32>
// TWO-PASS-NOT:     gpu.launch
// TWO-PASS:         gpu.memcpy async [%[[STREAM]]] %[[DX]], %
// TWO-PASS:         gpu.wait [
// TWO-PASS-NOT:     gpu.wait
// TWO-PASS:         return

// A cluster of 4 blocks per channel; both operands of a block, 16 rows of 784, in dynamic shared memory.
// ONE-PASS-LABEL: func.func @f(
// ONE-PASS:         gpu.launch async [%{{.+}}] clusters({{.*}}) in ({{.*}} = %c4, {{.*}}) blocks({{.*}}) in ({{.*}} = %c512, {{.*}}) threads({{.*}}) in ({{.*}} = %c256, {{.*}}) dynamic_shared_memory_size %c100352_i32 module(@f_group_0) function(@one_pass)
// ONE-PASS:           gpu.dynamic_shared_memory
// ONE-PASS:           memref.view {{.*}} to memref<16x1x784xf32, #gpu.address_space<workgroup>>
// ONE-PASS:           memref.view {{.*}}[%c50176]{{.*}} to memref<16x1x784xf32, #gpu.address_space<workgroup>>
// ONE-PASS:           nvgpu.mbarrier.init
// ONE-PASS:           gpu.barrier
// ONE-PASS:           nvgpu.mbarrier.arrive.expect_tx
// ONE-PASS:           nvvm.elect.sync
// ONE-PASS-COUNT-2:   nvvm.cp.async.bulk.shared.cluster.global {{.*}}, %c3136_i32
// ONE-PASS:           nvvm.mbarrier.try_wait
// The data are only read from there.
// ONE-PASS-NOT:       vector.load {{.*}} : memref<64x128x784xf32>
// ONE-PASS:           nvvm.cluster.arrive {aligned}
// ONE-PASS-NEXT:      nvvm.cluster.wait {aligned}
// ONE-PASS:           nvvm.mapa
// ONE-PASS:           gpu.barrier
// ONE-PASS-NEXT:      nvvm.cluster.arrive.relaxed {aligned}
// ONE-PASS-NOT:       vector.load {{.*}} : memref<64x128x784xf32>
// ONE-PASS:           vector.store {{.*}} {alignment = 16 : i64} : memref<64x128x784xf32>, vector<4xf32>
// ONE-PASS:           nvvm.cluster.wait {aligned}
// ONE-PASS-NOT:     gpu.launch
// ONE-PASS:         return

// No copies; alignment is tested if it is needed. The blocks of a kernel that another one follows let it start.
// DEVICE-LABEL: func.func @f(
// DEVICE-NOT:   gpu.memcpy
// DEVICE:       memref.extract_aligned_pointer_as_index
// DEVICE:       scf.if
// DEVICE:       gpu.launch {{.*}} function(@one_pass)
// DEVICE:       } else {
// DEVICE:       gpu.launch {{.*}} function(@reduce)
// DEVICE-NEXT:    nvvm.griddepcontrol launch_dependents
// DEVICE:       gpu.launch {{.*}} function(@finish)
// DEVICE-NEXT:    nvvm.griddepcontrol launch_dependents
// DEVICE:       gpu.launch {{.*}} function(@apply)
// DEVICE-NOT:     nvvm.griddepcontrol
// DEVICE-NOT:   gpu.memcpy
// DEVICE:       return

// REMARK: [Analysis]{{.*}}copied to the device: a buffer of type memref<64x128x784xf32>
// REMARK: [Analysis]{{.*}}copied from the device: a buffer of type memref<64x128x784xf32>

// One module of kernels, and calls of the runtime.
// LOWER-NOT:   unrealized_conversion_cast
// LOWER-DAG:   gpu.binary @f_group_0
// LOWER-DAG:   llvm.func @f(
// LOWER-DAG:   llvm.call @mgpuStreamCreate
// LOWER-DAG:   llvm.call @mgpuMemAlloc
// LOWER-DAG:   llvm.call @mgpuMemcpy
// LOWER-DAG:   gpu.launch_func <%{{.+}} : !llvm.ptr> @f_group_0::@reduce
// LOWER-DAG:   gpu.launch_func <%{{.+}} : !llvm.ptr> @f_group_0::@finish
// LOWER-DAG:   gpu.launch_func <%{{.+}} : !llvm.ptr> @f_group_0::@apply
// LOWER-DAG:   llvm.call @mgpuStreamSynchronize
// LOWER-NOT:   unrealized_conversion_cast

// Aligned data need no temporary; others need one allocation.
// MERGED-LABEL: llvm.func @f(
// MERGED-NOT:     llvm.call @mgpuMemAlloc
// MERGED:         gpu.launch_func {{.*}}::@one_pass
// MERGED-NOT:     llvm.call @mgpuMemAlloc
// MERGED:         llvm.call @mgpuStreamSynchronize
// MERGED:         llvm.call @mgpuMemAlloc
// MERGED-NOT:     llvm.call @mgpuMemAlloc
// MERGED:         gpu.launch_func {{.*}}::@finish
// MERGED:         llvm.call @mgpuMemFree
// MERGED-NEXT:    llvm.call @mgpuStreamSynchronize
// MERGED-NOT:     llvm.call @mgpuMem
// MERGED:         llvm.return

// CHIPS: gpu.binary @f_group_0 <#bngrad.select_by_device> [#gpu.object<#nvvm.target<{{[^>]*}}chip = "sm_80"
// CHIPS-SAME: .target sm_80
// CHIPS-SAME: #gpu.object<#nvvm.target<{{[^>]*}}chip = "sm_90"
// CHIPS-SAME: .target sm_90
