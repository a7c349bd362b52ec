// Arguments and results of integers, of which files may say that they have a sign or not: such as the reserve space of
// cuDNN, which nothing uses.

// REQUIRES: numpy
// RUN: %python %S/../Inputs/integers.py %t
// RUN: bngrad-runner %s --entry=add --arg=%t/u1.npy --arg=%t/i2.npy --arg=%t/u4.npy --result=%t/a.npy --result=%t/b.npy --result=%t/c.npy --check \
// RUN:   | FileCheck %s
// CHECK: result 0 value max_error 0 bound 0 ok
// CHECK: result 1 value max_error 0 bound 0 ok
// CHECK: result 2 value max_error 0 bound 0 ok
// RUN: cmp %t/a.npy %t/expected_a.npy
// RUN: cmp %t/b.npy %t/expected_b.npy
// RUN: cmp %t/c.npy %t/expected_c.npy
func.func @add(%a: tensor<3xi8>, %b: tensor<3xi16>, %c: tensor<3xi32>) -> (tensor<3xi8>, tensor<3xi16>, tensor<3xi32>) {
  %0 = arith.addi %a, %a : tensor<3xi8>
  %1 = arith.addi %b, %b : tensor<3xi16>
  %2 = arith.addi %c, %c : tensor<3xi32>
  return %0, %1, %2 : tensor<3xi8>, tensor<3xi16>, tensor<3xi32>
}
