// The header of a function with shard annotations has the shapes of the shards,
// and the names of the operands.

// RUN: bngrad-compile %s -o %t.o --header=%t.h
// RUN: FileCheck %s --input-file=%t.h
// CHECK:      [in] grad_output: 2x3xf32
// CHECK-NEXT: [in] input: 2x3xf32
// CHECK-NEXT: [in] mean: 3xf32
// CHECK-NEXT: [in] inv_std: 3xf32
// CHECK-NEXT: [out] grad_input: 2x3xf32
// CHECK-NEXT: [out] grad_scale: 3xf32

// RUN: sed 's/shape = 2/shape = 3/' %s > %t.mlir
// RUN: not bngrad-compile %t.mlir -o %t.o 2>&1 | FileCheck %s --check-prefix=ERROR --implicit-check-not=error:
// ERROR: error: {{.*}}expected dim 0 of argument 1 of @gradient to be a multiple of 3, the size of grid axes [0], got 4

!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @gradient(%dy: !d, %x: !d, %mean: !c, %inv_std: !c) -> (!d, !c) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      : !d, !c, !c
  %dx = shard.shard %0#0 to %s : !d
  return %dx, %0#1 : !d, !c
}
