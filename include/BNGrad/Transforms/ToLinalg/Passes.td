//===- Passes.td - bngrad to linalg on tensors ----------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_TOLINALG_PASSES_TD
#define BNGRAD_TRANSFORMS_TOLINALG_PASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradDropAnnotationsPass
    : Pass<"bngrad-drop-annotations", "::mlir::ModuleOp"> {
  let summary = "Drop shardings over one device, and bounds of dynamic sizes";
  let description = [{
    Needs: a module as JAX or StableHLO print it, in generic form. It may have
           meshes, shardings and ops of Shardy (`sdy`), shardings of XLA
           (`mhlo.sharding`, also tuples and named ones), and
           `#stablehlo.bounds` as the encoding of types.
    Gives: the same module without these. Meshes may have any number of devices,
           as long as all values are replicated on them. The body of an
           `sdy.manual_computation` over axes of one device replaces the op.
           XLA's `{manual}` and `{unreduced}` span as many devices as
           `mhlo.num_partitions` says, by default one.
    Fails: if a value is sharded over several devices, a sharding cannot be
           parsed, or an op of Shardy has results that are neither its operands
           nor computed by its region (error at that op). Programs for several
           processes are annotated with MLIR's own dialect `shard`
           (docs/distributed.md).

    Before:

    ```mlir
    "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
    func.func @f(%x: tensor<?x4xf32, #stablehlo.bounds<8, ?>>
                     {sdy.sharding = #sdy.sharding<@mesh, [{}, {} ]>})
        -> tensor<?x4xf32, #stablehlo.bounds<8, ?>> {
      return %x : tensor<?x4xf32, #stablehlo.bounds<8, ?>>
    }
    ```

    After:

    ```mlir
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      return %x : tensor<?x4xf32>
    }
    ```
  }];
}

