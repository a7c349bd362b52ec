//===- BNGradBase.td - dialect and type constraints ------ -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_BNGRADBASE_TD
#define BNGRAD_DIALECT_BNGRADBASE_TD

include "mlir/IR/OpBase.td"

def BNGrad_Dialect : Dialect {
  let name = "bngrad";
  let summary = "Batch normalization and its gradient";
  let description = [{
    The `bngrad` dialect holds batch normalization and its gradient as ops on
    tensors. `--bngrad-decompose` converts them to `linalg` on the way to CPU or
    GPU code. See docs/mathematics.md for the derivation and docs/rationale.md for
    the design of the ops.
  }];
  let cppNamespace = "::mlir::bngrad";
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasCanonicalizer = 1;
}

class BNGrad_Op<string mnemonic, list<Trait> traits = []>
    : Op<BNGrad_Dialect, mnemonic, traits>;

def BNGrad_FloatTensor : RankedTensorOf<[F16, BF16, F32, F64]>;
def BNGrad_CountTensor : 0DTensorOf<[I64]>;
def BNGrad_MaskTensor : RankedTensorOf<[I1]>;

#endif // BNGRAD_DIALECT_BNGRADBASE_TD
