//===- Passes.td - passes that lower loops to LLVM ------- -*- tablegen -*-===//
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
    Gives: a block's `gpu.alloc` ops that depend on the token of the same stream,
           and precede the first free in that stream, are merged. They become
           views of one allocation, whose size is the sum of their sizes, each
           rounded up to a multiple of 256 bytes. It is freed where the last of
           the buffers was freed. Unused buffers are removed. If the host waits
           after an `scf.if`, a buffer that only one branch uses is allocated and
           freed in that branch, and both branches wait instead.
           An allocation is kept if the host shares its memory, if it does not
           depend on exactly one token, if it is freed in another block or stream,
           or if its size depends on memory.
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
    Gives: each `bngrad.element_cast` becomes an `unrealized_conversion_cast`. The
           conversion to LLVM removes that cast, because memrefs that differ only
           in the element type have the same LLVM type. If the number of elements
           changes, a `memref.reinterpret_cast` follows.
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
    Gives: the following expansions:

      * `math.isinf`, `math.isnan`, `math.isfinite` and `math.isnormal` become
        comparisons without fast-math flags, which work for every float type with
        infinities and need no library;
      * `math.ipowi` becomes a loop of multiplications, in which a negative power
        of 0 is 0;
      * `math.fpowi` on a vector is computed element by element;
      * `math.fma` on bf16 is computed in f32;
      * `math.clampf` is expanded by upstream's pattern.
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
  let summary = "Make arith.truncf round only once, and in the mode of the op";
  let description = [{
    Needs: `arith.truncf` and `arith.extf` on scalars or vectors.
    Gives: conversions that round only once, also to subnormal results, and in the
           rounding mode of the op:

      * f32 is truncated to bf16 in integer arithmetic, because the conversion
        instruction of AVX-512 flushes subnormals. With `bf16-conversion`, vectors
        use the instruction unless an element is subnormal or 0. With
        `kernel-bf16-conversion`, these truncations are unchanged in `gpu.launch`.
      * If `vector.interleave` joins two vectors that are truncated to bf16, both
        are rounded together.
      * f64 is truncated to f16 or bf16 through an f32 that is rounded to odd.
        Rounding to the nearest f32 first would round twice.
      * Rounding modes other than to nearest even, which LLVM's targets ignore, are
        computed by a selection between the nearest number and a neighbour of it.
      * With `f16-conversion=false`, conversions between f16 and f32 outside of
        `gpu.launch` become integer arithmetic.
      * Vectors of bf16 outside of `gpu.launch` are extended and selected as
        integers, because x86 without AVX-NE-CONVERT would compare and select
        their elements one by one.
    Fails: if the indices of a reshape of tensors are not consecutive (error at the
           reshape).
  }];
  let options = [
    Option<"bf16Conversion", "bf16-conversion", "bool", /*default=*/"false",
           "The CPU has an instruction that converts vectors of f32 to bf16, and "
           "flushes subnormals">,
    Option<"kernelBF16Conversion", "kernel-bf16-conversion", "bool",
           /*default=*/"false",
           "The GPU has an instruction that converts f32 to bf16, including "
           "subnormals">,
    Option<"f16Conversion", "f16-conversion", "bool", /*default=*/"true",
           "The CPU has instructions that convert vectors of f32 to f16 and back">,
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
    Gives: each outermost `scf.parallel` without results becomes a phase of a
           `bngrad.parallel`. In a phase, each thread runs a contiguous share of
           the loop's iterations; a loop over several dims is collapsed first.
           Adjacent loops without memory accesses between them become phases of
           one op. Threads are woken only if a loop has more than one iteration.
           Loops with results are unchanged, because the order of their sums is
           fixed.
    Fails: never.

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
  let summary = "Outline the phases of bngrad.parallel";
  let description = [{
    Needs: the LLVM dialect, and `bngrad.parallel`.
    Gives: a function `void(void *captures, int32_t thread, int32_t threads)` for
           each phase, and a call that runs all phases of an op. They run on the
           `bngrad_threads_t` that the function's argument with the attribute
           `bngrad.threads` points to, or on OpenMP's threads if that pointer is
           null or there is no such argument. The OpenMP library is the one that
           the process has loaded; otherwise the first such call loads libomp.so.5
           or libgomp.so.1. The environment variable BNGRAD_OPENMP can name another
           library, or disable OpenMP if it is empty. Without OpenMP, the calling
           thread runs the phases.
    Fails: if the module has other symbols named getenv, dlopen or dlsym.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def BNGradLowerAllocationsPass
    : Pass<"bngrad-lower-allocations", "::mlir::ModuleOp"> {
  let summary = "Lower allocations to malloc, and return if memory runs out";
  let description = [{
    Needs: functions on buffers, with `cf` control flow and `bngrad.parallel`.
    Gives: each `memref.alloc` of host memory calls malloc. The allocated memory
           starts with the node of a list, followed by the data. If malloc returns
           null, or the size overflows an i64, the function frees the buffers in
           its list and returns the status -2 (`bngrad-return-status`); a function
           without a status calls abort. A caller of a function that fails in this
           way does the same. In a phase of `bngrad.parallel`, each thread has its
           own list; a thread that runs out of memory leaves the phase, and the
           function returns after the op.
    Fails: if memory is allocated in a region of any other op, or if the module has
           other symbols named malloc, free or abort.

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
  let summary = "Convert upstream's dialects to the LLVM dialect";
  let description = [{
    Needs: branches instead of structured control flow.
    Gives: ops of arith, cf, complex, func, index, math, memref, ub and vector are
           converted by upstream's patterns, with the same result as upstream's
           pass for each dialect. Math functions without an LLVM intrinsic become
           calls of the C library. Ops that no pattern converts are kept.
    Fails: if an op of cf, complex, index or ub cannot be converted, or if the
           module has a function `malloc`, `free` or `memrefCopy` whose type
           differs from the function that a memref op calls.

    Before:

    ```mlir
    func.func @f(%memref: memref<4xf32>, %index: index) -> f32 {
      %0 = memref.load %memref[%index] : memref<4xf32>
      return %0 : f32
    }
    ```

    After, with the descriptor abridged to its pointer:

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
    Gives: a program without undefined values, so that it agrees with the checks of
           its sizes and indices:

      * integer ops have no flags `nsw`, `nuw`, `exact`, `disjoint` and `nneg`, float
        ops have no `nnan` and `ninf`, and `llvm.getelementptr` has no `nuw`.
        Upstream sets `nsw` when it lowers affine expressions, and `nuw` on the
        product of an index and a stride (docs/upstream.md, section 21);
      * there is no `llvm.intr.assume`, and no bit intrinsic has `is_zero_poison` or
        `is_int_min_poison`;
      * a shift by at least the bit width gives 0, or for `llvm.ashr` all sign bits;
      * a loaded i1 is true unless its byte is 0;
      * a poison or undefined number or vector is 0.
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
    Gives: integer divisions, outside of kernels, that are defined for every divisor
           as in StableHLO. x / 0 has all bits set, with remainder x. The least
           integer divided by -1 is itself, with remainder 0. Divisions by a
           constant that is neither 0 nor -1 are unchanged.
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
    Gives: the discardable attribute `llvm.loop_annotation` of a branch becomes its
           inherent attribute `loop_annotation`, which the translation to LLVM IR
           reads. Upstream's conversions of `scf.for` leave the discardable
           attribute on the back edge of the loop.
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
