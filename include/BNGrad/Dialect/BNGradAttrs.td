//===- BNGradAttrs.td - attributes and enums ------------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_BNGRADATTRS_TD
#define BNGRAD_DIALECT_BNGRADATTRS_TD

include "BNGrad/Dialect/BNGradBase.td"
include "mlir/Dialect/GPU/IR/CompilationAttrInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def BNGrad_Statistics : I32EnumAttr<
    "Statistics", "Where mean and variance come from", [
      I32EnumAttrCase<"Batch", 0, "batch">,
      I32EnumAttrCase<"Global", 1, "global">
    ]> {
  let cppNamespace = "::mlir::bngrad";
  let genSpecializedAttr = 0;
}

def BNGrad_StatisticsAttr
    : EnumAttr<BNGrad_Dialect, BNGrad_Statistics, "statistics"> {
  let description = [{
    `batch`: mean and variance were computed from this input in the forward
    pass, so grad_input differentiates through them (training). `global`: they
    are constants (frozen batch normalization).
  }];
  let assemblyFormat = "`<` $value `>`";
}

def BNGrad_ScheduleKind : I32EnumAttr<
    "ScheduleKind", "How one group of loops runs", [
      I32EnumAttrCase<"Loops", 0, "loops">,
      I32EnumAttrCase<"Channels", 1, "channels">,
      I32EnumAttrCase<"Tiles", 2, "tiles">,
      I32EnumAttrCase<"Rows", 3, "rows">,
      I32EnumAttrCase<"Split", 4, "split">,
      I32EnumAttrCase<"Sizes", 5, "sizes">,
      I32EnumAttrCase<"TwoPass", 6, "two_pass">,
      I32EnumAttrCase<"OnePass", 7, "one_pass">
    ]> {
  let cppNamespace = "::mlir::bngrad";
  let genSpecializedAttr = 0;
}

def BNGrad_ScheduleAttr : AttrDef<BNGrad_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How one group (a gradient and what was fused into it) runs";
  let description = [{
    Written by `--bngrad-group` on the `linalg` ops of a group and read by
    `--bngrad-apply-schedule`; it may as well be written by hand.

    `loops`: channels in parallel; for each channel one pass of scalar loops
    for the sums and one for the element-wise part. Takes any group.

    The others use vectors, on dense data whose loops, with adjacent ones of a
    kind merged, are these (N and S are summed over, C tells channels apart):

    `channels`, on [N, C, S], [C, S] or more of them with S last: threads share
    the channels; each channel is read for its sums and, while it is in cache,
    read again and written. For long rows S.

    `tiles`, on [N, C, S] or [C, S]: as `channels`, but several channels at a
    time, their rows taken as one; per-channel values are spread out to that
    length. For short rows.

    `rows`, on [N, C]: threads share blocks of rows; the sums of the blocks are
    added in their order; then all is read again and written. Several rows are
    taken as one where C is small.

    `split`, on [N, C, S] or [C, S]: as `channels`, but threads share pieces of
    the rows, and the sums of the pieces are added in their order. For fewer
    channels than threads need.

    `sizes`: one of the above, chosen at run time by sizes that are not known
    before.

    On a GPU:

    `two_pass`: a kernel for the sums of shares of each channel, one that
    finishes them and computes what there is once per channel, and one for the
    elements. Takes any group.

    `one_pass`, on [N, C, S], [C, S] or [N, C] of static size: one kernel, whose
    blocks keep what both the sums and the elements read in shared memory. A
    tile of `columns` channels belongs to a `cluster` of blocks that share the
    N, and read each other's sums in their order. For what fits there, on chips
    with clusters.

    Parameters, all with a default and optional:
    - `threads` (1): into how many shares parallel loops are cut; results do not
      depend on it. On a GPU: threads of a block, whole warps, which the order
      of summation does depend on.
    - `vector_bits` (512): length of a vector register, a power of 2 from 64 to
      2048; on a GPU, of an access, 64 or 128.
    - `streaming_bytes` (0): results are stored past the caches where the data
      of the group are larger than this; 0: never.
    - `columns` (1024): elements that `tiles` and `rows` take as one row, about;
      of `two_pass`, accesses beside each other in a block where channels run
      fastest; of `one_pass`, channels of a block.
    - `blocks` (16): blocks of `rows`, at most; on a GPU, of the sums, about.
    - `fma` (false): products that allow `contract` are fused with the sum they go
      into, for targets with an instruction that does.
    - `cluster` (1): blocks that share a tile of `one_pass`.
  }];
  let parameters = (ins
    EnumParameter<BNGrad_ScheduleKind>:$kind,
    DefaultValuedParameter<"int64_t", "1">:$threads,
    DefaultValuedParameter<"int64_t", "512">:$vector_bits,
    DefaultValuedParameter<"int64_t", "0">:$streaming_bytes,
    DefaultValuedParameter<"int64_t", "1024">:$columns,
    DefaultValuedParameter<"int64_t", "16">:$blocks,
    DefaultValuedParameter<"bool", "false">:$fma,
    DefaultValuedParameter<"int64_t", "1">:$cluster
  );
  let assemblyFormat = [{
    `<` $kind (`,` struct($threads, $vector_bits, $streaming_bytes, $columns,
                          $blocks, $fma, $cluster)^)? `>`
  }];
  let builders = [AttrBuilder<(ins "ScheduleKind":$kind), [{
    return $_get($_ctxt, kind, 1, 512, 0, 1024, 16, false, 1);
  }]>];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Name of the discardable attribute that carries a schedule.
    static constexpr ::llvm::StringLiteral kAttrName = "bngrad.schedule";
  }];
}

def BNGrad_SelectByDeviceAttr
    : AttrDef<BNGrad_Dialect, "SelectByDevice",
              [OffloadingTranslationAttrTrait]> {
  let mnemonic = "select_by_device";
  let summary = "Of the objects of a gpu.binary the device takes the one it runs";
  let description = [{
    A handler of `gpu.module` and `gpu.binary`. All objects are embedded;
    `bngradCudaModuleLoad` of BNGrad/Runtime/Cuda.h chooses among them at the
    first launch.
  }];
}

#endif // BNGRAD_DIALECT_BNGRADATTRS_TD
