//===- Passes.td - passes, in pipeline order ------------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PASSES_TD
#define BNGRAD_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradImportPass : Pass<"bngrad-import", "::mlir::func::FuncOp"> {
  let summary = "Import batch-norm gradients of other dialects";
  let description = [{
    Needs: `stablehlo.batch_norm_grad`, `mhlo.batch_norm_grad` or
           `torch.aten.native_batch_norm_backward`, unregistered and in generic
           form (`--allow-unregistered-dialect`); the scalar operands of the
           torch op are `torch.constant.*` and `torch.prim.ListConstruct`.
    Gives: `bngrad.batch_norm_backward` in their place, with the same types of
           results. A torch op uses the saved statistics (inv_std) in training,
           otherwise the running ones (variance, epsilon). Per-channel operands
           of different types are extended to the widest. A `!torch.vtensor` is
           converted to a builtin tensor by an `unrealized_conversion_cast`.
    Fails: if the bngrad op cannot express an op (error at that op).

    Before:

    ```mlir
    func.func @f(%x: tensor<8x4xf32>, %scale: tensor<4xf32>,
                 %mean: tensor<4xf32>, %variance: tensor<4xf32>,
                 %dy: tensor<8x4xf32>) -> tensor<8x4xf32> {
      %0:3 = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
          <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
          : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
             tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
      return %0#0 : tensor<8x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @f(%x: tensor<8x4xf32>, %scale: tensor<4xf32>,
                 %mean: tensor<4xf32>, %variance: tensor<4xf32>,
                 %dy: tensor<8x4xf32>) -> tensor<8x4xf32> {
      %dx, %dscale, %doffset = bngrad.batch_norm_backward
          grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
          scale(%scale : tensor<4xf32>) mean(%mean : tensor<4xf32>)
          variance(%variance : tensor<4xf32>)
          {epsilon = 1.0000000474974513E-3 : f64}
          : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
      return %dx : tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bngrad::BNGradDialect"
  ];
}

def BNGradFoldTransposePass
    : Pass<"bngrad-fold-transpose", "::mlir::func::FuncOp"> {
  let summary = "Fold transposes of the data into feature_dims";
  let description = [{
    Needs: tensors.
    Gives: if the same `linalg.transpose` is applied to grad_output, input and
           mask, the op takes their sources, with permuted `feature_dims`. Its
           grad_input is transposed instead, which cancels with a reader that
           transposes it back.
    Fails: never. Transposes that differ, or that change the order of several
           feature dims, stay.

    Before:

    ```mlir
    func.func @f(%a: tensor<2x8x4xf32>, %b: tensor<2x8x4xf32>,
                 %mean: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<i64>) {
      %empty = tensor.empty() : tensor<2x4x8xf32>
      %dy = linalg.transpose ins(%a : tensor<2x8x4xf32>)
          outs(%empty : tensor<2x4x8xf32>) permutation = [0, 2, 1]
      %x = linalg.transpose ins(%b : tensor<2x8x4xf32>)
          outs(%empty : tensor<2x4x8xf32>) permutation = [0, 2, 1]
      %sums, %count = bngrad.batch_norm_backward_reduce
          grad_output(%dy : tensor<2x4x8xf32>) input(%x : tensor<2x4x8xf32>)
          mean(%mean : tensor<4xf32>) : tensor<2x4xf32>, tensor<i64>
      return %sums, %count : tensor<2x4xf32>, tensor<i64>
    }
    ```

    After:

    ```mlir
    func.func @f(%a: tensor<2x8x4xf32>, %b: tensor<2x8x4xf32>,
                 %mean: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<i64>) {
      %sums, %count = bngrad.batch_norm_backward_reduce
          grad_output(%a : tensor<2x8x4xf32>) input(%b : tensor<2x8x4xf32>)
          mean(%mean : tensor<4xf32>) {feature_dims = array<i64: 2>}
          : tensor<2x4xf32>, tensor<i64>
      return %sums, %count : tensor<2x4xf32>, tensor<i64>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradSplitPass : Pass<"bngrad-split", "::mlir::func::FuncOp"> {
  let summary = "Split the gradient into its two halves";
  let description = [{
    Needs: tensors.
    Gives: `bngrad.batch_norm_backward_reduce` with the sums of each channel,
           `bngrad.batch_norm_backward_elemt` with grad_input from them, and
           per-channel linalg for grad_scale and grad_offset, each only if a
           result needs it. Sums and count may be reduced over devices before
           they are used.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>,
                 %inv_std: tensor<4xf32>) -> tensor<8x4xf32> {
      %dx, %dscale, %doffset = bngrad.batch_norm_backward
          grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
          mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>)
          : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
      return %dx : tensor<8x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @f(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>,
                 %inv_std: tensor<4xf32>) -> tensor<8x4xf32> {
      %sums, %count = bngrad.batch_norm_backward_reduce
          grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
          mean(%mean : tensor<4xf32>) : tensor<2x4xf32>, tensor<i64>
      %dx = bngrad.batch_norm_backward_elemt
          grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
          mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>)
          sums(%sums : tensor<2x4xf32>) count(%count : tensor<i64>)
          : tensor<8x4xf32>
      return %dx : tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bngrad::BNGradDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def BNGradDecomposePass : Pass<"bngrad-decompose", "::mlir::func::FuncOp"> {
  let summary = "Decompose bngrad ops into linalg on tensors";
  let description = [{
    Needs: tensors.
    Gives: no bngrad op; for each one reduction `linalg.generic` that reads
           grad_output and input once, one per-channel generic with the
           coefficients and the per-channel results, one element-wise generic
           with grad_input. Each sum has its own init. Ops for unused results
           are not built.
    Fails: if an op has no decomposition (error at that op).

    Before:

    ```mlir
    func.func @f(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>,
                 %inv_std: tensor<4xf32>) -> tensor<8x4xf32> {
      %dx, %dscale, %doffset = bngrad.batch_norm_backward
          grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
          mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>)
          {statistics = #bngrad.statistics<global>}
          : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
      return %dx : tensor<8x4xf32>
    }
    ```

    After:

    ```mlir
    #channel = affine_map<(d0) -> (d0)>
    #data = affine_map<(d0, d1) -> (d0, d1)>
    #feature = affine_map<(d0, d1) -> (d1)>
    func.func @f(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>,
                 %inv_std: tensor<4xf32>) -> tensor<8x4xf32> {
      %empty = tensor.empty() : tensor<4xf32>
      %factor = linalg.generic {indexing_maps = [#channel, #channel],
                                iterator_types = ["parallel"]}
          ins(%inv_std : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
      ^bb0(%r: f32, %out: f32):
        linalg.yield %r : f32
      } -> tensor<4xf32>
      %init = tensor.empty() : tensor<8x4xf32>
      %dx = linalg.generic {indexing_maps = [#data, #feature, #data],
                            iterator_types = ["parallel", "parallel"]}
          ins(%dy, %factor : tensor<8x4xf32>, tensor<4xf32>)
          outs(%init : tensor<8x4xf32>) {
      ^bb0(%g: f32, %f: f32, %out: f32):
        %0 = arith.mulf %f, %g fastmath<contract> : f32
        linalg.yield %0 : f32
      } -> tensor<8x4xf32>
      return %dx : tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradFusePass : Pass<"bngrad-fuse", "::mlir::func::FuncOp"> {
  let summary = "Fuse element-wise producers and consumers into the gradient";
  let description = [{
    Needs: linalg on tensors.
    Gives: an element-wise `linalg.generic` is fused into all of its readers, if
           each of them allows it. The producers of grad_output and input are
           fused into both generics of a gradient; its element-wise generic is
           fused into the consumer of grad_input. Per-channel values remain
           per-channel, and no generic with a reduction is duplicated. A reshape
           between two generics is folded: the loops of the coarser shape are
           split.
    Fails: never; ops that cannot be fused are unchanged.

    Before:

    ```mlir
    #data = affine_map<(d0, d1) -> (d0, d1)>
    #feature = affine_map<(d0, d1) -> (d1)>
    func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>,
                 %init: tensor<4xf32>) -> tensor<4xf32> {
      %empty = tensor.empty() : tensor<8x4xf32>
      %product = linalg.generic {indexing_maps = [#data, #data, #data],
                                 iterator_types = ["parallel", "parallel"]}
          ins(%a, %b : tensor<8x4xf32>, tensor<8x4xf32>)
          outs(%empty : tensor<8x4xf32>) {
      ^bb0(%l: f32, %r: f32, %out: f32):
        %0 = arith.mulf %l, %r : f32
        linalg.yield %0 : f32
      } -> tensor<8x4xf32>
      %sum = linalg.generic {indexing_maps = [#data, #feature],
                             iterator_types = ["reduction", "parallel"]}
          ins(%product : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
      ^bb0(%p: f32, %acc: f32):
        %0 = arith.addf %acc, %p : f32
        linalg.yield %0 : f32
      } -> tensor<4xf32>
      return %sum : tensor<4xf32>
    }
    ```

    After:

    ```mlir
    #data = affine_map<(d0, d1) -> (d0, d1)>
    #feature = affine_map<(d0, d1) -> (d1)>
    func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>,
                 %init: tensor<4xf32>) -> tensor<4xf32> {
      %sum = linalg.generic {indexing_maps = [#data, #data, #feature],
                             iterator_types = ["reduction", "parallel"]}
          ins(%a, %b : tensor<8x4xf32>, tensor<8x4xf32>)
          outs(%init : tensor<4xf32>) {
      ^bb0(%l: f32, %r: f32, %acc: f32):
        %0 = arith.mulf %l, %r : f32
        %1 = arith.addf %acc, %0 : f32
        linalg.yield %1 : f32
      } -> tensor<4xf32>
      return %sum : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradGroupPass : Pass<"bngrad-group", "::mlir::func::FuncOp"> {
  let summary = "Group the parts of a gradient and choose their schedule";
  let description = [{
    Needs: linalg on tensors, after `--bngrad-fuse`.
    Gives: the reduction, the per-channel generics that follow from it and the
           element-wise generic that reads those, found by their structure, are
           enclosed in one `scf.execute_region no_inline`. Each gets the schedule
           as the attribute `bngrad.schedule`, unless it already has one. Inits
           of values used only in the region are inside it. A sum must have
           `fastmath<reassoc>` on its addition, which allows the schedule to
           choose the order; a sum without it is not grouped.
    Fails: if the option `schedule` is not a schedule.

    Before:

    ```mlir
    #data = affine_map<(d0, d1) -> (d0, d1)>
    #feature = affine_map<(d0, d1) -> (d1)>
    func.func @f(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
      %sum = linalg.generic {indexing_maps = [#data, #feature],
                             iterator_types = ["reduction", "parallel"]}
          ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
      ^bb0(%e: f32, %acc: f32):
        %0 = arith.addf %acc, %e fastmath<reassoc> : f32
        linalg.yield %0 : f32
      } -> tensor<4xf32>
      return %sum : tensor<4xf32>
    }
    ```

    After:

    ```mlir
    #data = affine_map<(d0, d1) -> (d0, d1)>
    #feature = affine_map<(d0, d1) -> (d1)>
    func.func @f(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
      %sum = scf.execute_region -> tensor<4xf32> no_inline {
        %0 = linalg.generic {indexing_maps = [#data, #feature],
                             iterator_types = ["reduction", "parallel"]}
            ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>)
            attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, blocks = 32>} {
        ^bb0(%e: f32, %acc: f32):
          %1 = arith.addf %acc, %e fastmath<reassoc> : f32
          linalg.yield %1 : f32
        } -> tensor<4xf32>
        scf.yield %0 : tensor<4xf32>
      }
      return %sum : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", /*default=*/"\"\"",
           "Schedule for every group, as an attribute such as "
           "#bngrad.schedule<loops>; empty: chosen by shape, types and target">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Target: length of a vector register">,
    Option<"threads", "threads", "int64_t", /*default=*/"1",
           "Target: threads that run at a time">,
    Option<"l1Bytes", "l1-bytes", "int64_t", /*default=*/"49152",
           "Target: first-level data cache of a core">,
    Option<"chip", "chip", "std::string", /*default=*/"\"\"",
           "Target: NVIDIA GPUs, comma-separated, such as sm_90; empty: a CPU, "
           "which the other options describe">,
    Option<"lastLevelBytes", "last-level-bytes", "int64_t",
           /*default=*/"33554432", "Target: last-level cache">,
    Option<"fma", "fma", "bool", /*default=*/"false",
           "Target: vectors have a fused multiply-add">
  ];
  let dependentDialects = [
    "::mlir::bngrad::BNGradDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradPrepareBufferizePass
    : Pass<"bngrad-prepare-bufferize", "::mlir::func::FuncOp"> {
  let summary = "Prepare tensors for bufferization without copies";
  let description = [{
    Needs: linalg on tensors, right before bufferization.
    Gives: no `tensor.empty`, and no `linalg.fill` of one, is the init of two
           ops, or of one op twice: bufferization would allocate and copy.
           Arguments are marked as read-only unless they have the attribute, so
           that results are not computed in the caller's operands. A value that
           is returned twice is copied, since each result has its own buffer. A
           tensor that is overwritten and then reshaped is computed in a buffer
           of the final shape. Parts without elements are dropped from
           concatenations, insertions and pads.
    Fails: if a buffer is written, through any view of it, between a
           `bufferization.to_tensor` and a reader of the tensor. Bufferization
           assumes that there is no such write, and fusion and grouping have
           moved readers (error at the write, note at the tensor).

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

def BNGradExpandViewsPass : Pass<"bngrad-expand-views"> {
  let summary = "Expand views that upstream lowers incorrectly";
  let description = [{
    Needs: memrefs.
    Gives: a `memref.subview` that drops some of several unit dims, or has a
           dynamic size that may be 1, drops none; a `memref.reinterpret_cast`
           drops them instead. With `reshapes`, a `memref.expand_shape` with
           several dynamic sizes in a group becomes a `memref.reinterpret_cast`.
           Upstream crashes on such ops or drops other dims (docs/upstream.md).
           Without `reshapes`, reshapes can still fold with others.
    Fails: if the sizes and the strides of a slice's type imply different dropped
           dims, which the verifier accepts (error at the slice).

    Before:

    ```mlir
    func.func @f(%a: memref<?x8xf32>, %n: index, %m: index)
        -> memref<?x?x8xf32> {
      %0 = memref.expand_shape %a [[0, 1], [2]] output_shape [%n, %m, 8]
          : memref<?x8xf32> into memref<?x?x8xf32>
      return %0 : memref<?x?x8xf32>
    }
    ```

    After:

    ```mlir
    func.func @f(%a: memref<?x8xf32>, %n: index, %m: index)
        -> memref<?x?x8xf32> {
      %c8 = arith.constant 8 : index
      %0 = arith.muli %m, %c8 : index
      %1 = memref.reinterpret_cast %a to offset: [0], sizes: [%n, %m, 8],
          strides: [%0, 8, 1] : memref<?x8xf32> to memref<?x?x8xf32>
      return %1 : memref<?x?x8xf32>
    }
    ```
  }];
  let options = [
    Option<"reshapes", "reshapes", "bool", /*default=*/"true",
           "Expand reshapes as well as slices">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
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

def BNGradApplySchedulePass
    : Pass<"bngrad-apply-schedule", "::mlir::func::FuncOp"> {
  let summary = "Turn scheduled linalg ops on buffers into loops";
  let description = [{
    Needs: `linalg.generic` ops on memrefs with the attribute `bngrad.schedule`.
    Gives: the loops of the schedule (see `#bngrad.schedule`), with the element's
           computation cloned from the generics' regions. Strided operands are
           tested for dense forms at run time; each form has its own loops. A
           sum adds short chains, and carries the rounding error of adding them
           (TwoSum), so its error does not grow with its length. The order of
           summation depends only on the shape and the schedule, not on the
           number of threads. The `scf.execute_region` of a group may be inlined
           from now on.
    Fails: if an attribute `bngrad.schedule` is not a schedule, or, with
           `device-arguments`, if host code still accesses an argument. A generic
           that cannot be cloned is left to upstream's loops, and a group without
           vector loops gets scalar ones; a remark states the reason.

    Before:

    ```mlir
    #data = affine_map<(d0, d1) -> (d0, d1)>
    func.func @f(%a: memref<8x4xf32>, %b: memref<8x4xf32>) {
      linalg.generic {indexing_maps = [#data, #data],
                      iterator_types = ["parallel", "parallel"]}
          ins(%a : memref<8x4xf32>) outs(%b : memref<8x4xf32>)
          attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
      ^bb0(%e: f32, %out: f32):
        %0 = arith.negf %e : f32
        linalg.yield %0 : f32
      }
      return
    }
    ```

    After:

    ```mlir
    func.func @f(%a: memref<8x4xf32>, %b: memref<8x4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
        scf.for %j = %c0 to %c4 step %c1 {
          %0 = memref.load %a[%i, %j] : memref<8x4xf32>
          %1 = arith.negf %0 : f32
          memref.store %1, %b[%i, %j] : memref<8x4xf32>
        }
        scf.reduce
      }
      return
    }
    ```
  }];
  let options = [
    Option<"deviceArguments", "device-arguments", "bool", /*default=*/"false",
           "Arguments of functions are in device memory, where GPU kernels use "
           "them in place">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def BNGradExpandCopiesPass
    : Pass<"bngrad-expand-copies", "::mlir::func::FuncOp"> {
  let summary = "Convert copies between strided buffers to linalg";
  let description = [{
    Needs: memrefs.
    Gives: a `memref.copy` with a buffer that is not contiguous becomes a
           `linalg.generic`; upstream would call its own runtime library. Other
           copies become memcpy later.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%a: memref<2xf32, strided<[3]>>, %b: memref<2xf32>) {
      memref.copy %a, %b : memref<2xf32, strided<[3]>> to memref<2xf32>
      return
    }
    ```

    After:

    ```mlir
    #data = affine_map<(d0) -> (d0)>
    func.func @f(%a: memref<2xf32, strided<[3]>>, %b: memref<2xf32>) {
      linalg.generic {indexing_maps = [#data, #data],
                      iterator_types = ["parallel"]}
          ins(%a : memref<2xf32, strided<[3]>>) outs(%b : memref<2xf32>) {
      ^bb0(%e: f32, %out: f32):
        linalg.yield %e : f32
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
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
           "Function int32_t(void) whose value NAME returns unless memory ran out; empty: 0">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"
  ];
}

def BNGradAttachChipsPass
    : Pass<"bngrad-attach-chips", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Attach the GPUs for which kernels are compiled";
  let description = [{
    Needs: kernels.
    Gives: an `#nvvm.target` for each chip and, if there are several, the handler
           `#bngrad.select_by_device`.
    Fails: if a chip is unknown or too old, or does not support `features`.

    Before:

    ```mlir
    gpu.module @kernels {
    }
    ```

    After (`chip=sm_80,sm_90`):

    ```mlir
    gpu.module @kernels <#bngrad.select_by_device> [
        #nvvm.target<chip = "sm_80", features = "+ptx80", O = 3>,
        #nvvm.target<chip = "sm_90", features = "+ptx80", O = 3>] {
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_90\"",
           "GPUs, comma-separated">,
    Option<"features", "features", "std::string", /*default=*/"\"\"",
           "Version of PTX for all chips, such as +ptx80; empty: ptx80, or the "
           "first version that supports the chip">,
    Option<"optLevel", "opt-level", "unsigned", /*default=*/"3",
           "Optimization, 0 to 3">
  ];
  let dependentDialects = [
    "::mlir::bngrad::BNGradDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def BNGradLayOutSharedMemoryPass
    : Pass<"bngrad-lay-out-shared-memory", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Align shared memory, and make the dynamic one external";
  let description = [{
    Needs: kernels in the LLVM dialect.
    Gives: shared memory aligned to 16 bytes, as vector accesses require, and
           dynamic shared memory with external linkage. With internal linkage it
           would be a static variable without a size.
    Fails: never.

    Before:

    ```mlir
    gpu.module @kernels {
      llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    }
    ```

    After:

    ```mlir
    gpu.module @kernels {
      llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def BNGradLowerKernelMathPass
    : Pass<"bngrad-lower-kernel-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower math in kernels to correctly rounded instructions";
  let description = [{
    Needs: kernels.
    Gives: square roots, and other functions for which PTX has correctly rounded
           instructions, become intrinsics of LLVM. Upstream's conversion calls
           functions of libdevice, which round differently and need a toolkit;
           it converts all other functions.
    Fails: if a function needs libdevice and libdevice is not found.

    Before:

    ```mlir
    gpu.module @kernels {
      func.func @f(%x: f32) -> f32 {
        %0 = math.sqrt %x : f32
        return %0 : f32
      }
    }
    ```

    After:

    ```mlir
    gpu.module @kernels {
      func.func @f(%x: f32) -> f32 {
        %0 = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
        return %0 : f32
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def BNGradVerifyKernelsPass
    : Pass<"bngrad-verify-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Reject kernels that PTX cannot express";
  let description = [{
    Needs: kernels in the LLVM dialect, for targets.
    Gives: the same IR. The parameters of each kernel take at most 4096 bytes, or
           32764 from PTX 8.1 on.
    Fails: if they take more (error at the kernel).
  }];
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
  let summary = "Round to f16 and bf16 once, subnormals included";
  let description = [{
    Needs: `arith.truncf` on scalars or vectors.
    Gives: truncation of f32 to bf16 in integer arithmetic (the conversion
           instruction of AVX-512 flushes subnormals), and of f64 to f16 or bf16
           through an f32 that is rounded to odd (a plain f32 would round
           twice). With `bf16-conversion`, vectors use the instruction unless
           one of their elements is subnormal or 0.
    Fails: never.
  }];
  let options = [
    Option<"bf16Conversion", "bf16-conversion", "bool", /*default=*/"false",
           "An instruction converts vectors of f32 to bf16 and flushes "
           "subnormals">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def BNGradShareLoopsPass : Pass<"bngrad-share-loops", "::mlir::ModuleOp"> {
  let summary = "Divide parallel loops among OpenMP's threads";
  let description = [{
    Needs: `scf.parallel`.
    Gives: an `omp.parallel` for each `scf.parallel` that has one loop and no
           results, allocates no memory and makes no calls. Each thread runs a
           contiguous part of the iterations, without the calls and the barrier
           of a worksharing loop. Adjacent loops without memory accesses between
           them share one region, with barriers. Threads are woken only if there
           is more than one iteration; schedules divide small problems into one
           share.
    Fails: never; if the module has other symbols named `omp_get_thread_num` or
           `omp_get_num_threads`, upstream's conversion lowers the loops.

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
    func.func private @omp_get_num_threads() -> i32
    func.func private @omp_get_thread_num() -> i32
    func.func @f(%m: memref<?xf32>, %n: index, %x: f32) {
      %c1 = arith.constant 1 : index
      %0 = arith.cmpi sgt, %n, %c1 : index
      omp.parallel if(%0) {
        %1 = func.call @omp_get_thread_num() : () -> i32
        %2 = arith.index_cast %1 : i32 to index
        %3 = func.call @omp_get_num_threads() : () -> i32
        %4 = arith.index_cast %3 : i32 to index
        %5 = arith.muli %n, %2 : index
        %6 = arith.divsi %5, %4 : index
        %7 = arith.addi %2, %c1 : index
        %8 = arith.muli %n, %7 : index
        %9 = arith.divsi %8, %4 : index
        %10 = arith.minsi %9, %n : index
        scf.for %i = %6 to %10 step %c1 {
          memref.store %x, %m[%i] : memref<?xf32>
        }
        omp.terminator
      }
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::omp::OpenMPDialect", "::mlir::scf::SCFDialect"
  ];
}

def BNGradLowerAllocationsPass
    : Pass<"bngrad-lower-allocations", "::mlir::ModuleOp"> {
  let summary = "Lower allocations, with a return when memory runs out";
  let description = [{
    Needs: functions on buffers, with `cf` control flow and OpenMP parallel loops.
    Gives: each `memref.alloc` of the host calls malloc, with the node of a list
           before the data. If malloc returns null, or the size exceeds an i64,
           the function frees the buffers of its list and returns the status -2
           (`bngrad-return-status`); a function without a status calls abort.
           After a call that returned such a status, the caller does the same.
           In a parallel loop, the iteration ends, and the function returns after
           the loop; each iteration has its own list.
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
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::omp::OpenMPDialect"
  ];
}

def BNGradLoopAnnotationsPass : Pass<"bngrad-loop-annotations"> {
  let summary = "Move loop annotations to the branches that LLVM reads";
  let description = [{
    Needs: the LLVM dialect.
    Gives: upstream's conversions keep the attribute `llvm.loop_annotation` of an
           `scf.for` on the back edge of the loop. It becomes the branch's
           inherent `loop_annotation`.
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

#endif // BNGRAD_TRANSFORMS_PASSES_TD
