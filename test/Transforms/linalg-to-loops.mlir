// Ops without a schedule get upstream's loops. LLVM unrolls the innermost one alone.

// RUN: bngrad-opt %s --bngrad-linalg-to-loops | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cpu-pipeline | FileCheck %s --check-prefix=LLVM

// CHECK: #[[$UNROLL:.+]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[$NO_UNROLLING:.+]] = #llvm.loop_annotation<unroll = #[[$UNROLL]]>
// LLVM: #[[$UNROLL:.+]] = #llvm.loop_unroll<disable = true>
// LLVM: #[[$NO_UNROLLING:.+]] = #llvm.loop_annotation<unroll = #[[$UNROLL]]>

// Both loops around the innermost one, down to LLVM.
// CHECK-LABEL: func.func @fill
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.store
// CHECK-NEXT: }{{$}}
// CHECK-NEXT: } {loop_annotation = #[[$NO_UNROLLING]]}
// CHECK-NEXT: } {loop_annotation = #[[$NO_UNROLLING]]}
// LLVM-LABEL: llvm.func @fill
// LLVM-COUNT-2: llvm.br {{.+}} {loop_annotation = #[[$NO_UNROLLING]]}
// LLVM-NOT: loop_annotation
// LLVM: llvm.return
func.func @fill(%value: f32, %a: memref<8x12x16xf32>) {
  linalg.fill ins(%value : f32) outs(%a : memref<8x12x16xf32>)
  return
}

// CHECK-LABEL: func.func @one_loop
// CHECK: scf.for
// CHECK-NOT: loop_annotation
// CHECK: return
func.func @one_loop(%a: memref<?xf32>, %b: memref<?xf32>) {
  linalg.negf ins(%a : memref<?xf32>) outs(%b : memref<?xf32>)
  return
}

// CHECK-LABEL: func.func @no_loop
// CHECK-NOT: scf.for
// CHECK: memref.store
func.func @no_loop(%value: f32, %a: memref<f32>) {
  linalg.fill ins(%value : f32) outs(%a : memref<f32>)
  return
}

// Loops of the program and ops on tensors are unchanged.
// CHECK-LABEL: func.func @others
// CHECK: linalg.fill
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: loop_annotation
func.func @others(%value: f32, %a: memref<8x4xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %filled = linalg.fill ins(%value : f32) outs(%b : tensor<8x4xf32>) -> tensor<8x4xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %value, %a[%i, %j] : memref<8x4xf32>
    }
  }
  return %filled : tensor<8x4xf32>
}
