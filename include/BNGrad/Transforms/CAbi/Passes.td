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

#endif // BNGRAD_TRANSFORMS_CABI_PASSES_TD
