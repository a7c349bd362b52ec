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
      I32EnumAttrCase<"Loops", 0, "loops">
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
    for the sums and one for the element-wise part.
  }];
  let parameters = (ins EnumParameter<BNGrad_ScheduleKind>:$kind);
  let assemblyFormat = "`<` $kind `>`";
  let extraClassDeclaration = [{
    /// Name of the discardable attribute that carries a schedule.
    static constexpr ::llvm::StringLiteral kAttrName = "bngrad.schedule";
  }];
}

#endif // BNGRAD_DIALECT_BNGRADATTRS_TD