def BNGradImportPass : Pass<"bngrad-import", "::mlir::func::FuncOp"> {
  let summary = "Import batch norms and their gradients from other dialects";
  let description = [{
    Needs: `batch_norm_grad`, `batch_norm_training` or `batch_norm_inference` of
           `stablehlo` or `mhlo`, or one of
           `torch.aten.native_batch_norm_backward`, `batch_norm_backward`,
           `cudnn_batch_norm_backward`, `miopen_batch_norm_backward`,
           `batch_norm_backward_reduce`, `batch_norm_backward_elemt`,
           `native_batch_norm`, `_native_batch_norm_legit`,
           `_native_batch_norm_legit.no_stats`,
           `_native_batch_norm_legit_functional`,
           `_native_batch_norm_legit_no_training`, `batch_norm`,
           `cudnn_batch_norm`, `miopen_batch_norm`, `batch_norm_stats`,
           `batch_norm_gather_stats_with_counts` and `batch_norm_elemt`, also as
           a `torch.operator`; or a `torch.operator` `onnx.BatchNormalization`.
           The ops are in generic form, registered or not;
           the scalar operands of a torch op are `torch.constant.*` and
           `torch.prim.ListConstruct`.
    Gives: bngrad ops in their place, with the same result types. A gradient of
           torch uses the saved statistics (inv_std) in training, otherwise the
           running ones (variance, epsilon). The new running statistics of torch
           and ONNX are per-channel `linalg.generic` ops. Per-channel operands
           of different types are extended to the widest. A `!torch.vtensor` is
           converted to a builtin tensor by an `unrealized_conversion_cast`,
           which `--bngrad-torch-to-builtin` folds away, or by `torch_c.*`.
    Fails: if the bngrad op cannot express an op, such as one that updates its
           running statistics in place, and for any other gradient of batch
           normalization (error at that op).

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
  let options = [
    Option<"torchCasts", "torch-casts", "::mlir::bngrad::TorchCasts",
           "::mlir::bngrad::TorchCasts::Builtin",
           "Casts between torch's and builtin tensors", [{llvm::cl::values(
             clEnumValN(::mlir::bngrad::TorchCasts::Builtin, "builtin",
                        "unrealized_conversion_cast"),
             clEnumValN(::mlir::bngrad::TorchCasts::TorchConversion, "torch_c",
                        "torch_c.to_builtin_tensor and from_builtin_tensor"))}]>
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bngrad::BNGradDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradTorchToBuiltinPass
    : Pass<"bngrad-torch-to-builtin", "::mlir::ModuleOp"> {
  let summary = "Make tensors of torch at function boundaries builtin tensors";
  let description = [{
    Needs: a module in which all users of `!torch.vtensor` values are casts,
           calls and returns; any other module is left unchanged for torch-mlir.
    Gives: functions whose arguments and results are builtin tensors; casts that
           undo each other are folded away. A vtensor of unknown rank or dtype
           remains. An argument of a type of torch that has no builtin tensor is
           omitted, with a warning, if nothing uses it and nothing calls the
           function; so is a result that is always None.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%x: !torch.vtensor<[2,?],f32>) -> !torch.vtensor<[2,?],f32> {
      %0 = builtin.unrealized_conversion_cast %x
          : !torch.vtensor<[2,?],f32> to tensor<2x?xf32>
      %1 = arith.negf %0 : tensor<2x?xf32>
      %2 = builtin.unrealized_conversion_cast %1
          : tensor<2x?xf32> to !torch.vtensor<[2,?],f32>
      return %2 : !torch.vtensor<[2,?],f32>
    }
    ```

    After:

    ```mlir
    func.func @f(%x: tensor<2x?xf32>) -> tensor<2x?xf32> {
      %0 = arith.negf %x : tensor<2x?xf32>
      return %0 : tensor<2x?xf32>
    }
    ```
  }];
}

def BNGradReassociateSumsPass
    : Pass<"bngrad-reassociate-sums", "::mlir::func::FuncOp"> {
  let summary = "Let the sums of linalg be added in any order";
  let description = [{
    Needs: linalg on tensors. The module's source must leave the order of a sum
           open, as StableHLO and PyTorch do. Their conversions to linalg do not
           record this.
    Gives: `fastmath<reassoc>` on each `arith.addf` by which a `linalg.generic`
           or `linalg.reduce` adds to a result. The sum of a generic then gets a
           schedule, whose error bound is in docs/numerics.md. Without the flag,
           terms are added one by one.
    Fails: never; products, maxima and named ops are unchanged.

    Before:

    ```mlir
    func.func @f(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
      %sum = linalg.reduce ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>)
          dimensions = [0]
          (%e: f32, %acc: f32) {
        %0 = arith.addf %e, %acc : f32
        linalg.yield %0 : f32
      }
      return %sum : tensor<4xf32>
    }
    ```

    After:

    ```mlir
    func.func @f(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
      %sum = linalg.reduce ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>)
          dimensions = [0]
          (%e: f32, %acc: f32) {
        %0 = arith.addf %e, %acc fastmath<reassoc> : f32
        linalg.yield %0 : f32
      }
      return %sum : tensor<4xf32>
    }
    ```
  }];
}

def BNGradFoldTransposePass
    : Pass<"bngrad-fold-transpose", "::mlir::func::FuncOp"> {
  let summary = "Fold transposes of the data into feature_dims";
  let description = [{
    Needs: tensors.
    Gives: if the same `linalg.transpose` is applied to grad_output, input and
           mask, the op takes their sources, with permuted `feature_dims`. Its
           grad_input is transposed instead, which cancels with a reader that
           transposes it back. A `tensor.extract` takes the element of the
           source.
    Fails: if the indices of a reshape are not consecutive (error at the
           reshape). Transposes that differ, or that change the order of several
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
  let summary = "Split ops into their sums and the rest";
  let description = [{
    Needs: tensors.
    Gives: the gradient becomes `bngrad.batch_norm_backward_reduce` with the
           sums of each channel, `bngrad.batch_norm_backward_elemt` with
           grad_input from them, and per-channel linalg for grad_scale and
           grad_offset. Training becomes `bngrad.batch_norm_training_reduce`
           about the first element of each channel, another one about the
           resulting mean, `bngrad.batch_norm_inference` with output, and
           per-channel linalg for the statistics. Each part is built only if a
           result needs it. Sums and counts may be reduced over devices before
           they are used; `--bngrad-partition` does so. Training without
           elements per channel is unchanged.
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
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BNGradDecomposePass : Pass<"bngrad-decompose", "::mlir::func::FuncOp"> {
  let summary = "Decompose bngrad ops into linalg on tensors";
  let description = [{
    Needs: tensors.
    Gives: no bngrad ops. A gradient becomes one reduction `linalg.generic` that
           reads grad_output and input once, one per-channel generic with the
           coefficients and the per-channel results, and one element-wise generic
           with grad_input. Training has a reduction and a per-channel generic
           for the mean, then such generics for the variance and output. Each sum
           has its own init. Ops for unused results are not built. An argument
           `f64 {bngrad.epsilon}` of the function replaces the epsilon of its
           ops and loses the attribute.
    Fails: if an op has no decomposition (error at that op), or the argument has
           another type (error at the function).

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
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
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
           per-channel, except for conversions to a wider type, and no generic
           with a reduction is duplicated. A reshape between two generics is
           folded: the loops of the coarser shape are split. Values that depend
           only on constants are computed, such as scale/sqrt(variance +
           epsilon) of a deployed model, unless all channels have the same
           value.
    Fails: if the indices of a reshape are not consecutive (error at the
           reshape). Ops that cannot be fused are unchanged.

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

def BNGradExpandViewsPass : Pass<"bngrad-expand-views"> {
  let summary = "Expand views that upstream lowers incorrectly";
  let description = [{
    Needs: memrefs.
    Gives: a `memref.subview` that drops some of several unit dims, or that has
           a dynamic size that may be 1, no longer drops dims; a
           `memref.reinterpret_cast` drops them instead. With `reshapes`, a
           `memref.expand_shape` with several dynamic sizes in a group becomes a
           `memref.reinterpret_cast`. The result of a `memref.reshape` by a shape
           of known length has a rank. Upstream crashes on such ops, or drops
           other dims (docs/upstream.md). Without `reshapes`, reshapes stay, so
           that they can be folded.
    Fails: if the sizes and the strides of a slice's type imply different dropped
           dims (error at the slice), or if the indices of a reshape of tensors
           are not consecutive (error at the reshape). The verifier accepts both.

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

#endif // BNGRAD_TRANSFORMS_TOLINALG_PASSES_TD
