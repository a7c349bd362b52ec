//===- Passes.td - the C interface of compiled functions - -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CABI_PASSES_TD
#define BNGRAD_TRANSFORMS_CABI_PASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradDropPromisesPass : Pass<"bngrad-drop-promises", "::mlir::ModuleOp"> {
  let summary = "Drop promises to LLVM, and replace poison by defined values";
  let description = [{
    Needs: functions that have not been inlined, before
           `bngrad-add-shape-functions`.
    Gives: a program that computes the same values no matter how its ops are
           simplified. The checks of its sizes and indices are a simplified copy
           of the program, and would otherwise disagree with it:

      * functions, arguments and results have no LLVM attributes, such as
        `llvm.range`, `passthrough` and `memory_effects`, and no `no_inline`;
      * integer ops of arith have no flags `nsw`, `nuw` and `exact`;
      * poison numbers and vectors become constants with all bits set, and a
        poison lane of `vector.shuffle` takes the first element;
      * affine ops are lowered before upstream can compose their maps.
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

def BNGradAddShapeFunctionsPass
    : Pass<"bngrad-add-shape-functions", "::mlir::ModuleOp"> {
  let summary = "Add functions that check sizes and compute result sizes";
  let description = [{
    Needs: functions on tensors, at the bngrad level.
    Gives: for each public function NAME, a private function NAME.shapes. It takes
           the same arguments and a pointer to three i64, computes no data, and
           returns the dynamic sizes of the results. If a check of sizes fails, it
           stores the number of the error, the expected size and the actual size
           at the pointer, and returns a status. NAME gets its parameter names and
           the messages of these errors as attributes, for `bngrad-export-c`.
    Fails: with an error at the op, if

      * the function contains a call;
      * the indices of a reshape of tensors are not consecutive;
      * the index of a dim is negative;
      * an indexing map has a divisor that is not a positive constant;
      * the source of a memref.reinterpret_cast is an unranked buffer that is not
        a cast of a ranked one;
      * the condition of a cf.assert or the size of a result depends on memory
        that the function writes.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradReturnStatusPass : Pass<"bngrad-return-status", "::mlir::ModuleOp"> {
  let summary = "Make functions return whether they ran out of memory";
  let description = [{
    Needs: functions on buffers.
    Gives: each function that may allocate memory, directly or through a call,
           returns a status as its last result, an i32. This pass always returns
           0; `bngrad-lower-allocations` adds the paths that return another value
           when memory runs out. `bngrad-export-c` adds the status as well, so it
           does not need this pass. Functions whose address is taken are unchanged.
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

def BNGradPlanWorkspacePass
    : Pass<"bngrad-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "Replace allocations by views of a workspace argument";
  let description = [{
    Needs: functions on buffers, after `bngrad-apply-schedule`.
    Gives: each public function NAME that is not called in the module gets a last
           argument of type `memref<?xi8>`, its workspace. A private function
           NAME.workspace takes the other arguments and returns the size of the
           workspace in bytes, which is at least 2^48 if a size is too large for
           any memory. Allocations become views of the workspace, which are aligned
           to 64 bytes if the workspace is. The memory of a buffer of static size
           that is freed is reused for a later buffer in the same block if that is
           no larger. Each iteration of a parallel loop has its own view.
           With `device`, the pass replaces `gpu.alloc` in the same way. The
           workspace is then device memory, and ops that waited for an allocation
           wait for the token that the allocation depended on.
           An allocation is kept if it is in a sequential loop, if its size depends
           on data, or if its buffer is passed to a call, a branch or a loop.
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
           "Replace gpu.alloc instead of memref.alloc">
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
    Gives: the entry points below for each public function NAME. They take scalars
           by value: index as int64_t, i1 as uint8_t (0 is false), f16 and bf16 as
           a uint16_t with their bits. The function itself, private functions and
           globals become internal. Functions get a dot in their names, so that
           they cannot collide with functions of a library. Functions without a
           body are unchanged.

      * `int32_t NAME(...)` exists if every shape and stride is static, and takes
        a pointer to the data of each buffer. It returns -1 without running the
        function if the pointer to a nonempty buffer is null, -2 if memory ran
        out, and otherwise the value of `status-function` after the call, or 0.
      * `int32_t _mlir_ciface_NAME(...)` takes a pointer to the descriptor of each
        buffer, and returns the same values, except that it returns -1 only if
        `NAME` exists.
      * `NAME_checked`, `NAME_diagnose` and `NAME_workspace` check the arguments,
        print the first error, and compute the size of the workspace
        (docs/ahead-of-time.md).
      * With `infer`, `int32_t NAME_infer(descriptors, threads, text, text_size)`
        exists if the sizes of the results follow from the arguments. It checks
        the arguments as `NAME_checked` does, and stores the dynamic sizes of the
        results in their descriptors.
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
    // Builds descriptors from the pointers, and calls @f.impl.
    func.func private @f(!llvm.ptr, !llvm.ptr) -> i32
    // Loads the data pointers from the descriptors, and calls @f.
    func.func private @_mlir_ciface_f(!llvm.ptr, !llvm.ptr) -> i32
    ```
  }];
  let options = [
    Option<"statusFunction", "status-function", "std::string",
           /*default=*/"\"\"",
           "Function int32_t(void) whose value NAME returns unless memory ran out; "
           "if empty, NAME returns 0">,
    Option<"packed", "packed", "bool", /*default=*/"false",
           "Add only NAME_packed and NAME_packed_workspace">,
    Option<"infer", "infer", "bool", /*default=*/"false",
           "Add NAME_infer, which computes the sizes of the results; ignored with "
           "packed">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"
  ];
}

#endif // BNGRAD_TRANSFORMS_CABI_PASSES_TD
