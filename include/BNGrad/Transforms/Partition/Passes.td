//===- Passes.td - batches over several processes -------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PARTITION_PASSES_TD
#define BNGRAD_TRANSFORMS_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradPartitionPass : Pass<"bngrad-partition", "::mlir::ModuleOp"> {
  let summary = "Partition functions with shard annotations";
  let description = [{
    Needs: tensors; annotations by `shard.shard` (docs/distributed.md).
    Gives: upstream's `--sharding-propagation` and `--shard-partition` turn each
           function with annotations into the program of one process, on shards.
           A gradient whose sums run over a sharded dim becomes its two halves
           and one `shard.all_reduce` of both sums, whose `bngrad.collective`
           describes the gradient in errors of the runtime. Training becomes the
           sums of the shard, an all-reduce that gives the mean of the batch,
           another one that gives the sums about this mean, and
           `bngrad.batch_norm_inference`. An unknown count is added up as well.
           The function has the attribute `bngrad.grid_shape`, and its sharded
           arguments and results have `bngrad.split_axes`. Functions without
           annotations are unchanged.
    Fails: if upstream's passes cannot partition a function, or would do so
           incorrectly: an op that does not implement ShardingInterface, several
           blocks, nested annotations, a use of the function, a tensor argument
           without a use or an annotation, a tensor with several shardings,
           halos or offsets of shards, two grids, a grid of unknown sizes, a
           size that is not a multiple of the number of shards (error at the op
           or argument).

    Upstream's passes run inside this one, because they fail for functions
    without annotations.

    Before:

    ```mlir
    shard.grid @grid(shape = 2)
    func.func @f(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>,
                 %inv_std: tensor<4xf32>) -> tensor<8x4xf32> {
      %batch = shard.sharding @grid split_axes = [[0]] : !shard.sharding
      %xs = shard.shard %x to %batch : tensor<8x4xf32>
      %dx, %dscale, %doffset = bngrad.batch_norm_backward
          grad_output(%dy : tensor<8x4xf32>) input(%xs : tensor<8x4xf32>)
          mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>)
          : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
      return %dx : tensor<8x4xf32>
    }
    ```

    After:

    ```mlir
    shard.grid @grid(shape = 2)
    func.func @f(%dy: tensor<4x4xf32> {bngrad.split_axes = #shard<axisarray[[0]]>},
                 %x: tensor<4x4xf32> {bngrad.split_axes = #shard<axisarray[[0]]>},
                 %mean: tensor<4xf32>, %inv_std: tensor<4xf32>)
        -> (tensor<4x4xf32> {bngrad.split_axes = #shard<axisarray[[0]]>})
        attributes {bngrad.grid_shape = array<i64: 2>} {
      %sums, %count = bngrad.batch_norm_backward_reduce
          grad_output(%dy : tensor<4x4xf32>) input(%x : tensor<4x4xf32>)
          mean(%mean : tensor<4xf32>) : tensor<2x4xf32>, tensor<i64>
      %all_sums = shard.all_reduce %sums on @grid grid_axes = [0]
          {bngrad.collective = "sums of bngrad.batch_norm_backward grad_output(tensor<8x4xf32>) input(tensor<8x4xf32>) mean(tensor<4xf32>) inv_std(tensor<4xf32>) feature_dims=[1] epsilon=0.000000e+00 statistics=batch"}
          : tensor<2x4xf32> -> tensor<2x4xf32>
      %all_count = arith.constant dense<8> : tensor<i64>
      %dx = bngrad.batch_norm_backward_elemt
          grad_output(%dy : tensor<4x4xf32>) input(%x : tensor<4x4xf32>)
          mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>)
          sums(%all_sums : tensor<2x4xf32>) count(%all_count : tensor<i64>)
          : tensor<4x4xf32>
      return %dx : tensor<4x4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bngrad::BNGradDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::shard::ShardDialect",
    "::mlir::tensor::TensorDialect", "::mlir::ub::UBDialect"
  ];
}

def BNGradCombineCollectivesPass
    : Pass<"bngrad-combine-collectives", "::mlir::func::FuncOp"> {
  let summary = "Combine all-reduces that do not depend on each other";
  let description = [{
    Needs: tensors.
    Gives: sums over the same grid axes, of the same element type, that do not
           wait for one another become one all-reduce of one buffer. Ops that do
           not depend on it come before it.
    Fails: never.

    Before:

    ```mlir
    shard.grid @grid(shape = 2)
    func.func @f(%a: tensor<4xf32>, %b: tensor<8xf32>)
        -> (tensor<4xf32>, tensor<8xf32>) {
      %0 = shard.all_reduce %a on @grid grid_axes = [0]
          : tensor<4xf32> -> tensor<4xf32>
      %1 = shard.all_reduce %b on @grid grid_axes = [0]
          : tensor<8xf32> -> tensor<8xf32>
      return %0, %1 : tensor<4xf32>, tensor<8xf32>
    }
    ```

    After:

    ```mlir
    shard.grid @grid(shape = 2)
    func.func @f(%a: tensor<4xf32>, %b: tensor<8xf32>)
        -> (tensor<4xf32>, tensor<8xf32>) {
      %empty = tensor.empty() : tensor<12xf32>
      %first = tensor.insert_slice %a into %empty[0] [4] [1]
          : tensor<4xf32> into tensor<12xf32>
      %both = tensor.insert_slice %b into %first[4] [8] [1]
          : tensor<8xf32> into tensor<12xf32>
      %sum = shard.all_reduce %both on @grid grid_axes = [0]
          : tensor<12xf32> -> tensor<12xf32>
      %0 = tensor.extract_slice %sum[0] [4] [1]
          : tensor<12xf32> to tensor<4xf32>
      %1 = tensor.extract_slice %sum[4] [8] [1]
          : tensor<12xf32> to tensor<8xf32>
      return %0, %1 : tensor<4xf32>, tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::shard::ShardDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def BNGradCollectivesToRuntimePass
    : Pass<"bngrad-collectives-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Lower all-reduces to calls of the runtime";
  let description = [{
    Needs: tensors.
    Gives: `shard.all_reduce` becomes a call of `bngradAllReduceStart` right
           after its operand, on a copy of it, and a call of
           `bngradAllReduceWait` before the first use of its result
           (BNGrad/Runtime/Collectives.h). Ops that do not depend on it come
           between the two. The calls take constants that describe the
           collective. If `bngradAllReduceWait` returns a status that is not 0,
           the function returns it (`--bngrad-return-status`) before any use of
           a result. `shard.process_linear_index` and
           `shard.process_multi_index` become calls of `bngradProcessIndex`.
           Grids are erased.
    Fails: if an all-reduce is not a sum, or its elements are not f32, f64 or
           i64; if there is another collective of the shard dialect, or another
           symbol has the name of a function (error at that op).

    Before:

    ```mlir
    shard.grid @grid(shape = 2)
    func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = shard.all_reduce %a on @grid grid_axes = [0]
          : tensor<4xf32> -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```

    After, with a constant @collective:

    ```mlir
    llvm.mlir.global private constant @collective() : !llvm.struct<(i64)>
    func.func private @bngradAllReduceStart(!llvm.ptr, !llvm.ptr, i64) -> i64
    func.func private @bngradAllReduceWait(i64) -> i32
    func.func private @bngrad_collective_status(%status: i32) -> i32
        attributes {bngrad.returns_status} {
      return %status : i32
    }
    func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %count = arith.constant 4 : i64
      %copy = bufferization.alloc_tensor() copy(%a) : tensor<4xf32>
      %buffer = bufferization.to_buffer %copy : tensor<4xf32> to memref<4xf32>
      %index = memref.extract_aligned_pointer_as_index %buffer
          : memref<4xf32> -> index
      %address = arith.index_cast %index : index to i64
      %data = llvm.inttoptr %address : i64 to !llvm.ptr
      %collective = llvm.mlir.addressof @collective : !llvm.ptr
      %request = call @bngradAllReduceStart(%collective, %data, %count)
          : (!llvm.ptr, !llvm.ptr, i64) -> i64
      %status = call @bngradAllReduceWait(%request) : (i64) -> i32
      %checked = call @bngrad_collective_status(%status) : (i32) -> i32
      %0 = bufferization.to_tensor %buffer restrict writable
          : memref<4xf32> to tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::shard::ShardDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // BNGRAD_TRANSFORMS_PARTITION_PASSES_TD
