//===- ForeignDialects.td - ops of other projects ------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytecode stores the properties of an op as a sequence that only a registered
// op can read. The ops below have the same properties in the same order as their
// namesakes.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_DIALECT_FOREIGN_FOREIGNDIALECTS_TD
#define BNGRAD_LIB_DIALECT_FOREIGN_FOREIGNDIALECTS_TD

include "mlir/IR/OpBase.td"

class Foreign_BatchNormOp<Dialect dialect, string mnemonic>
    : Op<dialect, mnemonic> {
  let summary = "batch normalization or its gradient (StableHLO specification)";
  let arguments = (ins
    Variadic<AnyType>:$inputs, AnyAttr:$epsilon, AnyAttr:$feature_index);
  let results = (outs Variadic<AnyType>:$outputs);
}

def StableHlo_Dialect : Dialect {
  let name = "stablehlo";
  let cppNamespace = "::mlir::bngrad::stablehlo";
}
def StableHlo_BatchNormGradOp
    : Foreign_BatchNormOp<StableHlo_Dialect, "batch_norm_grad">;
def StableHlo_BatchNormInferenceOp
    : Foreign_BatchNormOp<StableHlo_Dialect, "batch_norm_inference">;
def StableHlo_BatchNormTrainingOp
    : Foreign_BatchNormOp<StableHlo_Dialect, "batch_norm_training">;

def Mhlo_Dialect : Dialect {
  let name = "mhlo";
  let cppNamespace = "::mlir::bngrad::mhlo";
}
def Mhlo_BatchNormGradOp
    : Foreign_BatchNormOp<Mhlo_Dialect, "batch_norm_grad">;
def Mhlo_BatchNormInferenceOp
    : Foreign_BatchNormOp<Mhlo_Dialect, "batch_norm_inference">;
def Mhlo_BatchNormTrainingOp
    : Foreign_BatchNormOp<Mhlo_Dialect, "batch_norm_training">;

#endif // BNGRAD_LIB_DIALECT_FOREIGN_FOREIGNDIALECTS_TD
