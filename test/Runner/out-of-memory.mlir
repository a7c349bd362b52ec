// Out of memory gives one line, in each part: the compiler, arrays, temporaries of the function, --check.

// UNSUPPORTED: sanitizer
// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{limited} = prlimit --as=16000000000 bngrad-runner %s
// DEFINE: %{any} = %python %S/check_memory.py

// RUN: %{fails} "out of memory: cannot allocate what a function needs beside its arguments and results" \
// RUN:   %{limited} --entry=outer --arg=random:1@1048576
// RUN: %{fails} "out of memory: cannot allocate what a function needs beside its arguments and results" \
// RUN:   %{limited} --entry=outer --arg=random:1@1048576 --target=cuda-emulator
// RUN: bngrad-runner %s --entry=outer --arg=random:1@10 --check
// RUN: bngrad-runner %s --entry=outer --arg=random:1@10 --target=cuda-emulator
func.func @outer(%a: tensor<?xf32>) -> tensor<1xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %empty = tensor.empty(%n, %n) : tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %a : tensor<?xf32>, tensor<?xf32>) outs(%empty : tensor<?x?xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %1 = arith.subf %l, %r : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  // Read by an op that no loop can compute.
  %last = arith.subi %n, %c1 : index
  %e = tensor.extract %0[%last, %c0] : tensor<?x?xf32>
  %r = tensor.from_elements %e : tensor<1xf32>
  return %r : tensor<1xf32>
}

// Arrays.
// RUN: %{fails} "argument 0 (random:1@100000000000000): out of memory: cannot allocate 400000000000000 bytes" \
// RUN:   %{limited} --entry=outer --arg=random:1@100000000000000
// RUN: %{fails} "argument 0 (random:1@4611686018427387904): expected extents >= 0 and a size below 2^63 bytes" \
// RUN:   %{limited} --entry=outer --arg=random:1@4611686018427387904

// Other memory.
// RUN: %{any} bngrad-runner %s --entry=gradient --arg=random:1@4096x512 --arg=random:2@4096x512 --arg=random:3@512 \
// RUN:   --arg=random:4@512 --check | FileCheck %s
// RUN: %{any} bngrad-runner %s --entry=gradient --arg=random:1@8x4 --arg=random:2@8x4 --arg=random:3@4 \
// RUN:   --arg=random:4@4 --target=cuda-emulator | FileCheck %s
// RUN: %{any} bngrad-compile %s -o %t.o | FileCheck %s
// RUN: %{any} bngrad-opt %s --bngrad-cpu-pipeline -o %t.mlir | FileCheck %s
// CHECK: succeeds, fails with less: yes
!u = tensor<?x?xf32>
!v = tensor<?xf32>
func.func @gradient(%dy: !u, %x: !u, %m: !v, %v: !v) -> (!u, !v) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !u) input(%x : !u) mean(%m : !v) variance(%v : !v) : !u, !v, !v
  %1 = arith.addf %0#0, %x : !u
  return %1, %0#1 : !u, !v
}
