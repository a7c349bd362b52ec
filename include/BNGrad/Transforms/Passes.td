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
           results. A torch op takes the saved statistics (inv_std) in training
           and the running ones (variance, epsilon) else. Per-channel operands
           of different types are extended to the widest; a `!torch.vtensor`
           becomes a builtin tensor behind an `unrealized_conversion_cast`.
    Fails: if an op means what the bngrad op cannot express (error at that op).

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
    Gives: where grad_output, input and mask are transposed alike by
           `linalg.transpose`, the op takes them as they were, with other
           `feature_dims`; its grad_input is transposed instead, which cancels
           where a reader transposes it back.
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
           with grad_input. Each sum has its own init. What no result needs is
           not built.
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
    Gives: an element-wise `linalg.generic` is computed where its value is read,
           if every reader can take it: both generics of a gradient take the
           producers of grad_output and input, its element-wise generic is taken
           by the consumer of grad_input. Per-channel values stay per channel,
           and no generic with a reduction is repeated. A reshape between two
           generics is folded: the loops of the coarser shape are split.
    Fails: never; what cannot be fused is left as it is.

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
  let summary = "Find the loops that belong together and choose their schedule";
  let description = [{
    Needs: linalg on tensors, after `--bngrad-fuse`.
    Gives: the reduction, the per-channel generics that follow from it and the
           element-wise generic that reads those, found by their structure, lie
           in one `scf.execute_region no_inline`; each carries the schedule as
           the attribute `bngrad.schedule`, unless it has one already. Inits of
           what does not leave the region lie inside.
           A sum is taken if its addition has `fastmath<reassoc>`, which allows
           the schedule to choose the order; one without keeps its own.
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
  let summary = "Bring tensors into the form that bufferizes well";
  let description = [{
    Needs: linalg on tensors, right before bufferization.
    Gives: no `tensor.empty`, and no `linalg.fill` of one, is the init of two
           ops, or of one op twice: bufferization would allocate and copy.
           Arguments are marked as read-only unless they say otherwise: results
           must not be computed in the caller's operands. A value that is
           returned twice is copied, since each result has a buffer of its own.
           What is overwritten and then collapsed is made in a buffer of the
           collapsed shape.
    Fails: if a buffer is written, through any view of it, between
           `bufferization.to_tensor` and what reads the tensor: bufferization
           takes it that nothing does, and fusion and groups have moved readers
           accordingly (error at the write, a note at the tensor).

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
  let summary = "Spell out views that upstream lowers wrongly";
  let description = [{
    Needs: memrefs.
    Gives: a `memref.subview` that drops some of several unit dims, or has a
           dynamic size that may turn out to be 1, drops none; dims are dropped
           by a `memref.reinterpret_cast`. With `reshapes`, a
           `memref.expand_shape` with several dynamic sizes in a group is a
           `memref.reinterpret_cast`, too. Upstream crashes on such ops or takes
           other dims (docs/upstream.md). Reshapes are left alone as long as
           they may fold with others.
    Fails: if the sizes and the strides of a slice's type name different dims,
           which the verifier lets pass (error at the slice).

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
           "Slices and reshapes, not slices alone">
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
    Gives: a buffer that is returned behind a cast to dynamic sizes is allocated
           with them, so that it can be replaced by the out-parameter; a cast in
           between would make it a copy.
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
    Gives: loops in their place, those of the schedule (`#bngrad.schedule` says
           which there are); the element computation is cloned from the
           generics' regions. Operands with strides are tested for dense forms
           at run time, of which each has loops of its own. A sum adds at most
           16 terms in a row and carries the rounding error of adding those
           chains along (TwoSum), so its error does not grow with its length.
           The order of summation depends on shape and schedule alone, not on
           the number of threads. The `scf.execute_region` of a group may be
           inlined from here on.
    Fails: if an attribute `bngrad.schedule` is not a schedule. A generic that
           cannot be cloned keeps its form, with a remark that says why, and is
           left to upstream's loops; a group that has no loops with vectors gets
           scalar ones, with a remark, too. With `device-arguments`, if code
           of the host is left that accesses an argument.

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
           "Arguments of a function are buffers of the device, where a GPU's "
           "schedule uses them">
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
  let summary = "Turn copies between buffers with strides into linalg";
  let description = [{
    Needs: memrefs.
    Gives: a `memref.copy` that upstream would make a call of its own runtime
           library, since a buffer is not contiguous, is a `linalg.generic`; the
           others become memcpy later.
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
  let summary = "Let functions say that they ran out of memory";
  let description = [{
    Needs: functions on buffers.
    Gives: a function that may allocate memory, or calls one that may, has an i32
           as its last result, which is 0; `bngrad-lower-allocations` returns
           another where memory runs out. `bngrad-export-c` does this, too.
           Functions whose address is taken are left alone.
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
    Gives: for each public function NAME, two that call it:
           `int32_t NAME(...)`, if every shape and stride is static, takes a
           pointer to the data of each buffer, and returns -1 without a call if
           one that is not empty is null, else 0, or -2 if memory ran out, or
           what `status-function` returns after the call; and `int32_t
           _mlir_ciface_NAME(...)` takes a pointer to the descriptor of each
           buffer, and returns 0, or -2. Both take scalars by value:
           index as int64_t, i1 as uint8_t (0 is false), f16 and bf16 as the
           uint16_t of their bits. The function itself, like every private one,
           is internal and has a name with a dot, which no library has; so are
           globals. Functions without a body are left alone.
    Fails: if a public function has a name that C cannot declare or that a library
           has, has results, or has an argument that is neither a strided memref
           nor a scalar of these types.

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
           "A function int32_t(void) whose value NAME returns if it did not run out of memory; empty: 0">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"
  ];
}

def BNGradAttachChipsPass
    : Pass<"bngrad-attach-chips", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Say which GPUs kernels are compiled for";
  let description = [{
    Needs: kernels.
    Gives: an `#nvvm.target` for each chip and, if there are several, the handler
           `#bngrad.select_by_device`.
    Fails: if a chip is unknown or too old, or `features` are not those of all.

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
           "Version of PTX for all chips, such as +ptx80; empty: that, or the "
           "first that has the chip">,
    Option<"optLevel", "opt-level", "unsigned", /*default=*/"3",
           "Optimization, 0 to 3">
  ];
  let dependentDialects = [
    "::mlir::bngrad::BNGradDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def BNGradLayOutSharedMemoryPass
    : Pass<"bngrad-lay-out-shared-memory", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Align shared memory; dynamic is what the launch gives";
  let description = [{
    Needs: kernels in the LLVM dialect.
    Gives: shared memory that starts at multiples of 16 bytes, as accesses with
           vectors expect, and dynamic shared memory of external linkage: an
           internal variable would be a static one of its own, without size.
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
  let summary = "Lower math in kernels to instructions where there are some";
  let description = [{
    Needs: kernels.
    Gives: square roots and what else PTX has with one rounding, as intrinsics
           of LLVM; upstream's conversion would take functions of libdevice,
           which round otherwise and are not there without a toolkit. The rest
           is left to it.
    Fails: if something is left and libdevice is not found.

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
  let summary = "Refuse kernels that PTX cannot express";
  let description = [{
    Needs: kernels in the LLVM dialect, for targets.
    Gives: the same; the parameters of each kernel fit: they take at most 4096
           bytes, and 32764 from PTX 8.1 on.
    Fails: if they do not (error at the kernel).
  }];
}

def BNGradExpandMathPass : Pass<"bngrad-expand-math"> {
  let summary = "Spell out math that upstream has no lowering for";
  let description = [{
    Needs: `math` ops on scalars or vectors, on a CPU or in kernels.
    Gives: `math.isinf`, `math.isnan`, `math.isfinite` and `math.isnormal` as
           comparisons, which hold for each type of float and need no library;
           fast-math flags do not reach them; `math.ipowi` as a loop of
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
           through an f32 that is rounded to odd (a plain f32 in between would
           round twice). With `bf16-conversion` vectors take the instruction,
           but for those with a number below the normal ones, or 0.
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
    Gives: instead of one with a single loop and no results, which allocates no
           memory and calls nothing, an `omp.parallel` in
           which each thread runs a contiguous part of the iterations, without
           the calls and the barrier of a worksharing loop. Loops with nothing
           between them that reads or writes memory lie in one, with barriers.
           The threads are woken only if there is a second iteration: the schedules cut small problems
           into one share.
    Fails: never; where the module has other symbols named
           `omp_get_thread_num` or `omp_get_num_threads`, loops are left to
           upstream's conversion.

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
  let summary = "Let a function that runs out of memory return";
  let description = [{
    Needs: functions on buffers whose control flow is that of `cf`; parallel loops
           are those of OpenMP.
    Gives: each `memref.alloc` of the host is a call of malloc, with the node of a
           list before the data. Where that returns null, or the size is none
           that an i64 holds, the function frees all that is in its list and
           returns the status -2 (`bngrad-return-status`); one without a status
           calls abort. Calls of functions with a status return it in the same
           way. In a parallel loop the iteration ends, then the function after
           the loop; each iteration has a list of its own.
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
  let summary = "Put loop annotations where LLVM reads them";
  let description = [{
    Needs: the LLVM dialect.
    Gives: the attribute `llvm.loop_annotation` of an `scf.for`, which upstream's
           conversions leave on the branch back to its head, is that branch's
           `loop_annotation`.
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
