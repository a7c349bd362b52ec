//===- Passes.td - loops to LLVM ------------------------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_LOWER_PASSES_TD
#define BNGRAD_TRANSFORMS_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

include "BNGrad/Transforms/Lower/KernelPasses.td"

def BNGradMergeAllocationsPass
    : Pass<"bngrad-merge-allocations", "::mlir::func::FuncOp"> {
  let summary = "Merge allocations of device memory";
  let description = [{
    Needs: functions on buffers, after `bngrad-apply-schedule`.
    Gives: the `gpu.alloc` ops of a block that depend on one token, that of a
           stream, and precede the first free there, are one allocation: its
           size is the sum of theirs, each a multiple of 256 bytes, and they are
           views of it. It is freed where the last of them was. Buffers that
           nothing uses go. If the host waits after an `scf.if`, buffers that
           one branch alone uses are allocated and freed there, and both branches
           wait.
           An allocation stays if the host shares its memory, if it depends on no
           token or on several, if it is freed in another block or stream, or if
           its size depends on memory.
    Fails: never.

    Before:

    ```mlir
    func.func @f() {
      %stream = gpu.wait async
      %0, %t0 = gpu.alloc async [%stream] () : memref<4xf32>
      %1, %t1 = gpu.alloc async [%stream] () : memref<8xf32>
      %t2 = gpu.memcpy async [%stream] %0, %0 : memref<4xf32>, memref<4xf32>
      %t3 = gpu.memcpy async [%stream] %1, %1 : memref<8xf32>, memref<8xf32>
      %t4 = gpu.dealloc async [%stream] %0 : memref<4xf32>
      %t5 = gpu.dealloc async [%stream] %1 : memref<8xf32>
      gpu.wait [%t5]
      return
    }
    ```

    After, canonicalized:

    ```mlir
    func.func @f() {
      %c0 = arith.constant 0 : index
      %c256 = arith.constant 256 : index
      %c512 = arith.constant 512 : index
      %stream = gpu.wait async
      %arena, %t0 = gpu.alloc async [%stream] (%c512) : memref<?xi8>
      %0 = memref.view %arena[%c0][] : memref<?xi8> to memref<4xf32>
      %1 = memref.view %arena[%c256][] : memref<?xi8> to memref<8xf32>
      %t2 = gpu.memcpy async [%stream] %0, %0 : memref<4xf32>, memref<4xf32>
      %t3 = gpu.memcpy async [%stream] %1, %1 : memref<8xf32>, memref<8xf32>
      %t5 = gpu.dealloc async [%stream] %arena : memref<?xi8>
      gpu.wait [%t5]
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
}

def BNGradLowerElementCastPass : Pass<"bngrad-lower-element-cast"> {
  let summary = "Lower bngrad.element_cast";
  let description = [{
    Needs: buffers, right before they are lowered to LLVM.
    Gives: each `bngrad.element_cast` is an `unrealized_conversion_cast`, which
           the conversion to LLVM removes: memrefs of both element types are one
           LLVM type. A `memref.reinterpret_cast` gives it its size if that is
           another.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%mask: memref<?x8xi1>) -> memref<?x8xi8> {
      %0 = bngrad.element_cast %mask : memref<?x8xi1> to memref<?x8xi8>
      return %0 : memref<?x8xi8>
    }
    ```

    After:

    ```mlir
    func.func @f(%mask: memref<?x8xi1>) -> memref<?x8xi8> {
      %0 = builtin.unrealized_conversion_cast %mask
          : memref<?x8xi1> to memref<?x8xi8>
      return %0 : memref<?x8xi8>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
}

def BNGradExpandMathPass : Pass<"bngrad-expand-math"> {
  let summary = "Expand math that upstream cannot lower";
  let description = [{
    Needs: `math` ops on scalars or vectors, on a CPU or in kernels.
    Gives: `math.isinf`, `math.isnan`, `math.isfinite` and `math.isnormal` as
           comparisons, for every float type, without a library and without
           fast-math flags; `math.ipowi` as a loop of
           multiplications, with 0 for a negative power of 0; `math.fpowi` of a
           vector element by element; `math.fma` on bf16 in f32; `math.clampf` as
           upstream expands it.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%x: f32) -> i1 {
      %0 = math.isinf %x : f32
      return %0 : i1
    }
    ```

    After:

    ```mlir
    func.func @f(%x: f32) -> i1 {
      %inf = arith.constant 0x7F800000 : f32
      %0 = math.absf %x : f32
      %1 = arith.cmpf oeq, %0, %inf : f32
      return %1 : i1
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def BNGradExpandTruncFPass : Pass<"bngrad-expand-truncf"> {
  let summary = "Round once, subnormals included, in the mode of the op";
  let description = [{
    Needs: `arith.truncf` and `arith.extf` on scalars or vectors.
    Gives: truncation of f32 to bf16 in integer arithmetic (the conversion
           instruction of AVX-512 flushes subnormals), and of f64 to f16 or bf16
           through an f32 that is rounded to odd (a plain f32 would round
           twice). Pairs of vectors that `vector.interleave` joins are rounded
           together. No target obeys the other rounding modes: they become
           the nearest number and a choice between it and a neighbour. With
           `bf16-conversion`, vectors use the instruction unless one of their
           elements is subnormal or 0. With
           `kernel-bf16-conversion`, truncation of f32 to bf16 in `gpu.launch`
           stays as it is. With `f16-conversion=false`, conversions between f16
           and f32 outside of `gpu.launch` are integer arithmetic, too. Vectors of
           bf16 outside of it are extended and selected as integers, as x86
           without AVX-NE-CONVERT would compare and select them one by one.
    Fails: if the indices of a reshape of tensors are not consecutive (error at the
           reshape).
  }];
  let options = [
    Option<"bf16Conversion", "bf16-conversion", "bool", /*default=*/"false",
           "An instruction converts vectors of f32 to bf16 and flushes "
           "subnormals">,
    Option<"kernelBF16Conversion", "kernel-bf16-conversion", "bool",
           /*default=*/"false",
           "An instruction of the GPU converts f32 to bf16, subnormals "
           "included">,
    Option<"f16Conversion", "f16-conversion", "bool", /*default=*/"true",
           "Instructions convert vectors of f32 to f16 and back">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def BNGradShareLoopsPass : Pass<"bngrad-share-loops", "::mlir::ModuleOp"> {
  let summary = "Divide parallel loops among threads";
  let description = [{
    Needs: `scf.parallel`.
    Gives: a `bngrad.parallel` for each `scf.parallel` without results that is
           in no other one. In each phase, a thread runs a contiguous share of
           the iterations of one loop; those of several dims are counted
           together. Adjacent loops without memory accesses between them are
           phases of one op. Threads are woken only if there is more than one
           iteration.
    Fails: never; loops with results, whose order of sums is fixed, stay.

    Before:

    ```mlir
    func.func @f(%m: memref<?xf32>, %n: index, %x: f32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {
        memref.store %x, %m[%i] : memref<?xf32>
      }
      return
    }
    ```

    After, canonicalized:

    ```mlir
    func.func @f(%m: memref<?xf32>, %n: index, %x: f32) {
      %c1 = arith.constant 1 : index
      %0 = arith.cmpi sgt, %n, %c1 : index
      bngrad.parallel if(%0) {
      ^bb0(%thread: i32, %threads: i32):
        %1 = arith.index_cast %thread : i32 to index
        %2 = arith.index_cast %threads : i32 to index
        %3 = arith.muli %n, %1 : index
        %4 = arith.divsi %3, %2 : index
        %5 = arith.addi %1, %c1 : index
        %6 = arith.muli %n, %5 : index
        %7 = arith.divsi %6, %2 : index
        %8 = arith.minsi %7, %n : index
        scf.for %i = %4 to %8 step %c1 {
          memref.store %x, %m[%i] : memref<?xf32>
        }
        bngrad.yield
      }
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bngrad::BNGradDialect",
    "::mlir::func::FuncDialect", "::mlir::scf::SCFDialect"
  ];
}

def BNGradOutlineParallelPass
    : Pass<"bngrad-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "Make functions of the phases of parallel ops";
  let description = [{
    Needs: the LLVM dialect, and `bngrad.parallel`.
    Gives: a function `void(void *captures, int32_t thread, int32_t threads)` for
           each phase, and a call that runs them: on the `bngrad_threads_t` that
           the function's argument with the attribute `bngrad.threads` points
           to, or, if it is null or missing, on OpenMP's threads. OpenMP is that
           of the process, or else libomp.so.5 or libgomp.so.1, loaded by the
           first such call; the environment variable BNGRAD_OPENMP names another
           library, or none if it is empty. Without OpenMP, the calling thread
           runs them.
    Fails: if the module has other symbols named getenv, dlopen or dlsym.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def BNGradLowerAllocationsPass
    : Pass<"bngrad-lower-allocations", "::mlir::ModuleOp"> {
  let summary = "Lower allocations, with a return when memory runs out";
  let description = [{
    Needs: functions on buffers, with `cf` control flow and `bngrad.parallel`.
    Gives: each `memref.alloc` of the host calls malloc, with the node of a list
           before the data. If malloc returns null, or the size exceeds an i64,
           the function frees the buffers of its list and returns the status -2
           (`bngrad-return-status`); a function without a status calls abort.
           After a call that returned such a status, the caller does the same.
           In a phase of `bngrad.parallel`, the thread ends it, and the function
           returns after the op; each thread has its own list.
    Fails: if memory is allocated in any other region, or the module has other
           symbols named malloc, free or abort.

    Before:

    ```mlir
    func.func @f(%n: index) -> i32 attributes {bngrad.returns_status} {
      %0 = memref.alloc(%n) : memref<?xf32>
      memref.dealloc %0 : memref<?xf32>
      %c0_i32 = arith.constant 0 : i32
      return %c0_i32 : i32
    }
    ```

    After, abridged:

    ```mlir
    llvm.func @bngrad_allocate(i64, !llvm.ptr) -> !llvm.ptr
    llvm.func @bngrad_free(!llvm.ptr)
    llvm.func @bngrad_free_all(!llvm.ptr)
    func.func @f(%n: i64) -> i32 {
      %size = arith.constant 16 : i32
      %head = llvm.alloca %size x i8 : (i32) -> !llvm.ptr
      %0 = llvm.call @bngrad_allocate(%n, %head) : (i64, !llvm.ptr) -> !llvm.ptr
      %null = llvm.mlir.zero : !llvm.ptr
      %failed = llvm.icmp "eq" %0, %null : !llvm.ptr
      %status = arith.constant -2 : i32
      cf.cond_br %failed, ^bb2(%status : i32), ^bb1
    ^bb1:
      llvm.call @bngrad_free(%0) : (!llvm.ptr) -> ()
      %c0_i32 = arith.constant 0 : i32
      return %c0_i32 : i32
    ^bb2(%code: i32):
      llvm.call @bngrad_free_all(%head) : (!llvm.ptr) -> ()
      return %code : i32
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::bngrad::BNGradDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect"
  ];
}

def BNGradConvertToLLVMPass
    : Pass<"bngrad-convert-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert upstream's dialects to llvm";
  let description = [{
    Needs: branches instead of structured control flow.
    Gives: arith, cf, complex, func, index, math, memref, ub and vector converted by
           upstream's patterns, as by its pass for each dialect. Math functions
           without an intrinsic of LLVM become calls of the C library.
    Fails: if an op of cf, complex, index or ub cannot be converted, or if the
           module has a function `malloc`, `free` or `memrefCopy` of another type
           than a memref op calls. Other ops that no pattern converts stay.

    Before:

    ```mlir
    func.func @f(%memref: memref<4xf32>, %index: index) -> f32 {
      %0 = memref.load %memref[%index] : memref<4xf32>
      return %0 : f32
    }
    ```

    After, without what a descriptor has beside the pointer:

    ```mlir
    llvm.func @f(%pointer: !llvm.ptr, %index: i64) -> f32 {
      %0 = llvm.getelementptr %pointer[%index] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %1 = llvm.load %0 : !llvm.ptr -> f32
      llvm.return %1 : f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def BNGradDefineValuesPass : Pass<"bngrad-define-values"> {
  let summary = "Define the values that LLVM leaves undefined";
  let description = [{
    Needs: the LLVM dialect.
    Gives: values by which the checks of a program's sizes and indices, and the
           program itself, agree:

      * integer ops without the flags `nsw`, `nuw`, `exact`, `disjoint` and `nneg`,
        float ops without `nnan` and `ninf`, and `llvm.getelementptr` without `nuw`.
        Upstream sets `nsw` where it lowers affine expressions, and `nuw` on the
        product of an index and a stride (docs/upstream.md, section 21);
      * no `llvm.intr.assume`, and intrinsics of bits without `is_zero_poison` and
        `is_int_min_poison`;
      * shifts by as many bits as there are, or more, leave none of the value, or its
        sign alone;
      * a loaded i1 is true unless its byte is 0;
      * a number or a vector that is poison or undefined is 0.
    Fails: never.

    Before:

    ```mlir
    llvm.func @f(%index: i64, %stride: i64, %p: !llvm.ptr) -> i1 {
      %0 = llvm.mul %index, %stride overflow<nsw, nuw> : i64
      %1 = llvm.getelementptr %p[%0] : (!llvm.ptr, i64) -> !llvm.ptr, i1
      %2 = llvm.load %1 : !llvm.ptr -> i1
      llvm.return %2 : i1
    }
    ```

    After:

    ```mlir
    llvm.func @f(%index: i64, %stride: i64, %p: !llvm.ptr) -> i1 {
      %0 = llvm.mul %index, %stride : i64
      %1 = llvm.getelementptr %p[%0] : (!llvm.ptr, i64) -> !llvm.ptr, i1
      %2 = llvm.load %1 : !llvm.ptr -> i8
      %3 = llvm.mlir.constant(0 : i8) : i8
      %4 = llvm.icmp "ne" %2, %3 : i8
      llvm.return %4 : i1
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def BNGradGuardDivisionsPass : Pass<"bngrad-guard-divisions"> {
  let summary = "Define integer divisions that CPUs trap on";
  let description = [{
    Needs: the LLVM dialect.
    Gives: divisions of integers by values that are not constant as StableHLO
           defines them, outside of kernels. x / 0 has all bits set, and the
           remainder is x; the least integer / -1 is that integer, and the
           remainder is 0.
    Fails: never.

    Before:

    ```mlir
    llvm.func @f(%x: i64, %y: i64) -> i64 {
      %0 = llvm.urem %x, %y : i64
      llvm.return %0 : i64
    }
    ```

    After:

    ```mlir
    llvm.func @f(%x: i64, %y: i64) -> i64 {
      %0 = llvm.mlir.constant(0 : i64) : i64
      %1 = llvm.mlir.constant(1 : i64) : i64
      %2 = llvm.icmp "eq" %y, %0 : i64
      %3 = llvm.select %2, %1, %y : i1, i64
      %4 = llvm.urem %x, %3 : i64
      %5 = llvm.select %2, %x, %4 : i1, i64
      llvm.return %5 : i64
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def BNGradLoopAnnotationsPass : Pass<"bngrad-loop-annotations"> {
  let summary = "Move loop annotations to the branches that LLVM reads";
  let description = [{
    Needs: the LLVM dialect.
    Gives: the attribute `llvm.loop_annotation` of a branch becomes its inherent
           `loop_annotation`. Upstream's conversions of `scf.for` leave it on the
           back edge of the loop as a discardable attribute.
    Fails: never.

    Before:

    ```mlir
    #unroll = #llvm.loop_unroll<disable = true>
    #annotation = #llvm.loop_annotation<unroll = #unroll>
    llvm.func @f() {
      llvm.br ^bb1
    ^bb1:
      llvm.br ^bb1 {llvm.loop_annotation = #annotation}
    }
    ```

    After:

    ```mlir
    #unroll = #llvm.loop_unroll<disable = true>
    #annotation = #llvm.loop_annotation<unroll = #unroll>
    llvm.func @f() {
      llvm.br ^bb1
    ^bb1:
      llvm.br ^bb1 {loop_annotation = #annotation}
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // BNGRAD_TRANSFORMS_LOWER_PASSES_TD
