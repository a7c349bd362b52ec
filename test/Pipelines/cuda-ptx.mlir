// The text of kernels: accesses of 16 bytes, divisions and roots rounded to nearest, no local memory, no
// reciprocal square root (PTX only has an approximation), no atomics.

// DEFINE: %{options} =
// DEFINE: %{ptx} = bngrad-opt %s --bngrad-cuda-pipeline="%{options}" | sed -e "s/.0A/\n/g" -e "s/.09/ /g"

// REDEFINE: %{options} = chip=sm_75 schedule={#bngrad.schedule<two_pass, block_accesses = 1024, sum_blocks = 16, fma = true>}
// RUN: %{ptx} | FileCheck %s --check-prefixes=CHECK,TWO-PASS
// REDEFINE: %{options} = chip=sm_90 schedule={#bngrad.schedule<one_pass, cluster_blocks = 4, fma = true>}
// RUN: %{ptx} | FileCheck %s --check-prefixes=CHECK,CLUSTER
// REDEFINE: %{options} = chip=sm_90 schedule={#bngrad.schedule<one_pass, block_channels = 16, fma = true>}
// RUN: %{ptx} | FileCheck %s --check-prefixes=CHECK,TILE

!t = tensor<40x32x36xf32>
!p = tensor<32xf32>

// CHECK-LABEL: gpu.binary @channels_first_group_0

// TWO-PASS:     .version 8.0
// TWO-PASS:     .target sm_75
// TWO-PASS:     .visible .entry reduce(
// TWO-PASS:     .maxntid 256
// TWO-PASS-NOT: .local
// TWO-PASS:     ld.global.v4.b32
// TWO-PASS:     shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// TWO-PASS:     bar.sync 0;
// TWO-PASS-NOT: atom.
// TWO-PASS-NOT: {{ red\.}}
// TWO-PASS:     .visible .entry finish(
// TWO-PASS:     sqrt.rn.f32
// TWO-PASS-NOT: rsqrt
// TWO-PASS:     rcp.rn.f32
// TWO-PASS:     div.rn.f32
// TWO-PASS:     .visible .entry apply(
// TWO-PASS:     ld.global.v4.b32
// TWO-PASS:     fma.rn.f32
// TWO-PASS:     st.global.cs.v4.b32
// TWO-PASS-NOT: .local

// CLUSTER:      .target sm_90
// CLUSTER:      .extern .shared .align 128 .b8 {{.*}}[];
// CLUSTER:      .visible .entry one_pass(
// CLUSTER:      .reqnctapercluster 4, 1, 1
// CLUSTER-NOT:  .local
// CLUSTER:      .shared .align 16 .b8 __mbarrier[{{[0-9]+}}];
// CLUSTER:      mbarrier.init.shared
// CLUSTER:      fence.proxy.async.shared::cta;
// CLUSTER:      bar.sync 0;
// CLUSTER:      mbarrier.arrive.expect_tx.shared
// CLUSTER:      griddepcontrol.wait;
// CLUSTER:      elect.sync
// CLUSTER:      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
// CLUSTER:      mbarrier.try_wait.parity.shared
// CLUSTER-NOT:  bra.uni
// CLUSTER-NOT:  ld.global.v4
// CLUSTER:      ld.shared.v4.b32
// CLUSTER:      shfl.sync.bfly.b32
// CLUSTER:      barrier.cluster.arrive.aligned;
// CLUSTER-NEXT: barrier.cluster.wait.aligned;
// CLUSTER:      mapa.shared::cluster
// CLUSTER:      ld.shared::cluster.b32
// CLUSTER:      bar.sync 0;
// CLUSTER-NEXT: barrier.cluster.arrive.relaxed.aligned;
// CLUSTER:      st.global.b32
// CLUSTER-NOT:  ld.global.v4
// CLUSTER:      st.global.v4.b32
// CLUSTER:      barrier.cluster.wait.aligned;
// CLUSTER-NEXT: ret;
// CLUSTER-NOT:  .local

// A warp per channel.
// TILE:         .visible .entry one_pass(
// TILE-NOT:     .reqnctapercluster
// TILE-NOT:     barrier.cluster
// TILE:         cp.async.bulk
// TILE-NOT:     mapa
func.func @channels_first(%dy: !t, %x: !t, %scale: !p, %mean: !p, %variance: !p) -> (!t, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) scale(%scale : !p) mean(%mean : !p)
      variance(%variance : !p) : !t, !p, !p
  return %0#0, %0#1, %0#2 : !t, !p, !p
}

// CHECK-LABEL: gpu.binary @channels_last_group_0

// Two accesses of 16 bytes for sums of 8 lanes; copies of 16 bytes to shared memory.
// TWO-PASS:     .visible .entry reduce(
// TWO-PASS:     ld.global.v4.b32
// TWO-PASS:     ld.global.v4.b32
// TILE:         .visible .entry one_pass(
// TILE:         cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16;
// TILE:         cp.async.mbarrier.arrive.noinc.shared.b64 [__mbarrier];
// TILE:         mbarrier.try_wait.parity.shared
!l = tensor<128x32xbf16>
func.func @channels_last(%dy: !l, %x: !l, %mean: !p, %variance: !p) -> (!l, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !l) input(%x : !l) mean(%mean : !p) variance(%variance : !p) : !l, !p, !p
  return %0#0, %0#1 : !l, !p
}
