// Results are written to one file after the other; `-` skips one, and remaining ones are not written.

// DEFINE: %{run} = bngrad-runner %s --arg=random:1 --arg=random:2 --arg=random:3
// RUN: rm -rf %t
// RUN: mkdir -p %t/all %t/some
// RUN: %{run} --result=%t/all/a.npy --result=%t/all/b.npy --result=%t/all/c.npy | count 0
// RUN: cd %t/some && %{run} --result=- --result=%t/some/b.npy | count 0
// RUN: cmp %t/all/b.npy %t/some/b.npy
// RUN: not cmp %t/all/a.npy %t/all/b.npy
// RUN: not cmp %t/all/b.npy %t/all/c.npy
// RUN: ls %t/some | count 1

// A longer existing file is replaced.
// RUN: %{run} --result=%t/long.npy
// RUN: %{run} --result=- --result=%t/long.npy
// RUN: cmp %t/all/b.npy %t/long.npy

// Results are written with and without checks and timing.
// RUN: %{run} --result=%t/checked.npy --check --benchmark=1 | FileCheck %s
// RUN: cmp %t/all/a.npy %t/checked.npy
// CHECK: result 0 value max_error 0 bound 0 ok
// CHECK-NEXT: result 1 value max_error 0 bound 0 ok
// CHECK-NEXT: result 2 value max_error 0 bound 0 ok
// CHECK-NEXT: median_us=

func.func @rotate(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<300xf64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<300xf64>) {
  return %b, %a, %c : tensor<2xf32>, tensor<2xf32>, tensor<300xf64>
}
