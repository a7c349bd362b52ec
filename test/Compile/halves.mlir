// The halves of a gradient. Their results keep their names in the IR, and so does a single result.

// RUN: bngrad-compile %s -o %t.o --header=%t.h
// RUN: FileCheck %s --input-file=%t.h
// RUN: bngrad-compile %s --target=cuda -o %t.cuda.o --header=%t.cuda.h
// RUN: FileCheck %s --input-file=%t.cuda.h
// RUN: bngrad-opt %s | FileCheck %s --check-prefix=IR

// CHECK: * reduce
// CHECK: * [out] sums: 2x4xf32
// CHECK-NEXT: * [out] count: i64
// CHECK: * elemt
// CHECK: * [in] sums: 2x4xf32
// CHECK-NEXT: * [in] count: i64
// CHECK-NEXT: * [out] grad_input: 8x4xf32
// CHECK: * dynamic
// CHECK: * [out] grad_input: ?x?xf32

// IR: %sums, %count = bngrad.batch_norm_backward_reduce
// IR: %grad_input = bngrad.batch_norm_backward_elemt

!d = tensor<8x4xf32>
!p = tensor<4xf32>
func.func @reduce(%dy: !d, %x: !d, %mean: !p) -> (tensor<2x4xf32>, tensor<i64>) {
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : !d) input(%x : !d) mean(%mean : !p)
      : tensor<2x4xf32>, tensor<i64>
  return %0#0, %0#1 : tensor<2x4xf32>, tensor<i64>
}

func.func @elemt(%dy: !d, %x: !d, %mean: !p, %r: !p, %sums: tensor<2x4xf32>, %count: tensor<i64>) -> !d {
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) inv_std(%r : !p)
      sums(%sums : tensor<2x4xf32>) count(%count : tensor<i64>) : !d
  return %0 : !d
}

func.func @dynamic(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>, %mean: tensor<?xf32>, %r: tensor<?xf32>)
    -> tensor<?x?xf32> {
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%mean : tensor<?xf32>) inv_std(%r : tensor<?xf32>) : tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
