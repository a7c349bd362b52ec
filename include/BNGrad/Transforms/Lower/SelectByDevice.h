//===- SelectByDevice.h - kernels for several chips -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_LOWER_SELECTBYDEVICE_H
#define BNGRAD_TRANSFORMS_LOWER_SELECTBYDEVICE_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::bngrad {

/// Adds the translation of `#bngrad.select_by_device` to LLVM IR. It embeds
/// every object of a gpu.binary, and bngradCudaModuleLoad
/// (BNGrad/Runtime/Cuda.h) selects the object for the device at run time.
void registerSelectByDeviceTranslation(DialectRegistry &registry);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_LOWER_SELECTBYDEVICE_H
