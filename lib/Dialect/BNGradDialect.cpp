//===- BNGradDialect.cpp - dialect registration, attributes ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::bngrad;

#include "BNGrad/Dialect/BNGradDialect.cpp.inc"
#include "BNGrad/Dialect/BNGradEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "BNGrad/Dialect/BNGradAttrs.cpp.inc"

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ScheduleKind kind, int64_t threads,
                                   int64_t vectorBits, int64_t streamingBytes,
                                   int64_t columns, int64_t blocks, bool,
                                   int64_t cluster) {
  constexpr int64_t kMost = 1 << 20;
  if (threads < 1 || threads > kMost)
    return emitError() << "expected threads to be in [1, " << kMost << "], got "
                       << threads;
  // The longest registers are those of SVE. Code grows with the length: each
  // vector is cut into as many as the target needs.
  constexpr int64_t kMostVectorBits = 2048;
  if (vectorBits < 64 || vectorBits > kMostVectorBits ||
      !llvm::isPowerOf2_64(vectorBits))
    return emitError() << "expected vector_bits to be a power of 2 in [64, "
                       << kMostVectorBits << "], got " << vectorBits;
  if (kind == ScheduleKind::TwoPass || kind == ScheduleKind::OnePass) {
    if (threads % 32 != 0 || threads > 1024)
      return emitError() << "expected threads of a block to be a multiple of "
                            "32, at most 1024, got "
                         << threads;
    if (vectorBits > 128)
      return emitError()
             << "expected vector_bits of a GPU to be 64 or 128, got "
             << vectorBits;
  }
  if (streamingBytes < 0)
    return emitError() << "expected streaming_bytes to be at least 0, got "
                       << streamingBytes;
  if (cluster < 1 || cluster > 8 || !llvm::isPowerOf2_64(cluster))
    return emitError() << "expected cluster to be 1, 2, 4 or 8, got "
                       << cluster;
  if (columns < 1 || columns > kMost)
    return emitError() << "expected columns to be in [1, " << kMost << "], got "
                       << columns;
  if (blocks < 1 || blocks > kMost)
    return emitError() << "expected blocks to be in [1, " << kMost << "], got "
                       << blocks;
  return success();
}

namespace {
/// Every op may be inlined: they all compute from their operands alone.
struct BNGradInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void BNGradDialect::initialize() {
  addInterfaces<BNGradInlinerInterface>();
  // registerSelectByDeviceTranslation keeps it.
  declarePromisedInterface<gpu::OffloadingLLVMTranslationAttrInterface,
                           SelectByDeviceAttr>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "BNGrad/Dialect/BNGradAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "BNGrad/Dialect/BNGradOps.cpp.inc"
      >();
}
