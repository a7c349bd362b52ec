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

def BNGradReturnStatusPass : Pass<"bngrad-return-status", "::mlir::ModuleOp"> {
  let summary = "Let functions return whether they ran out of memory";
  let description = [{
    Needs: functions on buffers.
    Gives: a function that may allocate memory, or calls one that may, returns an
           i32 as its last result. It is 0 here; `bngrad-lower-allocations` adds
           the paths that return another value when memory runs out.
           `bngrad-export-c` does the same. Functions whose address is taken are
           unchanged.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%n: index) {
      %0 = memref.alloc(%n) : memref<?xf32>
      memref.dealloc %0 : memref<?xf32>
      return
    }
    ```

    After:

    ```mlir
    func.func @f(%n: index) -> i32 attributes {bngrad.returns_status} {
      %0 = memref.alloc(%n) : memref<?xf32>
      memref.dealloc %0 : memref<?xf32>
      %c0_i32 = arith.constant 0 : i32
      return %c0_i32 : i32
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"
  ];
}

def BNGradAddShapeFunctionsPass
    : Pass<"bngrad-add-shape-functions", "::mlir::ModuleOp"> {
  let summary = "Add functions that check sizes and compute those of results";
  let description = [{
    Needs: functions on tensors, at the bngrad level.
    Gives: for each public function NAME a private one, NAME.shapes, of the same
           arguments and a pointer to three i64. It computes no data and returns
           the dynamic sizes of the results. Where sizes do not agree it stores
           the number of the error, the expected and the actual size at the
           pointer, and returns a status. NAME gets the names of its parameters
           and the texts of these errors as attributes, for `bngrad-export-c`.
    Fails: with an error at the op, if there is a call, the indices of a reshape of
           tensors are not consecutive, a dim has a negative index, an indexing map
           has a divisor that is not a positive constant, a
           memref.reinterpret_cast takes an unranked buffer that is not a cast of a
           ranked one, or the condition of a cf.assert or a size of a result
           depends on memory that the function writes.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradPlanWorkspacePass
    : Pass<"bngrad-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "Take the memory that functions need from a workspace";
  let description = [{
    Needs: functions on buffers, after `bngrad-apply-schedule`.
    Gives: a public function NAME that nobody calls gets a last argument, its
           workspace of type `memref<?xi8>`, and a private function NAME.workspace
           of its other arguments, which returns the size of the workspace in
           bytes; sizes that no memory holds make it 2^48 or more. Allocations
           become views of the workspace, aligned to 64 bytes if it is. A buffer that is
           freed in the same block is used again by one of no greater static
           size. Each iteration of a parallel loop has its own view.
           With `device` the same for `gpu.alloc`: the workspace is memory of the
           device, and ops that waited for an allocation wait for what that waited for.
           An allocation stays if it is in another loop, if its size depends on
           data, or if its buffer is passed on by a call, a branch or a loop.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%a: memref<4xf32>) {
      %0 = memref.alloc() : memref<4xf32>
      memref.copy %a, %0 : memref<4xf32> to memref<4xf32>
      memref.dealloc %0 : memref<4xf32>
      return
    }
    ```

    After:

    ```mlir
    func.func @f(%a: memref<4xf32>, %workspace: memref<?xi8>)
        attributes {bngrad.workspace = @f.workspace} {
      %c0 = arith.constant 0 : index
      %0 = memref.view %workspace[%c0][] : memref<?xi8> to memref<4xf32>
      memref.copy %a, %0 : memref<4xf32> to memref<4xf32>
      return
    }
    func.func private @f.workspace(%a: memref<4xf32>) -> i64 {
      %c64 = arith.constant 64 : i64
      return %c64 : i64
    }
    ```
  }];
  let options = [
    Option<"device", "device", "bool", /*default=*/"false",
           "Plan the allocations of gpu.alloc instead of those of memref.alloc">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def BNGradExportCPass : Pass<"bngrad-export-c", "::mlir::ModuleOp"> {
  let summary = "Give public functions entry points that C can call";
  let description = [{
    Needs: functions on buffers whose results are out-parameters, before they are
           lowered to LLVM.
    Gives: two entry points for each public function NAME. `int32_t NAME(...)`,
           if every shape and stride is static, takes a pointer to the data of
           each buffer. It returns -1 without a call if the pointer to a buffer
           with elements is null, -2 if memory ran out, otherwise the value of
           `status-function` after the call, or 0. `int32_t
           _mlir_ciface_NAME(...)` takes a pointer to the descriptor of each
           buffer, and returns 0 or -2. Both take scalars by value: index as
           int64_t, i1 as uint8_t (0 is false), f16 and bf16 as the uint16_t of
           their bits. The function itself, private functions and globals become
           internal, with a dot in their names, so they cannot collide with
           those of a library. Functions without a body are unchanged.
           With `infer` there is also `int32_t NAME_infer(descriptors, threads,
           text, text_size)`, if the sizes of the results follow from those of
           the arguments: it checks these as NAME_checked does, and stores the
           dynamic sizes of the results to their descriptors.
    Fails: if a public function has a name that C or a library reserves, has
           results, or has an argument that is neither a strided memref nor a
           scalar of these types.

    Before:

    ```mlir
    func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
      memref.copy %a, %b : memref<4xf32> to memref<4xf32>
      return
    }
    ```

    With calls abridged, after:

    ```mlir
    func.func private @f.impl(%a: memref<4xf32>, %b: memref<4xf32>)
        attributes {llvm.linkage = #llvm.linkage<internal>} {
      memref.copy %a, %b : memref<4xf32> to memref<4xf32>
      return
    }
    // Makes descriptors of the pointers, and calls.
    func.func private @f(!llvm.ptr, !llvm.ptr) -> i32
    // Loads the descriptors, and calls.
    func.func private @_mlir_ciface_f(!llvm.ptr, !llvm.ptr) -> i32
    ```
  }];
  let options = [
    Option<"statusFunction", "status-function", "std::string",
           /*default=*/"\"\"",
           "Function int32_t(void) whose value NAME returns unless memory ran out; empty: 0">,
    Option<"packed", "packed", "bool", /*default=*/"false",
           "Add NAME_packed and NAME_packed_workspace alone">,
    Option<"infer", "infer", "bool", /*default=*/"false",
           "Without packed: add NAME_infer, which computes the sizes of the results">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"
  ];
}

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

def BNGradDropPromisesPass : Pass<"bngrad-drop-promises", "::mlir::ModuleOp"> {
  let summary = "Drop what a program promises to LLVM, and define its poison";
  let description = [{
    Needs: functions, before they are inlined and `bngrad-add-shape-functions`.
    Gives: a program that has the same values however its ops are simplified, so
           that it agrees with the checks of its sizes and indices:

      * functions, arguments and results have no attributes of LLVM, such as
        `llvm.range`, `passthrough` and `memory_effects`, and no `no_inline`;
      * integer ops of arith have no flags `nsw`, `nuw` and `exact`;
      * poison numbers, and vectors of these, have all bits set; a lane of
        `vector.shuffle` without an element takes the first element;
      * affine ops are lowered, before upstream composes their maps.
    Fails: if an affine op cannot be lowered.

    Before:

    ```mlir
    func.func @f(%i: index {llvm.range = #llvm.constant_range<i64, 0, 8>}) -> index {
      %0 = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
      %1 = arith.divsi %0, %i exact : index
      return %1 : index
    }
    ```

    After:

    ```mlir
    func.func @f(%i: index) -> index {
      %c4 = arith.constant 4 : index
      %0 = arith.muli %i, %c4 : index
      %1 = arith.divsi %0, %i : index
      return %1 : index
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
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
