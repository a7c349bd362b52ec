//===- Passes.td - groups and their schedules ------------ -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_SCHEDULE_PASSES_TD
#define BNGRAD_TRANSFORMS_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradGroupPass : Pass<"bngrad-group", "::mlir::func::FuncOp"> {
  let summary = "Group the parts of a gradient and choose their schedule";
  let description = [{
    Needs: linalg on tensors, after `--bngrad-fuse`.
    Gives: the reduction, the per-channel generics that depend on it and the
           element-wise generic that reads those are found by their structure
           and enclosed in one `scf.execute_region no_inline`. Each gets the
           schedule as the attribute `bngrad.schedule`; generics that already
           have one are not grouped. Inits of values that only the region uses
           are inside it. The addition of a sum must have `fastmath<reassoc>`,
           which allows the schedule to choose the order; other sums are not
           grouped. An element-wise generic on its own is a group if it reads
           several per-channel operands, or a constant one.
    Fails: if the option `schedule` is not a schedule, a chip is unknown,
           `active-clusters` is malformed or has a size that the chips do not
           have, a cache is negative, or `threads` or `vector-bits` is not in
           the range of the parameter of that name; if the schedule, given or in
           the IR, is for a GPU and there is no chip, or is `one_pass` and the
           oldest chip has no clusters.

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
            attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432, row_blocks = 32>} {
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
           "Target: length of a vector register, in bits">,
    Option<"threads", "threads", "int64_t", /*default=*/"1",
           "Target: threads that run at a time; 0: as many as a call has">,
    Option<"l1Bytes", "l1-bytes", "int64_t", /*default=*/"49152",
           "Target: first-level data cache of a core, in bytes">,
    Option<"chip", "chip", "std::string", /*default=*/"\"\"",
           "Target: NVIDIA GPUs, comma-separated, such as sm_90; empty: a CPU, "
           "which the other options describe">,
    Option<"activeClusters", "active-clusters", "std::string", /*default=*/"\"\"",
           "Target: clusters that a GPU runs at once, SIZE:ONE:TWO for each size, "
           "with one block and with two on a multiprocessor, comma-separated, such "
           "as 4:31:62,8:15:30; empty: assumed for the chip">,
    Option<"lastLevelBytes", "last-level-bytes", "int64_t",
           /*default=*/"33554432", "Target: last-level cache, in bytes">,
    Option<"fma", "fma", "bool", /*default=*/"false",
           "Target: vectors have a fused multiply-add">
  ];
  let dependentDialects = [
    "::mlir::bngrad::BNGradDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // BNGRAD_TRANSFORMS_SCHEDULE_PASSES_TD
