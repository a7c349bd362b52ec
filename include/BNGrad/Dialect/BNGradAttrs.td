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

/// The parameters of a kind for CPUs, and of a kind for GPUs.
def BNGrad_CpuSchedule
    : AttrParameter<"::mlir::bngrad::CpuSchedule", "parameters of a CPU's kind">;
def BNGrad_GpuSchedule
    : AttrParameter<"::mlir::bngrad::GpuSchedule", "parameters of a GPU's kind">;

def BNGrad_ScheduleAttr : AttrDef<BNGrad_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "Loop nest of a group: a gradient and the ops fused with it";
  let description = [{
    `--bngrad-group` sets it on the `linalg.generic` ops of a group, and
    `--bngrad-apply-schedule` applies it. It may also be set by hand, but only
    on such ops.

    The kinds and their parameters are declared in BNGrad/Dialect/Schedules.def,
    and docs/schedules.md describes them. All parameters are optional.
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
