// A function that runs out of memory returns an error, frees its allocations, and can be called again: each
// allocation fails in turn.

// UNSUPPORTED: sanitizer
// DEFINE: %{cc} = %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -I%t -Wl,--wrap=malloc,--wrap=free,--wrap=mmap,--wrap=munmap

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/functions.o --header=%t/functions.h --threads=4
// RUN: %{cc} %S/Inputs/allocations.c %t/functions.o -lm -o %t/allocations
// RUN: env OMP_NUM_THREADS=4 %t/allocations | FileCheck %s
// RUN: env OMP_NUM_THREADS=1 %t/allocations | FileCheck %s
// CHECK: a workspace is mapped
// CHECK-NEXT: gradient: allocates nothing{{$}}
// CHECK-NEXT: dynamic: allocates nothing{{$}}
// CHECK-NEXT: temporaries: allocates nothing{{$}}
// CHECK-NEXT: carried: allocates{{$}}
// CHECK-NEXT: calling: allocates{{$}}
// CHECK-NEXT: parallel: allocates{{$}}
// CHECK-NEXT: strided: allocates nothing{{$}}
// CHECK-NEXT: right

// With a GPU, host memory is allocated for code of the host and for arrays with gaps.
// RUN: bngrad-compile %s -o %t/kernels.o --header=%t/functions.h --target=cuda
// RUN: %{cc} %S/Inputs/allocations.c %t/kernels.o -L%bngrad_obj_root/lib -Wl,-rpath,%bngrad_obj_root/lib \
// RUN:   -lBNGradCudaEmulator -lm -o %t/launches
// RUN: %t/launches | FileCheck %s --check-prefix=CUDA
// CUDA: no workspace is mapped
// CUDA-NEXT: gradient: allocates nothing{{$}}
// CUDA-NEXT: dynamic: allocates nothing{{$}}
// CUDA-NEXT: temporaries: allocates{{$}}
// CUDA-NEXT: carried: allocates{{$}}
// CUDA-NEXT: calling: allocates{{$}}
// CUDA-NEXT: parallel: allocates{{$}}
// CUDA-NEXT: strided: allocates{{$}}
// CUDA-NEXT: right

!d = tensor<64x96xf32>
!c = tensor<96xf32>
func.func @gradient(%dy: !d, %x: !d, %m: !c, %v: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !c) variance(%v : !c) : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}

!u = tensor<?x?xf32>
!v = tensor<?xf32>
func.func @dynamic(%dy: !u, %x: !u, %m: !v, %v: !v) -> (!u, !v, !v) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !u) input(%x : !u) mean(%m : !v) variance(%v : !v) : !u, !v, !v
  return %0#0, %0#1, %0#2 : !u, !v, !v
}

