//===- BNGradInterfaces.td - interface of the ops -------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_BNGRADINTERFACES_TD
#define BNGRAD_DIALECT_BNGRADINTERFACES_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/Interfaces.td"

// Run-time checks of operands follow this order.
def BNGrad_Role : I32Enum<
    "Role", "Meaning of an operand or result, by its ODS name", [
      I32EnumCase<"GradOutput", 0, "grad_output">,
      I32EnumCase<"Input", 1, "input">,
      I32EnumCase<"Mask", 2, "mask">,
      I32EnumCase<"Scale", 3, "scale">,
      I32EnumCase<"Mean", 4, "mean">,
      I32EnumCase<"Variance", 5, "variance">,
      I32EnumCase<"InvStd", 6, "inv_std">,
      I32EnumCase<"Sums", 7, "sums">,
      I32EnumCase<"Count", 8, "count">,
      I32EnumCase<"GradInput", 9, "grad_input">,
      I32EnumCase<"GradScale", 10, "grad_scale">,
      I32EnumCase<"GradOffset", 11, "grad_offset">
    ]> {
  let cppNamespace = "::mlir::bngrad";
}

def BNGrad_GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let cppNamespace = "::mlir::bngrad";
  let description = [{
    Every op of the dialect: a gradient of batch normalization, or a part of
    one. An op has the operand `input`, and at most one operand and one result
    of each role. CONTRIBUTING.md lists the files of a new op.
  }];
  let methods = [
    StaticInterfaceMethod<"Roles of the operands in ODS order, including absent ones.",
        "::llvm::ArrayRef<::mlir::bngrad::Role>", "getOperandRoles">,
    StaticInterfaceMethod<"Roles of the results.",
        "::llvm::ArrayRef<::mlir::bngrad::Role>", "getResultRoles">,
    InterfaceMethod<"The operand at `index` in ODS order; empty: absent.",
        "::mlir::OperandRange", "getODSOperands", (ins "unsigned":$index)>,
    InterfaceMethod<"The dims of input whose indices tell channels apart.",
        "::llvm::ArrayRef<int64_t>", "getFeatureDims">,
    InterfaceMethod<"Sets the feature dims, strictly ascending.",
        "void", "setFeatureDims", (ins "::llvm::ArrayRef<int64_t>":$dims)>,
    InterfaceMethod<"Added to the variance.",
        "::llvm::APFloat", "getEpsilon", (ins), "",
        [{ return ::llvm::APFloat(0.0); }]>,
    InterfaceMethod<"Whether grad_input differentiates through the statistics.",
        "::mlir::bngrad::Statistics", "getStatistics", (ins), "",
        [{ return ::mlir::bngrad::Statistics::Batch; }]>,
    InterfaceMethod<"The type of all arithmetic; the default is the widest "
                    "float element type among the operands, at least f32.",
        "::mlir::FloatType", "getAccumulatorType", (ins), "",
        [{ return ::mlir::bngrad::getAccumulatorType($_op->getOperands()); }]>,
    // The sums are linear in grad_output. The reference in long double
    // propagates only errors of these two roles.
    InterfaceMethod<"Whether the results are linear in the operand of `role` "
                    "together with the other operands of which this is true.",
        "bool", "isLinearIn", (ins "::mlir::bngrad::Role":$role), "",
        [{ return role == Role::GradOutput || role == Role::Sums; }]>,
    InterfaceMethod<"The formula by which the reference in long double computes the "
                    "result of `role`; failure: it has none.",
        "::llvm::FailureOr<::mlir::bngrad::ReferenceFormula>",
        "getReferenceFormula", (ins "::mlir::bngrad::Role":$role), "",
        [{ return ::mlir::bngrad::getReferenceFormula(role); }]>
  ];
  let extraClassDeclaration = [{
    /// The role of `operand`, an operand of this op.
    ::mlir::bngrad::Role getOperandRole(::mlir::OpOperand &operand);
    /// The operand of `role`; null if absent.
    ::mlir::Value getOperandOf(::mlir::bngrad::Role role);
    /// The dim of input that has the size of dim `dim` of a tensor of `role`;
    /// nothing for dim 0 of sums, whose size is 2.
    std::optional<int64_t> getInputDim(::mlir::bngrad::Role role, int64_t dim);
    /// The second statistic, variance or inv_std; null if the op has none.
    ::mlir::Value getStatistic();
    /// True if `dim`, in [0, rank(input)), is a feature dim.
    bool isFeatureDim(int64_t dim) {
      return ::llvm::is_contained(getFeatureDims(), dim);
    }
    /// The shape of input, with every size that an operand knows, or a result
    /// that is not per channel.
    ::llvm::SmallVector<int64_t> getDataShape();
  }];
}

#endif // BNGRAD_DIALECT_BNGRADINTERFACES_TD
