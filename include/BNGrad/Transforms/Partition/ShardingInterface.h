//===- ShardingInterface.h - sharding of the ops -------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PARTITION_SHARDINGINTERFACE_H
#define BNGRAD_TRANSFORMS_PARTITION_SHARDINGINTERFACE_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::bngrad {

/// Lets the ops implement `shard::ShardingInterface`, for upstream's
/// `--sharding-propagation` and `--shard-partition`: the gradient and its two
/// halves. Their loops are the dims of input.
///
/// Source: docs/distributed.md.
void registerShardingInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_PARTITION_SHARDINGINTERFACE_H
