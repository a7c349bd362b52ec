//===- BNGradInterfaces.td - interface of the ops -------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_BNGRADINTERFACES_TD
#define BNGRAD_DIALECT_BNGRADINTERFACES_TD

include "mlir/IR/Interfaces.td"

def BNGrad_BatchNormOpInterface : OpInterface<"BatchNormOpInterface"> {
  let cppNamespace = "::mlir::bngrad";
  let description = [{
    Every op of the dialect on tensors: a batch normalization, its gradient, or
    a part of one of them. An op has the operand `input`, and at most one
    operand and one result of each role of BNGrad/Dialect/Roles.def.
    CONTRIBUTING.md lists the files of a new op.
  }];
  let methods = [
    StaticInterfaceMethod<"Roles of the operands in ODS order, including absent ones.",
        "::llvm::ArrayRef<::mlir::bngrad::Role>", "getOperandRoles">,
    StaticInterfaceMethod<"Roles of the results.",
        "::llvm::ArrayRef<::mlir::bngrad::Role>", "getResultRoles">,
    InterfaceMethod<"The operand at `index` in ODS order; empty if it is absent.",
        "::mlir::OperandRange", "getODSOperands", (ins "unsigned":$index)>,
    InterfaceMethod<"The dims of input whose indices identify a channel.",
        "::llvm::ArrayRef<int64_t>", "getFeatureDims">,
    InterfaceMethod<"Sets the feature dims, strictly ascending.",
        "void", "setFeatureDims", (ins "::llvm::ArrayRef<int64_t>":$dims)>,
    InterfaceMethod<"The number that is added to the variance.",
        "::llvm::APFloat", "getEpsilon", (ins), "",
        [{ return ::llvm::APFloat(0.0); }]>,
    InterfaceMethod<"Whether grad_input differentiates through the statistics.",
        "::mlir::bngrad::Statistics", "getStatistics", (ins), "",
        [{ return ::mlir::bngrad::Statistics::Batch; }]>,
    InterfaceMethod<"The accumulator type; the default is the widest "
                    "float element type among the operands, at least f32.",
        "::mlir::FloatType", "getAccumulatorType", (ins), "",
        [{ return ::mlir::bngrad::getAccumulatorType($_op->getOperands()); }]>
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
