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
    "Statistics", "Origin of mean and variance", [
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
    "ScheduleKind", "Loop nest of a group", [
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

/// The parameters of a CPU's or a GPU's kinds; a kind of the other has none.
def BNGrad_CpuSchedule
    : AttrParameter<"::mlir::bngrad::CpuSchedule", "parameters of a CPU's kind">;
def BNGrad_GpuSchedule
    : AttrParameter<"::mlir::bngrad::GpuSchedule", "parameters of a GPU's kind">;

def BNGrad_ScheduleAttr : AttrDef<BNGrad_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "Loop nest of a group: a gradient and the ops fused with it";
  let description = [{
    `--bngrad-group` sets it on the `linalg.generic` ops of a group, and
    `--bngrad-apply-schedule` applies it. It may also be set by hand, on such ops
    alone.

    `loops`: channels in parallel; for each channel, scalar loops for the sums,
    then scalar loops for the element-wise part. For any group.

    The others use vectors, on dense data. Below are their loops after adjacent
    loops of a kind are merged: N and S are reduced, C is the channel.

    `channels`, on [N, C, S], [C, S] or more of them with S last: threads share
    the channels; each channel is read for its sums and, while it is in cache,
    read again and written. For long rows S.

    `tiles`, on [N, C, S] or [C, S]: as `channels`, but the rows of several
    channels are taken as one; tables hold per-channel values for each of its
    elements. For short rows.

    `rows`, on [N, C]: threads share blocks of rows; the sums of the blocks are
    added in order; then all rows are read again and written. If C is small,
    several rows are taken as one.

    `split`, on [N, C, S] or [C, S]: as `channels`, but threads share segments
    of the rows, and the sums of the segments are added in order. For fewer channels
    than threads.

    `sizes`: one of the above, chosen at run time by dynamic sizes.

    On a GPU:

    `two_pass`: one kernel sums slices of each channel, one adds the sums of the
    slices and computes the per-channel values, and one computes the elements. For any
    group.

    `one_pass`, on [N, C, S], [C, S] or [N, C] of static size: one kernel. Its
    blocks keep the operands that both the sums and the elements read in shared
    memory. The blocks of a cluster divide the N of a tile of channels, and add
    each other's sums in order. For data that fit into shared memory, on chips
    with clusters.

    Each kind has its own parameters, all optional: those of CpuSchedule or
    GpuSchedule (BNGrad/Dialect/Schedule.h), `loops` none. docs/schedules.md
    describes them.
  }];
  let parameters = (ins
    "ScheduleKind":$kind,
    BNGrad_CpuSchedule:$cpu,
    BNGrad_GpuSchedule:$gpu
  );
  let hasCustomAssemblyFormat = 1;
  let builders = [
    AttrBuilder<(ins "ScheduleKind":$kind), [{
      return $_get($_ctxt, kind, CpuSchedule(), GpuSchedule());
    }]>,
    AttrBuilder<(ins "ScheduleKind":$kind, "const CpuSchedule &":$cpu), [{
      return $_get($_ctxt, kind, cpu, GpuSchedule());
    }]>,
    AttrBuilder<(ins "ScheduleKind":$kind, "const GpuSchedule &":$gpu), [{
      return $_get($_ctxt, kind, CpuSchedule(), gpu);
    }]>
  ];
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
  let summary = "Select the object of a gpu.binary by the device at run time";
  let description = [{
    A handler of `gpu.module` and `gpu.binary`. All objects are embedded;
    `bngradCudaModuleLoad` of BNGrad/Runtime/Cuda.h chooses among them at the
    first launch.
  }];
}

#endif // BNGRAD_DIALECT_BNGRADATTRS_TD
