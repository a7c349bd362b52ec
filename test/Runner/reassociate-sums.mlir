// With --reassociate-sums, 10^6 times 0.1 are compared with the exact sum, from which a sum of one term after the
// other is off by 958. Without it, a sum keeps its order, and each run gives the same bits. The sum is in a function
// that is called.

// RUN: bngrad-runner %s --check --arg=random:1:0.1:0.100000002 | FileCheck %s --check-prefix=ORDERED
// RUN: bngrad-runner %s --check --reassociate-sums --arg=random:1:0.1:0.100000002 | FileCheck %s
// ORDERED: result 0 value max_error 0 bound 0 ok
// CHECK: result 0 value max_error {{0.0[0-9]*}} bound 0.577 ok

// RUN: bngrad-compile %s --reassociate-sums -o %t.mlir && FileCheck %s --check-prefix=FREE --input-file=%t.mlir
// RUN: bngrad-compile %s -o %t.mlir && FileCheck %s --check-prefix=KEPT --input-file=%t.mlir
// FREE: llvm.fadd {{.*}} : vector<{{[0-9]+}}xf32>
// KEPT: llvm.fadd
// KEPT-NOT: llvm.fadd {{.*}} : vector

#data = affine_map<(n, c) -> (n, c)>
#channel = affine_map<(n, c) -> (c)>
func.func private @sum(%x: tensor<1000000x1xf32>) -> tensor<1xf32> {
  %zero = arith.constant dense<0.0> : tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<1000000x1xf32>) outs(%zero : tensor<1xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func @calls(%x: tensor<1000000x1xf32>) -> tensor<1xf32> {
  %sum = call @sum(%x) : (tensor<1000000x1xf32>) -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
