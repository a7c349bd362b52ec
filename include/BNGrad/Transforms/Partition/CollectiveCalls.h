//===- CollectiveCalls.h - calls of the runtime --------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PARTITION_COLLECTIVECALLS_H
#define BNGRAD_TRANSFORMS_PARTITION_COLLECTIVECALLS_H

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mlir::bngrad {

/// Whether `module`, lowered by `--bngrad-collectives-to-runtime` or further,
/// calls functions of BNGrad/Runtime/Collectives.h. Its code is linked with
/// libBNGradDistributed.so.
bool callsCollectives(ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_PARTITION_COLLECTIVECALLS_H
