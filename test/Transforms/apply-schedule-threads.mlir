// RUN: bngrad-opt %s --bngrad-cpu-pipeline="threads=-1 vector-bits=512 l1-bytes=49152 last-level-bytes=33554432 stop-after=apply" | FileCheck %s

// As many shares as a call has threads; it is not asked for a small problem.
// CHECK-LABEL: func.func @dynamic(
// CHECK:         %[[SMALL:.+]] = arith.cmpi ult, %{{.+}}, %c16384
// CHECK:         %[[SHARES:.+]] = scf.if %[[SMALL]] -> (index) {
// CHECK-NEXT:      scf.yield %c1
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[THREADS:.+]] = bngrad.num_threads max 64
// CHECK-NEXT:      %[[N:.+]] = arith.index_cast %[[THREADS]] : i32 to index
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%[[SHARES]])
!d = tensor<?x64xf32>
!c = tensor<64xf32>
func.func @dynamic(%dy: !d, %x: !d, %m: !c, %v: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !c) variance(%v : !c) : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}

// CHECK-LABEL: func.func @small(
// CHECK-NOT:     bngrad.num_threads
!s = tensor<9x64xf32>
func.func @small(%dy: !s, %x: !s, %m: !c, %v: !c) -> (!s, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !s) input(%x : !s) mean(%m : !c) variance(%v : !c) : !s, !c, !c
  return %0#0, %0#1, %0#2 : !s, !c, !c
}