// Several allocations are live when one fails.
#rows = affine_map<(n, c) -> (n)>
#transposed = affine_map<(n, c) -> (c, n)>
#data = affine_map<(n, c) -> (n, c)>
func.func @temporaries(%a: !d, %b: !d) -> tensor<96x64xf32> {
  %empty = tensor.empty() : tensor<96x64xf32>
  %0 = linalg.generic {indexing_maps = [#data, #transposed], iterator_types = ["parallel", "parallel"]}
      ins(%a : !d) outs(%empty : tensor<96x64xf32>) {
  ^bb0(%e: f32, %o: f32):
    linalg.yield %e : f32
  } -> tensor<96x64xf32>
  %1 = linalg.generic {indexing_maps = [#data, #transposed], iterator_types = ["parallel", "parallel"]}
      ins(%b : !d) outs(%empty : tensor<96x64xf32>) {
  ^bb0(%e: f32, %o: f32):
    linalg.yield %e : f32
  } -> tensor<96x64xf32>
  %zero = arith.constant 0.0 : f32
  %square = tensor.empty() : tensor<96x96xf32>
  %init = linalg.fill ins(%zero : f32) outs(%square : tensor<96x96xf32>) -> tensor<96x96xf32>
  %2 = linalg.matmul ins(%0, %b : tensor<96x64xf32>, !d) outs(%init : tensor<96x96xf32>) -> tensor<96x96xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%empty : tensor<96x64xf32>) -> tensor<96x64xf32>
  %3 = linalg.matmul ins(%2, %1 : tensor<96x96xf32>, tensor<96x64xf32>) outs(%init2 : tensor<96x64xf32>) -> tensor<96x64xf32>
  %4 = arith.addf %3, %0 : tensor<96x64xf32>
  return %4 : tensor<96x64xf32>
}

// A buffer per iteration, which the next one reads.
#v = affine_map<(n) -> (n)>
#reversed = affine_map<(n, k) -> (k)>
#kept = affine_map<(n, k) -> (n)>
func.func @carried(%n: index, %a: !v) -> !v {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  %size = tensor.dim %a, %c0 : !v
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %a) -> !v {
    %empty = tensor.empty(%size) : !v
    %fill = linalg.fill ins(%half : f32) outs(%empty : !v) -> !v
    %1 = linalg.generic {indexing_maps = [#reversed, #kept], iterator_types = ["parallel", "reduction"]}
        ins(%carried : !v) outs(%fill : !v) {
    ^bb0(%e: f32, %o: f32):
      %s = arith.mulf %e, %half : f32
      %m = arith.maximumf %s, %o : f32
      linalg.yield %m : f32
    } -> !v
    scf.yield %1 : !v
  }
  return %0 : !v
}

// A call that cannot be inlined: the caller returns its status.
func.func @calling(%flag: i1, %a: !d, %b: !d) -> tensor<96x64xf32> {
  %0 = scf.if %flag -> tensor<96x64xf32> {
    %1 = func.call @of_blocks(%flag, %a, %b) : (i1, !d, !d) -> tensor<96x64xf32>
    scf.yield %1 : tensor<96x64xf32>
  } else {
    %1 = tensor.empty() : tensor<96x64xf32>
    scf.yield %1 : tensor<96x64xf32>
  }
  %2 = arith.addf %0, %0 : tensor<96x64xf32>
  return %2 : tensor<96x64xf32>
}
func.func private @of_blocks(%flag: i1, %a: !d, %b: !d) -> tensor<96x64xf32> {
  cf.cond_br %flag, ^first, ^second
^first:
  %0 = func.call @temporaries(%a, %b) : (!d, !d) -> tensor<96x64xf32>
  cf.br ^last(%0 : tensor<96x64xf32>)
^second:
  %1 = func.call @temporaries(%b, %a) : (!d, !d) -> tensor<96x64xf32>
  cf.br ^last(%1 : tensor<96x64xf32>)
^last(%2: tensor<96x64xf32>):
  return %2 : tensor<96x64xf32>
}

// Each thread allocates.
func.func @parallel(%a: memref<64x96xf32>, %r: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    // 96, but the size depends on the iteration.
    %size = arith.maxsi %i, %c96 : index
    %row = memref.subview %a[%i, 0] [1, %size] [1, 1]
        : memref<64x96xf32> to memref<?xf32, strided<[1], offset: ?>>
    %t = bufferization.to_tensor %row restrict : memref<?xf32, strided<[1], offset: ?>> to tensor<?xf32>
    %empty = tensor.empty(%size) : tensor<?xf32>
    %0 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%t : tensor<?xf32>) outs(%empty : tensor<?xf32>) {
    ^bb0(%e: f32, %o: f32):
      %1 = arith.mulf %e, %e : f32
      linalg.yield %1 : f32
    } -> tensor<?xf32>
    %j = arith.addi %i, %c1 : index
    %left = tensor.extract %0[%i] : tensor<?xf32>
    %right = tensor.extract %0[%j] : tensor<?xf32>
    %sum = arith.addf %left, %right : f32
    memref.store %sum, %r[%i] : memref<64xf32>
  }
  return
}

// On a GPU, a copy of each array without the gaps.
!s = memref<64x96xf32, strided<[97, 1]>>
func.func @strided(%dy: !s, %x: !s, %m: !c, %v: !c) -> !d {
  %0 = bufferization.to_tensor %dy restrict : !s to !d
  %1 = bufferization.to_tensor %x restrict : !s to !d
  %2:3 = bngrad.batch_norm_backward grad_output(%0 : !d) input(%1 : !d) mean(%m : !c) variance(%v : !c) : !d, !c, !c
  return %2#0 : !d
}

// The size of a temporary in bytes overflows.
func.func @sized(%n: index) -> tensor<1xf32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty(%n, %n) : tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#data], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<?x?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %t = arith.index_cast %s : index to i32
    %f = arith.sitofp %t : i32 to f32
    linalg.yield %f : f32
  } -> tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %e = tensor.extract %0[%c0, %c0] : tensor<?x?xf32>
  %r = tensor.from_elements %e : tensor<1xf32>
  return %r : tensor<1xf32>
}
