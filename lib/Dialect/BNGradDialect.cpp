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

namespace {
/// Every op may be inlined, as all compute only from their operands.
struct BNGradInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void BNGradDialect::initialize() {
  addInterfaces<BNGradInlinerInterface>();
  // registerSelectByDeviceTranslation keeps this promise.
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
