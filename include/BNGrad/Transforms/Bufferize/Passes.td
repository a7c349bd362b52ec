//===- Passes.td - tensors to buffers -------------------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_BUFFERIZE_PASSES_TD
#define BNGRAD_TRANSFORMS_BUFFERIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradPrepareBufferizePass
    : Pass<"bngrad-prepare-bufferize", "::mlir::func::FuncOp"> {
  let summary = "Prepare tensors for bufferization without copies";
  let description = [{
    Needs: linalg on tensors, right before bufferization.
    Gives: no `tensor.empty`, and no `linalg.fill` of one, is the init of two
           ops, or of one op twice: bufferization would allocate and copy.
           Arguments are marked as read-only unless they already have the
           attribute `bufferization.writable`, so that results are not computed
           in the caller's operands. A value that is returned twice is copied,
           since each result has its own buffer. A tensor that is overwritten
           and then reshaped is computed in a buffer of the final shape. Slices
           of a tensor that is stored to a buffer, such as the two sums of a
           gradient, are stored one by one. Empty operands are dropped from
           concatenations, insertions and pads.
    Fails: if a buffer, or a view of it, is written between a
           `bufferization.to_tensor` and a reader of the tensor (error at the
           write, note at the tensor). Bufferization assumes that there is no such
           write; fusion and grouping may have moved the reader. Also if the index
           of a `tensor.dim` or `memref.dim` is a negative constant, the indices
           of a reshape are not consecutive, or a tensor is poison.

    Before:

    ```mlir
    func.func @f(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %empty = tensor.empty() : tensor<4xf32>
      %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>)
          -> tensor<4xf32>
      %1 = linalg.abs ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>)
          -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    ```

    After:

    ```mlir
    func.func @f(%a: tensor<4xf32> {bufferization.writable = false})
        -> (tensor<4xf32>, tensor<4xf32>) {
      %empty = tensor.empty() : tensor<4xf32>
      %other = tensor.empty() : tensor<4xf32>
      %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%other : tensor<4xf32>)
          -> tensor<4xf32>
      %1 = linalg.abs ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>)
          -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradReturnAllocsPass
    : Pass<"bngrad-return-allocs", "::mlir::func::FuncOp"> {
  let summary = "Return buffers without a cast";
  let description = [{
    Needs: memrefs, before `--buffer-results-to-out-params`.
    Gives: a buffer that is returned after a cast to dynamic sizes is allocated
           with these sizes, so that the out-parameter can replace it. The cast
           would cause a copy.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%x: f32) -> memref<?xf32> {
      %alloc = memref.alloc() : memref<4xf32>
      linalg.fill ins(%x : f32) outs(%alloc : memref<4xf32>)
      %cast = memref.cast %alloc : memref<4xf32> to memref<?xf32>
      return %cast : memref<?xf32>
    }
    ```

    After:

    ```mlir
    func.func @f(%x: f32) -> memref<?xf32> {
      %c4 = arith.constant 4 : index
      %alloc = memref.alloc(%c4) : memref<?xf32>
      %cast = memref.cast %alloc : memref<?xf32> to memref<4xf32>
      linalg.fill ins(%x : f32) outs(%cast : memref<4xf32>)
      return %alloc : memref<?xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
}

#endif // BNGRAD_TRANSFORMS_BUFFERIZE_PASSES_TD
